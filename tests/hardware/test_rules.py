"""Every rule of the device: a program that breaks it, and beside it one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

LENGTH, BLOCKS = 1024, 4

#: Global tensors of this core, three queues and a buffer.
SETUP = """
    const uint32_t L = 1024;
    GlobalTensor<float> xg, yg, zg, wg;
    xg.SetGlobalBuffer((__gm__ float *)x0 + L * GetBlockIdx(), L);
    yg.SetGlobalBuffer((__gm__ float *)x1 + L * GetBlockIdx(), L);
    zg.SetGlobalBuffer((__gm__ float *)z0 + L * GetBlockIdx(), L);
    wg.SetGlobalBuffer((__gm__ float *)ws + L * GetBlockIdx(), L);
    TQue<TPosition::VECIN, 2> qx, qy;
    TQue<TPosition::VECOUT, 2> qz;
    TBuf<TPosition::VECCALC> tb;
    pipe.InitBuffer(qx, 2, L * 4);
    pipe.InitBuffer(qy, 2, L * 4);
    pipe.InitBuffer(qz, 2, L * 4);
    pipe.InitBuffer(tb, 16384);
"""
LOAD = """
    LocalTensor<float> a = qx.AllocTensor<float>();
    DataCopy(a, xg, L);
    qx.EnQue(a);
    LocalTensor<float> b = qy.AllocTensor<float>();
    DataCopy(b, yg, L);
    qy.EnQue(b);
    a = qx.DeQue<float>();
    b = qy.DeQue<float>();
    LocalTensor<float> c = qz.AllocTensor<float>();
"""
STORE = """
    qz.EnQue(c);
    qx.FreeTensor(a);
    qy.FreeTensor(b);
    c = qz.DeQue<float>();
    DataCopy(zg, c, L);
    qz.FreeTensor(c);
