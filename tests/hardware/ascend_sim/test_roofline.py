"""Tests of the roofline: its formula, by hand, on the default chip."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel_gym.hardware.ascend_sim import chip
from kernel_gym.hardware.ascend_sim.roofline import Work, roofline_us

NOTHING = Work(read=0, written=0, multiply_adds=0, size=4)
#: Multiply-adds of floats that a cube core and a vector core of 1800 MHz do in a microsecond. A multiply-add of 64
#: floats takes the vector unit two cycles.
CUBE, VECTOR = 1800 * 1024, 1800 * 64 // 2


@pytest.mark.parametrize(
    ("work", "microseconds"),
    [
        # One vector core that does nothing.
        (NOTHING, 0.5 + 0.18),
        # 1530 GB/s are reached by 16 cores of 100 GB/s each; more cores only take longer to start.
        (Work(153_000_000, 0, 0, 4), 0.5 + 16 * 0.18 + 100),
        # All vector cores write 51 GB/s each.
        (Work(0, 24_480_000, 0, 4), 0.5 + 48 * 0.18 + 10),
        # Reading and writing at the same time: the longer of the two.
        (Work(153_000_000, 81_600_000, 0, 4), 0.5 + 16 * 0.18 + 100),
        # Many products are done on all cores of both kinds; a launch of both starts as many as it has vector cores.
        (Work(0, 0, 100 * (24 * CUBE + 48 * VECTOR), 4), 0.5 + 9 + 48 * 0.18 + 100),
        # The cube unit multiplies four times as many halves, the vector unit twice as many.
        (Work(0, 0, 1000 * (24 * 4 * CUBE + 48 * 2 * VECTOR), 2), 0.5 + 9 + 48 * 0.18 + 1000),
    ],
)
def test_the_roofline_is_that_of_the_best_launch(work: Work, microseconds: float) -> None:
    assert roofline_us(chip.load("910B2"), work) == pytest.approx(microseconds)


def test_a_few_cores_are_best_for_little_work() -> None:
    """They are done before cube cores would have started: 9 us on one core, 1 / n of it on n, 0.18 us more for each."""
    work = Work(0, 0, 9 * VECTOR, 4)
    by_hand = 0.5 + 0.18 * 7 + 9 / 7
    assert roofline_us(chip.load("910B2"), work) == pytest.approx(by_hand)


def test_what_the_cube_unit_cannot_compute_needs_vector_cores_beside_it() -> None:
    """Alone, 16 cube cores are best for 47 us of one; with two vector cores each, 11 to 12 of them."""
    product = Work(0, 0, 47 * CUBE, 4)
    assert roofline_us(chip.load("910B2"), product) == pytest.approx(0.5 + 9 + 16 * 0.18 + 47 / 16)
    both = min(0.5 + 9 + 2 * n * 0.18 + 47 * CUBE / (n * CUBE + 2 * n * VECTOR) for n in range(1, 25))
    assert roofline_us(chip.load("910B2"), replace(product, nonlinear=True)) == pytest.approx(both)


def test_more_work_never_takes_less_time() -> None:
    profile = chip.load("910B2")
    times = [roofline_us(profile, Work(n, n // 2, 100 * n, 4)) for n in range(0, 40_000_000, 1_000_000)]
    assert times == sorted(times)
