"""Cast, Compare and Select: every pair of types, every mode, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source
from tests.support.rounding import MODES, cast
from tests.support.walks import Operand, Walk

Array = NDArray[Any]
ALL = MODES[1:6]
NONE = MODES[:1]
PAIRS = {
    ("float32", "float16"): NONE, ("float32", "bfloat16"): NONE, ("float32", "int16"): NONE,
    ("float16", "int8"): NONE, ("float16", "uint8"): NONE, ("float16", "float32"): MODES,
    ("bfloat16", "float32"): ALL, ("int32", "float32"): ALL, ("int16", "float32"): ALL, ("int64", "float32"): ALL,
    ("float32", "float32"): ALL, ("int32", "float16"): ALL, ("int16", "float16"): ALL, ("int32", "bfloat16"): ALL,
    ("float32", "int64"): ALL, ("int8", "float16"): MODES[:6], ("uint8", "float16"): MODES[:6],
    ("float16", "int16"): MODES[:6], ("float32", "int32"): MODES[:6], ("int16", "int32"): NONE,
    ("int64", "int32"): NONE, ("int32", "int64"): NONE,
}  # fmt: skip
ELEMENTS = 512

KERNEL = """
template <class D, class S> __aicore__ void convert(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    const uint32_t n = ELEMENTS;
    GlobalTensor<S> gs; GlobalTensor<D> gd, gz;
    gs.SetGlobalBuffer((__gm__ S *)x0); gd.SetGlobalBuffer((__gm__ D *)x1); gz.SetGlobalBuffer((__gm__ D *)z0);
    TBuf<> ts, td;
    pipe.InitBuffer(ts, n * sizeof(S)); pipe.InitBuffer(td, n * sizeof(D));
    LocalTensor<S> s = ts.Get<S>(); LocalTensor<D> d = td.Get<D>();
    DataCopy(s, gs, n); DataCopy(d, gd, n);
    PipeBarrier<PIPE_ALL>();
    const RoundMode round = (RoundMode)p.v[11];
    uint64_t m[2] = {(uint64_t)p.v[2], (uint64_t)p.v[3]};
    if (p.v[0] == 0) Cast(d, s, round, (uint32_t)p.v[1]);
    else Cast(d, s, round, m, p.v[4], UnaryRepeatParams(p.v[5], p.v[7], p.v[6], p.v[8]));
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, d, n);
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def converter(device: AscendSim) -> Compiled:
    calls = " ".join(
        f"case {i}: convert<{NAMES[target]}, {NAMES[origin]}>(pipe, x0, x1, z0, p); break;"
        for i, (target, origin) in enumerate(PAIRS)
    )
    return Compiled(
        device, source(f"switch (p.v[12]) {{ {calls} }}", 2, prelude=KERNEL.replace("ELEMENTS", str(ELEMENTS)))
    )


def numbers(kind: str, rng: np.random.Generator) -> Array:
    dtype = NUMPY[kind]
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, ELEMENTS, dtype=dtype, endpoint=True)
        values[::3] = rng.integers(0, 100, len(values[::3]))
        values[:4] = [limits.min, limits.max, 0, 1]
        return values
    values = rng.standard_normal(ELEMENTS) * 2.0 ** rng.integers(-30, 36, ELEMENTS)
    values[::2] = rng.integers(-300, 300, len(values[::2])) + rng.choice([0, 0.25, 0.5, 0.75], len(values[::2]))
    values[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519, 65520, 1e-8, -6e-8]
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def plain(value: Any) -> float | int:
    return int(value) if isinstance(value, np.integer) else float(value)


@pytest.mark.parametrize("pair", PAIRS)
@settings(max_examples=8)
@given(draw=st.data(), seed=st.integers(0, 2**32 - 1))
def test_cast_rounds_exactly(converter: Compiled, pair: tuple[str, str], draw: st.DataObject, seed: int) -> None:
    target, origin = pair
    mode = draw.draw(st.sampled_from(PAIRS[pair]))
    wide, narrow = sorted((np.dtype(NUMPY[target]).itemsize, np.dtype(NUMPY[origin]).itemsize), reverse=True)
    walk = draw.draw(st.one_of(st.integers(0, ELEMENTS).map(Walk), st.just(_strided(target, wide, narrow))))
    rng = np.random.default_rng(seed)
    values, old = numbers(origin, rng), np.zeros(ELEMENTS, NUMPY[target])
    ints = [*walk.ints(), MODES.index(mode), list(PAIRS).index(pair)]
    run = converter([values, old], [((ELEMENTS,), target)], ints=ints)
    assert run.status == "ok", run.fault
    want = old.copy()
    for dst, src in _touched(walk, target, origin, wide):
        want[dst] = np.array(cast(plain(values[src]), target, origin, mode)).astype(want.dtype)
    assert same(run.outputs[0], want)


