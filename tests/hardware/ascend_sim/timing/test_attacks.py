"""Kernels that once got time or correctness for nothing: each is a fault now, or pays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim import chip
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

L, BLOCKS = 4096, 4
SETUP = """
    const uint32_t L = 4096, block = GetBlockIdx();
    GlobalTensor<float> in, out, room; GlobalTensor<int32_t> gm;
    in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    room.SetGlobalBuffer((__gm__ float *)ws); gm.SetGlobalBuffer((__gm__ int32_t *)ws + 65536);
    TBuf<> ta, tw; pipe.InitBuffer(ta, L * 4); pipe.InitBuffer(tw, 1024);
    LocalTensor<float> a = ta.Get<float>(); LocalTensor<int32_t> w = tw.Get<int32_t>();
"""
LOAD = "DataCopy(a, in[block * L], L); PipeBarrier<PIPE_ALL>();"
PIPE = "    TPipe pipe;\n"
#: The workspace of IBSet and IBWait before its first use.
ZEROS = "Duplicate(w, 0, 256); PipeBarrier<PIPE_ALL>(); if (!block) DataCopy(gm, w, 256); SyncAll(); "
STORE = "PipeBarrier<PIPE_ALL>(); DataCopy(out[block * L], a, L);"


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as made:
        yield made


def run(device: AscendSim, body: str, compute: bool = True, prelude: str = "") -> Run:
    x = np.linspace(0.1, 1.0, L * BLOCKS, dtype=np.float32)
    kernel = Compiled(device, source(body, 1, str(BLOCKS), prelude=prelude))
    return kernel([x], [((L * BLOCKS,), "float32")], compute)


def rule(device: AscendSim, body: str, prelude: str = "") -> str | None:
    fault = run(device, body, prelude=prelude).fault
    return fault.rule if fault else None


def us(device: AscendSim, body: str) -> float:
    timed = run(device, body, compute=False)
    assert timed.status == "ok", timed.fault
    assert timed.latency_us is not None
    return timed.latency_us


# ---- flags between cores --------------------------------------------------------------------------------------------

WRITES_THEN = SETUP + ZEROS + LOAD + "if (block == 0) { DataCopy(room, a, L); PipeBarrier<PIPE_ALL>(); } "
READS_IT = "if (block == 3) { DataCopy(a, room, L); PipeBarrier<PIPE_ALL>(); } " + STORE


@pytest.mark.parametrize(
    ("flags", "broken"),
    [
        ("if (block == 1) IBSet(gm, w, 1, 0); if (block == 2) IBWait(gm, w, 1, 0);", "GM_RACE"),
        ("if (block == 0) IBSet(gm, w, 0, 0); if (block == 3) IBWait(gm, w, 0, 0);", None),
        (
            "if (block == 0) IBSet(gm, w, 0, 0); if (block == 2) { IBWait(gm, w, 0, 0); IBSet(gm, w, 2, 1); }"
            " if (block == 3) IBWait(gm, w, 2, 1);",
            None,
        ),
        ("CrossCoreSetFlag<0, PIPE_MTE3>(3); if (block != 3) CrossCoreWaitFlag(3);", "GM_RACE"),
        ("CrossCoreSetFlag<0, PIPE_MTE3>(3); CrossCoreWaitFlag(3);", None),
        ("CrossCoreSetFlag<1, PIPE_MTE3>(3); CrossCoreWaitFlag(3);", "GM_RACE"),  # each block alone is a group
    ],
)
def test_a_flag_orders_the_cores_that_it_names_and_no_others(device: AscendSim, flags: str, broken: str | None) -> None:
    assert rule(device, WRITES_THEN + flags + READS_IT) == broken


def test_a_flag_covers_what_its_pipe_has_waited_for(device: AscendSim) -> None:
    unfinished = SETUP + LOAD + "if (block == 0) DataCopy(room, a, L); CrossCoreSetFlag<0, PIPE_V>(3);"
    assert rule(device, unfinished + "CrossCoreWaitFlag(3);" + READS_IT) == "GM_RACE"
    waited = "SetFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(0); CrossCoreSetFlag<0, PIPE_V>(3);"
    finished = unfinished.replace("CrossCoreSetFlag<0, PIPE_V>(3);", waited)
    assert rule(device, finished + "CrossCoreWaitFlag(3);" + READS_IT) is None


def test_a_writer_must_wait_for_all_readers(device: AscendSim) -> None:
    reads = SETUP + "if (block) { DataCopy(a, room, L); PipeBarrier<PIPE_ALL>(); IBSet(gm, w, block, 0); } "
    filled = SETUP + ZEROS + LOAD + "if (block == 0) { DataCopy(room, a, L); } SyncAll();" + reads.replace(SETUP, "")
    writes = "DataCopy(room, a, L); PipeBarrier<PIPE_ALL>(); } " + STORE
    some = "if (block == 0) { IBWait(gm, w, 1, 0); IBWait(gm, w, 2, 0); "
    assert rule(device, filled + some + writes) == "GM_RACE"
    assert rule(device, filled + some + "IBWait(gm, w, 3, 0); " + writes) is None


def test_an_event_does_not_order_what_comes_after_a_meeting(device: AscendSim) -> None:
    sets = SETUP + ZEROS + LOAD + "if (!block) IBSet(gm, w, 0, 0); SyncAll(); if (!block) DataCopy(room, a, L); "
    waits = "if (block == 3) { IBWait(gm, w, 0, 0); DataCopy(a, room, L); }"
    assert rule(device, sets + waits) == "GM_RACE"


def test_a_launch_with_more_blocks_than_cores_cannot_wait_for_them(device: AscendSim) -> None:
    kernel = Compiled(device, source(SETUP + "IBSet(gm, w, 0, 0);", 1, "64"))
    fault = kernel([np.zeros(L, np.float32)], [((L,), "float32")]).fault
    assert fault is not None
    assert fault.rule == "SYNC_DEADLOCK"


WORK = "for (int i = 0; i < 200; ++i) Exp(a, a, L);"
CHAINS = {
    "IBWait": (
        "if (block) IBWait(gm, w, block - 1, 0);",
        "PipeBarrier<PIPE_ALL>(); if (block + 1 < GetBlockNum()) IBSet(gm, w, block, 0);",
    ),
    "CrossCoreWaitFlag": (
        "for (uint32_t turn = 0; turn < block; ++turn) { CrossCoreSetFlag<0, PIPE_V>(1); CrossCoreWaitFlag(1); }",
        "for (uint32_t turn = block; turn < 3; ++turn) { CrossCoreSetFlag<0, PIPE_V>(1); CrossCoreWaitFlag(1); }",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_blocks_takes_the_time_of_all_of_them(device: AscendSim, name: str) -> None:
    before, after = CHAINS[name]
    side_by_side = us(device, SETUP + LOAD + WORK + STORE)
    chain = us(device, SETUP + LOAD + before + WORK + after + STORE)
    launching = us(device, SETUP + LOAD + STORE)
    assert chain > launching + 3.9 * (side_by_side - launching)


def test_a_copy_of_a_large_object_takes_the_time_of_its_words(device: AscendSim) -> None:
    def copies(words: int) -> float:
        text = f"struct Many {{ uint64_t word[{words}]; }} one{{}}, two{{}}; "
        text += "for (int i = 0; i < 100; ++i) { two = one; one = two; } if (one.word[0]) return; "
        return us(device, SETUP + LOAD + text + STORE)

    cycles_a_us = 2000
    assert copies(32) == copies(2)
    assert copies(4096) > copies(32) + 200 * 4000 / cycles_a_us


@pytest.mark.parametrize("copy", ["two = one;", "Many &to = two, &from = one; to = from;"])
def test_a_copy_is_charged_once_however_the_compiler_writes_it(device: AscendSim, copy: str) -> None:
    """A copy in place would be free; one through references is announced to the guard before it is called."""

    def copies(words: int) -> float:
        text = f"struct Many {{ uint64_t word[{words}]; }} one{{}}, two{{}}; "
        text += f"for (int i = 0; i < 1000; ++i) {{ {copy} }} if (two.word[0]) return; "
        return us(device, SETUP + LOAD + text + STORE)

    assert copies(100) - copies(32) == pytest.approx(1000 * 68 / chip.load()["clock_mhz"], rel=0.02)


def test_a_comparison_takes_the_time_of_its_words(device: AscendSim) -> None:
    def comparisons(words: int) -> float:
        text = f"std::array<uint64_t, {words}> one{{}}, two{{}}; uint32_t same = 0; "
        text += "for (int i = 0; i < 1000; ++i) { same += one == two; } if (!same) return; "
        return us(device, SETUP + LOAD + text + STORE)

    assert comparisons(32) - comparisons(2) == pytest.approx(1000 * 30 / chip.load()["clock_mhz"], rel=0.02)


ATOMIC = SETUP + "Duplicate(a, 1.0f, L); PipeBarrier<PIPE_ALL>(); if (!block) DataCopy(room, a, L); SyncAll(); "


@pytest.mark.parametrize(
    ("copies", "broken"),
    [
        ("SetAtomicAdd<float>(); DataCopy(room, a, L);", None),
        ("if (block % 2) SetAtomicAdd<float>(); else SetAtomicMax<float>(); DataCopy(room, a, L);", "GM_RACE"),
        ("SetAtomicAdd<float>(); DataCopy(room, a, L); SyncAll(); SetAtomicMax<float>(); DataCopy(room, a, L);", None),
        ("if (block) SetAtomicAdd<float>(); DataCopy(room, a, L);", "GM_RACE"),
    ],
)
def test_atomic_copies_meet_freely_if_they_commute(device: AscendSim, copies: str, broken: str | None) -> None:
    text = ATOMIC + copies + " SetAtomicNone(); SyncAll(); DataCopy(a, room, L);"
    assert rule(device, text + STORE) == broken


def test_a_plain_write_is_not_forgotten_behind_an_atomic_one_that_knows_it(device: AscendSim) -> None:
    """Core 1 waits for core 0's write and adds to it; core 2 adds as well, and waits for nobody."""
    text = (
        SETUP + ZEROS + LOAD + "if (block == 0) { DataCopy(room, a, L); PipeBarrier<PIPE_ALL>(); IBSet(gm, w, 0, 0); } "
        "SetAtomicAdd<float>(); if (block == 1) { IBWait(gm, w, 0, 0); DataCopy(room, a, L); } "
        "if (block == 2) { %s DataCopy(room, a, L); } SetAtomicNone(); " + STORE
    )
    twice = text.replace("IBSet(gm, w, 0, 0);", "IBSet(gm, w, 0, 0); IBSet(gm, w, 0, 1);")
    assert rule(device, text % "") == "GM_RACE"
    assert rule(device, twice % "IBWait(gm, w, 0, 1);") is None


