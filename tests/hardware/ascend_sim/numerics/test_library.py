"""High-level vector functions against float64: within a unit or two in the last place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special as special
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import NAMES, NUMPY, Compiled, source

Array = NDArray[Any]
ELEMENTS = 4096
F64 = Callable[[Array], Array]

#: Name, reference in float64, range of arguments.
UNARY: dict[str, tuple[F64, float, float]] = {
    "Tanh": (np.tanh, -10, 10), "Sigmoid": (special.expit, -30, 30), "Erf": (special.erf, -5, 5),
    "Erfc": (special.erfc, -4, 9), "Sin": (np.sin, -1000, 1000), "Cos": (np.cos, -1000, 1000), "Tan": (np.tan, -20, 20),
    "Asin": (np.arcsin, -1, 1), "Acos": (np.arccos, -1, 1), "Atan": (np.arctan, -50, 50), "Sinh": (np.sinh, -10, 10),
    "Cosh": (np.cosh, -10, 10), "Asinh": (np.arcsinh, -50, 50), "Acosh": (np.arccosh, 1, 50),
    "Atanh": (np.arctanh, -1, 1), "Floor": (np.floor, -50, 50), "Ceil": (np.ceil, -50, 50), "Round": (np.rint, -50, 50),
    "Trunc": (np.trunc, -50, 50),
    "Frac": (lambda x: x - np.trunc(x), -50, 50), "Sign": (np.sign, -1, 1), "Lgamma": (special.gammaln, 0.1, 30),
    "Digamma": (special.digamma, 0.5, 30), "Log": (np.log, 0.001, 100), "Log2": (np.log2, 0.001, 100),
    "Log10": (np.log10, 0.001, 100), "FasterGelu": (lambda x: x * special.expit(1.702 * x), -6, 6),
    "Gelu": (lambda x: x * special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)), -6, 6),
    "Silu": (lambda x: x * special.expit(x), -30, 30),
}  # fmt: skip
OTHERS: dict[str, Callable[[Array, Array, float], Array]] = {
    "Power(c, a, b, n)": lambda a, b, s: a**b,
    "Power(c, a, s, n)": lambda a, b, s: a**s,
    "Power(c, s, b, n)": lambda a, b, s: s**b,
    "Fmod(c, a, b, n)": lambda a, b, s: np.fmod(a, b),
    "GeGLU(c, a, b, n)": lambda a, b, s: a * UNARY["Gelu"][0](b),
    "ReGlu(c, a, b, n)": lambda a, b, s: a * np.maximum(b, 0),
    "SwiGLU(c, a, b, 1.5f, n)": lambda a, b, s: a * b * special.expit(1.5 * b),
    "Swish(c, a, n, s)": lambda a, b, s: a * special.expit(s * a),
    "ClampMax(c, a, s, n)": lambda a, b, s: np.minimum(a, s),
    "ClampMin(c, a, s, n)": lambda a, b, s: np.maximum(a, s),
}

KERNEL = """
template <class T> __aicore__ void apply(TPipe &pipe, GM_ADDR x0, GM_ADDR x1, GM_ADDR z0, const Ints &p) {
    const uint32_t n = ELEMENTS;
    GlobalTensor<T> ga, gb, gz;
    ga.SetGlobalBuffer((__gm__ T *)x0); gb.SetGlobalBuffer((__gm__ T *)x1); gz.SetGlobalBuffer((__gm__ T *)z0);
    TBuf<> ta, tb, tc;
    pipe.InitBuffer(ta, n * sizeof(T)); pipe.InitBuffer(tb, n * sizeof(T)); pipe.InitBuffer(tc, n * sizeof(T));
    LocalTensor<T> a = ta.Get<T>(), b = tb.Get<T>(), c = tc.Get<T>();
    DataCopy(a, ga, n); DataCopy(b, gb, n);
    PipeBarrier<PIPE_ALL>();
    const T s = b.GetValue(0);
    switch (p.v[0]) { CASES }
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, c, n);
}
"""
CALLS = [*(f"{name}(c, a, n)" for name in UNARY), *OTHERS]


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Compiled]]:
    cases = " ".join(f"case {i}: {call}; break;" for i, call in enumerate(CALLS))
    prelude = KERNEL.replace("ELEMENTS", str(ELEMENTS)).replace("CASES", cases)
    with AscendSim() as device:
        yield {
            kind: Compiled(device, source(f"apply<{NAMES[kind]}>(pipe, x0, x1, z0, p);", 2, prelude=prelude))
            for kind in ("float32", "float16")
        }


def apart(actual: Array, want: Array) -> float:
    """The largest distance from the exact value, in units of the last place."""
    unit = np.spacing(np.abs(want).astype(actual.dtype)).astype(np.float64)
    finite = np.isfinite(want.astype(actual.dtype))
    assert np.array_equal(np.isnan(actual), np.isnan(want))
    return float(np.max(np.abs(actual[finite].astype(np.float64) - want[finite]) / unit[finite]))


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_argument(kernels: dict[str, Compiled], kind: str, name: str) -> None:
    reference, low, high = UNARY[name]
    a = np.random.default_rng(2).uniform(low, high, ELEMENTS).astype(NUMPY[kind])
    a[:64] = (np.linspace(-1, 1, 64) * 1e-3 if low < 0 else np.linspace(low, low + 1e-2, 64)).astype(a.dtype)
    a = np.clip(a, NUMPY[kind](low), NUMPY[kind](high))
    run = kernels[kind]([a, a], [((ELEMENTS,), kind)], ints=[CALLS.index(f"{name}(c, a, n)")])
    assert run.status == "ok", run.fault
    with np.errstate(all="ignore"):
        assert apart(run.outputs[0], reference(a.astype(np.float64))) <= 1.0


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("call", OTHERS)
def test_a_function_of_two_arguments(kernels: dict[str, Compiled], kind: str, call: str) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.1, 4, ELEMENTS).astype(NUMPY[kind]), rng.uniform(-3, 3, ELEMENTS).astype(NUMPY[kind])
    b[0] = 1.75
    run = kernels[kind]([a, b], [((ELEMENTS,), kind)], ints=[CALLS.index(call)])
    assert run.status == "ok", run.fault
    want = OTHERS[call](a.astype(np.float64), b.astype(np.float64), 1.75)
    assert apart(run.outputs[0], want) <= 1.0


def test_large_arguments_of_sine_are_reduced_exactly(kernels: dict[str, Compiled]) -> None:
    mp = pytest.importorskip("mpmath")
    a = (10.0 ** np.random.default_rng(4).uniform(5, 38, ELEMENTS)).astype(np.float32)
    run = kernels["float32"]([a, a], [((ELEMENTS,), "float32")], ints=[CALLS.index("Sin(c, a, n)")])
    with mp.workdps(60):
        want = np.array([float(mp.sin(mp.mpf(float(x)))) for x in a[:200]])
    assert apart(run.outputs[0][:200], want) <= 1.0


def test_edges(kernels: dict[str, Compiled]) -> None:
    a = np.full(ELEMENTS, 1.0, np.float32)
    a[:5] = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    for name in ("Tanh", "Sigmoid", "Erf", "Sinh", "Cosh", "Log", "Floor", "Sign"):
        run = kernels["float32"]([a, a], [((ELEMENTS,), "float32")], ints=[CALLS.index(f"{name}(c, a, n)")])
        with np.errstate(all="ignore"):
            want = UNARY[name][0](a[:5].astype(np.float64))
        assert np.array_equal(run.outputs[0][:5], want.astype(np.float32), equal_nan=True), name
