"""The diagnosis names what held a kernel up, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from timeline_driver import KB, X, Z, copy_in, copy_out, elementwise, launch, time, vector

from kernel_gym.hardware.ascend_sim.profile import diagnose

MB = 1024 * KB
DIV, EXP = 3, 13


def diagnosed(lines: list[str]) -> tuple[str, str]:
    diagnosed = diagnose(time(lines))
    return diagnosed.bottleneck, diagnosed.diagnosis


#: Records, which are made when a test needs them, the bottleneck, and words of the diagnosis.
CASES: dict[str, tuple[Callable[[], list[str]], str, str]] = {
    "tiny data on all cores": (lambda: elementwise(48 * KB, 48, 1 * KB, 1), "launch", "fewer than 48 cores"),
    "many launches": (lambda: 10 * elementwise(48 * 4 * KB, 48, 4 * KB, 1), "launch", "one launch"),
    "one core": (lambda: elementwise(8 * MB, 1, 16 * KB, 2), "balance", "Only 1 of 48"),
    "uneven": (
        lambda: launch(
            [copy_in(X + (core << 22) + i * 8 * KB, 8 * KB) for i in range(20 if core else 200)] for core in range(48)
        ),
        "balance",
        "equal part",
    ),
    "large tiles": (lambda: elementwise(48 * MB, 48, 32 * KB, 2), "mte2", "TB/s"),
    "small tiles": (lambda: elementwise(12 * MB, 48, 1 * KB, 4), "mte2", "larger tiles"),
    "one buffer": (lambda: elementwise(24 * MB, 48, 16 * KB, 1, inputs=1, op=DIV), "mte2", "two buffers"),
    "tiles of 16 KB": (lambda: elementwise(48 * MB, 48, 16 * KB, 2), "mte2", "moving less"),
    "large tiles on many cores": (
        lambda: elementwise(16 * MB, 48, 32 * KB, 2),
        "mte2",
        "launching 48 cores, which takes",
    ),
    "small and unaligned": (
        lambda: launch([copy_in(X + (core << 24) + 32 + i * 2 * KB, 2 * KB) for i in range(200)] for core in range(48)),
        "mte2",
        "pieces of 2.0 KB",
    ),
    "one core, element by element": (
        lambda: launch([["scalar_local line=12"] * 9000]),
        "scalar",
        "vector instructions",
    ),
    "unaligned": (
        lambda: launch(
            [copy_in(X + (core << 24) + i * 8226, 512, bursts=16, gap=2) for i in range(60)] for core in range(48)
        ),
        "mte2",
        "512-byte boundary",
    ),
    "same data": (
        lambda: launch([copy_in(X + i * 16 * KB, 128, bursts=128) for i in range(60)] for _ in range(48)),
        "mte2",
        "start at another place",
    ),
    "writing": (
        lambda: launch([copy_out(Z + (core << 24) + i * 32 * KB, 32 * KB) for i in range(60)] for core in range(48)),
        "mte3",
        "moving",
    ),
    "computing": (lambda: launch([vector(EXP, 255)] * 200 for _ in range(48)), "vector", "cheaper instructions"),
    "few repeats": (lambda: launch([vector(EXP, 2)] * 1000 for _ in range(48)), "vector", "larger tiles"),
    "bank conflicts": (
        lambda: launch([vector(0, 255, operands=3, dst=0x20000, src1=0x4000)] * 200 for _ in range(48)),
        "vector",
        "bank conflicts",
    ),
    "element by element": (
        lambda: launch(["access 0 4 12 0 0 0 0", f"loop 18000 {core} 0"] for core in range(48)),
        "scalar",
        "line 12",
    ),
    "plain code": (lambda: launch(["plain_code a=60000"] for _ in range(48)), "scalar", "plain code"),
    "global scalars": (
        lambda: launch([f"scalar_global gm={X + 64 * i}" for i in range(300)] for _ in range(48)),
        "scalar",
        "cache misses",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bottleneck_is_named_with_what_to_do(case: str) -> None:
    make, name, words = CASES[case]
    bottleneck, diagnosis = diagnosed(make())
    assert (bottleneck, words in diagnosis) == (name, True), diagnosis


def test_waiting_for_other_cores_is_called_sync() -> None:
    lines = ["launch_begin a=2 b=0"]
    for turn in range(4):
        for core in range(2):
            begin = "core_begin" if turn == 0 else "core_resume"
            work = vector(EXP, 255 if core == turn % 2 else 1)
            lines += [f"{begin} core={core}", *[f"{work} core={core}"] * 40, f"sync_all core={core}"]
    lines += ["core_end core=0", "core_end core=1", "launch_end"]
    report: dict[str, Any] = time(lines)
    report["counts"]["available_cores"] = 2
    assert diagnose(report).bottleneck == "sync"


def test_matmul_is_called_cube() -> None:
    shape = "m=1024 n=1024 k=1024 base_m=128 base_n=256 base_k=64 depth_a=8 depth_b=8"
    bottleneck, _ = diagnosed(launch([[f"matmul pipe=2 dtype=1 op=0 {shape}"]] * 24, kind=1))
    assert bottleneck in {"cube", "mte2"}


def test_the_profile_carries_the_figures() -> None:
    diagnosed = diagnose(time(elementwise(12 * MB, 48, 8 * KB, 2)))
    assert diagnosed.bytes["hbm_read"] == 24 * MB
    assert set(diagnosed.pipes) == {"S", "V", "MTE2", "MTE3"}
    assert diagnosed.counts["launches"] == 1
    assert all(value >= 0 for value in diagnosed.waits.values())
