"""Reductions: the order of additions, indices, units of strides."""

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
from tests.support.walks import Operand

Array = NDArray[Any]
ELEMENTS = 2048
SUM, MAX, MIN = range(3)
REPEAT, BLOCK, PAIR = range(3)

KERNEL = """
#define REDUCE(name, ...) \\
    if (p.v[0] == 0) name(c, a, w, (int32_t)p.v[1], ##__VA_ARGS__); \\
    else name(c, a, w, m, p.v[4], p.v[6], ##__VA_ARGS__);
#define WHOLE(name, ...) name(c, a, m, p.v[4], p.v[8], p.v[5], p.v[6], ##__VA_ARGS__);
#define PARTS(name) name(c, a, p.v[4], m, p.v[8], p.v[5], p.v[6]);
template <class T> __aicore__ void reduce(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    const uint32_t n = ELEMENTS;
    GlobalTensor<T> ga, gc, gz;
    ga.SetGlobalBuffer((__gm__ T *)x0); gc.SetGlobalBuffer((__gm__ T *)x1); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> ta, tc, tw;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tc, n * sizeof(T)); pipe.InitBuffer(tw, n * sizeof(T));
    LocalTensor<T> a = ta.Get<T>(), c = tc.Get<T>(), w = tw.Get<T>();
    DataCopy(a, ga, n); DataCopy(c, gc, n);
    PipeBarrier<PIPE_ALL>();
    uint64_t m[2] = {(uint64_t)p.v[2], (uint64_t)p.v[3]};
    const ReduceOrder order = (ReduceOrder)p.v[10];
    switch (p.v[9]) {
        case 0: REDUCE(ReduceSum) break;
        case 1: REDUCE(ReduceMax, p.v[7] != 0) break;
        case 2: REDUCE(ReduceMin, p.v[7] != 0) break;
        case 10: WHOLE(WholeReduceSum) break;
        case 11: WHOLE(WholeReduceMax, order) break;
        case 12: WHOLE(WholeReduceMin, order) break;
        case 20: PARTS(BlockReduceSum) break;
        case 21: PARTS(BlockReduceMax) break;
        case 22: PARTS(BlockReduceMin) break;
        case 30: PARTS(PairReduceSum) break;
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n);
}
"""


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Compiled]]:
    with AscendSim() as device:
        prelude = KERNEL.replace("ELEMENTS", str(ELEMENTS))
        yield {
            kind: Compiled(device, source(f"reduce<{NAMES[kind]}>(pipe, x0, x1, z0, p);", 2, prelude=prelude))
            for kind in ("float32", "float16")
        }


def tree(values: Array) -> Any:
    """Neighbours are added, then neighbours of the sums: each addition is rounded to the type."""
    while len(values) > 1:
        if len(values) % 2:
            values = np.append(values, values.dtype.type(0))
        values = values[::2] + values[1::2]
    return values[0]


def row_of(a: Array, repeat: int, operand: Operand, mask: int, fill: float) -> Array:
    lanes = 256 // a.dtype.itemsize
    places = [operand.index(repeat, lane, a.dtype.itemsize) for lane in range(lanes)]
    active = np.array([mask >> lane & 1 for lane in range(lanes)], bool)
    return np.where(active, a[places], a.dtype.type(fill))


def call(kernel: Compiled, kind: str, a: Array, old: Array, **arguments: int) -> Array:
    names = ("form", "count", "low", "high", "repeats", "block", "stride", "index", "dst", "op", "order")
    mask = arguments.pop("mask", 0)
    arguments |= {
        "low": mask & (1 << 63) - 1 | -(mask >> 63 & 1) << 63,
        "high": mask >> 64 & (1 << 63) - 1 | -(mask >> 127 & 1) << 63,
    }
    run = kernel([a, old], [(old.shape, kind)], ints=[arguments.get(name, 0) for name in names])
    assert run.status == "ok", run.fault
    result: Array = run.outputs[0]
    return result