"""
GOOD = SETUP + LOAD + "    Add(c, a, b, L);" + STORE
TBUF = "LocalTensor<float> t = tb.Get<float>();"


def compute(body: str) -> str:
    """A kernel that does `body` between loading a, b and storing c."""
    return SETUP + LOAD + body + STORE


def plain(body: str) -> str:
    """A kernel that does `body` after the buffers are there."""
    return SETUP + body


@dataclass(frozen=True)
class Case:
    rule: str
    bad: str
    good: str
    says: str = ""
    blocks: str = "4"


FILL = "Adds(c, a, 0.0f, L);"
CASES = {
    "buffers larger than UB": Case("CAPACITY", plain("TBuf<> u; pipe.InitBuffer(u, 180 * 1024);"), plain("TBuf<> u; pipe.InitBuffer(u, 96 * 1024);"), "184320"),
    "too many buffers in a queue": Case("BUFFER_INIT", plain("TQue<TPosition::VECIN, 1> u; pipe.InitBuffer(u, 65, 32);"), plain("TQue<TPosition::VECIN, 1> u; pipe.InitBuffer(u, 8, 32);"), "65"),
    "a buffer without bytes": Case("BUFFER_INIT", plain("TBuf<> u; pipe.InitBuffer(u, 0);"), plain("TBuf<> u; pipe.InitBuffer(u, 1);")),
    "a queue without buffers": Case("QUEUE_INIT", plain("TQue<TPosition::VECIN, 1> u; u.AllocTensor<float>();"), GOOD, "InitBuffer"),
    "allocating more than there is": Case(
        "QUEUE_FULL",
        plain("for (int i = 0; i < 3; ++i) { auto a = qx.AllocTensor<float>(); DataCopy(a, xg, L); qx.EnQue(a); a = qx.DeQue<float>(); }"),
        plain("for (int i = 0; i < 3; ++i) { auto a = qx.AllocTensor<float>(); DataCopy(a, xg, L); qx.EnQue(a); a = qx.DeQue<float>(); qx.FreeTensor(a); }"),
        "FreeTensor",
    ),
    "taking from an empty queue": Case("QUEUE_EMPTY", plain("auto a = qx.DeQue<float>();"), GOOD, "EnQue"),
    "more enqueued than the queue is deep": Case(
        "QUEUE_DEPTH",
        plain("TQue<TPosition::VECIN, 1> u; pipe.InitBuffer(u, 2, 32); for (int i = 0; i < 2; ++i) { auto a = u.AllocTensor<float>(); u.EnQue(a); }"),
        plain("TQue<TPosition::VECIN, 2> u; pipe.InitBuffer(u, 2, 32); for (int i = 0; i < 2; ++i) { auto a = u.AllocTensor<float>(); u.EnQue(a); }"
              "for (int i = 0; i < 2; ++i) { auto a = u.DeQue<float>(); u.FreeTensor(a); }"),
    ),
    "nine tensors in flight": Case(
        "EVENTS",
        plain("TQue<TPosition::VECIN, 9> u; pipe.InitBuffer(u, 9, 32); LocalTensor<float> t; for (int i = 0; i < 9; ++i) t = u.AllocTensor<float>();"),
        plain("TQue<TPosition::VECIN, 8> u; pipe.InitBuffer(u, 8, 32); for (int i = 0; i < 8; ++i) { auto a = u.AllocTensor<float>(); u.EnQue(a); }"
              "for (int i = 0; i < 8; ++i) { auto a = u.DeQue<float>(); u.FreeTensor(a); }"),
    ),
    "freeing twice": Case("QUEUE_STATE", GOOD + "qz.FreeTensor(c);", GOOD, "free since line"),
    "enqueuing twice": Case("QUEUE_STATE", SETUP + "auto a = qx.AllocTensor<float>(); qx.EnQue(a); qx.EnQue(a);", GOOD, "already enqueued"),
    "freeing what waits in the queue": Case("QUEUE_STATE", plain("auto a = qx.AllocTensor<float>(); qx.EnQue(a); qx.FreeTensor(a);"), GOOD),
    "another queue's tensor": Case("QUEUE_FOREIGN", compute(FILL + "qx.FreeTensor(b);"), GOOD, "VECIN queue 1"),
    "never dequeued": Case("QUEUE_LEAK", plain("auto a = qx.AllocTensor<float>(); DataCopy(a, xg, L); qx.EnQue(a);"), GOOD, "never dequeued"),
    "never freed": Case("QUEUE_LEAK", plain("auto a = qx.AllocTensor<float>();"), plain("auto a = qx.AllocTensor<float>(); qx.FreeTensor(a);"), "never"),
    "copy in, then compute, unordered": Case(
        "MISSING_SYNC",
        compute(TBUF + "DataCopy(t, xg, L); Adds(c, t, 1.0f, L);"),
        compute(TBUF + "DataCopy(t, xg, L); SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); Adds(c, t, 1.0f, L);"),
        "MTE2_V",
    ),
    "compute, then copy out, unordered": Case(
        "MISSING_SYNC",
        plain(TBUF + "Duplicate(t, 1.0f, L); DataCopy(zg, t, L);"),
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(zg, t, L);"),
        "V_MTE3",
    ),
    "overwritten while it is read": Case(
        "MISSING_SYNC",
        compute(TBUF + "for (int i = 0; i < 2; ++i) { DataCopy(t, xg, L); SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); Adds(c, t, 1.0f, L); }"),
        compute(TBUF + "for (int i = 0; i < 2; ++i) { DataCopy(t, xg, L); SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); Adds(c, t, 1.0f, L);"
                "SetFlag<HardEvent::V_MTE2>(EVENT_ID0); WaitFlag<HardEvent::V_MTE2>(EVENT_ID0); }"),
        "V_MTE2",
    ),
    "used before DeQue": Case("MISSING_SYNC", GOOD.replace("    b = qy.DeQue<float>();", ""), GOOD, "VECIN queue 1 buffer 0"),
    "written while it is copied out": Case(
        "MISSING_SYNC",
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(zg, t, L); Duplicate(t, 2.0f, L);"),
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(zg, t, L); PipeBarrier<PIPE_ALL>(); Duplicate(t, 2.0f, L);"),
        "MTE3_V",
    ),
    "read back from global memory, unordered": Case(
        "GM_SYNC",
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(wg, t, L); DataCopy(t[L], wg, L);"),
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(wg, t, L); SetFlag<HardEvent::MTE3_MTE2>(0); WaitFlag<HardEvent::MTE3_MTE2>(0); DataCopy(t[L], wg, L);"),
        "MTE3_MTE2",
    ),
    "two cores write the same bytes": Case(
        "GM_RACE",
        GOOD.replace("(__gm__ float *)z0 + L * GetBlockIdx()", "(__gm__ float *)z0 + (L - 8) * GetBlockIdx()"),
        GOOD,
        "core 0",
    ),
    "atomic over what another core wrote": Case(
        "GM_RACE",
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); GlobalTensor<float> all; all.SetGlobalBuffer((__gm__ float *)z0);"
              "if (GetBlockIdx() == 0) DataCopy(all, t, L); PipeBarrier<PIPE_ALL>(); SetAtomicAdd<float>(); DataCopy(all, t, L); SetAtomicNone();"),
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); GlobalTensor<float> all; all.SetGlobalBuffer((__gm__ float *)z0);"
              "if (GetBlockIdx() == 0) DataCopy(all, t, L); SyncAll(); SetAtomicAdd<float>(); DataCopy(all, t, L); SetAtomicNone();"),
    ),
    "reading what another core writes": Case(
        "GM_RACE",
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(wg, t, L); PipeBarrier<PIPE_ALL>(); GlobalTensor<float> first; first.SetGlobalBuffer((__gm__ float *)ws); DataCopy(t[L], first, L);"),
        plain(TBUF + "Duplicate(t, 1.0f, L); PipeBarrier<PIPE_ALL>(); DataCopy(wg, t, L); SyncAll(); GlobalTensor<float> first; first.SetGlobalBuffer((__gm__ float *)ws); DataCopy(t[L], first, L);"),
        "SyncAll",
    ),
    "a vector operand off its block": Case("ALIGNMENT", compute(FILL + "Adds(c[3], a, 1.0f, 8);"), compute(FILL + "Adds(c[8], a, 1.0f, 8);"), "32"),
    "a copy to an address off its block": Case("ALIGNMENT", plain("auto a = qx.AllocTensor<float>(); DataCopy(a[1], xg, 512); qx.FreeTensor(a);"),
                                               plain("auto a = qx.AllocTensor<float>(); DataCopy(a[8], xg, 512); qx.FreeTensor(a);")),
    "a copy of part of a block": Case(
        "COPY_SIZE", plain("auto a = qx.AllocTensor<float>(); DataCopy(a, xg, 5); qx.FreeTensor(a);"),
        plain("auto a = qx.AllocTensor<float>(); DataCopyPad(a, xg, DataCopyExtParams{1, 20, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}); qx.FreeTensor(a);"),
        "DataCopyPad",
    ),
    "a copy of too many blocks": Case(
        "COPY_RANGE", plain(TBUF + "DataCopy(t, xg, DataCopyParams{4096, 1, 0, 0});"), plain(TBUF + "DataCopy(t, xg, DataCopyParams{8, 1, 0, 0});"), "blockCount",
    ),
    "too much padding": Case(
        "COPY_RANGE", plain(TBUF + "DataCopyPad(t, xg, DataCopyExtParams{1, 32, 0, 0, 0}, DataCopyPadExtParams<float>{true, 9, 0, 0});"),
        plain(TBUF + "DataCopyPad(t, xg, DataCopyExtParams{1, 32, 0, 0, 0}, DataCopyPadExtParams<float>{true, 8, 0, 0});"), "pads 9",
    ),
    "past the end of a tensor": Case("OUT_OF_BOUNDS", compute("Add(c, a, b, 2 * L);"), GOOD, "4096"),
    "an offset past the end": Case("OUT_OF_BOUNDS", compute(FILL + "Adds(c[L + 8], a, 1.0f, 8);"), compute(FILL + "Adds(c[L - 8], a, 1.0f, 8);")),
    "an index past the end": Case("OUT_OF_BOUNDS", compute(FILL + "float v = a.GetValue(L); c.SetValue(0, v);"), compute(FILL + "float v = a.GetValue(L - 1); c.SetValue(0, v);"), "1024"),
    "past the end of a global tensor": Case("GM_OUT_OF_BOUNDS", GOOD, GOOD, "input 0", blocks="5"),
    "a global tensor that was never set": Case("GM_ADDRESS", compute("GlobalTensor<float> q; DataCopy(tb.Get<float>(), q, L);" + FILL), GOOD, "SetGlobalBuffer"),
    "writing to an input": Case("WRITE_TO_INPUT", GOOD.replace("DataCopy(zg, c, L)", "DataCopy(xg, c, L)"), GOOD, "input 0"),
    "an output that was not computed": Case("UNINITIALISED", compute("Add(c, a, b, L - 8);"), GOOD, "byte 4064 of output 0"),
    "a value that was not computed": Case("UNINITIALISED", compute(TBUF + FILL + "c.SetValue(0, t.GetValue(0));"), compute(TBUF + "Duplicate(t, 1.0f, 8);" + FILL + "c.SetValue(0, t.GetValue(0));")),
    "poison travels through instructions": Case("UNINITIALISED", compute(TBUF + "Add(c, a, t, L);"), compute(TBUF + "Duplicate(t, 1.0f, L); Add(c, a, t, L);")),
    "a mask larger than a repeat": Case("REPEAT", compute(FILL + "Adds(c, a, 1.0f, 65, 1, {1, 1, 8, 8});"), compute(FILL + "Adds(c, a, 1.0f, 64, 1, {1, 1, 8, 8});"), "64"),
    "a destination stride of 0": Case("REPEAT", compute(FILL + "Adds(c, a, 1.0f, 64, 1, {0, 1, 8, 8});"), compute(FILL + "Adds(c, a, 1.0f, 64, 1, {2, 1, 16, 8});")),
    "a shifted copy of itself": Case("OVERLAP", compute(FILL + "Adds(c[8], c, 1.0f, 64);"), compute(FILL + "Adds(c, c, 1.0f, 64); Adds(c, c[64], 1.0f, 512);")),
    "a later repeat reads what an earlier wrote": Case(
        "OVERLAP", compute(FILL + "Adds(c[64], c, 1.0f, 64, 4, {1, 1, 8, 8});"), compute(FILL + "Add(c, c, a, 64, 4, {1, 1, 1, 0, 0, 8});"),
    ),
    "a rounding mode that Cast lacks": Case(
        "CAST", compute(FILL + "Cast(tb.Get<int32_t>(), a, RoundMode::CAST_NONE, L);"), compute(FILL + "Cast(tb.Get<int32_t>(), a, RoundMode::CAST_RINT, L);"), "CAST_RINT",
    ),
    "comparing part of a repeat": Case(
        "COMPARE_SIZE", compute(FILL + "Compare(tb.Get<uint8_t>(), a, b, CMPMODE::LT, 60);"), compute(FILL + "Compare(tb.Get<uint8_t>(), a, b, CMPMODE::LT, 64);"), "256",
    ),
    "comparing int32 for less": Case("DTYPE", compute(FILL + "Compare(tb.Get<uint8_t>(), a.ReinterpretCast<int32_t>(), b.ReinterpretCast<int32_t>(), CMPMODE::LT, 64);"),
                                     compute(FILL + "Compare(tb.Get<uint8_t>(), a.ReinterpretCast<int32_t>(), b.ReinterpretCast<int32_t>(), CMPMODE::EQ, 64);"), "EQ"),
    "a work tensor too small": Case("WORK_BUFFER", compute(FILL + "ReduceMax(c, a, tb.Get<float>(8), L);"), compute(FILL + "ReduceMax(c, a, tb.Get<float>(32), L);"), "128 bytes"),
    "no room for temporaries": Case(
        "TMP_BUFFER", compute(FILL + "TBuf<> rest; pipe.InitBuffer(rest, 196608 - 6 * 4096 - 16384); Tanh(c, a, L);"),
        compute(FILL + "TBuf<> rest; pipe.InitBuffer(rest, 196608 - 6 * 4096 - 16384 - 256); Tanh(c, a, L);"), "256 bytes",
    ),
    "a gather past its source": Case("GATHER", compute(FILL + "LocalTensor<int32_t> o = tb.Get<int32_t>(); CreateVecIndex(o, 4090, 8); Gather(c, a, o.ReinterpretCast<uint32_t>(), 0u, 8);"),
                                     compute(FILL + "LocalTensor<int32_t> o = tb.Get<int32_t>(); CreateVecIndex(o, 0, 8); Muls(o, o, 4, 8); Gather(c, a, o.ReinterpretCast<uint32_t>(), 0u, 8);")),
    "an event id too large": Case("FLAG_ID", plain("SetFlag<HardEvent::V_MTE3>(8);"), plain("SetFlag<HardEvent::V_MTE3>(7); WaitFlag<HardEvent::V_MTE3>(7);")),
    "an event set twice": Case("FLAG_TWICE", plain("SetFlag<HardEvent::V_MTE3>(0); SetFlag<HardEvent::V_MTE3>(0);"), plain("SetFlag<HardEvent::V_MTE3>(0); SetFlag<HardEvent::V_MTE3>(1); WaitFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(1);")),
    "an event never set": Case("FLAG_UNSET", plain("WaitFlag<HardEvent::V_MTE3>(0);"), plain("SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"), "V_MTE3"),
    "an event left set": Case("FLAG_LEAK", plain("SetFlag<HardEvent::V_MTE3>(0);"), plain("SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"), "V_MTE3"),
    "SyncAll on one block only": Case("SYNC_DEADLOCK", plain("if (GetBlockIdx() == 0) SyncAll();"), plain("SyncAll();")),
    "SyncAll on more blocks than cores": Case("SYNC_DEADLOCK", "SyncAll();", "int i = 0;", "cores", blocks="49"),
    "an atomic of another type": Case("ATOMIC", compute(FILL + "SetAtomicAdd<int32_t>();"), compute("SetAtomicAdd<float>(); SetAtomicNone();" + FILL), "int32"),
    "adding to an output that holds nothing": Case("UNINITIALISED", compute(FILL + "SetAtomicAdd<float>();"), compute("SetAtomicAdd<float>(); SetAtomicNone();" + FILL)),
    "a launch of no blocks": Case("LAUNCH", GOOD, GOOD, "0 blocks", blocks="0"),
    "a vector instruction outside UB": Case("SPACE", plain("TBuf<TPosition::A1> l; pipe.InitBuffer(l, 4096); Duplicate(l.Get<float>(), 1.0f, 8);"), GOOD, "L1"),
    "a broken assertion": Case("ASSERT", plain("ASSERT(L == 3);"), plain("ASSERT(L == 1024);"), "L == 3"),
}  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as made:
        yield made


#: Rules that need data; the others are checked in a timed run too.
DATA_RULES = {"UNINITIALISED", "GATHER"}


class Program(Compiled):
    """A kernel with two inputs and an output of 4096 floats."""

    def __init__(self, device: AscendSim, body: str, blocks: str = "4") -> None:
        super().__init__(device, source(body, 2, blocks))

    def run(self, compute: bool = True) -> Run:
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal(LENGTH * BLOCKS).astype(np.float32) for _ in range(2)]
        return self(inputs, [((LENGTH * BLOCKS,), "float32")], compute)


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_breaks_a_rule_is_told(device: AscendSim, name: str) -> None:
    case = CASES[name]
    kernel = Program(device, case.bad, case.blocks)
    fault = kernel.run().fault
    assert fault is not None
    assert fault.rule == case.rule, fault
    assert case.says in fault.message
    assert "\n" not in fault.message
    assert fault.line is not None and fault.line > 0
    if case.rule not in DATA_RULES:
        timed = kernel.run(compute=False).fault
        assert timed is not None and timed.rule == case.rule, "a timed run checks the same rule"


@pytest.mark.parametrize("name", CASES)
def test_its_neighbour_that_keeps_the_rule_runs(device: AscendSim, name: str) -> None:
    kernel = Program(device, CASES[name].good, "4")
    for compute in (True, False):
        result = kernel.run(compute)
        assert result.status == "ok", result.fault


def test_the_message_names_line_core_and_buffers(device: AscendSim) -> None:
    result = Program(device, CASES["buffers larger than UB"].bad).run()
    assert result.fault is not None and result.fault.core == 0
    assert "VECIN of line 17: 2 x 4096 = 8192" in result.fault.message
    assert result.fault.message.endswith("use smaller tiles or fewer buffers")


def test_a_copy_into_the_padding_is_only_warned_of(device: AscendSim) -> None:
    body = SETUP.replace("const uint32_t L = 1024", "const uint32_t L = 8") + LOAD + "Add(c, a, b, L);" + STORE
    ones = np.ones(5, np.float32)
    result = Compiled(device, source(body, 2))([ones, ones], [((5,), "float32")])
    assert result.status == "ok"
    assert any("GM_PADDING" in line for line in result.warnings)
    assert np.array_equal(result.outputs[0], ones + ones)


def test_the_reserved_end_of_ub_is_warned_of(device: AscendSim) -> None:
    body = SETUP + "TBuf<> u; pipe.InitBuffer(u, 190 * 1024 - 6 * 4096 - 16384);"
    result = Program(device, body).run()
    assert result.status == "ok"
    assert [line.split()[0] for line in result.warnings] == ["RESERVED_UB"]


def test_scalar_writes_to_one_cache_line_are_warned_of(device: AscendSim) -> None:
    body = "GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float *)z0); z.SetValue(GetBlockIdx(), 1.0f);"
    result = Program(device, body).run()
    assert result.status == "ok"
    assert any("DCACHE" in line for line in result.warnings)


def test_the_scalar_unit_waits_by_itself(device: AscendSim) -> None:
    body = (
        SETUP
        + TBUF
        + "DataCopy(t, xg, L); float v = t.GetValue(3); t.SetValue(4, v); Adds(t, t, v, L); float u = t.GetValue(5); PipeBarrier<PIPE_ALL>(); DataCopy(zg, t, L);"
    )
    assert Program(device, body).run().status == "ok"
