"""Other ways into the cube's memories and out of them, against NumPy: bias, four bits, images, fractals, scales."""

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


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


#: Two matrices that lie as fractals in global memory, a product, and its way out.
PRODUCT = """
#define ORDER(event) SetFlag<HardEvent::event>(0); WaitFlag<HardEvent::event>(0);
template <class T, class S, class D> __aicore__ void product(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2,
    GM_ADDR z0, const Ints &p) {
    const uint32_t m = p.v[0], n = p.v[1], k = p.v[2], out = p.v[4];
    const uint32_t rows = (m + 15) / 16, columns = (n + 15) / 16, per = 512 / sizeof(T);
    const uint32_t steps = std::is_same_v<T, int4b_t> ? (k + 63) / 64 : (k * sizeof(T) + 31) / 32;
    GlobalTensor<T> ga, gb; GlobalTensor<S> gbias; GlobalTensor<D> gc; GlobalTensor<uint64_t> gs;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1); gbias.SetGlobalBuffer((__gm__ S *)x2);
    gs.SetGlobalBuffer((__gm__ uint64_t *)x2); gc.SetGlobalBuffer((__gm__ D *)z0);
    TBuf<TPosition::A1> t1, ts; TBuf<TPosition::A2> ta; TBuf<TPosition::B2> tb; TBuf<TPosition::CO1> tc;
    TBuf<TPosition::C1> tq; TBuf<TPosition::C2> tbias; TBuf<TPosition::C2PIPE2GM> tf;
    pipe.InitBuffer(t1, rows * steps * 512); pipe.InitBuffer(ta, rows * steps * 512); pipe.InitBuffer(tb,
        columns * steps * 512);
    pipe.InitBuffer(tc, rows * columns * 1024); pipe.InitBuffer(tq, 512); pipe.InitBuffer(tbias, 512);
        pipe.InitBuffer(tf, 512);
    pipe.InitBuffer(ts, 64 * 1024);
    LocalTensor<T> a1 = t1.Get<T>(), a = ta.Get<T>(), b = tb.Get<T>();
    LocalTensor<S> c = tc.Get<S>(), q = tq.Get<S>(), bias = tbias.Get<S>();
    // A goes through L1, B straight to L0B.
    LoadData(a1, ga, LoadData2DParams(0, rows * steps, 1, 0, 0, false, 0));
    LoadData(b, gb, LoadData2DParams(0, columns * steps, 1, 0, 0, false, 0));
    DataCopy(q, gbias, 512 / sizeof(S));
    ORDER(MTE2_MTE1)
    LoadData(a, a1, LoadData2DParams(0, rows * steps, 1, 0, 0, false, 0));
    if (p.v[3]) DataCopy(bias, q, 512 / sizeof(S));
    if (out >= 4) DataCopy(tf.Get<uint64_t>(), q.template ReinterpretCast<uint64_t>(), 64);
    PipeBarrier<PIPE_ALL>();
    MmadParams mp; mp.m = m; mp.n = n; mp.k = k;
    if (p.v[3]) Mmad(c, a, b, bias, mp); else Mmad(c, a, b, mp);
    PipeBarrier<PIPE_ALL>();
    FixpipeParamsV220 fp; fp.nSize = n; fp.mSize = m; fp.srcStride = rows * 16; fp.dstStride = n; fp.reluEn = p.v[5];
    constexpr bool scaled = sizeof(D) == 1 || (std::is_same_v<S, int32_t> && std::is_same_v<D, half>);
    fp.quantPre = (QuantMode_t)p.v[6]; fp.deqScalar = p.v[7];
    DataCopyCO12DstParams cp; cp.nSize = n; cp.mSize = m; cp.srcStride = rows * 16; cp.dstStride = n;
        cp.nz2ndEn = true;
    cp.quantPre = fp.quantPre; cp.reluPre = p.v[5];
    switch (out) {
        case 0: Fixpipe(gc, c, fp); break;
        case 1: fp.dstStride = p.v[8]; Fixpipe<D, S, CFG_NZ>(gc, c, fp); break;
        case 2: { // through L1 as fractals, then copied out as it is
            fp.dstStride = p.v[8];
            LocalTensor<D> side = ts.Get<D>();
            Fixpipe<D, S, CFG_NZ>(side, c, fp);
            PipeBarrier<PIPE_ALL>();
            DataCopy(gc, side, p.v[9] / sizeof(D));
            break;
        }
        case 3: SetFixpipePreQuantFlag(p.v[7]); SetFixpipeNz2ndFlag(1, 0, 0); DataCopy(gc, c, cp); break;
        case 4: if constexpr (scaled) { SetFixPipeConfig(tf.Get<uint64_t>()); SetFixpipeNz2ndFlag(1, 0, 0);
            DataCopy(gc, c, cp); } break;
        case 5: if constexpr (scaled) Fixpipe(gc, c, q.template ReinterpretCast<uint64_t>(), fp); break;
    }
}
"""
ROWS, FRACTALS, BY_L1, REGISTERS, VECTOR_REGISTERS, VECTOR = range(6)
PLAIN, SCALAR_HALF, COLUMN_HALF, SCALAR_BYTES, COLUMN_BYTES, SCALAR_WHOLE, COLUMN_WHOLE = 0, 3, 4, 5, 6, 7, 8


