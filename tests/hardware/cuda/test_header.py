"""Every device hands kernels the same structures."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.hardware.ascend_sim import runtime as simulator
from kernel_gym.hardware.cuda.runtime import INCLUDE

#: NVRTC has no headers of the host's compiler, and gives these types itself.
GUARD = ("#if !defined(__CUDACC_RTC__)", "#endif")


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("//")]


def test_the_headers_differ_by_a_guard_alone() -> None:
    ours, theirs = lines(INCLUDE / "kernel_gym.h"), lines(simulator.HERE / "include" / "kernel_gym.h")
    assert [line for line in ours if line not in GUARD] == [line for line in theirs if line not in GUARD]
    assert all(ours.count(line) == 1 for line in GUARD)
