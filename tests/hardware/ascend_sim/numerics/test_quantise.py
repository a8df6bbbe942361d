"""Quantised numbers: AscendQuant, AscendDequant, AscendAntiQuant and four-bit integers, against NumPy."""

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
N = 1024

LOAD = """
template <class T> __aicore__ LocalTensor<T> load(TBuf<> &buffer, TPipe &pipe, GM_ADDR from, uint32_t bytes) {
    pipe.InitBuffer(buffer, bytes);
    GlobalTensor<T> global; global.SetGlobalBuffer((__gm__ T *)from);
    LocalTensor<T> local = buffer.Get<T>();
    DataCopy(local, global, local.GetSize());
    return local;
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


QUANT = (
    LOAD
    + """
template <class T> __aicore__ void quant(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR z0, const Ints &p) {
    TBuf<> ta, ts, to, tc, tt;
    LocalTensor<T> a = load<T>(ta, pipe, x0, 1024 * sizeof(T)), s = load<T>(ts, pipe, x1, 64 * sizeof(T)),
        o = load<T>(to, pipe, x2, 64 * sizeof(T));
    pipe.InitBuffer(tc, 1024); pipe.InitBuffer(tt, 1024);
    LocalTensor<int8_t> c = tc.Get<int8_t>();
    LocalTensor<uint8_t> tmp = tt.Get<uint8_t>();
    Duplicate(c.ReinterpretCast<int16_t>(), (int16_t)0, 512);
    PipeBarrier<PIPE_ALL>();
    const uint32_t n = p.v[1];
    const float scale = s.GetValue(0), offset = o.GetValue(0);
    switch (p.v[0]) {
        case 0: AscendQuant(c, a, scale, offset, n); break;
        case 1: AscendQuant(c, a, tmp, scale, offset, n); break;
        case 2: AscendQuant(c, a, tmp, scale, offset); break;
        case 3: AscendQuant(c, a, scale, offset); break;
        case 4: AscendQuant(c, a, tmp, s, o, 64, 64, n); break;
        case 5: AscendQuant(c, a, tmp, s, T(offset), 64, n); break;
    }
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<int8_t> z; z.SetGlobalBuffer((__gm__ int8_t *)z0);
    DataCopy(z, c, 1024);
}
"""
)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_quantising(device: AscendSim, kind: str) -> None:
    kernel = Compiled(device, source(f"quant<{NAMES[kind]}>(pipe, x0, x1, x2, z0, p);", 3, prelude=QUANT))
    rng = np.random.default_rng(5)
    for op, count in [(0, 1000), (0, 33), (1, 7), (2, N), (3, N), (4, 640), (5, 64)]:
        a = (rng.standard_normal(N) * 40).astype(NUMPY[kind])
        scale = rng.uniform(0.5, 4, 64).astype(NUMPY[kind])
        offset = rng.integers(-9, 9, 64).astype(NUMPY[kind])
        run = kernel([a, scale, offset], [((N,), "int8")], ints=[op, count])
        assert run.status == "ok", run.fault
        columns = np.arange(count) % 64
        s = scale[columns] if op >= 4 else np.full(count, scale[0])
        o = offset[columns] if op == 4 else np.full(count, offset[0])
        want = np.rint(a[:count].astype(np.float32) * s.astype(np.float32) + o.astype(np.float32)).clip(-128, 127)
        assert np.array_equal(run.outputs[0][:count], want.astype(np.int8))
        assert not run.outputs[0][count:].any()


DEQUANT = (
    LOAD
    + """
