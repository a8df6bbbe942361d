"""The cube at its basic level: fractals, products, hazards between its pipes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source

M, N, K = 32, 48, 64
BODY = """
    using T = TYPE; using D = RESULT;
    constexpr uint32_t M = 32, N = 48, K = 64, C0 = 32 / sizeof(T), F = 512 / sizeof(T);
    GlobalTensor<T> ga, gb; GlobalTensor<D> gc;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1); gc.SetGlobalBuffer((__gm__ D *)z0);
    TBuf<TPosition::A1> ta1; TBuf<TPosition::B1> tb1; TBuf<TPosition::A2> ta2; TBuf<TPosition::B2> tb2;
    TBuf<TPosition::CO1> tc;
    pipe.InitBuffer(ta1, M * K * sizeof(T)); pipe.InitBuffer(tb1, N * K * sizeof(T));
    pipe.InitBuffer(ta2, M * K * sizeof(T)); pipe.InitBuffer(tb2, N * K * sizeof(T)); pipe.InitBuffer(tc, M * N * 4);
    LocalTensor<T> a1 = ta1.Get<T>(), b1 = tb1.Get<T>(), a2 = ta2.Get<T>(), b2 = tb2.Get<T>();
    LocalTensor<ACCUMULATOR> c = tc.Get<ACCUMULATOR>();
    DataCopy(a1, ga, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
    DataCopy(b1, gb, Nd2NzParams(1, N, K, 0, K, N, 1, 0));          // B comes transposed: N rows of K
    SetFlag<HardEvent::MTE2_MTE1>(0); WaitFlag<HardEvent::MTE2_MTE1>(0);
    for (uint32_t m = 0; m < M / 16; ++m)
        LoadData(a2[m * (K / C0) * F], a1[m * F], LoadData2DParams(0, K / C0, M / 16, 0, 0, false, 0));
    for (uint32_t k = 0; k < K / C0; ++k)
        LoadData(b2[k * (N / 16) * F], b1[k * (N / 16) * F], LoadData2DParams(0, N / 16, 1, 0, 0, false, 0));
    SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
    MmadParams p0; p0.m = M; p0.n = N; p0.k = K; p0.cmatrixInitVal = true;
    Mmad(c, a2, b2, p0);
    if (p.v[0]) { p0.cmatrixInitVal = false; Mmad(c, a2, b2, p0); }
    SetFlag<HardEvent::M_FIX>(0); WaitFlag<HardEvent::M_FIX>(0);
    FixpipeParamsV220 out; out.nSize = N; out.mSize = M; out.srcStride = M; out.dstStride = N; out.reluEn = p.v[1] != 0;
    Fixpipe(gc, c, out);
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


def kernel(device: AscendSim, kind: str, result: str, body: str = BODY) -> Compiled:
    accumulator = "int32_t" if kind == "int8" else "float"
    text = body.replace("TYPE", NAMES[kind]).replace("RESULT", NAMES[result]).replace("ACCUMULATOR", accumulator)
    return Compiled(device, source(text, 2))


PAIRS = [
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("float32", "float32"),
    ("int8", "int32"),
]


@pytest.mark.parametrize(("kind", "result"), PAIRS)
def test_a_product_by_hand(device: AscendSim, kind: str, result: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(NUMPY[kind]) for shape in ((M, K), (N, K)))
    built = kernel(device, kind, result)
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    for twice in (0, 1):
        for relu in (0, 1):
            run = built([a, b], [((M, N), result)], ints=[twice, relu])
            assert run.status == "ok", run.fault
            want = exact * (1 + twice)
            want = np.maximum(want, 0) if relu else want
            assert np.array_equal(run.outputs[0].astype(np.float64), want)
    assert run.mix["Mmad"] == 2
    assert run.written == (M * N * np.dtype(NUMPY[result]).itemsize,)


def test_b_by_rows_is_transposed_while_loading(device: AscendSim) -> None:
    body = BODY.replace(
        "DataCopy(b1, gb, Nd2NzParams(1, N, K, 0, K, N, 1, 0)); ",
        "DataCopy(b1, gb, Nd2NzParams(1, K, N, 0, N, K, 1, 0)); ",
    ).replace(
        "LoadData(b2[k * (N / 16) * F], b1[k * (N / 16) * F], LoadData2DParams(0, N / 16, 1, 0, 0, false, 0));",
        "LoadData(b2[k * (N / 16) * F], b1[k * F], LoadData2DParams(0, N / 16, K / 16, 0, 0, true, 0));",
    )
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    run = kernel(device, "float16", "float32", body)([a, b], [((M, N), "float32")], ints=[0, 0])
    assert run.status == "ok", run.fault
    assert np.array_equal(run.outputs[0], a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("event", "what"), [("MTE2_MTE1", "LoadData"), ("MTE1_M", "Mmad"), ("M_FIX", "Fixpipe")])
def test_each_step_waits_for_the_one_before(device: AscendSim, event: str, what: str) -> None:
    flags = f"SetFlag<HardEvent::{event}>(0); WaitFlag<HardEvent::{event}>(0);"
    a, b = np.ones((M, K), np.float16), np.ones((N, K), np.float16)
    for compute in (True, False):
        run = kernel(device, "float16", "float32", BODY.replace(flags, ""))(
            [a, b], [((M, N), "float32")], compute, ints=[0, 0]
        )
        assert run.fault is not None
        assert run.fault.rule == "MISSING_SYNC"
        assert run.fault.message.startswith(what)
        assert event in run.fault.message


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("p0.k = K;", "p0.k = 4096;", "CUBE"),
        ("p0.m = M;", "p0.m = 16 * M;", "OUT_OF_BOUNDS"),
        ("Mmad(c, a2, b2, p0);\n", "Mmad(c, b2, a2, p0);\n", "SPACE"),
        ("out.dstStride = N;", "out.dstStride = 8;", "CUBE"),
        (
            "Fixpipe(gc, c, out);",
            "out.mSize = M - 1; Fixpipe(gc[N / 2], c, out); Fixpipe(gc[1], c[1], out);",
            "ALIGNMENT",
        ),
    ],
)
def test_misuse_of_the_cube_is_a_fault(device: AscendSim, before: str, after: str, rule: str) -> None:
    a, b = np.ones((M, K), np.float16), np.ones((N, K), np.float16)
    run = kernel(device, "float16", "float32", BODY.replace(before, after))([a, b], [((M, N), "float32")], ints=[0, 0])
    assert run.fault is not None
    assert run.fault.rule == rule, run.fault
