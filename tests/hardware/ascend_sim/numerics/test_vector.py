"""Element by element instructions against NumPy: all types, all call forms, tails, masks and strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source
from tests.support.walks import Walk, walks

Array = NDArray[Any]
BYTES = 16384

BINARY = (
    "Add",
    "Sub",
    "Mul",
    "Max",
    "Min",
    "Div",
    "And",
    "Or",
    "AddRelu",
    "SubRelu",
    "MulAddDst",
    "FusedMulAdd",
    "FusedMulAddRelu",
)
UNARY = ("Exp", "Ln", "Abs", "Sqrt", "Rsqrt", "Reciprocal", "Relu", "Not")
SCALAR = ("Adds", "Muls", "Maxs", "Mins", "LeakyRelu", "Axpy", "ShiftLeft", "ShiftRight")
FLOATS, NUMBERS, WORDS = ("float16", "float32"), ("float16", "float32", "int16", "int32"), ("int16", "uint16")
TYPES = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "Adds", "Muls", "Maxs", "Mins"), NUMBERS),
    **dict.fromkeys(("Div", "MulAddDst", "FusedMulAdd", "FusedMulAddRelu", "LeakyRelu", "Axpy", *UNARY), FLOATS),
    **dict.fromkeys(("AddRelu", "SubRelu"), ("int16", *FLOATS)),
    **dict.fromkeys(("And", "Or", "Not"), ("int16",)),
    **dict.fromkeys(("ShiftLeft", "ShiftRight"), ("int16", "int32")),
    "Relu": ("int32", *FLOATS),
}
OPERATIONS = [(name, kind) for name in (*BINARY, *UNARY, *SCALAR) for kind in TYPES[name]]

#: dst = op(src0, src1 or scalar) in every form; the old destination is there, and all of it comes back.
KERNEL = """
template <class T, class F> __aicore__ void whole(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR z0, F f) {
    GlobalTensor<T> ga, gb, gc, gz;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1);
    gc.SetGlobalBuffer((__gm__ T *)x2); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> ta, tb, tc;
    pipe.InitBuffer(ta, BYTES); pipe.InitBuffer(tb, BYTES); pipe.InitBuffer(tc, BYTES);
    LocalTensor<T> a = ta.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>();
    const uint32_t n = BYTES / sizeof(T);
    DataCopy(a, ga, n); DataCopy(b, gb, n); DataCopy(c, gc, n);
    PipeBarrier<PIPE_ALL>();
    f(c, a, b);
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n);
}
#define BINARY(name) \\
    if (p.v[0] == 0) name(c, a, b, (int32_t)p.v[1]); \\
    else { uint64_t m[2] = {(uint64_t)p.v[2], (uint64_t)p.v[3]}; \\
           BinaryRepeatParams steps(p.v[5], p.v[7], p.v[9], p.v[6], p.v[8], p.v[10]); \\
           if (p.v[11]) name(c, a, b, (uint64_t)p.v[12], p.v[4], steps); \\
           else name(c, a, b, m, p.v[4], steps); }