def test_a_barrier_of_events_is_no_cheaper_than_one_of_all_cores(device: AscendSim) -> None:
    star = "if (block) IBSet(gm, w, block, 0); else for (uint32_t i = 1; i < GetBlockNum(); ++i) IBWait(gm, w, i, 0);"
    assert us(device, SETUP + LOAD + star) > us(device, SETUP + LOAD + "SyncAll();")


def test_an_event_that_was_set_long_ago_is_read_from_global_memory(device: AscendSim) -> None:
    sets = SETUP + LOAD + "if (block) IBSet(gm, w, block, 0); " + WORK + "PipeBarrier<PIPE_ALL>();"
    waits = "if (!block) for (uint32_t i = 1; i < GetBlockNum(); ++i) IBWait(gm, w, i, 0);"
    assert us(device, sets + waits + STORE) > us(device, sets + STORE) + 3 * 0.3


def test_an_event_takes_the_time_of_the_copies_that_set_it(device: AscendSim) -> None:
    """The workspace is eight numbers further each time, so that no event is set twice."""
    copies = "DataCopy(w, gm[i * 8], 8); PipeBarrier<PIPE_ALL>(); DataCopy(gm[i * 8], w, 8); PipeBarrier<PIPE_ALL>();"
    loop = SETUP + LOAD + "for (int i = 0; !block && i < 50; ++i) {{ {0} }}" + STORE
    assert us(device, loop.format("IBSet(gm[i * 8], w, 0, 0);")) >= us(device, loop.format(copies))


