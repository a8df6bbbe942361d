"""What the device does beyond single instructions: masks, queues, cores that meet, messages, coverage, poison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

X = np.arange(4096, dtype=np.float32)
FLOATS = """
    GlobalTensor<float> gx, gz;
    gx.SetGlobalBuffer((__gm__ float *)x0);
    gz.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<> ta, tb;
    pipe.InitBuffer(ta, 4096);
    pipe.InitBuffer(tb, 4096);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
"""
LOAD = "DataCopy(a, gx, 1024); Duplicate(b, 0.0f, 1024); PipeBarrier<PIPE_ALL>();"
STORE = "PipeBarrier<PIPE_ALL>(); DataCopy(gz, b, 1024);"


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


def once(device: AscendSim, body: str, size: int = 1024, blocks: str = "1", compute: bool = True) -> Run:
    run = Compiled(device, source(body, 1, blocks))([X], [((size,), "float32")], compute)
    assert run.status == "ok", run.fault
    return run


# ---- masks ---------------------------------------------------------------------------------------------------------


def test_a_mask_from_the_register(device: AscendSim) -> None:
    body = (
        "SetVectorMask<float>(0, 0x0f); Adds<float, false>(b, a, 1.0f, MASK_PLACEHOLDER, 2, {1, 1, 8, 8}); ResetMask();"
    )
    actual = once(device, FLOATS + LOAD + body + STORE).outputs[0]
    want = np.zeros(1024, np.float32)
    for start in (0, 64):
        want[start : start + 4] = X[start : start + 4] + 1
    assert np.array_equal(actual, want)


def test_counter_mode_counts_elements_over_strided_repeats(device: AscendSim) -> None:
    body = """SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(0, 70);
        Adds<float, false>(b, a, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 16, 8}); SetMaskNorm(); ResetMask();"""
    actual = once(device, FLOATS + LOAD + body + STORE).outputs[0]
    want = np.zeros(1024, np.float32)
    want[:64], want[128:134] = X[:64] + 1, X[64:70] + 1
    assert np.array_equal(actual, want)


def test_the_count_form_leaves_the_mask_register_reset(device: AscendSim) -> None:
    body = """
        SetVectorMask<float>(0, 1); Adds(b, a, 1.0f, 8);
        Adds<float, false>(b, a, 2.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
    """
    actual = once(device, FLOATS + LOAD + body + STORE).outputs[0]
    assert np.array_equal(actual[:64], X[:64] + 2)


# ---- queues and buffers --------------------------------------------------------------------------------------------


def test_a_queue_from_copy_in_to_copy_out(device: AscendSim) -> None:
    body = """TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> q; pipe.InitBuffer(q, 2, 4096);
        for (int i = 0; i < 4; ++i) {
            LocalTensor<float> t = q.AllocTensor<float>(); DataCopy(t, gx[i * 1024], 1024); q.EnQue(t);
            t = q.DeQue<float>(); DataCopy(gz[i * 1024], t, 1024); q.FreeTensor(t);
        }"""
    assert np.array_equal(once(device, FLOATS + body, 4096).outputs[0], X)


def test_double_buffering_needs_no_flags(device: AscendSim) -> None:
    body = """TQue<TPosition::VECIN, 2> qi; TQue<TPosition::VECOUT, 2> qo;
        pipe.InitBuffer(qi, 2, 1024); pipe.InitBuffer(qo, 2, 1024);
        LocalTensor<float> first = qi.AllocTensor<float>(); DataCopy(first, gx, 256); qi.EnQue(first);
        for (int i = 0; i < 16; ++i) {
            if (i < 15) { LocalTensor<float> t = qi.AllocTensor<float>();
                DataCopy(t, gx[(i + 1) * 256], 256); qi.EnQue(t); }
            LocalTensor<float> t = qi.DeQue<float>(), u = qo.AllocTensor<float>();
            Muls(u, t, 2.0f, 256); qi.FreeTensor(t); qo.EnQue(u);
            u = qo.DeQue<float>(); DataCopy(gz[i * 256], u, 256); qo.FreeTensor(u);
        }"""
    assert np.array_equal(once(device, FLOATS + body, 4096).outputs[0], X * 2)


def test_a_pipe_can_be_reset(device: AscendSim) -> None:
    body = """
        for (int i = 0; i < 3; ++i) { pipe.Reset(); TBuf<> t; pipe.InitBuffer(t, 150 * 1024);
        Duplicate(t.Get<float>(), 1.0f, 8); }
    """
    once(device, body + FLOATS + LOAD + "Adds(b, a, 1.0f, 1024);" + STORE)


def test_the_moments_of_a_queue_are_its_own_however_many_queues_there_are(device: AscendSim) -> None:
    def latency(unused: int) -> float:
        body = f"""TQue<TPosition::VECIN, 1> q; TQue<TPosition::VECIN, 1> unused[{unused}];
            TQue<TPosition::VECOUT, 1> other; pipe.InitBuffer(q, 1, 4096); pipe.InitBuffer(other, 1, 32);
            for (int i = 0; i < 16; ++i) {{
                LocalTensor<float> t = q.AllocTensor<float>(), o = other.AllocTensor<float>();
                DataCopy(t, gx[i % 4 * 1024], 1024); q.EnQue(t);
                other.EnQue(o); o = other.DeQue<float>(); other.FreeTensor(o);
                t = q.DeQue<float>(); Muls(b, t, 2.0f, 1024); q.FreeTensor(t);
            }}"""
        run = once(device, FLOATS + body + STORE)
        assert run.latency_us is not None
        return run.latency_us

    assert latency(495) == pytest.approx(latency(496), abs=0.05)


# ---- cores ---------------------------------------------------------------------------------------------------------


def test_cores_meet_in_sync_all(device: AscendSim) -> None:
    """Each core writes its number, then reads its neighbour's."""
    body = """const uint32_t me = GetBlockIdx(), n = GetBlockNum();
        GlobalTensor<float> gw; gw.SetGlobalBuffer((__gm__ float *)ws);
        Duplicate(a, (float)me, 8); PipeBarrier<PIPE_ALL>(); DataCopy(gw[me * 8], a, 8);
        SyncAll();
        DataCopy(b, gw[(me + 1) % n * 8], 8); PipeBarrier<PIPE_ALL>(); DataCopy(gz[me * 8], b, 8);"""
    actual = once(device, FLOATS + body, 48 * 8, "48").outputs[0].reshape(48, 8)
    assert np.array_equal(actual[:, 0], (np.arange(48) + 1) % 48)


def test_more_blocks_than_cores_run_one_after_another(device: AscendSim) -> None:
    body = """
        const uint32_t me = GetBlockIdx(); DataCopy(a, gx[me * 8], 8); PipeBarrier<PIPE_ALL>();
        DataCopy(gz[me * 8], a, 8);
    """
    assert np.array_equal(once(device, FLOATS + body, 4096, "512").outputs[0], X)


def test_on_chip_memory_does_not_outlive_a_block(device: AscendSim) -> None:
    body = "if (GetBlockIdx() == 0) { Duplicate(a, 1.0f, 8); } else { DataCopy(gz, a, 8); }"
    run = Compiled(device, source(FLOATS + body, 1, "2"))([X], [((8,), "float32")])
    assert run.fault is not None
    assert run.fault.rule == "UNINITIALISED"


def test_a_second_launch_reads_what_the_first_wrote(device: AscendSim) -> None:
    body = """const uint32_t me = GetBlockIdx(); GlobalTensor<float> gw; gw.SetGlobalBuffer((__gm__ float *)ws);
        if (p.v[0] == 0) DataCopy(a, gx[me * 512], 512); else DataCopy(a, gw[(7 - me) * 512], 512);
        PipeBarrier<PIPE_ALL>();
        if (p.v[0] == 0) DataCopy(gw[me * 512], a, 512); else DataCopy(gz[me * 512], a, 512);"""
    text = source(FLOATS + body, 1, "8")
    launch = next(line for line in text.splitlines() if "<<<" in line)
    run = Compiled(device, text.replace(launch, f"{launch} ints.v[0] = 1; {launch}"))([X], [((4096,), "float32")])
    assert run.status == "ok", run.fault
    assert np.array_equal(run.outputs[0].reshape(8, 512), X.reshape(8, 512)[::-1])


# ---- what is told --------------------------------------------------------------------------------------------------


def test_printed_text_and_dumped_tensors_come_back(device: AscendSim) -> None:
    body = """
        Duplicate(b, 2.5f, 1024); PRINTF("core %d has %f\\n", (int)GetBlockIdx(), 1.5f);
        DumpTensor(b, 7, 3); DumpTensor(a, 8, 2);
    """
    run = once(device, FLOATS + body + STORE)
    assert "core 0 has 1.5" in run.printed
    assert "DumpTensor 7, core 0" in run.printed
    assert "2.5 2.5 2.5" in run.printed
    assert "? ?" in run.printed, "what was never written has no value"


def test_scalar_reads_make_a_run_data_dependent(device: AscendSim) -> None:
    assert not once(device, FLOATS + LOAD + "Adds(b, a, 1.0f, 1024);" + STORE).data_dependent
    reads = FLOATS + LOAD + "float v = a.GetValue(3); Adds(b, a, v, 1024);" + STORE
    assert np.array_equal(once(device, reads).outputs[0], X[:1024] + 3)
    assert once(device, reads).data_dependent
    assert once(device, reads, compute=False).data_dependent


def test_a_timed_run_counts_the_same_instructions(device: AscendSim) -> None:
    kernel = Compiled(
        device, source(FLOATS + LOAD + "Exp(b, a, 1024); Tanh(b, b, 1000); ReduceSum(b, a, b, 8);" + STORE, 1)
    )
    runs = [kernel([X], [((1024,), "float32")], compute) for compute in (True, False)]
    assert runs[0].mix == runs[1].mix
    assert runs[0].mix["Tanh"] == 1
    assert (runs[0].read, runs[0].written) == (runs[1].read, runs[1].written) == ((4096,), (4096,))
    assert runs[0].latency_us == runs[1].latency_us


@settings(max_examples=20)
@given(
    pieces=st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 24), st.integers(1, 6), st.integers(0, 60)),
        min_size=1,
        max_size=6,
    )
)
def test_coverage_counts_each_byte_once(coverage: Compiled, pieces: list[tuple[int, int, int, int]]) -> None:
    ints = [len(pieces), *(value for piece in pieces for value in piece)]
    run = coverage([X], [((8,), "float32")], ints=ints)
    assert run.status == "ok", run.fault
    seen = {at + row * (n + gap) + i for at, n, rows, gap in pieces for row in range(rows) for i in range(n)}
    assert run.read == (4 * len(seen),)


