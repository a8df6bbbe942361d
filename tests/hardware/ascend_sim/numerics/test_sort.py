"""Sorting, merging, the largest of a row, and transposing blocks, against NumPy."""

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
ELEMENTS = 1024

KERNEL = """
template <class T> __aicore__ void sorts(TPipe &pipe, GM_ADDR x0, GM_ADDR z0, GM_ADDR z1, const Ints &p) {
    const uint32_t n = ELEMENTS, rows = p.v[1], columns = p.v[2], used = p.v[3], k = p.v[4];
    GlobalTensor<T> ga, gz; GlobalTensor<int32_t> gi;
    ga.SetGlobalBuffer((__gm__ T *)x0); gz.SetGlobalBuffer((__gm__ T *)z0); gi.SetGlobalBuffer((__gm__ int32_t *)z1);
    TBuf<> ta, ti, tc, td, tp, tq, tt;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(ti, n * 4); pipe.InitBuffer(tc, n * sizeof(T));
    pipe.InitBuffer(td, n * 4); pipe.InitBuffer(tp, n * 8); pipe.InitBuffer(tq, n * 8); pipe.InitBuffer(tt, n * 16);
    LocalTensor<T> a = ta.Get<T>(), c = tc.Get<T>(), pairs = tp.Get<T>(), merged = tq.Get<T>(), tmp = tt.Get<T>();
    LocalTensor<int32_t> d = td.Get<int32_t>();
    LocalTensor<int32_t> numbers = ti.Get<int32_t>();
    LocalTensor<uint32_t> index = ti.Get<uint32_t>(), found = td.Get<uint32_t>();
    DataCopy(a, ga, n);
    CreateVecIndex(numbers, (int32_t)p.v[5], n);
    Duplicate(c, T(0), n); Duplicate(d, (int32_t)-1, n);
    PipeBarrier<PIPE_ALL>();
    const uint16_t lengths[4] = {(uint16_t)p.v[6], (uint16_t)p.v[7], (uint16_t)p.v[8], (uint16_t)p.v[9]};
    const uint16_t valid = p.v[10];
    const MrgSortSrcList<T> lists(pairs, pairs[GetSortOffset<T>(256)], pairs[GetSortOffset<T>(512)],
                                  pairs[GetSortOffset<T>(768)]);
    switch (p.v[0]) {
        case 0: { LocalTensor<T> all; Concat(all, a, tmp, rows); Sort<T, true>(pairs, all, index, tmp, rows);
                  Extract(c, found, pairs, rows); break; }
        case 1: Sort<T, false>(pairs, a, index, tmp, rows); Extract(c, found, pairs, rows); break;
        case 2: Sort32(pairs, a, index, rows); Extract(c, found, pairs, rows); break;
        case 3: { // four lists of 256, each sorted, merged in one go
            for (uint32_t i = 0; i < 4; ++i) {
                LocalTensor<T> own = pairs[GetSortOffset<T>(256 * i)];
                Sort<T, true>(own, a[256 * i], index[256 * i], tmp, 8);
            }
            uint32_t taken[4] = {};
            Duplicate(merged, T(0), n * 8 / sizeof(T));
            if (k) MrgSort<T, true>(merged, lists, lengths, taken, valid, 1);
            else MrgSort<T>(merged, lists, MrgSort4Info(lengths, false, valid, 1));
            Extract(c, found, merged, 32);
            uint16_t one, two, three, four;
            GetMrgSortResult(one, two, three, four);
            d.SetValue(n - 4, one); d.SetValue(n - 3, two); d.SetValue(n - 2, three); d.SetValue(n - 1, four);
            if (k) for (uint32_t i = 0; i < 4; ++i) ASSERT((uint32_t)d.GetValue(n - 4 + i) == taken[i]);
            break;
        }
        case 4: { // groups of four lists of 32, all at once
            Sort32(pairs, a, index, n / 32);
            const uint16_t each[4] = {32, 32, 32, 32};
            uint32_t taken[4];
            const MrgSortSrcList<T> side(pairs, pairs[GetSortOffset<T>(32)], pairs[GetSortOffset<T>(64)],
                                         pairs[GetSortOffset<T>(96)]);
            MrgSort<T>(merged, side, each, taken, 0b1111, n / 128);
            Extract(c, found, merged, 32);
            break;
        }
        case 5: { LocalTensor<bool> done; TopkTiling tiling;
                  TopK(c, d, a, numbers, done, (int32_t)k, tiling, TopKInfo{(int32_t)rows, (int32_t)columns,
                      (int32_t)used}, p.v[6] != 0);
                  break; }
        case 6: { LocalTensor<bool> done; TopkTiling tiling;
                  TopK<T, true>(c, d, a, numbers, done, (int32_t)k, tiling, TopKInfo{(int32_t)rows,
                      (int32_t)columns, (int32_t)used}, p.v[6] != 0);
                  break; }
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n); DataCopy(gi, d, n);
}
"""
FULL, ROWS, SORT32, MERGE, GROUPS, TOPK, TOPK_NUMBERED = range(7)
KINDS = pytest.mark.parametrize("kind", ["float32", "float16"])


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def kernels(device: AscendSim) -> dict[str, Compiled]:
    prelude = KERNEL.replace("ELEMENTS", str(ELEMENTS))
    return {
        kind: Compiled(device, source(f"sorts<{NAMES[kind]}>(pipe, x0, z0, z1, p);", 1, outputs=2, prelude=prelude))
        for kind in ("float32", "float16")
    }