template <class D, class S> __aicore__ void dequant(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    TBuf<> ta, ts, tc, tt;
    const uint32_t m = p.v[1], n = p.v[2], used = p.v[3], out = 4096 / sizeof(D);
    LocalTensor<int32_t> a = load<int32_t>(ta, pipe, x0, 4096);
    LocalTensor<S> s = load<S>(ts, pipe, x1, 256 * sizeof(S));
    pipe.InitBuffer(tc, 4096); pipe.InitBuffer(tt, 1024);
    LocalTensor<D> c = tc.Get<D>();
    LocalTensor<uint8_t> tmp = tt.Get<uint8_t>();
    Duplicate(c.template ReinterpretCast<int16_t>(), (int16_t)0, 2048);
    PipeBarrier<PIPE_ALL>();
    const DequantParams params{m, n, used};
    switch (p.v[0]) {
        case 0: AscendDequant(c, a, s, params); break;
        case 1: AscendDequant(c, a, s, tmp, params); break;
        case 2: AscendDequant(c, a, 0.25f, tmp, params); break;
        case 3: AscendDequant(c, a, 0.25f, params); break;
    }
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<D> z; z.SetGlobalBuffer((__gm__ D *)z0);
    DataCopy(z, c, out);
}
"""
)


@pytest.mark.parametrize(
    ("kind", "scales"),
    [("float16", "uint64"), ("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")],
)
def test_dequantising(device: AscendSim, kind: str, scales: str) -> None:
    names = f"{NAMES[kind]}, {'uint64_t' if scales == 'uint64' else NAMES[scales]}"
    kernel = Compiled(device, source(f"dequant<{names}>(pipe, x0, x1, z0, p);", 2, prelude=DEQUANT))
    rng = np.random.default_rng(6)
    for op in range(4):
        for m, n, used in [(1, 8, 8), (3, 24, 20), (7, 64, 64)]:
            a = rng.integers(-3000, 3000, 1024).astype(np.int32)
            exact = rng.uniform(0.01, 1, 256).astype(np.float32)
            if scales == "uint64":
                given_scale: Array = exact.view(np.uint32).astype(np.int64)
            else:
                given_scale = exact.astype(NUMPY[scales])
                exact = given_scale.astype(np.float32)
            size = 4096 // np.dtype(NUMPY[kind]).itemsize
            run = kernel([a, given_scale], [((size,), kind)], ints=[op, m, n, used])
            assert run.status == "ok", run.fault
            factor = exact[:n] if op < 2 else np.full(n, np.float32(0.25))
            want = (a[: m * n].reshape(m, n).astype(np.float32) * factor)[:, :used].astype(NUMPY[kind])
            per = 32 // np.dtype(NUMPY[kind]).itemsize
            pitch = -(-n // per) * per
            actual = run.outputs[0][: m * pitch].reshape(m, pitch)[:, :used]
            assert np.array_equal(actual, want)


ANTIQUANT = (
    LOAD
    + """
template <class S, class D, bool t> __aicore__ void antiquant(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2,
    GM_ADDR z0, const Ints &p) {
    TBuf<> ta, to, ts, tc, tt;
    const uint32_t k = p.v[0], n = p.v[1];
    LocalTensor<int8_t> bytes = load<int8_t>(ta, pipe, x0, 1024);
    LocalTensor<D> o = load<D>(to, pipe, x1, 256), s = load<D>(ts, pipe, x2, 256);
    pipe.InitBuffer(tc, 4096); pipe.InitBuffer(tt, 1024);
    LocalTensor<D> c = tc.Get<D>();
    LocalTensor<uint8_t> tmp = tt.Get<uint8_t>();
    Duplicate(c.template ReinterpretCast<int16_t>(), (int16_t)0, 2048);
    PipeBarrier<PIPE_ALL>();
    LocalTensor<S> a = bytes.ReinterpretCast<S>();
    a.SetSize(k * n);
    if (p.v[2]) AscendAntiQuant<S, D, t>(c, a, o.GetValue(0), s.GetValue(0), tmp, k);
    else AscendAntiQuant<S, D, t>(c, a, o, s, tmp, k, AntiQuantShapeInfo{1, n, 1, n});
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<D> z; z.SetGlobalBuffer((__gm__ D *)z0);
    DataCopy(z, c, 2048);
}
"""
)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("packed", [False, True])
def test_antiquantising(device: AscendSim, kind: str, packed: bool) -> None:
    stem = f"antiquant<{'int4b_t' if packed else 'int8_t'}, {NAMES[kind]}"
    body = f"if (p.v[3]) {stem}, true>(pipe, x0, x1, x2, z0, p); else {stem}, false>(pipe, x0, x1, x2, z0, p);"
    kernel = Compiled(device, source(body, 3, prelude=ANTIQUANT))
    rng = np.random.default_rng(7)
    for single in (0, 1):
        for transposed in (0, 1):
            for k, n in [(1, 32), (10, 64), (3, 128)]:
                numbers = rng.integers(-8, 8, k * n) if packed else rng.integers(-128, 128, k * n)
                raw = _packed(numbers) if packed else numbers.astype(np.int8)
                raw = np.concatenate([raw, np.zeros(1024 - len(raw), np.int8)])
                offset = rng.integers(-5, 5, 128).astype(NUMPY[kind])
                scale = (2.0 ** rng.integers(-3, 3, 128)).astype(NUMPY[kind])
                run = kernel([raw, offset, scale], [((2048,), kind)], ints=[k, n, single, transposed])
                assert run.status == "ok", run.fault
                o, s = (
                    part[:n].astype(np.float32) if not single else part[0].astype(np.float32)
                    for part in (offset, scale)
                )
                matrix = numbers.reshape((n, k) if transposed else (k, n)).astype(np.float32)
                want = ((matrix.T + o) * s).T if transposed else (matrix + o) * s
                assert np.array_equal(run.outputs[0][: k * n], want.reshape(-1).astype(NUMPY[kind]))


def _packed(numbers: Array) -> Array:
    halves = (numbers & 15).astype(np.uint8).reshape(-1, 2)
    return (halves[:, 0] | halves[:, 1] << 4).view(np.int8)


INT4 = (
    LOAD
    + """
