"""Softmax in parts, groups, masks of bytes, and padding, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source

Array = NDArray[Any]
KINDS = pytest.mark.parametrize("kind", ["float32", "float16"])
BESIDE = pytest.mark.parametrize(
    ("kind", "beside"), [("float32", "float32"), ("float16", "float16"), ("float16", "float32")]
)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


FLASH = """
template <class T, class U> __aicore__ void flash(TPipe &pipe, GM_ADDR x0, GM_ADDR z0, GM_ADDR z1, GM_ADDR z2,
    const Ints &p) {
    const uint32_t rows = p.v[1], columns = p.v[2], used = p.v[3], n = rows * columns;
    GlobalTensor<T> ga, gz, ge; GlobalTensor<U> gs;
    ga.SetGlobalBuffer((__gm__ T *)x0); gz.SetGlobalBuffer((__gm__ T *)z0); gs.SetGlobalBuffer((__gm__ U *)z1);
    ge.SetGlobalBuffer((__gm__ T *)z2);
    TBuf<> ta, tb, tc, td, te, tf, tg, th, tt;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tb, n * sizeof(T)); pipe.InitBuffer(tc, n * sizeof(T));
        pipe.InitBuffer(tt, 8192);
    for (TBuf<> *side : {&td, &te, &tf, &tg, &th}) pipe.InitBuffer(*side, rows * 32);
    LocalTensor<T> a = ta.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>(), factor = th.Get<T>();
    LocalTensor<U> sum = td.Get<U>(), max = te.Get<U>(), sum0 = tf.Get<U>(), max0 = tg.Get<U>();
    LocalTensor<uint8_t> tmp = tt.Get<uint8_t>();
    DataCopy(a, ga, n); DataCopy(b, ga[n], n);
    Duplicate(c, T(0), n); Duplicate(factor, T(0), rows * 32 / sizeof(T));
    PipeBarrier<PIPE_ALL>();
    const SoftMaxShapeInfo shape{rows, columns, rows, used};
    SoftMaxTiling tiling;
    switch (p.v[0]) {
        case 0: SoftMax(c, sum, max, a, tiling, shape); SimpleSoftMax(c, sum, max, b, tiling, shape); break;
        case 1: SoftMax(c, sum, max, a, tiling, shape); SimpleSoftMax(c, sum, max, b, tmp, tiling, shape); break;
        case 2: SoftmaxFlash(c, sum0, max0, a, factor, sum, max, tiling, false, shape);
                SoftmaxFlash(c, sum, max, b, factor, sum0, max0, tmp, tiling, true, shape); break;
        case 3: SoftmaxFlashV2<T, false>(c, sum0, max0, a, factor, sum, max, tmp, tiling, shape);
                SoftmaxFlashV2<T, true>(c, sum, max, b, factor, sum0, max0, tiling, shape); break;
        case 4: SoftmaxFlash(c, sum, max, b, factor, sum0, max0, tmp, tiling, false, shape); break;
        case 5: SoftmaxFlashV2<T>(c, sum, max, b, factor, sum0, max0, tiling, shape); break;
    }
    for (uint32_t r = 0; r < rows; ++r) for (uint32_t i = used; i < columns; ++i) c.SetValue(r * columns + i, T(0));
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n); DataCopy(gs, sum, rows * 32 / sizeof(U)); DataCopy(ge, factor, rows * 32 / sizeof(T));
}
"""


@BESIDE
@pytest.mark.parametrize(("rows", "columns", "used"), [(4, 64, 64), (3, 160, 150), (1, 512, 509)])
def test_softmax_in_parts(device: AscendSim, kind: str, beside: str, rows: int, columns: int, used: int) -> None:
    body = f"flash<{NAMES[kind]}, {NAMES[beside]}>(pipe, x0, z0, z1, z2, p);"
    kernel = Compiled(device, source(body, 1, outputs=3, prelude="#include <initializer_list>\n" + FLASH))
    data = np.random.default_rng(rows).standard_normal((2, rows, columns)).astype(NUMPY[kind])
    a, b = (part[:, :used].astype(np.float64) for part in data)
    narrow = np.float16 if beside == "float16" else np.float64
    close = {"rtol": 2e-2, "atol": 2e-2} if kind == "float16" else {"rtol": 1e-5, "atol": 1e-6}
    blocks = [rows * 32 // np.dtype(NUMPY[name]).itemsize for name in (beside, kind)]
    for op in range(6):
        outputs = [((rows, columns), kind), ((blocks[0],), beside), ((blocks[1],), kind)]
        run = kernel([data.reshape(-1)], outputs, ints=[op, rows, columns, used])
        assert run.status == "ok", run.fault
        top, previous = b.max(1, keepdims=True), a.max(1, keepdims=True)
        both = np.maximum(top, previous)
        sum_a = np.exp(a - previous).sum(1, keepdims=True).astype(narrow).astype(np.float64)
        scaled = np.exp(previous - both) * sum_a
        total = scaled + np.exp(b - both).sum(1, keepdims=True)
        alone = np.exp(b - top).sum(1, keepdims=True)
        want, sums, factor = {
            0: (np.exp(b - previous) / sum_a, sum_a, None),
            1: (np.exp(b - previous) / sum_a, sum_a, None),
            2: (np.exp(b - both) / total, total, scaled / total),
            3: (np.exp(b - both), total, np.exp(previous - both)),
            4: (np.exp(b - top) / alone, alone, None),
            5: (np.exp(b - top), alone, None),
        }[op]
        assert np.allclose(run.outputs[0][:, :used].astype(np.float64), want, **close)
        assert np.allclose(run.outputs[1].reshape(rows, -1).astype(np.float64), sums, **close)
        if factor is not None:
            assert np.allclose(run.outputs[2].reshape(rows, -1).astype(np.float64), factor, **close)


TILES = """
template <class T> __aicore__ void tiles(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, GM_ADDR z1, const Ints &p) {
    const uint32_t n = 2048, rows = p.v[1], columns = p.v[2], used = p.v[3];
    GlobalTensor<T> ga, gw, gz, gy; GlobalTensor<uint8_t> gm;
    ga.SetGlobalBuffer((__gm__ T *)x0); gw.SetGlobalBuffer((__gm__ T *)x1); gz.SetGlobalBuffer((__gm__ T *)z0);
    gm.SetGlobalBuffer((__gm__ uint8_t *)x1); gy.SetGlobalBuffer((__gm__ T *)z1);
    TBuf<> ta, tw, tb, tm, tc, td, te, tt;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tw, 512 * sizeof(T)); pipe.InitBuffer(tb, 512 * sizeof(T));
    pipe.InitBuffer(tm, 4096); pipe.InitBuffer(tc, 2 * n * sizeof(T)); pipe.InitBuffer(td, 2048);
        pipe.InitBuffer(te, 2048);
    pipe.InitBuffer(tt, 4096);
    LocalTensor<T> a = ta.Get<T>(), w = tw.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>(), d = td.Get<T>(),
        e = te.Get<T>();
    LocalTensor<uint8_t> mask = tm.Get<uint8_t>(), tmp = tt.Get<uint8_t>();
    const uint32_t beside = 2048 / sizeof(T);
    DataCopy(a, ga, n); DataCopy(w, gw, 512); DataCopy(b, gw[512], 512); DataCopy(mask, gm, 4096);
    Duplicate(c, T(0), 2 * n); Duplicate(d, T(0), beside); Duplicate(e, T(0), beside);
    PipeBarrier<PIPE_ALL>();
    PadTiling size; size.srcHeight = rows; size.srcWidth = columns; size.srcOriWidth = used;
    switch (p.v[0]) {
        case 0: case 1: {
            GroupNormTiling t; t.n = p.v[4]; t.c = p.v[5]; t.g = p.v[6]; t.hw = p.v[7];
            if (p.v[0]) GroupNorm(c, d, e, a, w, b, tmp, T(1e-3f), t);
            else GroupNorm(c, d, e, a, w, b, T(1e-3f), t);
            break;
        }
        case 2: SelectWithBytesMask(c, a, T(9), mask, tmp, SelectWithBytesMaskShapeInfo{rows, columns,
            (uint32_t)p.v[4]}); break;
        case 3: SelectWithBytesMask(c, T(9), a, mask.template ReinterpretCast<int16_t>(), tmp,
            SelectWithBytesMaskShapeInfo{rows, columns, (uint32_t)p.v[4]}); break;
        case 4: { PadParams pad{(uint16_t)p.v[4], (uint16_t)p.v[5], 7}; Pad(c, a, pad, size); break; }
        case 5: { PadParams pad{(uint16_t)p.v[4], (uint16_t)p.v[5], 7}; Pad(c, a, pad, tmp, size); break; }
        case 6: { UnPadParams pad{0, (uint16_t)p.v[5]}; UnPad(c, a, pad, size); break; }
        case 7: { UnPadParams pad{0, (uint16_t)p.v[5]}; UnPad(c, a, pad, tmp, size); break; }
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, 2 * n); DataCopy(gy, d, beside);
}
"""
GROUP, SELECT, SELECT_SET, PAD, UNPAD = 0, 2, 3, 4, 6


@pytest.fixture(scope="module")
def tiles(device: AscendSim) -> dict[str, Compiled]:
    return {
        kind: Compiled(device, source(f"tiles<{NAMES[kind]}>(pipe, x0, x1, z0, z1, p);", 2, outputs=2, prelude=TILES))
        for kind in ("float32", "float16")
    }


def call(kernel: Compiled, a: Array, beside: Array, *ints: int) -> tuple[Array, Array]:
    kind = "float32" if a.dtype == np.float32 else "float16"
    whole = np.zeros(2048, a.dtype)
    whole[: a.size] = a.reshape(-1)
    run = kernel([whole, beside], [((4096,), kind), ((2048 // a.itemsize,), kind)], ints=ints)
    assert run.status == "ok", run.fault
    return run.outputs[0], run.outputs[1]


@KINDS
@pytest.mark.parametrize(("n", "c", "g", "hw"), [(1, 4, 2, 32), (2, 6, 3, 64), (3, 2, 1, 96), (1, 8, 8, 16)])
@pytest.mark.parametrize("form", [0, 1])
def test_group_norm(tiles: dict[str, Compiled], kind: str, n: int, c: int, g: int, hw: int, form: int) -> None:
    rng = np.random.default_rng(c)
    x = rng.standard_normal((n, c, hw)).astype(NUMPY[kind])
    weights = np.zeros(4096, NUMPY[kind])
    gamma, beta = rng.standard_normal((2, c)).astype(NUMPY[kind])
    # A group's weights start on whole blocks only where the test can put them: one group, or blocks of channels.
    weights[:c], weights[512 : 512 + c] = gamma, beta
    actual, means = call(tiles[kind], x, weights, GROUP + form, 0, 0, 0, n, c, g, hw)
    grouped = x.astype(np.float64).reshape(n * g, -1)
    centred = (grouped - grouped.mean(1, keepdims=True)) / np.sqrt(grouped.var(1, keepdims=True) + 1e-3)
    want = centred.reshape(n, c, hw) * gamma.astype(np.float64)[:, None] + beta.astype(np.float64)[:, None]
    scale = 1e-5 if kind == "float32" else 1e-2
    assert np.allclose(actual[: x.size].reshape(x.shape), want, rtol=scale, atol=scale)
    assert np.allclose(means[: n * g], grouped.mean(1), rtol=scale, atol=scale)


@KINDS
@settings(max_examples=8)
@given(rows=st.integers(1, 12), blocks=st.integers(1, 8), wider=st.integers(0, 3), seed=st.integers(0, 99))
def test_selecting_by_bytes(
    tiles: dict[str, Compiled], kind: str, rows: int, blocks: int, wider: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = blocks * 16
    pitch = columns + 16 * wider
    x = rng.standard_normal((rows, columns)).astype(NUMPY[kind])
    mask = rng.integers(0, 2, (rows, pitch))
    for op, width in ((SELECT, np.uint8), (SELECT_SET, np.int16)):
        raw = np.zeros(8192 * x.itemsize, np.uint8)
        raw[: mask.size * np.dtype(width).itemsize] = mask.astype(width).view(np.uint8).reshape(-1)
        actual, _ = call(tiles[kind], x, raw.view(NUMPY[kind])[:4096], op, rows, columns, columns, pitch)
        taken = mask[:, :columns] == (op == SELECT_SET)
        assert np.array_equal(actual[: x.size].reshape(x.shape), np.where(taken, x, NUMPY[kind](9)))


@KINDS
@settings(max_examples=12)
@given(
    rows=st.integers(1, 10),
    blocks=st.integers(1, 8),
    cut=st.integers(0, 7),
    left=st.integers(0, 9),
    form=st.integers(0, 1),
)
def test_padding_and_taking_it_off(
    tiles: dict[str, Compiled], kind: str, rows: int, blocks: int, cut: int, left: int, form: int
) -> None:
    per = 32 // np.dtype(NUMPY[kind]).itemsize
    columns = blocks * per
    used = columns - min(cut, per - 1)
    x = (np.arange(rows * columns) % 999).reshape(rows, columns).astype(NUMPY[kind])
    right = -(left + used) % per
    none = np.zeros(4096, NUMPY[kind])
    actual, _ = call(tiles[kind], x, none, PAD + form, rows, columns, used, left, right)
    want = np.pad(x[:, :used], ((0, 0), (left, right)), constant_values=7)
    assert np.array_equal(actual[: want.size].reshape(want.shape), want)
    actual, _ = call(tiles[kind], x, none, UNPAD + form, rows, columns, columns, 0, columns - used)
    assert np.array_equal(actual[: rows * used].reshape(rows, used), x[:, :used])