def fractals(matrix: Array, by_column: bool) -> Array:
    """As L0A (rows of fractals) or L0B (columns of them) hold a matrix: 16 rows of 32 bytes each."""
    width = 64 if matrix.dtype == np.uint8 else 32 // matrix.dtype.itemsize
    rows, columns = -(-matrix.shape[0] // 16), -(-matrix.shape[1] // width)
    padded = np.zeros((rows * 16, columns * width), matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    tiles = padded.reshape(rows, 16, columns, width).transpose((2, 0, 1, 3) if by_column else (0, 2, 1, 3))
    flat = np.ascontiguousarray(tiles).reshape(-1)
    if matrix.dtype == np.uint8:  # four bits, two in a byte
        return ((flat[0::2] & 15) | (flat[1::2] & 15) << 4).view(np.int8)
    return flat


def columns_of_fractals(matrix: Array, width: int, pitch: int) -> Array:
    """A result in columns of `width`, `pitch` bytes apart."""
    m, n = matrix.shape
    groups = -(-n // width)
    out = np.zeros((groups, pitch // matrix.dtype.itemsize), matrix.dtype)
    padded = np.zeros((m, groups * width), matrix.dtype)
    padded[:, :n] = matrix
    for group in range(groups):
        out[group, : m * width] = padded[:, group * width : group * width + width].reshape(-1)
    return out.reshape(-1)


def build(device: AscendSim, kind: str, result: str) -> Compiled:
    whole = "int32_t" if kind in ("int8", "int4") else "float"
    names = f"{'int4b_t' if kind == 'int4' else NAMES[kind]}, {whole}, {NAMES[result]}"
    prelude = "#include <type_traits>\n" + PRODUCT
    return Compiled(device, source(f"product<{names}>(pipe, x0, x1, x2, z0, p);", 3, prelude=prelude))


def operands(kind: str, m: int, n: int, k: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    numpy_kind = np.uint8 if kind == "int4" else NUMPY[kind]
    a, b = (rng.integers(-4, 5, shape).astype(np.int8).astype(numpy_kind) for shape in ((m, k), (n, k)))
    bias = rng.integers(-50, 50, 256).astype(np.int32 if kind in ("int8", "int4") else np.float32)
    return a, b, bias


def exact(a: Array, b: Array) -> Array:
    left, right = ((part.view(np.int8) if part.dtype == np.uint8 else part).astype(np.float64) for part in (a, b))
    return left @ right.T


@pytest.fixture(scope="module")
def products(device: AscendSim) -> dict[tuple[str, str], Compiled]:
    pairs = [("float16", "float32"), ("float32", "float32"), ("int8", "int32"), ("int4", "int32")]
    pairs += [("float16", "int8"), ("int8", "float16"), ("int8", "uint8")]
    return {pair: build(device, *pair) for pair in pairs}


SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 70))


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "int4"])
@settings(max_examples=6)
@given(shape=SHAPES, with_bias=st.booleans(), relu=st.booleans(), registers=st.booleans(), seed=st.integers(0, 99))
def test_products_with_a_bias(
    products: dict[tuple[str, str], Compiled],
    kind: str,
    shape: tuple[int, int, int],
    with_bias: bool,
    relu: bool,
    registers: bool,
    seed: int,
) -> None:
    m, n, k = shape
    a, b, bias = operands(kind, m, n, k, seed)
    result = "int32" if kind in ("int8", "int4") else "float32"
    ints = [m, n, k, int(with_bias), REGISTERS if registers else ROWS, int(relu), PLAIN, 0]
    run = products[kind, result]([fractals(a, False), fractals(b, True), bias], [((m, n), result)], ints=ints)
    assert run.status == "ok", run.fault
    want = exact(a, b) + (bias[:n] if with_bias else 0)
    assert np.array_equal(run.outputs[0], np.maximum(want, 0) if relu else want)


@pytest.mark.parametrize("way", [FRACTALS, BY_L1])
@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_results_as_fractals(products: dict[tuple[str, str], Compiled], kind: str, way: int) -> None:
    m, n, k = 21, 48, 32
    a, b, bias = operands(kind, m, n, k, 1)
    result = "float32" if kind == "float16" else "int32"
    pitch = (m + 3) * 64
    size = 3 * pitch // 4
    ints = [m, n, k, 0, way, 0, PLAIN, 0, pitch // 32, 3 * pitch]
    if way == BY_L1:  # what lies between the columns was never written
        pitch = m * 64
        size = 3 * pitch // 4
        ints = [m, n, k, 0, way, 0, PLAIN, 0, pitch // 32, 3 * pitch]
    run = products[kind, result]([fractals(a, False), fractals(b, True), bias], [((size,), result)], ints=ints)
    assert run.status == "ok", run.fault
    want = columns_of_fractals(exact(a, b).astype(NUMPY[result]), 16, pitch)
    written = columns_of_fractals(np.ones((m, n), np.float32), 16, pitch) == 1
    assert np.array_equal(run.outputs[0][written], want[written])


def scale_bits(scale: float, offset: int = 0) -> int:
    return int(np.float32(scale).view(np.uint32)) | (offset & 0x1FF) << 37


@pytest.mark.parametrize(
    ("kind", "result", "scalar", "column"),
    [
        ("float16", "int8", SCALAR_BYTES, COLUMN_BYTES),
        ("int8", "uint8", SCALAR_WHOLE, COLUMN_WHOLE),
        ("int8", "float16", SCALAR_HALF, COLUMN_HALF),
    ],
)
@pytest.mark.parametrize("way", [ROWS, REGISTERS, VECTOR, VECTOR_REGISTERS, FRACTALS])
def test_results_with_scales(
    products: dict[tuple[str, str], Compiled], kind: str, result: str, scalar: int, column: int, way: int
) -> None:
    m, n, k = 20, 32, 40
    a, b, _ = operands(kind, m, n, k, 2)
    by_column = way in (VECTOR, VECTOR_REGISTERS)
    scales = np.array([0.25, 0.5, 1.5, 0.125])[np.arange(64) % 4]
    offsets = np.array([0, 3, -7])[np.arange(64) % 3] if result != "float16" else np.zeros(64, int)
    words = np.array([scale_bits(s, int(o)) for s, o in zip(scales, offsets, strict=True)], np.int64)
    bias = words.view(np.int32 if kind == "int8" else np.float32)
    scale = scale_bits(0.5, 5 if result != "float16" else 0)
    mode = column if by_column else scalar
    ints = [m, n, k, 0, way, 0, mode, scale, m]
    shape = (m, n) if way != FRACTALS else (m * n,)
    if way == FRACTALS and result == "float16":
        ints[8] = m
    run = products[kind, result]([fractals(a, False), fractals(b, True), bias], [(shape, result)], ints=ints)
    assert run.status == "ok", run.fault
    factor, added = (scales[:n], offsets[:n]) if by_column else (0.5, 5 if result != "float16" else 0)
    want = exact(a, b) * factor + added
    if result != "float16":
        low, high = (-128, 127) if result == "int8" else (0, 255)
        want = np.rint(want).clip(low, high)
    want = want.astype(NUMPY[result])
    if way == FRACTALS:
        want = columns_of_fractals(want, 32 if result != "float16" else 16, m * 32)
    assert np.array_equal(run.outputs[0], want)


IMAGE = """
#define ORDER(event) SetFlag<HardEvent::event>(0); WaitFlag<HardEvent::event>(0);
template <class T> __aicore__ void image(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    const uint32_t h = p.v[0], w = p.v[1], c1 = p.v[2], fh = p.v[3], fw = p.v[4], n = 16, c0 = 32 / sizeof(T),
        m = p.v[5];
    const uint32_t k = c1 * fh * fw * c0;
    GlobalTensor<T> gx, gw; GlobalTensor<float> gc;
    gx.SetGlobalBuffer((__gm__ T *)x0); gw.SetGlobalBuffer((__gm__ T *)x1); gc.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<TPosition::A1> t1; TBuf<TPosition::A2> ta; TBuf<TPosition::B2> tb; TBuf<TPosition::CO1> tc;
    pipe.InitBuffer(t1, c1 * h * w * 32); pipe.InitBuffer(ta, m * k * sizeof(T)); pipe.InitBuffer(tb,
        n * k * sizeof(T));
    pipe.InitBuffer(tc, m * n * 4);
    LocalTensor<T> x = t1.Get<T>(), a = ta.Get<T>(), b = tb.Get<T>();
    LocalTensor<float> c = tc.Get<float>();
    Fill(x, InitConstValueParams<T>(1, c1 * h * w, 0, T(3)));        // overwritten: the order is what counts
    PipeBarrier<PIPE_MTE2>();
    DataCopy(x, gx, c1 * h * w * c0);
    LoadData(b, gw, LoadData2DParams(0, k / c0, 1, 0, 0, false, 0));
    ORDER(MTE2_MTE1)
    LoadData3DParamsV2<T> lp;
    lp.padList[0] = p.v[6]; lp.padList[1] = p.v[7]; lp.padList[2] = p.v[8]; lp.padList[3] = p.v[9];
    lp.l1H = h; lp.l1W = w; lp.channelSize = c1 * c0; lp.kExtension = k; lp.mExtension = m;
    lp.strideW = p.v[10]; lp.strideH = p.v[11]; lp.filterW = fw; lp.filterH = fh; lp.dilationFilterW = p.v[12];
        lp.dilationFilterH = p.v[13];
    LoadData(a, x, lp);
    ORDER(MTE1_M)
    MmadParams mp; mp.m = m; mp.n = n; mp.k = k;
    Mmad(c, a, b, mp);
    ORDER(M_FIX)
    FixpipeParamsV220 fp; fp.nSize = n; fp.mSize = m; fp.srcStride = m; fp.dstStride = n;
    Fixpipe(gc, c, fp);
}
"""


@pytest.fixture(scope="module")
def images(device: AscendSim) -> dict[str, Compiled]:
    return {
        kind: Compiled(device, source(f"image<{NAMES[kind]}>(pipe, x0, x1, z0, p);", 2, prelude=IMAGE))
        for kind in ("float16", "float32")
    }


@pytest.mark.parametrize("kind", ["float16", "float32"])
@settings(max_examples=8)
@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    blocks=st.integers(1, 2),
    filters=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    strides=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_a_convolution_by_patches(
    images: dict[str, Compiled],
    kind: str,
    size: tuple[int, int],
    blocks: int,
    filters: tuple[int, int],
    pads: tuple[int, int, int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> None:
    (h, w), (fh, fw), (left, right, top, bottom) = size, filters, pads
    reach_h, reach_w = (fh - 1) * dilations[0] + 1, (fw - 1) * dilations[1] + 1
    if reach_h > h + top + bottom or reach_w > w + left + right:
        return
    c0 = 32 // np.dtype(NUMPY[kind]).itemsize
    rng = np.random.default_rng(h * w)
    x = rng.integers(-3, 4, (blocks, h, w, c0)).astype(NUMPY[kind])
    weights = rng.integers(-3, 4, (16, blocks * fh * fw * c0)).astype(NUMPY[kind])
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    down, across = (padded.shape[1] - reach_h) // strides[0] + 1, (padded.shape[2] - reach_w) // strides[1] + 1
    patches = np.stack(
        [
            padded[
                :,
                i * strides[0] : i * strides[0] + reach_h : dilations[0],
                j * strides[1] : j * strides[1] + reach_w : dilations[1],
            ].reshape(-1)
            for i in range(down)
            for j in range(across)
        ]
    )
    m = -(-len(patches) // 16) * 16
    ints = [h, w, blocks, fh, fw, m, left, right, top, bottom, strides[1], strides[0], dilations[1], dilations[0]]
    run = images[kind]([x, fractals(weights, True)], [((m, 16), "float32")], ints=ints)
    assert run.status == "ok", run.fault
    assert np.array_equal(run.outputs[0][: len(patches)], patches.astype(np.float32) @ weights.astype(np.float32).T)


TRANSPOSED = """
template <class T> __aicore__ void transposed(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    // B lies as rows of k: squares of it are turned on their way to L0B.
    constexpr uint32_t side = sizeof(T) == 1 ? 32 : 16, m = 16, k = side, n = 2 * side, c0 = 32 / sizeof(T);
    using S = std::conditional_t<sizeof(T) == 1, int32_t, float>;
    GlobalTensor<T> ga, gb; GlobalTensor<S> gc;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1); gc.SetGlobalBuffer((__gm__ S *)z0);
    TBuf<TPosition::B1> t1; TBuf<TPosition::A2> ta; TBuf<TPosition::B2> tb; TBuf<TPosition::CO1> tc;
    pipe.InitBuffer(t1, n * k * sizeof(T)); pipe.InitBuffer(ta, m * k * sizeof(T)); pipe.InitBuffer(tb,
        n * k * sizeof(T));
    pipe.InitBuffer(tc, m * n * 4);
    LocalTensor<T> b1 = t1.Get<T>(), a = ta.Get<T>(), b = tb.Get<T>();
    LocalTensor<S> c = tc.Get<S>();
    LoadData(a, ga, LoadData2DParams(0, k / c0, 1, 0, 0, false, 0));
    LoadData(b1, gb, LoadData2DParams(0, n * k * sizeof(T) / 512, 1, 0, 0, false, 0));
    PipeBarrier<PIPE_ALL>();
    // Two squares; in L0B the fractals of one step of k are next to each other, n / 16 of them.
    if constexpr (sizeof(T) == 4) LoadDataWithTranspose(b, b1, LoadData2dTransposeParams(0, 2, 1, 0, n / 16 - 1));
    else LoadDataWithTranspose(b, b1, LoadData2dTransposeParams(0, 2, 1, sizeof(T) == 1 ? 1 : 0, 0));
    PipeBarrier<PIPE_ALL>();
    MmadParams mp; mp.m = m; mp.n = n; mp.k = k;
    Mmad(c, a, b, mp);
    PipeBarrier<PIPE_ALL>();
    FixpipeParamsV220 fp; fp.nSize = n; fp.mSize = m; fp.srcStride = m; fp.dstStride = n;
    Fixpipe(gc, c, fp);
}
"""


@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_square_fractals_are_transposed_while_loading(device: AscendSim, kind: str) -> None:
    prelude = "#include <type_traits>\n" + TRANSPOSED
    kernel = Compiled(device, source(f"transposed<{NAMES[kind]}>(pipe, x0, x1, z0, p);", 2, prelude=prelude))
    side = 32 if kind == "int8" else 16
    rng = np.random.default_rng(4)
    a = rng.integers(-3, 4, (16, side)).astype(NUMPY[kind])
    b = rng.integers(-3, 4, (side, 2 * side)).astype(NUMPY[kind])
    squares = np.concatenate([fractals(np.ascontiguousarray(part), False) for part in np.split(b, 2, axis=1)])
    result = "int32" if kind == "int8" else "float32"
    run = kernel([fractals(a, False), squares], [((16, 2 * side), result)])
    assert run.status == "ok", run.fault
    assert np.array_equal(run.outputs[0], a.astype(np.float64) @ b.astype(np.float64))