__aicore__ void four(TPipe &pipe, GM_ADDR x0, GM_ADDR z0, GM_ADDR z1, const Ints &p) {
    TBuf<> ta, tb, tc;
    LocalTensor<half> a = load<half>(ta, pipe, x0, 2048);
    pipe.InitBuffer(tb, 512); pipe.InitBuffer(tc, 2048);
    LocalTensor<int4b_t> b = tb.Get<int4b_t>();
    ASSERT(b.GetSize() == 1024 && tb.Get<int4b_t>(64).GetLength() == 32 && b[64].GetPhyAddr() == b.GetPhyAddr() + 32);
    LocalTensor<half> c = tc.Get<half>();
    Duplicate(b.ReinterpretCast<int16_t>(), (int16_t)0, 256); Duplicate(c, half(0), 1024);
    PipeBarrier<PIPE_ALL>();
    const RoundMode round = (RoundMode)p.v[1];
    if (p.v[0] == 0) {
        Cast(b, a, round, (uint32_t)p.v[2]);
        Cast(c, b, RoundMode::CAST_NONE, (uint32_t)p.v[2]);
    } else {
        Cast(b, a, round, (uint64_t)p.v[2], p.v[3], UnaryRepeatParams(1, 1, 2, 8));
        Cast(c, b, RoundMode::CAST_NONE, (uint64_t)p.v[2], p.v[3], UnaryRepeatParams(1, 1, 8, 2));
    }
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<int8_t> y; y.SetGlobalBuffer((__gm__ int8_t *)z0);
    GlobalTensor<int4b_t> packed; packed.SetGlobalBuffer((__gm__ int4b_t *)z0);
    DataCopy(packed, b, 512);
    DataCopy(packed[512], b[512], 512);
    GlobalTensor<half> z; z.SetGlobalBuffer((__gm__ half *)z1);
    DataCopy(z, c, 1024);
}
"""
)
ROUNDING = {0: np.rint, 1: np.rint, 2: np.floor, 3: np.ceil, 5: np.trunc}


@pytest.fixture(scope="module")
def four_bits(device: AscendSim) -> Compiled:
    return Compiled(device, source("four(pipe, x0, z0, z1, p);", 1, outputs=2, prelude=INT4))


@settings(max_examples=16)
@given(
    mode=st.sampled_from(sorted(ROUNDING)),
    masked=st.booleans(),
    count=st.integers(1, 512),
    lanes=st.integers(1, 64),
    repeats=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_four_bit_integers(
    four_bits: Compiled, mode: int, masked: bool, count: int, lanes: int, repeats: int, seed: int
) -> None:
    a = np.random.default_rng(seed).uniform(-12, 12, 1024).astype(np.float16)
    mask, even = 2 * lanes, 2 * count
    ints = [1, mode, mask, repeats] if masked else [0, mode, even, 0]
    run = four_bits([a], [((512,), "int8"), ((1024,), "float16")], ints=ints)
    assert run.status == "ok", run.fault
    active = np.arange(1024) % 128 < mask if masked else np.arange(1024) < even
    active &= np.arange(1024) < (128 * repeats if masked else 1024)
    whole = np.where(active, ROUNDING[mode](a.astype(np.float64)).clip(-8, 7), 0).astype(np.int64)
    assert np.array_equal(run.outputs[0], _packed(whole))
    assert np.array_equal(run.outputs[1], whole.astype(np.float16))
