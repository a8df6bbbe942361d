"""What the trusted process holds for a kernel that cuts global memory into pieces or leaves events is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

MB = 1 << 20
#: Each of two cores writes and reads `{bytes}` bytes at a time, with `{gap}` bytes between them.
PIECES = """
    TBuf<> room;
    pipe.InitBuffer(room, 131072);
    LocalTensor<int8_t> t = room.Get<int8_t>();
    LocalTensor<float> numbers = room.Get<float>();
    Duplicate(numbers, 1.0f, 32768);
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<int8_t> g;
    g.SetGlobalBuffer((__gm__ int8_t *)GetUserWorkspace(ws) + GetBlockIdx() * {step});
    for (uint32_t i = 0; i < p.v[0]; ++i) {{
        const uint64_t at = (uint64_t)i * 4095 * {bytes_and_gap};
        DataCopyPad(g[at], t, DataCopyExtParams{{4095, {bytes}, 0, {gap}, 0}});
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(t, g[at], DataCopyExtParams{{4095, {bytes}, {gap}, 0, 0}},
                    DataCopyPadExtParams<int8_t>{{false, 0, 0, 0}});
        PipeBarrier<PIPE_ALL>();
    }}
"""
EVENTS = """
    TBuf<> room;
    pipe.InitBuffer(room, 131072);
    LocalTensor<int32_t> t = room.Get<int32_t>();
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t *)GetUserWorkspace(ws));
    Duplicate(t, 0, 32768);
    PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; GetBlockIdx() == 1 && i < 20; ++i) DataCopy(g[i * 32768], t, 32768);
    for (int64_t i = 0; GetBlockIdx() == 1 && i < p.v[0]; ++i) IBSet(g[i * 8], t, 0, 0);
    for (int64_t i = 0; GetBlockIdx() == 1 && i < p.v[1]; ++i) {
        IBWait(g, t, 0, 0);
        IBSet(g, t, 0, 0);
    }
"""


@pytest.fixture
def device() -> Iterator[AscendSim]:
    with AscendSim() as device:
        yield device


def run(device: AscendSim, body: str, *numbers: int) -> Run:
    values = np.zeros(4 * MB, np.int8)
    return Compiled(device, source(body, 1, "2"))((values,), [((1,), "float32")], ints=numbers)


def cut(length: int, gap: int, step: int) -> str:
    return PIECES.format(bytes=length, gap=gap, step=step, bytes_and_gap=length + gap)


def peak(process: str = "self") -> int:
    """Return the most bytes that a process started by this one has held."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    below = [child for file in children for child in file.read_text().split()]
    held = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    own = 1024 * int(held[1]) if held and process != "self" else 0
    return max([own, *map(peak, below)])


def test_a_workspace_in_pieces_takes_little_more_memory_than_one_as_a_whole(device: AscendSim) -> None:
    """32 bytes of each 1,024 by one core and 32 by another: 16 x 4 MB, its validity, and what says who holds it."""
    assert run(device, cut(32, 992, 512), 1).fault is None
    before = peak()
    assert run(device, cut(32, 992, 512), 16).fault is None
    assert peak() - before < 3 * 64 * MB


@pytest.mark.slow
def test_too_many_pieces_are_a_fault_of_the_kernel(device: AscendSim) -> None:
    result = run(device, cut(1, 1, 1), 9000)
    assert result.fault is not None
    assert result.fault.rule == "GM_PIECES"
    assert peak() < 1500 * MB


def test_events_that_nobody_waits_for_are_a_fault_of_the_kernel(device: AscendSim) -> None:
    result = run(device, EVENTS, 70_000, 0)
    assert result.fault is not None
    assert result.fault.rule == "FLAG_TWICE"
    assert run(device, EVENTS, 60_000, 10_000).fault is None
