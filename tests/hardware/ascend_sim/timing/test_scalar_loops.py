"""Loops of scalar accesses take the same time as their accesses one by one, to the last digit of the whole report."""

from __future__ import annotations

import random

import pytest
from timeline_driver import MTE2, X, Y, Z, copy_in, signal, time, vector, wait

from kernel_gym.hardware.ascend_sim import chip

LOCAL, GLOBAL = 0, 1
STEPS = [0, 1, 2, 4, 4, 4, 8, 12, 32, 60, 64, 68, 100, 4096, 1 << 20]


def access(draw: random.Random) -> str:
    """One access of a period: address, step, line, cycles of plain code, global, write, element type."""
    space = draw.choice([LOCAL, GLOBAL])
    step = draw.choice(STEPS) * draw.choice([1, 1, 1, -1])
    where = draw.choice([X, Y, Z]) + (1 << 34) + 4 * draw.randrange(4096) if space else 4 * draw.randrange(16384)
    blocks, line = draw.choice([0, 0, 1, 2, 3, 40]), draw.choice([-1, 0, 7, 8, 9, 70000])
    return f"access {where} {step} {line} {blocks} {space} {draw.randrange(2)} 0"


def loop(draw: random.Random, core: int) -> list[str]:
    period = draw.choice([1, 1, 2, 2, 3, 4, 8, 17, 32])
    count = draw.choice([1, period, 2 * period, draw.randrange(1, 50), draw.randrange(50, 3000)])
    return [*(access(draw) for _ in range(period)), f"loop {count} {core} {draw.choice([0, 0, 1])}"]


def program(seed: int) -> list[str]:
    """Loops between other records, on two cores that meet."""
    draw = random.Random(seed)
    lines = ["launch_begin a=2 b=0", "core_begin core=0", "core_begin core=1"]
    others = [
        copy_in(X, 4096),
        vector(0, 8),
        signal(MTE2, 1),
        wait(0, 1),
        "scalar_local",
        "scalar_local b=1",
        f"scalar_global gm={Y}",
        "plain_code a=3",
    ]
    for _ in range(12):
        core = draw.randrange(2)
        lines += [f"{draw.choice(others)} core={core}" for _ in range(draw.randrange(3))]
        lines += loop(draw, core)
    lines += ["sync_all core=0", "sync_all core=1", *loop(draw, 0), *loop(draw, 1)]
    return [*lines, "core_end core=0", "core_end core=1", "launch_end"]


@pytest.mark.parametrize("seed", range(20))
def test_a_loop_takes_the_time_of_its_accesses(seed: int) -> None:
    lines = program(seed)
    small_cache = chip.load("910B2").changed(scalar__cache_bytes=512)
    for profile in (chip.load("910B2"), small_cache):
        assert time(lines, profile) == time(lines, profile, "--plain")


def test_a_loop_costs_as_much_as_its_waits() -> None:
    """In each period a write waits for the read before it: 4 + 20 + 4 cycles, and 2 of plain code."""
    accesses = {"scalar__local": 4, "scalar__load_use": 20}
    profile = chip.load("910B1").changed(clock_mhz=1000, launch__base_us=0, launch__core_us=0, **accesses)
    lines = ["launch_begin a=1 b=0", "core_begin core=0", "access 0 4 7 2 0 0 0", "access 4096 4 7 0 0 1 0"]
    lines += ["loop 2000 0 0", "core_end core=0", "launch_end"]
    report = time(lines, profile)
    assert report["latency_us"] == pytest.approx(1000 * 0.030)
    assert report["counts"]["scalar_accesses"] == 2000
    assert report["counts"]["records"] == 3000 + 4