def test_a_soft_meeting_costs_no_less_than_a_hard_one(device: AscendSim) -> None:
    loop = SETUP + LOAD + "for (int i = 0; i < 20; ++i) {{ {0} }}" + STORE
    copies = "DataCopy(w, gm, 32); PipeBarrier<PIPE_ALL>();"
    assert us(device, loop.format("SyncAll(gm, w);")) >= us(device, loop.format("SyncAll(); " + copies))


def test_buffers_are_those_of_a_pipe(device: AscendSim) -> None:
    text = source("TBuf<> t; GetTPipePtr()->InitBuffer(t, 1024);", 1).replace(PIPE, "")
    fault = Compiled(device, text)([np.zeros(4, np.float32)], [((4,), "float32")]).fault
    assert fault is not None
    assert fault.rule == "BUFFER_INIT"


@pytest.mark.parametrize(
    "waits",
    ["IBSet(gm, w, block, 0); IBWait(gm, w, block, 0);", "CrossCoreSetFlag<1, PIPE_S>(1); CrossCoreWaitFlag(1);"],
)
def test_waiting_for_ones_own_flag_costs_as_much_as_a_barrier(device: AscendSim, waits: str) -> None:
    tile = "DataCopy(a, in[block * L], L); {0} Adds(a, a, 1.0f, L); {0} DataCopy(out[block * L], a, L); {0}"
    loop = SETUP + "for (int i = 0; i < 50; ++i) {{ " + tile + " }}"
    assert us(device, loop.format(waits)) >= us(device, loop.format("PipeBarrier<PIPE_ALL>();"))