@pytest.fixture(scope="module")
def coverage(device: AscendSim) -> Compiled:
    body = """for (int i = 0; i < p.v[0]; ++i) {
            const int64_t *q = p.v + 1 + 4 * i;
            DataCopyPad(a, gx[q[0]], DataCopyExtParams(q[2], q[1] * 4, q[3] * 4, 0, 0), DataCopyPadExtParams<float>());
            PipeBarrier<PIPE_ALL>();
        }
        Duplicate(b, 1.0f, 8); PipeBarrier<PIPE_ALL>(); DataCopy(gz, b, 8);"""
    return Compiled(device, source(FLOATS + body, 1))


# ---- poison --------------------------------------------------------------------------------------------------------


def test_padded_tails_are_legal(device: AscendSim) -> None:
    """The rest of a block may hold anything, as long as it does not leave the device."""
    body = """DataCopyPad(a, gx, DataCopyExtParams(1, 20, 0, 0, 0), DataCopyPadExtParams<float>(true, 0, 1, 0.0f));
        PipeBarrier<PIPE_ALL>(); Exp(b, a, 8); PipeBarrier<PIPE_ALL>();
        DataCopyPad(gz, b, DataCopyExtParams(1, 20, 0, 0, 0));"""
    actual = once(device, FLOATS + body, 5).outputs[0]
    assert np.allclose(actual, np.exp(X[:5]), rtol=1e-6)