def call(kernel: Compiled, a: Array, *ints: int) -> tuple[Array, Array]:
    kind = "float32" if a.dtype == np.float32 else "float16"
    run = kernel([a], [((ELEMENTS,), kind), ((ELEMENTS,), "int32")], ints=ints)
    assert run.status == "ok", run.fault
    return run.outputs[0], run.outputs[1]


def drawn(kind: str, seed: int) -> Array:
    """Numbers of which many are equal: what is sorted has to be stable."""
    return np.random.default_rng(seed).integers(-99, 99, ELEMENTS).astype(NUMPY[kind])


def downwards(x: Array) -> Array:
    return np.argsort(-x.astype(np.float64), kind="stable")


@KINDS
@settings(max_examples=6)
@given(rows=st.integers(1, 32), first=st.integers(0, 5000), seed=st.integers(0, 99))
def test_a_full_sort_carries_the_indices(
    kernels: dict[str, Compiled], kind: str, rows: int, first: int, seed: int
) -> None:
    a = drawn(kind, seed)
    values, indices = call(kernels[kind], a, FULL, rows, 0, 0, 0, first)
    order = downwards(a[: rows * 32])
    assert np.array_equal(values[: rows * 32], a[order])
    assert np.array_equal(indices[: rows * 32], order + first)


@KINDS
@pytest.mark.parametrize("op", [ROWS, SORT32])
@settings(max_examples=4)
@given(rows=st.integers(1, 32), seed=st.integers(0, 99))
def test_rows_of_32_are_sorted_apart(kernels: dict[str, Compiled], kind: str, op: int, rows: int, seed: int) -> None:
    a = drawn(kind, seed)
    values, indices = call(kernels[kind], a, op, rows, 0, 0, 0, 7)
    for row in range(rows):
        part = slice(row * 32, row * 32 + 32)
        order = downwards(a[part])
        assert np.array_equal(values[part], a[part][order])
        assert np.array_equal(indices[part], order + row * 32 + 7)


def merged_by_hand(lists: list[Array], until_empty: bool) -> tuple[list[float], list[int]]:
    taken, out = [0] * len(lists), []
    while True:
        heads = [(-lists[i][taken[i]], i) for i in range(len(lists)) if taken[i] < len(lists[i])]
        if not heads:
            return out, taken
        best = min(heads)[1]
        out.append(float(lists[best][taken[best]]))
        taken[best] += 1
        if until_empty and taken[best] == len(lists[best]):
            return out, taken


@KINDS
@settings(max_examples=10)
@given(
    lengths=st.lists(st.integers(1, 256), min_size=2, max_size=4),
    until_empty=st.booleans(),
    seed=st.integers(0, 99),
)
def test_merging_two_to_four_lists(
    kernels: dict[str, Compiled], kind: str, lengths: list[int], until_empty: bool, seed: int
) -> None:
    a = drawn(kind, seed)
    padded = [*lengths, *[0] * (4 - len(lengths))]
    values, indices = call(kernels[kind], a, MERGE, 0, 0, 0, int(until_empty), 0, *padded, (1 << len(lengths)) - 1)
    lists = [np.sort(a[256 * i : 256 * i + 256])[::-1][:length] for i, length in enumerate(lengths)]
    want, taken = merged_by_hand([part.astype(np.float64) for part in lists], until_empty)
    assert values[: len(want)].tolist() == want
    assert not values[len(want) :].any()
    assert indices[-4:].tolist() == [*taken, *[0] * (4 - len(lengths))]