def test_a_flag_costs_no_less_than_the_meeting_that_is_made_of_flags(device: AscendSim) -> None:
    flags = "CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);"
    loop = SETUP + LOAD + "for (int i = 0; i < 20; ++i) {{ {0} }}" + STORE
    assert us(device, loop.format(flags)) >= 0.99 * us(device, loop.format("SyncAll();"))


# ---- units that a core does not have --------------------------------------------------------------------------------

L1 = SETUP + "TBuf<TPosition::A1> t1; pipe.InitBuffer(t1, L * 4); LocalTensor<float> l1 = t1.Get<float>();"
MATMUL = """
#include "lib/matmul_intf.h"
"""
PRODUCT = """
    using A = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<A, A, A> mm; TCubeTiling t{};
    t.M = t.N = t.Ka = t.Kb = t.singleCoreM = t.singleCoreN = t.singleCoreK = 64;
    t.baseM = t.baseN = t.baseK = 64; t.depthA1 = t.depthB1 = 1;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0 + GetBlockIdx() * 4096);
    mm.SetTensorA(in); mm.SetTensorB(in); mm.IterateAll(out); mm.End();
"""


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        (L1 + "DataCopy(l1, in, L);", "UNIT"),
        (L1 + LOAD + "DataCopy(l1, a, L);", "SPACE"),
        (L1 + LOAD + "DataCopy(a, l1, L);", "SPACE"),
        (L1 + "l1.SetValue(0, 1.0f);", "UNIT"),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);" + SETUP + LOAD, "UNIT"),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);" + SETUP + "Duplicate(a, 0.0f, L);", "UNIT"),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);" + PRODUCT, "UNIT"),
        ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);" + PRODUCT, "UNIT"),
    ],
)
def test_a_core_has_the_units_of_its_kind_alone(device: AscendSim, body: str, broken: str) -> None:
    assert rule(device, body, prelude=MATMUL) == broken