#define UNARY(name, ...) \\
    if (p.v[0] == 0) name(c, a, ##__VA_ARGS__, (int32_t)p.v[1]); \\
    else { uint64_t m[2] = {(uint64_t)p.v[2], (uint64_t)p.v[3]}; \\
           UnaryRepeatParams steps(p.v[5], p.v[7], p.v[6], p.v[8]); \\
           if (p.v[11]) name(c, a, ##__VA_ARGS__, (uint64_t)p.v[12], p.v[4], steps); \\
           else name(c, a, ##__VA_ARGS__, m, p.v[4], steps); }
"""


def kernel_for(kind: str) -> str:
    """One kernel for all operations of a type; p.v[13] says which."""
    name, cases = NAMES[kind], []
    for number, (operation, other) in enumerate(OPERATIONS):
        if other != kind:
            continue
        call = f"BINARY({operation})" if operation in BINARY else f"UNARY({operation})"
        if operation in SCALAR:
            call = f"T s = b.GetValue(0); UNARY({operation}, s)"
        cases.append(f"case {number}: {{ {call} break; }}")
    body = f"""
    whole<{name}>(pipe, x0, x1, x2, z0, [&](LocalTensor<{name}> c, LocalTensor<{name}> a, LocalTensor<{name}> b) {{
        using T = {name};
        switch (p.v[13]) {{ {" ".join(cases)} }}
    }});"""
    return source(body, 3, prelude=KERNEL.replace("BYTES", str(BYTES)))


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Compiled]]:
    with AscendSim() as device:
        yield {kind: Compiled(device, kernel_for(kind)) for kind in sorted({kind for _, kind in OPERATIONS})}


def relu(x: Array) -> Array:
    return np.where(x < 0, 0, x)


def shift(x: Array, by: Any, left: bool) -> Array:
    return np.left_shift(x, by) if left else np.right_shift(x, by)


#: f(old destination, a, b) in a wider type than the floats', or in the integer type itself.
REFERENCE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "Add": lambda d, a, b: a + b, "Sub": lambda d, a, b: a - b,
    "Mul": lambda d, a, b: a * b, "Div": lambda d, a, b: a / b,
    "Max": lambda d, a, b: np.maximum(a, b), "Min": lambda d, a, b: np.minimum(a, b),
    "And": lambda d, a, b: a & b, "Or": lambda d, a, b: a | b, "Not": lambda d, a, b: ~a,
    "AddRelu": lambda d, a, b: relu(a + b), "SubRelu": lambda d, a, b: relu(a - b),
    "MulAddDst": lambda d, a, b: a * b + d, "FusedMulAdd": lambda d, a, b: a * d + b,
    "FusedMulAddRelu": lambda d, a, b: relu(a * d + b),
    "Exp": lambda d, a, b: np.exp(a), "Ln": lambda d, a, b: np.log(a), "Abs": lambda d, a, b: np.abs(a),
    "Sqrt": lambda d, a, b: np.sqrt(a), "Rsqrt": lambda d, a, b: 1 / np.sqrt(a), "Reciprocal": lambda d, a, b: 1 / a,
    "Relu": lambda d, a, b: relu(a), "Adds": lambda d, a, b: a + b, "Muls": lambda d, a, b: a * b,
    "Maxs": lambda d, a, b: np.maximum(a, b), "Mins": lambda d, a, b: np.minimum(a, b),
    "LeakyRelu": lambda d, a, b: np.where(a >= 0, a, a * b), "Axpy": lambda d, a, b: a * b + d,
    "ShiftLeft": lambda d, a, b: shift(a, b, True), "ShiftRight": lambda d, a, b: shift(a, b, False),
}  # fmt: skip
#: A product and a sum, each rounded to float.
TWICE_ROUNDED = {"MulAddDst", "FusedMulAdd", "FusedMulAddRelu", "Axpy"}
#: Looked up in a table by hardware.
TABLED = {"Reciprocal", "Rsqrt"}
#: Instructions of which nothing but the exact value is right.
EXACT = TWICE_ROUNDED | {
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Adds",
    "Muls",
    "Maxs",
    "Mins",
    "Abs",
    "Relu",
    "AddRelu",
    "SubRelu",
    "LeakyRelu",
}


def expected(name: str, walk: Walk, old: Array, a: Array, b: Array) -> Array:
    """What the instruction leaves, computed in float64 (or in the integer type)."""
    integer = old.dtype.kind in "iu"
    wide = old.dtype if integer else (np.float32 if name in TWICE_ROUNDED else np.float64)
    result = old.astype(wide)
    with np.errstate(all="ignore"):
        for lanes in walk.lanes(old.dtype.itemsize):
            if not lanes:
                continue
            dst, src0, src1 = np.array(lanes).T
            right = np.full(len(dst), b[0]) if name in SCALAR else b[src1]
            value = REFERENCE[name](result[dst], a[src0].astype(wide), right.astype(wide))
            result[dst] = value if integer else value.astype(old.dtype)
        return result.astype(old.dtype)


def data(kind: str, rng: np.random.Generator, name: str) -> tuple[Array, Array, Array]:
    """Old destination and operands: numbers of all sizes, with the odd special value."""
    dtype = NUMPY[kind]
    n = BYTES // np.dtype(dtype).itemsize
    if np.dtype(dtype).kind == "i":
        limit = np.iinfo(dtype)
        arrays = [rng.integers(limit.min, limit.max, n, dtype=dtype, endpoint=True) for _ in range(3)]
        if name.startswith("Shift"):
            arrays[2][0] = rng.integers(0, np.dtype(dtype).itemsize * 8 - 1)
        return arrays[0], arrays[1], arrays[2]
    arrays = [(rng.standard_normal(n) * 2.0 ** rng.integers(-8, 4, n)).astype(dtype) for _ in range(3)]
    specials = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], dtype)
    for array in arrays[:2]:
        array[rng.integers(0, n, 12)] = np.repeat(specials, 2)
    if name in ("Ln", "Sqrt", "Rsqrt"):
        arrays[1] = np.abs(arrays[1])
    return arrays[0], arrays[1], arrays[2]


def close(actual: Array, want: Array, ulps: int) -> bool:
    """Equal, not-a-number together, or at most so many units in the last place apart."""
    if actual.dtype.kind in "iu":
        return bool(np.array_equal(actual, want))
    word = {2: np.int16, 4: np.int32}[actual.dtype.itemsize]
    same = (actual == want) | (np.isnan(actual) & np.isnan(want))
    apart = np.abs(actual.view(word).astype(np.int64) - want.view(word).astype(np.int64)) <= ulps
    return bool(np.all(same | apart))


@pytest.mark.parametrize(("name", "kind"), OPERATIONS)
@settings(max_examples=6)
@given(draw=st.data(), seed=st.integers(0, 2**32 - 1), numbered=st.booleans())
def test_an_instruction_computes_what_numpy_does(
    kernels: dict[str, Compiled], name: str, kind: str, draw: st.DataObject, seed: int, numbered: bool
) -> None:
    width = np.dtype(NUMPY[kind]).itemsize
    walk = draw.draw(walks(width, BYTES // width))
    old, a, b = data(kind, np.random.default_rng(seed), name)
    lanes = (walk.mask + 1).bit_length() - 1
    by_number = numbered and walk.count is None and walk.mask == (1 << lanes) - 1
    ints = [*walk.ints(), int(by_number), lanes, OPERATIONS.index((name, kind))]
    run = kernels[kind]([a, b, old], [(old.shape, kind)], ints=ints)
    assert run.status == "ok", run.fault
    ulps = 0 if name in EXACT else 2**15 + 1 if name in TABLED and kind == "float32" else 1
    assert close(run.outputs[0], expected(name, walk, old, a, b), ulps)


@pytest.mark.parametrize("name", sorted(TABLED))
def test_a_float_reciprocal_has_eight_significant_bits(kernels: dict[str, Compiled], name: str) -> None:
    n = BYTES // 4
    a = np.linspace(0.01, 9.0, n, dtype=np.float32)
    a[0] = np.float32(1 / 0.6919) if name == "Reciprocal" else np.float32(0.6919**-2)
    walk = Walk(count=n)
    ints = [*walk.ints(), 0, 0, OPERATIONS.index((name, "float32"))]
    run = kernels["float32"]([a, a, a], [(a.shape, "float32")], ints=ints)
    assert run.status == "ok", run.fault
    got, exact = run.outputs[0], REFERENCE[name](a, a.astype(np.float64), a)
    assert got[0] == np.float32(0.69140625)
    assert not np.any(got.view(np.int32) & 0xFFFF)
    error = np.abs(got / exact - 1)
    assert 2.0**-10 < error.max() <= 2.0**-8