def test_select_hides_poison_that_it_does_not_take(device: AscendSim) -> None:
    """Select takes the valid operand where the mask says so."""
    body = """TBuf<> tm; pipe.InitBuffer(tm, 32); LocalTensor<uint8_t> m = tm.Get<uint8_t>();
        DataCopy(a, gx, 64); PipeBarrier<PIPE_ALL>(); CompareScalar(m, a, 0.0f, CMPMODE::GE, 64);
        Select(b[64], m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);
        PipeBarrier<PIPE_ALL>(); DataCopy(gz, b[64], 64);"""
    assert np.array_equal(once(device, FLOATS + body, 64).outputs[0], X[:64])


def test_poison_passes_through_the_workspace(device: AscendSim) -> None:
    body = """GlobalTensor<float> gw; gw.SetGlobalBuffer((__gm__ float *)ws);
        DataCopy(gw, a, 8); PipeBarrier<PIPE_ALL>(); DataCopy(b, gw, 8); PipeBarrier<PIPE_ALL>(); DataCopy(gz, b, 8);"""
    run = Compiled(device, source(FLOATS + body, 1))([X], [((8,), "float32")])
    assert run.fault is not None
    assert run.fault.rule == "UNINITIALISED"


def test_the_same_run_gives_the_same_bits(device: AscendSim) -> None:
    kernel = Compiled(device, source(FLOATS + LOAD + "Sin(b, a, 1024); Exp(b, b, 1024);" + STORE, 1))
    first, second = (kernel([X], [((1024,), "float32")]).outputs[0].tobytes() for _ in range(2))
    assert first == second