def test_a_cube_core_loads_and_a_mixed_launch_multiplies(device: AscendSim) -> None:
    cube = L1.replace("TBuf<> ta, tw; pipe.InitBuffer(ta, L * 4); pipe.InitBuffer(tw, 1024);", "")
    cube = cube.replace("LocalTensor<float> a = ta.Get<float>(); LocalTensor<int32_t> w = tw.Get<int32_t>();", "")
    kind = "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);"
    copies = "DataCopy(l1, in, L); PipeBarrier<PIPE_ALL>(); DataCopy(out[block * L], l1, L);"
    assert rule(device, kind + cube + copies) is None
    halves = "if (GetBlockIdx() % 2) return;" + PRODUCT.replace("GetBlockIdx() * 4096", "GetBlockIdx() / 2 * 4096")
    assert rule(device, halves, prelude=MATMUL) is None


# ---- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copies",
    [
        "DataCopy(a, in, DataCopyParams({0}, {1}, 0, {2}));",
        "DataCopy(out, a, DataCopyParams({0}, {1}, {2}, 0));",
        "DataCopy(b, a, DataCopyParams({0}, {1}, 0, {2}));",
        "DataCopy(b, a, DataCopyParams({0}, {1}, {2}, 0));",
    ],
)
def test_bursts_that_touch_on_one_side_are_paid_one_by_one(device: AscendSim, copies: str) -> None:
    body = SETUP + "TBuf<> tb; pipe.InitBuffer(tb, L * 4); LocalTensor<float> b = tb.Get<float>(); if (block == 0) {"
    loop = body + "Duplicate(a, 1.0f, L); PipeBarrier<PIPE_ALL>(); for (int i = 0; i < 40; ++i) { "
    scattered, whole = (us(device, loop + copies.format(*sizes) + "} }") for sizes in ((256, 1, 1), (1, 256, 0)))
    cycles = (scattered - whole) * chip.load()["clock_mhz"] / 40
    assert cycles > 200


# ---- banks of UB -----------------------------------------------------------------------------------------------------

TRANSPOSE = """
    LocalTensor<half> h = a.ReinterpretCast<half>(), to[16], from[16];
    for (int i = 0; i < 16; ++i) to[i] = h[4096 + %d * i], from[i] = h[%d * i];
    for (int i = 0; i < 64; ++i) TransDataTo5HD<half>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));
"""


@pytest.mark.parametrize(("to", "of"), [(256, 16), (16, 256), (256, 256)])
def test_blocks_of_a_transposition_in_one_bank_group_pay_one_after_another(device: AscendSim, to: int, of: int) -> None:
    apart = us(device, SETUP + LOAD + TRANSPOSE % (16, 16) + STORE)
    cycles = 64 * (16 - 4)
    frequency = chip.load()["clock_mhz"]
    assert us(device, SETUP + LOAD + TRANSPOSE % (to, of) + STORE) == pytest.approx(
        apart + cycles / frequency, rel=0.02
    )


def test_a_stride_that_keeps_to_one_bank_group_is_not_faster(device: AscendSim) -> None:
    """The same elements, eight of each block at a time."""
    along = us(device, SETUP + LOAD + "Mul(a, a, a, 64, 64, {1, 1, 1, 8, 8, 8});" + STORE)
    across = us(device, SETUP + LOAD + "Mul(a, a, a, 64, 64, {64, 64, 64, 1, 1, 1});" + STORE)
    assert across > along + 64 * 6 / chip.load()["clock_mhz"]


