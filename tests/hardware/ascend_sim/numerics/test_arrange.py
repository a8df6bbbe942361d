"""Copies with strides and padding, and the instructions that move elements around."""

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
ELEMENTS = 2048

KERNEL = """
template <class T> __aicore__ void arrange(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
    const uint32_t n = ELEMENTS;
    GlobalTensor<T> ga, gz; GlobalTensor<uint32_t> gi;
    ga.SetGlobalBuffer((__gm__ T *)x0); gi.SetGlobalBuffer((__gm__ uint32_t *)x1); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> ta, ti, tc;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(ti, n * 4); pipe.InitBuffer(tc, n * sizeof(T));
    LocalTensor<T> a = ta.Get<T>(), c = tc.Get<T>();
    LocalTensor<uint32_t> i = ti.Get<uint32_t>();
    DataCopy(a, ga, n); DataCopy(i, gi, n);
    Duplicate(c, T(0), n);
    PipeBarrier<PIPE_ALL>();
    uint64_t kept = 0;
    const GatherMaskParams steps(1, p.v[4], p.v[5], p.v[6]);
    switch (p.v[0]) {
        case 0: Gather(c, a, i, (uint32_t)p.v[2], (uint32_t)p.v[1]); break;
        case 1: Gatherb(c, a, i, p.v[1], GatherRepeatParams(p.v[2], p.v[3])); break;
        case 2: Brcb(c, a, p.v[1], BrcbRepeatParams(p.v[2], p.v[3])); break;
        case 3: GatherMask(c, a, (uint8_t)p.v[1], p.v[2] != 0, (uint32_t)p.v[3], steps, kept); break;
        case 4: GatherMask(c, a, i.ReinterpretCast<Word>(), p.v[2] != 0, (uint32_t)p.v[3], steps, kept); break;
        case 5: DataCopy(c, a, DataCopyParams(p.v[1], p.v[2], p.v[3], p.v[4])); break;
        case 6: Copy(c, a, (uint64_t)p.v[1], p.v[2], CopyRepeatParams(1, 1, p.v[3], p.v[4])); break;
    }
    PipeBarrier<PIPE_ALL>();
    if (p.v[0] == 3 || p.v[0] == 4) c.SetValue(n - 1, T((float)(int32_t)kept));
    DataCopy(gz, c, n);
}
"""
GATHER, GATHERB, BRCB, PATTERN, MASK, LOCAL, COPY = range(7)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def kernels(device: AscendSim) -> dict[str, Compiled]:
    prelude = "#include <type_traits>\n" + KERNEL.replace("ELEMENTS", str(ELEMENTS))
    return {
        kind: Compiled(device, source(f"arrange<{NAMES[kind]}>(pipe, x0, x1, z0, p);", 2, prelude=prelude))
        for kind in ("float32", "float16")
    }


def call(kernel: Compiled, a: Array, words: Array, *ints: int) -> Array:
    run = kernel([a, words.view(np.int32)], [(a.shape, "float32" if a.dtype == np.float32 else "float16")], ints=ints)
    assert run.status == "ok", run.fault
    result: Array = run.outputs[0]
    return result


def numbered(kind: str) -> Array:
    return (np.arange(ELEMENTS) % 1009).astype(NUMPY[kind])


NO_WORDS = np.zeros(ELEMENTS, np.uint32)
KINDS = pytest.mark.parametrize("kind", ["float32", "float16"])


@KINDS
@settings(max_examples=10)
@given(count=st.integers(1, 600), base=st.integers(0, 4), seed=st.integers(0, 99))
def test_gather(kernels: dict[str, Compiled], kind: str, count: int, base: int, seed: int) -> None:
    a = numbered(kind)
    picks = np.random.default_rng(seed).integers(0, ELEMENTS - 4, ELEMENTS).astype(np.uint32)
    actual = call(kernels[kind], a, picks * a.dtype.itemsize, GATHER, count, base * a.dtype.itemsize)
    assert np.array_equal(actual[:count], a[picks[:count] + base])
    assert not actual[count:].any()


