"""What must hold for any instructions: more work is never faster, and the same work always takes the same time."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_driver import (
    ALL,
    KB,
    MTE2,
    MTE3,
    V,
    X,
    Z,
    copy_in,
    copy_out,
    elementwise,
    latency,
    launch,
    signal,
    time,
    vector,
    wait,
)

from kernel_gym.hardware.ascend_sim import chip

SLACK = 1.0 + 1e-9
few = settings(max_examples=15)

records = st.one_of(
    st.builds(copy_in, st.integers(0, 400).map(lambda i: X + i * 512), st.integers(1, 64).map(lambda n: n * 256)),
    st.builds(copy_out, st.integers(0, 400).map(lambda i: Z + i * 512), st.integers(1, 64).map(lambda n: n * 256)),
    st.builds(
        vector, st.integers(0, 30), st.integers(1, 64), operands=st.integers(1, 3), src1=st.sampled_from([0, 256])
    ),
    st.builds(signal, st.sampled_from([V, MTE2, MTE3]), st.integers(0, 5)),
    st.builds(wait, st.sampled_from([0, V, MTE2, MTE3]), st.integers(0, 5)),
    st.sampled_from([f"barrier pipe={ALL}", f"barrier pipe={V}", "plain_code a=9", "scalar_local", "overhead op=2"]),
    st.integers(0, 40).map(lambda i: f"scalar_global gm={X + 16 * i}"),
)
bodies = st.lists(records, min_size=1, max_size=30)


@few
@given(st.lists(bodies, min_size=1, max_size=4))
def test_the_same_records_always_take_the_same_time(blocks: list[list[str]]) -> None:
    assert time(launch(blocks)) == time(launch(blocks))


@few
@given(st.lists(bodies, min_size=2, max_size=8), st.randoms())
def test_the_order_in_which_cores_are_recorded_does_not_matter(blocks: list[list[str]], random: Random) -> None:
    """They all read the same tensor: who fetches depends on when cores read, not on whose records come first."""
    first, *records, last = launch(blocks)
    cores = [[record for record in records if record.endswith(f" core={core}")] for core in range(len(blocks))]
    random.shuffle(cores)
    assert latency([first, *(record for core in cores for record in core), last]) == latency(launch(blocks))


@few
@given(st.integers(0, 47), st.integers(1, 24), st.integers(0, 1))
def test_what_a_core_with_time_to_spare_reads_late_makes_no_launch_shorter(core: int, tiles: int, bypass: int) -> None:
    def reading(part: int, count: int) -> list[str]:
        return [copy_in(X + (part << 24) + i * 32 * KB, 32 * KB, bypass=bypass) for i in range(count)]

    busy, late = reading(0, 24), [vector(13, 255)] * 20
    few = [*reading(1, 1), f"barrier pipe={ALL}", *late, f"barrier pipe={ALL}"]
    again = [line.replace("bypass=1", "bypass=0") for line in busy[:tiles]]
    others = [[*few, *again] if number == core else few for number in range(48)]
    assert latency(launch([busy, *others[1:]])) >= latency(launch([busy, *[few] * 47]))


@few
@given(st.integers(1, 400), st.integers(1, 64), st.integers(1, 48))
def test_more_bytes_are_never_faster(pieces: int, more: int, cores: int) -> None:
    def copying(size: int) -> list[str]:
        return launch([copy_in(X + core * 2**24, size)] for core in range(cores))

    assert latency(copying(256 * pieces)) < latency(copying(256 * (pieces + more)))


@few
@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 48), st.floats(0.1, 1), st.sampled_from([2, 4, 16]))
def test_a_copy_in_pieces_takes_as_long_as_in_one(before: int, after: int, busy: int, rest: float, pieces: int) -> None:
    """Also where other cores end during the copy, and leave their share of HBM to what has not been copied yet."""
    profile = chip.load("910B1")
    piece = (profile["copy.issue"] + profile["copy.burst"]) / profile["clock_mhz"]
    size = 192 * KB

    def latency_of(count: int) -> float:
        def core(number: int) -> list[str]:
            if number >= busy:
                return [copy_in(X + (number << 24), int(size * rest) // 256 * 256)]
            copies = [copy_in(X + (number << 24) + i * size // count, size // count) for i in range(count)]
            barrier = f"barrier pipe={ALL}"
            return [*[vector(13, 255)] * before, barrier, *copies, barrier, *[vector(13, 255)] * after]

        return latency(launch(core(number) for number in range(48)))

    whole = latency_of(1)
    assert whole <= latency_of(pieces) <= 1.001 * whole + 2 * (pieces - 1) * piece


@few
@given(bodies, st.data())
def test_one_more_instruction_is_never_faster(body: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(body)))
    extra = data.draw(st.sampled_from([vector(0, 4), "scalar_local", "plain_code a=3", "overhead op=2"]))
    assert latency(launch([body])) <= latency(launch([[*body[:place], extra, *body[place:]]])) * SLACK


@few
@given(bodies, st.data())
def test_one_more_wait_is_never_faster(body: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(body)))
    extra = data.draw(st.sampled_from([wait(V, 1), wait(MTE2, 2), wait(0, 3), f"barrier pipe={ALL}"]))
    assert latency(launch([body])) <= latency(launch([[*body[:place], extra, *body[place:]]])) * SLACK


@few
@given(st.sampled_from([1, 2, 4, 8, 12, 16, 24]), st.sampled_from([2, 8, 32]), st.integers(1, 2))
def test_more_cores_are_never_slower_beyond_their_launch(cores: int, tile_kb: int, buffers: int) -> None:
    free = chip.load("910B1").changed(launch__core_us=0)
    total = 48 * 32 * KB

    def on(count: int) -> float:
        return latency(elementwise(total, count, tile_kb * KB, buffers), free)

    assert on(2 * cores) <= on(cores) * SLACK


@few
@given(st.sampled_from([1, 4, 16, 48]), st.sampled_from([1, 4, 16]))
@pytest.mark.slow
def test_two_buffers_are_never_slower_than_one(cores: int, tile_kb: int) -> None:
    total = 48 * 32 * KB
    one, two = (latency(elementwise(total, cores, tile_kb * KB, buffers)) for buffers in (1, 2))
    assert two < one


@few
@given(
    st.sampled_from(["memory__hbm_gbs", "memory__l2_gbs", "memory__write_core_gbs", "clock_mhz"]), st.floats(1.1, 4.0)
)
def test_a_better_chip_is_never_slower(figure: str, factor: float) -> None:
    base = chip.load("910B2")
    better = base.changed(**{figure: base[figure.replace("__", ".")] * factor})
    lines = elementwise(48 * 32 * KB, 48, 8 * KB, 2)
    assert latency(lines, better) <= latency(lines, base) * SLACK