@KINDS
def test_merging_in_repeats(kernels: dict[str, Compiled], kind: str) -> None:
    a = drawn(kind, 3)
    values, indices = call(kernels[kind], a, GROUPS, 0, 0, 0, 0, 0)
    for group in range(ELEMENTS // 128):
        part = slice(group * 128, group * 128 + 128)
        assert np.array_equal(values[part], np.sort(a[part])[::-1])
        assert np.array_equal(a[indices[part]], values[part])


@KINDS
@settings(max_examples=10)
@given(
    rows=st.integers(1, 4),
    columns=st.sampled_from([32, 64, 224, 256]),
    cut=st.integers(0, 20),
    k=st.integers(1, 12),
    largest=st.booleans(),
    numbered=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_top_of_each_row(
    kernels: dict[str, Compiled],
    kind: str,
    rows: int,
    columns: int,
    cut: int,
    k: int,
    largest: bool,
    numbered: bool,
    seed: int,
) -> None:
    a = drawn(kind, seed)
    used, first = columns - cut, 100
    op = TOPK_NUMBERED if numbered else TOPK
    values, indices = call(kernels[kind], a, op, rows, columns, used, k, first, int(largest))
    pitch, index_pitch = -(-k * a.itemsize // 32) * 32 // a.itemsize, -(-k // 8) * 8
    for row in range(rows):
        x = a[row * columns : row * columns + used]
        order = downwards(x if largest else -x)[:k]
        assert np.array_equal(values[row * pitch : row * pitch + k], x[order])
        actual = indices[row * index_pitch : row * index_pitch + k]
        assert np.array_equal(actual, order + (first if numbered else 0))


TRANSPOSE = """
template <class T> __aicore__ void blocks(TPipe &pipe, GM_ADDR x0, GM_ADDR z0, const Ints &p) {
    const uint32_t n = 4096 / sizeof(T);
    GlobalTensor<T> ga, gz;
    ga.SetGlobalBuffer((__gm__ T *)x0); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> ta, tc;
    pipe.InitBuffer(ta, 4096); pipe.InitBuffer(tc, 4096);
    LocalTensor<T> a = ta.Get<T>(), c = tc.Get<T>();
    DataCopy(a, ga, n);
    Duplicate(c.template ReinterpretCast<int16_t>(), (int16_t)0, 2048);
    PipeBarrier<PIPE_ALL>();
    const uint32_t per = 32 / sizeof(T);
    LocalTensor<T> to[16], from[16];
    uint64_t to_address[16], from_address[16];
    for (uint32_t i = 0; i < 16; ++i) {
        to[i] = c[i * per], from[i] = a[i * per];
        to_address[i] = to[i].GetPhyAddr(), from_address[i] = from[i].GetPhyAddr();
    }
    const TransDataTo5HDParams params(p.v[1] != 0, p.v[2] != 0, p.v[0], p.v[0] == 1 ? 0 : 16, p.v[0] == 1 ? 0 : 16);
    if (p.v[3]) TransDataTo5HD<T>(to_address, from_address, params);
    else TransDataTo5HD<T>(to, from, params);
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n);
}
"""


@pytest.mark.parametrize("kind", ["float16", "float32", "int32", "int8"])
@pytest.mark.parametrize("repeats", [1, 8])
def test_transposing_blocks(device: AscendSim, kind: str, repeats: int) -> None:
    body = f"blocks<{NAMES[kind]}>(pipe, x0, z0, p);"
    kernel = Compiled(device, source(body, 1, prelude=TRANSPOSE))
    per = 32 // np.dtype(NUMPY[kind]).itemsize
    a = np.random.default_rng(0).integers(-99, 99, 128 * per).astype(NUMPY[kind])
    for high in range(4) if kind == "int8" else (0, 1):
        dst_high, src_high = high & 1, high >> 1
        run = kernel([a], [(a.shape, kind)], ints=[repeats, dst_high, src_high, high & 1])
        assert run.status == "ok", run.fault
        actual = run.outputs[0].reshape(8, 16, per)
        for repeat in range(repeats):
            square = a.reshape(8, 16, per)[repeat]
            if kind == "int8":
                want = square[:, 16 * src_high : 16 * src_high + 16].T
                assert np.array_equal(actual[repeat][:, 16 * dst_high : 16 * dst_high + 16], want)
                assert not actual[repeat][:, 16 * (1 - dst_high) : 16 * (1 - dst_high) + 16].any()
            else:
                assert np.array_equal(actual[repeat].reshape(per, 16), square.T)
        assert not actual[repeats:].any()