@KINDS
def test_gather_blocks_and_broadcast_blocks(kernels: dict[str, Compiled], kind: str) -> None:
    a = numbered(kind)
    per = 32 // a.dtype.itemsize
    picks = np.random.default_rng(1).integers(0, ELEMENTS // per, ELEMENTS).astype(np.uint32)
    actual = call(kernels[kind], a, picks * 32, GATHERB, 3, 1, 8)
    assert np.array_equal(actual[: 24 * per], np.concatenate([a[p * per : (p + 1) * per] for p in picks[:24]]))
    actual = call(kernels[kind], a, NO_WORDS, BRCB, 2, 2, 16)
    blocks = actual[: 32 * per].reshape(32, per)
    for repeat in range(2):
        assert np.array_equal(
            blocks[repeat * 16 : repeat * 16 + 16 : 2], np.repeat(a[repeat * 8 : repeat * 8 + 8, None], per, 1)
        )


@KINDS
@pytest.mark.parametrize("pattern", range(1, 8))
def test_gather_by_pattern(kernels: dict[str, Compiled], kind: str, pattern: int) -> None:
    a, per = numbered(kind), 256 // np.dtype(NUMPY[kind]).itemsize
    kept = {1: lambda i: i % 2 == 0, 2: lambda i: i % 2 == 1, 7: lambda i: True}
    keeps = kept.get(pattern, lambda i: i % 4 == pattern - 3)
    for each, reduce in ((per, 0), (per // 2 + 5, 1)):
        actual = call(kernels[kind], a, NO_WORDS, PATTERN, pattern, reduce, each, 2, 8)
        want = np.array([a[r * per + i] for r in range(2) for i in range(each) if keeps(i)])
        assert np.array_equal(actual[: len(want)], want)
        assert actual[-1] == len(want)


@KINDS
def test_gather_by_mask(kernels: dict[str, Compiled], kind: str) -> None:
    a, per = numbered(kind), 256 // np.dtype(NUMPY[kind]).itemsize
    words = np.random.default_rng(2).integers(0, 2**32, ELEMENTS, dtype=np.uint32)
    actual = call(kernels[kind], a, words, MASK, 0, 0, per, 3, 8, 1)
    flags = np.unpackbits(words.view(np.uint8), bitorder="little")
    want = np.concatenate([a[r * per : (r + 1) * per][flags[r * 256 : r * 256 + per] == 1] for r in range(3)])
    assert np.array_equal(actual[: len(want)], want)
    assert actual[-1] == len(want)


@KINDS
def test_local_copies_with_gaps(kernels: dict[str, Compiled], kind: str) -> None:
    a = numbered(kind)
    per = 32 // a.dtype.itemsize
    actual = call(kernels[kind], a, NO_WORDS, LOCAL, 4, 2, 1, 3).reshape(-1, per)
    rows = a.reshape(-1, per)
    for i in range(4):
        assert np.array_equal(actual[i * 5 : i * 5 + 2], rows[i * 3 : i * 3 + 2])
        assert not actual[i * 5 + 2 : i * 5 + 5].any()


COPIES = """
    GlobalTensor<T> gx, gz; gx.SetGlobalBuffer((__gm__ T *)x0); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> tb; pipe.InitBuffer(tb, 65536);
    LocalTensor<T> t = tb.Get<T>();
    Duplicate(t, T(7), 65536 / sizeof(T));
    PipeBarrier<PIPE_ALL>();
    const uint32_t width = sizeof(T), rows = p.v[0], columns = p.v[1], pitch = p.v[2], left = p.v[3], right = p.v[4];
    DataCopyPad(t, gx, DataCopyExtParams(rows, columns * width, (pitch - columns) * width, p.v[5], 0),
                DataCopyPadExtParams<T>(p.v[6] != 0, left, right, T(3)));
    PipeBarrier<PIPE_ALL>();
    const uint32_t blocks = ((left + columns + right) * width + 31) / 32;
    DataCopyPad(gz, t, DataCopyExtParams(rows, (left + columns + right) * width, p.v[5], 0, 0));
"""


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_copies_with_padding_and_strides(device: AscendSim, kind: str) -> None:
    body = (
        COPIES
        if kind != "int8"
        else COPIES.replace(
            "Duplicate(t, T(7), 65536 / sizeof(T));", "Duplicate(tb.Get<int16_t>(), (int16_t)0, 32768);"
        )
    )
    kernel = Compiled(device, source(f"using T = {NAMES[kind]};{body}", 1))
    dtype = np.dtype(NUMPY[kind])
    rng = np.random.default_rng(3)
    x = rng.integers(-100, 100, 4096).astype(dtype)
    for _ in range(12):
        rows, columns = int(rng.integers(1, 9)), int(rng.integers(1, 60))
        pitch, gap = columns + int(rng.integers(0, 20)), int(rng.integers(0, 3))
        left, right = (int(rng.integers(0, 32 // dtype.itemsize + 1)) for _ in range(2))
        ints = [rows, columns, pitch, left, right, gap, 1]
        run = kernel([x], [((rows, left + columns + right), kind)], ints=ints)
        assert run.status == "ok", run.fault
        assert run.read == (rows * columns * dtype.itemsize,)
        want = np.full((rows, left + columns + right), 3, dtype)
        for row in range(rows):
            want[row, left : left + columns] = x[row * pitch : row * pitch + columns]
        assert np.array_equal(run.outputs[0], want)


def test_a_short_block_is_filled_with_its_first_element(device: AscendSim) -> None:
    body = """
        GlobalTensor<float> gx, gz; gx.SetGlobalBuffer((__gm__ float *)x0); gz.SetGlobalBuffer((__gm__ float *)z0);
        TBuf<> tb; pipe.InitBuffer(tb, 1024);
        LocalTensor<float> t = tb.Get<float>();
        DataCopyPad(t, gx, DataCopyExtParams(2, 20, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
        PipeBarrier<PIPE_ALL>();
        DataCopy(gz, t, 16);
    """
    run = Compiled(device, source(body, 1))([np.arange(10, dtype=np.float32)], [((16,), "float32")])
    assert run.status == "ok", run.fault
    assert run.outputs[0].tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 5, 6, 7, 8, 9, 5, 5, 5]


@pytest.mark.parametrize("mode", ["Add", "Max", "Min"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int16"])
def test_atomic_copies_of_many_cores(device: AscendSim, mode: str, kind: str) -> None:
    body = f"""
        using T = {NAMES[kind]};
        GlobalTensor<T> gx, gz;
        gx.SetGlobalBuffer((__gm__ T *)x0 + 64 * GetBlockIdx()); gz.SetGlobalBuffer((__gm__ T *)z0);
        TBuf<> tb; pipe.InitBuffer(tb, 1024);
        LocalTensor<T> t = tb.Get<T>();
        DataCopy(t, gx, 64);
        if (GetBlockIdx() == 0) {{ PipeBarrier<PIPE_ALL>(); DataCopy(gz, t, 64); }}
        SyncAll();
        SetAtomic{mode}<T>();
        if (GetBlockIdx() != 0) DataCopy(gz, t, 64);
        SetAtomicNone();
    """
    x = np.random.default_rng(5).integers(-50, 50, (8, 64)).astype(NUMPY[kind])
    run = Compiled(device, source(body, 1, blocks="8"))([x], [((64,), kind)])
    assert run.status == "ok", run.fault
    want = {"Add": x.sum(0), "Max": x.max(0), "Min": x.min(0)}[mode]
    assert np.array_equal(run.outputs[0], want.astype(x.dtype))


def test_index_sort_and_transpose(device: AscendSim) -> None:
    body = """
        GlobalTensor<float> gx, gz; gx.SetGlobalBuffer((__gm__ float *)x0); gz.SetGlobalBuffer((__gm__ float *)z0);
        GlobalTensor<half> gh, gt; gh.SetGlobalBuffer((__gm__ half *)x1); gt.SetGlobalBuffer((__gm__ half *)z1);
        GlobalTensor<int32_t> gi; gi.SetGlobalBuffer((__gm__ int32_t *)z2);
        TBuf<> ta, tb, tc, td, te; pipe.InitBuffer(ta, 512); pipe.InitBuffer(tb, 1024); pipe.InitBuffer(tc, 512);
        pipe.InitBuffer(td, 512); pipe.InitBuffer(te, 512);
        LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
        LocalTensor<half> h = td.Get<half>(), t = te.Get<half>();
        DataCopy(a, gx, 64); DataCopy(h, gh, 256);
        PipeBarrier<PIPE_ALL>();
        LocalTensor<int32_t> i = tc.Get<int32_t>();
        ArithProgression(i, 100, 3, 64);
        Sort32(b, a, i.ReinterpretCast<uint32_t>(), 2);
        Transpose(t, h);
        PipeBarrier<PIPE_ALL>();
        DataCopy(gz, b, 128); DataCopy(gt, t, 256); DataCopy(gi, i, 64);
    """
    rng = np.random.default_rng(6)
    x, h = np.round(rng.standard_normal(64) * 4).astype(np.float32), rng.standard_normal((16, 16)).astype(np.float16)
    run = Compiled(device, source(body, 2, outputs=3))(
        [x, h], [((128,), "float32"), ((16, 16), "float16"), ((64,), "int32")]
    )
    assert run.status == "ok", run.fault
    numbers = np.arange(100, 292, 3, dtype=np.int32)
    assert np.array_equal(run.outputs[2], numbers)
    assert np.array_equal(run.outputs[1], h.T)
    pairs = run.outputs[0].reshape(2, 32, 2)
    for part in range(2):
        values, ids = x[part * 32 : part * 32 + 32], numbers[part * 32 : part * 32 + 32]
        order = np.argsort(-values, kind="stable")
        assert np.array_equal(pairs[part, :, 0], values[order])
        assert np.array_equal(pairs[part, :, 1].copy().view(np.int32), ids[order])