@pytest.mark.parametrize(
    ("mask", "blocks"), [("0xFF", 1), ("0x0101010101010101", 8), ("0x0F0F0F0F0F0F0F0F", 8), ("~0", 8)]
)
def test_a_mask_costs_the_blocks_that_it_touches(device: AscendSim, mask: str, blocks: int) -> None:
    """A repeat with eight blocks in one bank group, of which the mask leaves out elements or whole blocks."""
    call = "for (int i = 0; i < 64; ++i) Adds(a, a, 1.0f, mask, 8, {16, 16, 1, 1});"
    one, some = (
        us(device, SETUP + LOAD + f"uint64_t mask[2] = {{uint64_t({lanes}), 0}};" + call + STORE)
        for lanes in ("1", mask)
    )
    assert some - one == pytest.approx(64 * 8 * (blocks - 1) / chip.load()["clock_mhz"], rel=0.02)


GATHER = """
    TBuf<> tp, tg; pipe.InitBuffer(tp, 256); pipe.InitBuffer(tg, 65536);
    LocalTensor<uint32_t> places = tp.Get<uint32_t>(); LocalTensor<float> g = tg.Get<float>();
    const uint32_t apart = GetBlockNum() * %d / 4;
    for (uint32_t i = 0; i < 64; ++i) places.SetValue(i, i * apart %% 16384);
    for (int i = 0; i < 64; ++i) %s;
"""


@pytest.mark.parametrize(
    ("call", "bytes_apart", "cycles"),
    [
        ("Gather(g, a, places, 0, 64)", 0, 8),
        ("Gather(g, a, places, 0, 64)", 8, 2),
        ("Gather(g, a, places, 0, 64)", 32, 4),
        ("Gather(g, a, places, 0, 64)", 256, 32),
        ("Gather(g, a, places, 4, uint64_t(32), 1, 8)", 256, 16),
        ("Gatherb(g, a, places, 1, {1, 8})", 512, 8),
        ("Gatherb(g, a, places, 1, {16, 8})", 32, 8),
    ],
)
def test_gathered_elements_in_one_bank_group_are_read_one_after_another(
    device: AscendSim, call: str, bytes_apart: int, cycles: int
) -> None:
    times = []
    for apart, instruction in ((4, "Gather(g, a, places, 0, 64)"), (bytes_apart, call)):
        timed = run(device, SETUP + LOAD + GATHER % (apart, instruction) + STORE)
        assert timed.latency_us is not None, timed.fault
        times.append(timed.latency_us)
    more = 64 * (cycles - 2)
    assert times[1] - times[0] == pytest.approx(more / chip.load()["clock_mhz"], rel=0.02, abs=0.02)


@pytest.mark.parametrize(("to", "expected"), [("a", "OVERLAP"), ("a[128]", None), ("a[1056]", "OVERLAP")])
def test_a_repeat_gathers_nothing_that_an_earlier_one_wrote(device: AscendSim, to: str, expected: str | None) -> None:
    """Elements in reverse order, over themselves, behind themselves, and over the list of their places."""
    places = """LocalTensor<uint32_t> places = a[1024].ReinterpretCast<uint32_t>();
        for (uint32_t i = 0; i < 128; ++i) places.SetValue(i, (127 - i) * 4);"""
    assert rule(device, SETUP + LOAD + places + f"Gather({to}, a, places, 0, 128);" + STORE) == expected


def test_an_instruction_with_three_sources_takes_two_cycles_for_a_repeat(device: AscendSim) -> None:
    body = "for (int i = 0; i < 8; ++i) {}(a, a[2048], a[3072], 1024);"
    times = [us(device, SETUP + LOAD + body.format(name) + STORE) for name in ("MulAddDst", "Mul")]
    more = 8 * (28 - 25 + 1024 * 4 // 256)
    assert times[0] - times[1] == pytest.approx(more / chip.load()["clock_mhz"], rel=0.02)