def _strided(target: str, wide: int, narrow: int) -> Walk:
    """Two repeats with a mask; the narrower side takes fewer blocks."""
    short = 8 * narrow // wide
    is_wide = np.dtype(NUMPY[target]).itemsize == wide
    dst, src = (Operand(1, 8), Operand(1, short)) if is_wide else (Operand(1, short), Operand(1, 8))
    return Walk(None, 0b1011011, 2, dst, src)


def _touched(walk: Walk, target: str, origin: str, wide: int) -> Iterator[tuple[int, int]]:
    if walk.count is not None:
        yield from ((i, i) for i in range(walk.count))
        return
    for repeat in range(walk.repeats):
        for lane in (lane for lane in range(256 // wide) if walk.mask >> lane & 1):
            yield (
                walk.dst.index(repeat, lane, np.dtype(NUMPY[target]).itemsize),
                walk.src0.index(repeat, lane, np.dtype(NUMPY[origin]).itemsize),
            )


def same(actual: Array, want: Array) -> bool:
    if actual.dtype.kind in "iu":
        return bool(np.array_equal(actual, want))
    with np.errstate(invalid="ignore"):
        left, right = actual.astype(np.float64), want.astype(np.float64)
    equal = (left == right) & (np.signbit(left) == np.signbit(right))
    return bool(np.all(equal | (np.isnan(left) & np.isnan(right))))


def test_every_half_becomes_float_and_back(converter: Compiled) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    pairs = list(PAIRS)
    widened = []
    for start in range(0, 65536, ELEMENTS):
        part = every[start : start + ELEMENTS]
        ints = [*Walk(ELEMENTS).ints(), 0, pairs.index(("float32", "float16"))]
        widened.append(
            converter([part, np.zeros(ELEMENTS, np.float32)], [((ELEMENTS,), "float32")], ints=ints).outputs[0].copy()
        )
    assert same(np.concatenate(widened), every.astype(np.float32))


COMPARE = """
    const uint32_t n = 512;
    GlobalTensor<T> ga, gb, gz; GlobalTensor<uint8_t> gm;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1);
    gz.SetGlobalBuffer((__gm__ T *)z0); gm.SetGlobalBuffer((__gm__ uint8_t *)z1);
    TBuf<> ta, tb, tc, tm;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tb, n * sizeof(T)); pipe.InitBuffer(tc, n * sizeof(T));
    pipe.InitBuffer(tm, 64);
    LocalTensor<T> a = ta.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>();
    LocalTensor<uint8_t> m = tm.Get<uint8_t>();
    DataCopy(a, ga, n); DataCopy(b, gb, n);
    PipeBarrier<PIPE_ALL>();
    if (p.v[1] == 1) CompareScalar(m, a, b.GetValue(0), (CMPMODE)p.v[0], n);
    else if (p.v[1] == 2)
        Compare(m, a, b, (CMPMODE)p.v[0], (uint64_t)(256 / sizeof(T)), n * sizeof(T) / 256, BinaryRepeatParams());
    else Compare(m, a, b, (CMPMODE)p.v[0], n);
    if (p.v[2] == 1) Select(c, m, a, b.GetValue(1), SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
    else Select(c, m, a, b, p.v[2] ? SELMODE::VSEL_TENSOR_TENSOR_MODE : SELMODE::VSEL_CMPMASK_SPR, n);
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n); DataCopy(gm, m, 64);
"""
OPERATORS = (np.less, np.greater, np.equal, np.less_equal, np.greater_equal, np.not_equal)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_compare_and_select(device: AscendSim, kind: str) -> None:
    kernel = Compiled(device, source(f"using T = {NAMES[kind]};{COMPARE}", 2, outputs=2))
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, 512).astype(NUMPY[kind]) for _ in range(2))
    a[5], b[9] = np.nan, np.nan
    for mode, compare in enumerate(OPERATORS):
        for form in range(3):
            for selection in range(3):
                run = kernel([a, b], [((512,), kind), ((64,), "uint8")], ints=[mode, form, selection])
                assert run.status == "ok", run.fault
                bits = compare(a, b[0] if form == 1 else b)
                assert np.array_equal(run.outputs[1], np.packbits(bits, bitorder="little"))
                lanes = 256 // a.dtype.itemsize
                chosen = np.tile(bits[:lanes], 512 // lanes) if selection == 0 else bits
                want = np.where(chosen, a, b[1] if selection == 1 else b)
                assert same(run.outputs[0], want)


def test_bfloat_is_rounded_like_ml_dtypes(converter: Compiled) -> None:
    values = numbers("float32", np.random.default_rng(3))
    ints = [*Walk(ELEMENTS).ints(), 1, list(PAIRS).index(("bfloat16", "float32"))]
    run = converter([values, np.zeros(ELEMENTS, ml_dtypes.bfloat16)], [((ELEMENTS,), "bfloat16")], ints=ints)
    assert same(run.outputs[0], values.astype(ml_dtypes.bfloat16))
