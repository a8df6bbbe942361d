"""Elementwise operators."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Value
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS, Handler, Unsupported, apply, handles
from kernel_gym.authors.apprentice.frontend.sizes import size

if TYPE_CHECKING:
    from kernel_gym.authors.apprentice.frontend.reader import Reader

_UNARY = {
    "exp": "exp", "log": "log", "abs": "abs", "sqrt": "sqrt", "relu": "relu", "neg": "neg", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "sin": "sin", "cos": "cos",
    "floor": "floor", "ceil": "ceil", "sign": "sign",
}  # fmt: skip
_BINARY = {"mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}
_COMPARE = {"gt": "gt", "lt": "lt", "ge": "ge", "le": "le", "eq": "eq", "ne": "ne"}


def _elementwise(function: str, dtype: str = "float32") -> Handler:
    def handler(r: Reader, *arguments: Value | float, **_: Any) -> Value:
        return apply(r, function, *arguments, dtype=dtype)

    return handler


for _name, _function in _UNARY.items():
    HANDLERS[f"aten.{_name}.default"] = _elementwise(_function)
for _name, _function in _BINARY.items():
    for _form in ("default", "Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function)
for _name, _function in _COMPARE.items():
    for _form in ("Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function, "bool")


@handles("add.Tensor", "add.Scalar")
def _add(r: Reader, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(r, "add", left, right if alpha == 1 else apply(r, "mul", right, alpha))


@handles("sub.Tensor", "sub.Scalar")
def _sub(r: Reader, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(r, "sub", left, right if alpha == 1 else apply(r, "mul", right, alpha))


@handles("rsub.Scalar")
def _rsub(r: Reader, left: Value, right: float) -> Value:
    return apply(r, "sub", right, left)


@handles("log1p.default")
def _log1p(r: Reader, x: Value) -> Value:
    return apply(r, "log", apply(r, "add", x, 1.0))


@handles("gelu.default")
def _gelu(r: Reader, x: Value, *, approximate: str = "none") -> Value:
    if approximate == "tanh":
        cube = apply(r, "mul", apply(r, "mul", x, x), x)
        inner = apply(r, "mul", apply(r, "add", x, apply(r, "mul", cube, 0.044715)), sqrt(2 / pi))
        bell = apply(r, "add", apply(r, "tanh", inner), 1.0)
    else:
        bell = apply(r, "add", apply(r, "erf", apply(r, "mul", x, sqrt(0.5))), 1.0)
    return apply(r, "mul", apply(r, "mul", x, 0.5), bell)


@handles("leaky_relu.default")
def _leaky_relu(r: Reader, x: Value, slope: float = 0.01) -> Value:
    return apply(r, "leaky_relu", x, float(slope))


@handles("clamp.default", "hardtanh.default")
def _clamp(r: Reader, x: Value, low: float | None = None, high: float | None = None) -> Value:
    if low is not None:
        x = apply(r, "max", x, float(low))
    return x if high is None else apply(r, "min", x, float(high))


HANDLERS["aten.hardtanh.default"] = lambda r, x, low=-1.0, high=1.0: _clamp(r, x, low, high)


@handles("elu.default")
def _elu(r: Reader, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    # For x <= 0 the first term vanishes, for x > 0 the second: no comparison needed.
    low = apply(r, "min", x, 0.0)
    curve = apply(r, "add", apply(r, "exp", apply(r, "mul", low, float(input_scale))), -1.0)
    high = apply(r, "relu", x)
    total = apply(r, "add", high, apply(r, "mul", curve, float(alpha)))
    return total if scale == 1.0 else apply(r, "mul", total, float(scale))


@handles("pow.Tensor_Scalar")
def _pow(r: Reader, x: Value, exponent: float) -> Value:
    if exponent == 0.5:
        return apply(r, "sqrt", x)
    if exponent != int(exponent) or not 1 <= exponent <= 8:
        raise Unsupported(f"Unsupported: aten.pow.Tensor_Scalar with exponent {exponent}")
    result = x
    for _ in range(int(exponent) - 1):
        result = apply(r, "mul", result, x)
    return result


@handles("where.self")
def _where(r: Reader, condition: Value, left: Value | float, right: Value | float) -> Value:
    return apply(r, "where", condition, left, right)


@handles("logical_not.default")
def _logical_not(r: Reader, x: Value) -> Value:
    return apply(r, "eq", x, 0.0, dtype="bool")


@handles("isnan.default")
def _isnan(r: Reader, x: Value) -> Value:
    return apply(r, "ne", x, x, dtype="bool")


@handles("scalar_tensor.default", "full.default")
def _constant(r: Reader, *arguments: Any, **_: Any) -> Value:
    shape, value = ((), arguments[0]) if len(arguments) == 1 else (tuple(size(n) for n in arguments[0]), arguments[1])
    return Broadcast(shape, "float32", float(value))


@handles("full_like.default")
def _full_like(r: Reader, like: Value, value: float, **_: Any) -> Value:
    return Broadcast(like.shape, like.dtype, float(value))
