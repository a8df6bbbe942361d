"""Row-wise library functions and Matmul against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source

Array = NDArray[Any]

TILE = """
template <class T>
__aicore__ void tile(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR z0, GM_ADDR z1, const Ints &p) {
    const uint32_t rows = p.v[1], columns = p.v[2], used = p.v[3], n = rows * columns, beside = 4096 / sizeof(T);
    GlobalTensor<T> ga, gg, gb, gz, gy;
    ga.SetGlobalBuffer((__gm__ T *)x0); gg.SetGlobalBuffer((__gm__ T *)x1); gb.SetGlobalBuffer((__gm__ T *)x2);
    gz.SetGlobalBuffer((__gm__ T *)z0); gy.SetGlobalBuffer((__gm__ T *)z1);
    TBuf<> ta, tg, tb, tc, td, te;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tc, n * sizeof(T));
    pipe.InitBuffer(tg, columns * sizeof(T)); pipe.InitBuffer(tb, columns * sizeof(T));
    pipe.InitBuffer(td, 4096); pipe.InitBuffer(te, 4096);
    LocalTensor<T> a = ta.Get<T>(), g = tg.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>(), d = td.Get<T>(),
        e = te.Get<T>();
    DataCopy(a, ga, n); DataCopy(g, gg, columns); DataCopy(b, gb, columns);
    Duplicate(c, T(0), n); Duplicate(d, T(0), beside); Duplicate(e, T(0), beside);
    PipeBarrier<PIPE_ALL>();
    const SoftMaxShapeInfo shape{rows, columns, rows, used};
    static constexpr CumSumConfig down{false, false, true}, along{true, false, false};
    switch (p.v[0]) {
        case 0: SoftMax(c, d, e, a, SoftMaxTiling(), shape); break;
        case 1: LogSoftMax(c, d, e, a, LogSoftMaxTiling(), shape); break;
        case 2: Sum(c, a, SumParams{rows, columns, used}); break;
        case 3: Mean(c, a, MeanParams{rows, columns, used}); break;
        case 4: CumSum<T, down>(c, d, a, CumSumInfo{rows, columns}); break;
        case 5: CumSum<T, along>(c, d, a, CumSumInfo{rows, columns}); break;
        case 6: { uint32_t to[2] = {rows, columns}, from[2] = {1, columns}; BroadCast<T, 2, 0>(c, a, to, from);
            break; }
        case 7: { uint32_t to[2] = {rows, columns}, from[2] = {rows, 1}; BroadCast<T, 2, 1>(c, a, to, from); break; }
        case 8: { LayerNormTiling t; t.bLength = 1; t.sLength = rows; t.hLength = columns; t.originalHLength = used;
                  LayerNorm(c, d, e, a, g, b, T(1e-3f), t); break; }
        case 9: { RmsNormTiling t; t.bLength = 1; t.sLength = rows; t.hLength = columns; t.originalHLength = used;
                  RmsNorm(c, a, g, T(1e-3f), t); break; }
    }
    if (used < columns) for (uint32_t r = 0; r < rows; ++r)
        if (p.v[0] < 2 || p.v[0] >= 8) for (uint32_t i = used; i < columns; ++i) c.SetValue(r * columns + i, T(0));
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n); DataCopy(gy, d, beside);
}
"""
SOFTMAX, LOGSOFTMAX, SUM, MEAN, DOWN, ALONG, BY_ROWS, BY_COLUMNS, LAYERNORM, RMSNORM = range(10)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def tiles(device: AscendSim) -> dict[str, Compiled]:
    return {
        kind: Compiled(device, source(f"tile<{NAMES[kind]}>(pipe, x0, x1, x2, z0, z1, p);", 3, outputs=2, prelude=TILE))
        for kind in ("float32", "float16")
    }


def reference(op: int, a: Array, gamma: Array, beta: Array, used: int) -> Array:
    x = a[:, :used]
    shifted = x - x.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    centred = x - x.mean(1, keepdims=True)
    match op:
        case 0:
            return np.exp(shifted) / total
        case 1:
            return shifted - np.log(total)
        case 2 | 3:
            return x.sum(1) if op == SUM else x.mean(1)
        case 4 | 5:
            return np.cumsum(a, 0 if op == DOWN else 1)
        case 6:
            return np.repeat(a[:1], len(a), 0)
        case 7:
            return np.repeat(a.reshape(-1)[: len(a), None], a.shape[1], 1)
        case 8:
            return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-3) * gamma[:used] + beta[:used]
        case _:
            return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-3) * gamma[:used]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("op", range(10))
@pytest.mark.parametrize(("rows", "columns", "used"), [(4, 64, 64), (7, 96, 96), (3, 160, 150), (1, 1024, 1000)])
def test_a_row_wise_function(
    tiles: dict[str, Compiled], kind: str, op: int, rows: int, columns: int, used: int
) -> None:
    rng = np.random.default_rng(op)
    a = rng.standard_normal((rows, columns)).astype(NUMPY[kind])
    gamma, beta = (rng.standard_normal(columns).astype(NUMPY[kind]) for _ in range(2))
    width = a.dtype.itemsize
    outputs = [((rows, columns), kind), ((4096 // width,), kind)]
    run = tiles[kind]([a, gamma, beta], outputs, ints=[op, rows, columns, used])
    assert run.status == "ok", run.fault
    want = reference(op, a.astype(np.float64), gamma.astype(np.float64), beta.astype(np.float64), used)
    actual = run.outputs[0].astype(np.float64)
    actual = actual.reshape(-1)[:rows] if want.ndim == 1 else actual[:, : want.shape[1]]
    scale = 1e-5 if kind == "float32" else 1e-2
    assert np.allclose(actual, want, rtol=scale, atol=scale)
    beside = run.outputs[1].astype(np.float64)
    if op == SOFTMAX:
        sums = np.exp(a[:, :used].astype(np.float64) - a[:, :used].max(1, keepdims=True)).sum(1)
        assert np.allclose(beside[: rows * 32 // width].reshape(rows, -1), sums[:, None], rtol=scale)
    if op == DOWN:
        assert np.allclose(beside[:columns], want[-1], rtol=scale, atol=scale)


MATMUL = """
#include "lib/matmul_intf.h"
using namespace matmul;
template <class A, class C, bool ta, bool tb>
__aicore__ void multiply(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR z0, const Ints &p) {
    if (GetBlockIdx() != 0) return;   // a mixed kernel runs on two vector cores for each cube core
    using BiasT = std::conditional_t<std::is_same_v<A, int8_t>, int32_t, float>;
    const int m = p.v[0], n = p.v[1], k = p.v[2];
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, A, ta>, MatmulType<TPosition::GM, CubeFormat::ND, A, tb>,
           MatmulType<TPosition::GM, CubeFormat::ND, C>, MatmulType<TPosition::GM, CubeFormat::ND, BiasT>> mm;
    TCubeTiling t{};
    t.usedCoreNum = 1; t.M = m; t.N = n; t.Ka = t.Kb = k; t.singleCoreM = m; t.singleCoreN = n; t.singleCoreK = k;
    t.baseM = 32; t.baseN = 48; t.baseK = 32; t.depthA1 = t.depthB1 = 2; t.stepM = t.stepN = 1;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    GlobalTensor<A> a, b; GlobalTensor<C> c; GlobalTensor<BiasT> bias;
    a.SetGlobalBuffer((__gm__ A *)x0); b.SetGlobalBuffer((__gm__ A *)x1);
    bias.SetGlobalBuffer((__gm__ BiasT *)x2); c.SetGlobalBuffer((__gm__ C *)z0);
    mm.SetTensorA(a, ta); mm.SetTensorB(b, tb);
    if (p.v[3]) mm.SetBias(bias);
    if (p.v[4]) while (mm.Iterate()) mm.GetTensorC(c);
    else mm.IterateAll(c);
    mm.End();
}
"""
TYPES = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int32"}


@pytest.mark.parametrize("kind", TYPES)
def test_matmul(device: AscendSim, kind: str) -> None:
    names = f"{NAMES[kind]}, {NAMES[TYPES[kind]]}"
    calls = " ".join(
        f"case {i}: multiply<{names}, {i & 1}, {i >> 1}>(pipe, x0, x1, x2, z0, p); break;" for i in range(4)
    )
    kernel = Compiled(device, source(f"switch (p.v[5]) {{ {calls} }}", 3, prelude="#include <type_traits>\n" + MATMUL))
    rng = np.random.default_rng(7)
    for case, (m, n, k) in enumerate([(16, 16, 16), (33, 50, 70), (1, 129, 5), (64, 7, 130)]):
        a, b = (rng.integers(-4, 5, shape).astype(NUMPY[kind]) for shape in ((m, k), (k, n)))
        bias = rng.integers(-9, 9, n).astype(NUMPY[TYPES[kind]])
        for transposes in range(4):
            inputs = [
                np.ascontiguousarray(a.T if transposes & 1 else a),
                np.ascontiguousarray(b.T if transposes & 2 else b),
                bias,
            ]
            with_bias, stepwise = case % 2, transposes % 2
            run = kernel(inputs, [((m, n), TYPES[kind])], ints=[m, n, k, with_bias, stepwise, transposes])
            assert run.status == "ok", run.fault
            want = a.astype(np.float64) @ b.astype(np.float64) + with_bias * bias.astype(np.float64)
            assert np.array_equal(run.outputs[0], want.astype(NUMPY[TYPES[kind]])), "whole numbers: exact"
            assert run.written == (m * n * 4,)


FRACTALS = """
#include "lib/matmul_intf.h"
using namespace matmul;
template <class T, class D, CubeFormat fa, bool ta, CubeFormat fb, bool tb, CubeFormat fc>
__aicore__ void fractals(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    if (GetBlockIdx() != 0) return;
    const int m = p.v[0], n = p.v[1], k = p.v[2];
    Matmul<MatmulType<TPosition::GM, fa, T, ta>, MatmulType<TPosition::GM, fb, T, tb>, MatmulType<TPosition::GM,
        fc, D>> mm;
    TCubeTiling t{};
    t.usedCoreNum = 1; t.M = m; t.N = n; t.Ka = t.Kb = k; t.singleCoreM = m; t.singleCoreN = n; t.singleCoreK = k;
    t.baseM = p.v[5]; t.baseN = 32; t.baseK = 32; t.depthA1 = t.depthB1 = 2; t.stepM = t.stepN = 1;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    GlobalTensor<T> a, b; GlobalTensor<D> c;
    a.SetGlobalBuffer((__gm__ T *)x0); b.SetGlobalBuffer((__gm__ T *)x1); c.SetGlobalBuffer((__gm__ D *)z0);
    mm.SetTensorA(a, ta); mm.SetTensorB(b, tb);
    if (p.v[3]) while (mm.Iterate()) mm.GetTensorC(c);
    else mm.IterateAll(c);
    mm.End();
}
"""


def in_columns(matrix: Array, width: int) -> Array:
    """Columns of `width`, one behind the other, each as many rows long as whole fractals have."""
    rows, columns = -(-matrix.shape[0] // 16) * 16, -(-matrix.shape[1] // width) * width
    padded = np.zeros((rows, columns), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(padded.reshape(rows, -1, width).transpose(1, 0, 2)).reshape(-1)


@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_matmul_of_matrices_in_fractals(device: AscendSim, kind: str) -> None:
    width = 32 // np.dtype(NUMPY[kind]).itemsize
    rng = np.random.default_rng(3)
    formats = [("NZ", 0, "ND", 0, "ND"), ("ND", 0, "NZ", 1, "ND"), ("ND", 1, "ND", 0, "NZ"), ("NZ", 1, "NZ", 0, "NZ")]
    calls = " ".join(
        f"case {i}: fractals<{NAMES[kind]}, {NAMES[TYPES[kind]]}, CubeFormat::{fa}, {ta}, CubeFormat::{fb}, {tb}, "
        f"CubeFormat::{fc}>(pipe, x0, x1, z0, p); break;"
        for i, (fa, ta, fb, tb, fc) in enumerate(formats)
    )
    kernel = Compiled(device, source(f"switch (p.v[4]) {{ {calls} }}", 2, prelude=FRACTALS))
    for number, (fa, ta, fb, tb, fc) in enumerate(formats):
        for stepwise in (0, 1):
            m, n, k = 40, 64, 70
            a, b = (rng.integers(-4, 5, shape).astype(NUMPY[kind]) for shape in ((m, k), (k, n)))
            left, right = (np.ascontiguousarray(x.T if turned else x) for x, turned in ((a, ta), (b, tb)))
            inputs = [in_columns(x, width) if form == "NZ" else x for x, form in ((left, fa), (right, fb))]
            want = (a.astype(np.float64) @ b.astype(np.float64)).astype(NUMPY[TYPES[kind]])
            shape: tuple[int, ...] = (48 * 64,) if fc == "NZ" else (m, n)
            run = kernel(inputs, [(shape, TYPES[kind])], ints=[m, n, k, stepwise, number, 32])
            assert run.status == "ok", run.fault
            if fc == "NZ":
                written = in_columns(np.ones((m, n)), 16) == 1
                assert np.array_equal(run.outputs[0][written], in_columns(want, 16)[written])
            else:
                assert np.array_equal(run.outputs[0], want)
    if kind == "int8":  # 32 columns in a fractal: blocks of 16 begin inside one
        run = kernel(inputs, [(shape, TYPES[kind])], ints=[m, n, k, 1, number, 16])
        assert run.fault is not None
        assert (run.fault.rule, "whole fractal" in run.fault.message) == ("MISUSE", True)


def test_matmul_past_the_end_of_a_tensor_is_a_fault(device: AscendSim) -> None:
    kernel = Compiled(
        device,
        source(
            "multiply<float, float, false, false>(pipe, x0, x1, x2, z0, p);",
            3,
            prelude="#include <type_traits>\n" + MATMUL,
        ),
    )
    ones = np.ones((64, 64), np.float32)
    run = kernel([ones, ones, ones], [((64, 64), "float32")], ints=[128, 64, 64, 0, 0])
    assert run.fault is not None
    assert run.fault.rule == "GM_OUT_OF_BOUNDS"
    assert "Matmul's A" in run.fault.message