def values_of(kind: str, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(ELEMENTS).astype(NUMPY[kind]), rng.standard_normal(ELEMENTS).astype(NUMPY[kind])


def bits(value: int, dtype: Any) -> Any:
    word = np.uint32 if dtype == np.float32 else np.uint16
    return np.array([value], word).view(dtype)[0]


@pytest.mark.parametrize("kind", ["float32", "float16"])
@settings(max_examples=25)
@given(count=st.integers(1, ELEMENTS), op=st.sampled_from([SUM, MAX, MIN]), seed=st.integers(0, 99), ties=st.booleans())
def test_a_whole_tensor(kernels: dict[str, Compiled], kind: str, count: int, op: int, seed: int, ties: bool) -> None:
    a, old = values_of(kind, seed)
    if ties:
        a = np.round(a).astype(a.dtype)
    actual = call(kernels[kind], kind, a, old, count=count, op=op, index=1)
    want, used = old.copy(), a[:count]
    if op == SUM:
        lanes = 256 // a.dtype.itemsize
        total = None
        for start in range(0, count, lanes):
            part = tree(np.append(used[start : start + lanes], np.zeros(lanes, a.dtype))[:lanes])
            total = part if total is None else total + part
        want[0] = total
    else:
        place = int(used.argmax() if op == MAX else used.argmin())
        want[:2] = [used[place], bits(place, a.dtype)]
    assert np.array_equal(actual.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("kind", ["float32", "float16"])
@settings(max_examples=25)
@given(
    draw=st.data(),
    op=st.sampled_from([SUM, MAX, MIN]),
    unit=st.sampled_from([REPEAT, BLOCK, PAIR]),
    seed=st.integers(0, 99),
)
def test_parts(kernels: dict[str, Compiled], kind: str, draw: st.DataObject, op: int, unit: int, seed: int) -> None:
    a, old = values_of(kind, seed)
    width = a.dtype.itemsize
    lanes = 256 // width
    op = SUM if unit == PAIR else op
    mask = draw.draw(st.one_of(st.just((1 << lanes) - 1), st.integers(1, lanes).map(lambda n: (1 << n) - 1)))
    repeats, step = draw.draw(st.integers(1, 3)), draw.draw(st.integers(1, 2))
    operand = Operand(draw.draw(st.integers(1, 2)), draw.draw(st.integers(0, 16)))
    order = draw.draw(st.integers(0, 3))
    arguments = {"block": operand.block, "stride": operand.repeat, "dst": step, "mask": mask, "repeats": repeats}
    actual = call(kernels[kind], kind, a, old, **arguments, op=10 * (unit + 1) + op, order=order)

    want = old.copy()
    group = {REPEAT: lanes, BLOCK: 32 // width, PAIR: 2}[unit]
    pairs = unit == REPEAT and op != SUM and order < 2
    apart = step * {REPEAT: 2 if pairs else 1, BLOCK: 8, PAIR: lanes // 2}[unit]
    for repeat in range(repeats):
        row = row_of(a, repeat, operand, mask, {SUM: 0.0, MAX: -np.inf, MIN: np.inf}[op])
        for part in range(lanes // group):
            piece = row[part * group : (part + 1) * group]
            place = 0 if op == SUM else int(piece.argmax() if op == MAX else piece.argmin())
            value = tree(piece) if op == SUM else piece[place]
            at = repeat * apart + part * (2 if pairs else 1)
            if pairs:
                want[at : at + 2] = [value, bits(place, a.dtype)][:: 1 if order == 0 else -1]
            else:
                want[at] = bits(place, a.dtype) if op != SUM and unit == REPEAT and order == 3 else value
    assert np.array_equal(actual.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_a_mask_over_repeats(kernels: dict[str, Compiled], kind: str) -> None:
    a, old = values_of(kind, 5)
    mask = (1 << 100) - 1 if kind == "float16" else (1 << 40) - 1
    actual = call(kernels[kind], kind, a, old, form=1, mask=mask, repeats=3, stride=10, op=MAX, index=1)
    lanes = 256 // a.dtype.itemsize
    rows = np.concatenate([row_of(a, r, Operand(1, 10), mask, -np.inf) for r in range(3)])
    assert actual[0] == rows.max()
    assert actual[1:2].view(np.uint32 if kind == "float32" else np.uint16)[0] == rows.argmax()
    assert rows.size == 3 * lanes


def test_half_sums_are_rounded_at_every_addition(kernels: dict[str, Compiled]) -> None:
    a = np.zeros(ELEMENTS, np.float16)
    a[:4] = [60000, 60000, -30000, 100]
    actual = call(kernels["float16"], "float16", a, np.zeros(ELEMENTS, np.float16), count=4, op=SUM)
    assert np.isinf(actual[0]), "60000 + 60000 comes first"
