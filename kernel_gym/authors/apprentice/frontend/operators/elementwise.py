"""Elementwise operators."""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

from sympy import sympify

from kernel_gym.authors.apprentice.frontend.expression import (
    Broadcast,
    Extent,
    Map,
    Position,
    Reorder,
    Value,
)
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS, Handler, apply, handles
from kernel_gym.authors.apprentice.frontend.plan import Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder

_UNARY = {
    "exp": "exp", "log": "log", "abs": "abs", "sqrt": "sqrt", "relu": "relu", "neg": "neg", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "sin": "sin", "cos": "cos",
    "floor": "floor", "ceil": "ceil", "sign": "sign", "round": "round", "trunc": "trunc",
}  # fmt: skip
_BINARY = {"div": "div", "maximum": "max", "minimum": "min"}
#: Operators on truth values, which are 0 and 1.
_LOGICAL = {"and": "min", "or": "max", "xor": "ne"}
_COMPARE = {"gt": "gt", "lt": "lt", "ge": "ge", "le": "le", "eq": "eq", "ne": "ne"}


def _elementwise(function: str, dtype: str = "float32") -> Handler:
    def handler(plan: PlanBuilder, *arguments: Value | float, **_: Any) -> Value:
        return apply(plan, function, *arguments, dtype=dtype)

    return handler


for _name, _function in _UNARY.items():
    HANDLERS[f"aten.{_name}.default"] = _elementwise(_function)
for _name, _function in _BINARY.items():
    for _form in ("default", "Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function)
for _name, _function in _COMPARE.items():
    for _form in ("Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function, "bool")
for _name, _function in _LOGICAL.items():
    HANDLERS[f"aten.logical_{_name}.default"] = _elementwise(_function, "bool")


def _bitwise(name: str) -> Handler:
    def handler(plan: PlanBuilder, left: Value, right: Value | float) -> Value:
        if all(isinstance(x, bool) or (isinstance(x, Value) and x.dtype == "bool") for x in (left, right)):
            return apply(plan, _LOGICAL[name], left, right, dtype="bool")
        shared = apply(plan, "bitwise_and", left, right)
        if name == "and":
            return shared
        # Bits of only one number count once in the sum, bits that both have twice.
        return apply(
            plan, "sub", apply(plan, "add", left, right), shared if name == "or" else apply(plan, "mul", shared, 2.0)
        )

    return handler


for _name in _LOGICAL:
    for _form in ("Tensor", "Scalar"):
        HANDLERS[f"aten.bitwise_{_name}.{_form}"] = _bitwise(_name)


@handles("add.Tensor", "add.Scalar")
def _add(plan: PlanBuilder, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(plan, "add", left, right if alpha == 1 else apply(plan, "mul", right, alpha))


@handles("sub.Tensor", "sub.Scalar")
def _sub(plan: PlanBuilder, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(plan, "sub", left, right if alpha == 1 else apply(plan, "mul", right, alpha))


@handles("rsub.Scalar")
def _rsub(plan: PlanBuilder, left: Value, right: float) -> Value:
    return apply(plan, "sub", right, left)


@handles("mul.default", "mul.Tensor", "mul.Scalar")
def _mul(plan: PlanBuilder, left: Value | float, right: Value | float) -> Value:
    for factor, bell in ((left, right), (right, left)):
        match bell:
            case Map(function="add", arguments=(Map(function="tanh", arguments=(Value() as x,)), 1.0)) if plan.expert:
                # a (1 + tanh(x)) is 2a / (1 + exp(-2x)).
                power = apply(plan, "exp", _scaled(plan, x, -2.0))
                return apply(plan, "div", _scaled(plan, factor, 2.0), apply(plan, "add", power, 1.0))
    return apply(plan, "mul", left, right)


def _scaled(plan: PlanBuilder, value: Value | float, number: float) -> Value | float:
    """Return a value times a number; the number is multiplied with the one that the value has as a factor."""
    match value:
        case Map(function="mul", arguments=(Value() as base, int() | float() as factor)):
            return base if factor * number == 1.0 else apply(plan, "mul", base, factor * number)
        case Value():
            return apply(plan, "mul", value, number)
    return value * number


@handles("log1p.default")
def _log1p(plan: PlanBuilder, x: Value) -> Value:
    return apply(plan, "log", apply(plan, "add", x, 1.0))


#: GELU is x / (1 + exp(x p(x^2))). The polynomial p, its lowest coefficient first, was fitted so that the error is at
#: most 6.6e-8; from where x^2 exceeds the limit on, the result is x or 0 to within that.
_GELU = (-1.59576854, -0.072668298, 6.60532107e-5, 1.10546831e-4, -7.94814931e-6, 2.67566877e-7, -3.62786522e-9)
_GELU_LIMIT = 31.36


@handles("gelu.default")
def _gelu(plan: PlanBuilder, x: Value, *, approximate: str = "none") -> Value:
    if plan.expert and approximate == "none":
        square = apply(plan, "min", apply(plan, "mul", x, x), _GELU_LIMIT)
        power = apply(plan, "mul", square, _GELU[-1])
        for coefficient in _GELU[-2:0:-1]:
            power = apply(plan, "mul", apply(plan, "add", power, coefficient), square)
        power = apply(plan, "exp", apply(plan, "mul", apply(plan, "add", power, _GELU[0]), x))
        return apply(plan, "div", x, apply(plan, "add", power, 1.0))
    if approximate == "tanh":
        cube = apply(plan, "mul", apply(plan, "mul", x, x), x)
        inner = apply(plan, "mul", apply(plan, "add", x, apply(plan, "mul", cube, 0.044715)), sqrt(2 / pi))
        bell = apply(plan, "add", apply(plan, "tanh", inner), 1.0)
    else:
        bell = apply(plan, "add", apply(plan, "erf", apply(plan, "mul", x, sqrt(0.5))), 1.0)
    return _mul(plan, apply(plan, "mul", x, 0.5), bell)  # type: ignore[no-any-return]


@handles("leaky_relu.default")
def _leaky_relu(plan: PlanBuilder, x: Value, slope: float = 0.01) -> Value:
    return apply(plan, "leaky_relu", x, float(slope))


@handles("clamp.default", "hardtanh.default")
def _clamp(plan: PlanBuilder, x: Value, low: float | None = None, high: float | None = None) -> Value:
    if low is not None:
        x = apply(plan, "max", x, float(low))
    return x if high is None else apply(plan, "min", x, float(high))


HANDLERS["aten.hardtanh.default"] = lambda plan, x, low=-1.0, high=1.0: _clamp(plan, x, low, high)


@handles("clamp.Tensor")
def _clamp_tensor(plan: PlanBuilder, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    if low is not None:
        x = apply(plan, "max", x, low)
    return x if high is None else apply(plan, "min", x, high)


@handles("remainder.Tensor", "remainder.Scalar")
def _remainder(plan: PlanBuilder, x: Value, divisor: Value | float) -> Value:
    if _is_whole(x):
        return _rest(plan, x, divisor, "floor")
    rest = apply(plan, "fmod", x, divisor)  # it has the sign of x, a remainder that of the divisor
    other = apply(plan, "lt", apply(plan, "mul", apply(plan, "sign", rest), divisor), 0.0, dtype="bool")
    return apply(plan, "where", other, apply(plan, "add", rest, divisor), rest)


@handles("fmod.Tensor", "fmod.Scalar")
def _fmod(plan: PlanBuilder, x: Value, divisor: Value | float) -> Value:
    if not _is_whole(x):
        return apply(plan, "fmod", x, divisor)
    return _rest(plan, x, divisor, "floor" if _is_rolled(x, divisor) else "trunc")


def _is_rolled(x: Value, divisor: Value | float) -> bool:
    """Return whether a value is the positions of a roll along a size.

    Their start is the size minus the shift. Torch takes it modulo the size, so that it is never negative.
    """
    match x:
        case Map(function="add", arguments=(Position() | Broadcast(argument=Position()), Extent() | Broadcast())):
            return isinstance(divisor, Extent)
    return False


def _is_whole(value: Value | float) -> bool:
    """Return whether a value is whole numbers, whose quotients are precise enough."""
    match value:
        case Map(function="add" | "sub" | "mul" | "abs" | "neg"):
            return all(map(_is_whole, value.arguments))
        case Reorder() | Broadcast():
            return _is_whole(value.argument)
        case Value():
            return isinstance(value, Position | Extent) or "int" in value.dtype
    return float(value).is_integer()


def _rest(plan: PlanBuilder, x: Value, divisor: Value | float, rounding: str) -> Value:
    """Return what a division to a whole number leaves."""
    quotient = apply(plan, rounding, apply(plan, "div", x, divisor))
    return apply(plan, "sub", x, apply(plan, "mul", quotient, divisor))


@handles("div.Tensor_mode", "div.Scalar_mode", "floor_divide.default")
def _divide(plan: PlanBuilder, x: Value, divisor: Value | float, *, rounding_mode: str | None = "floor") -> Value:
    quotient = apply(plan, "div", x, divisor)
    return quotient if rounding_mode is None else apply(plan, rounding_mode, quotient)


@handles("elu.default")
def _elu(plan: PlanBuilder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    # For x <= 0 the first term vanishes, for x > 0 the second: no comparison needed.
    low = apply(plan, "min", x, 0.0)
    curve = apply(plan, "add", apply(plan, "exp", apply(plan, "mul", low, float(input_scale))), -1.0)
    high = apply(plan, "relu", x)
    total = apply(plan, "add", high, apply(plan, "mul", curve, float(alpha)))
    return total if scale == 1.0 else apply(plan, "mul", total, float(scale))


@handles("pow.Tensor_Scalar")
def _pow(plan: PlanBuilder, x: Value, exponent: float) -> Value:
    if exponent == 0.5:
        return apply(plan, "sqrt", x)
    if exponent < 0:
        return apply(plan, "reciprocal", _pow(plan, x, -exponent))
    if exponent != int(exponent) or not 1 <= exponent <= 8:
        return _power(plan, x, float(exponent))  # type: ignore[no-any-return]
    result = x
    for _ in range(int(exponent) - 1):
        result = apply(plan, "mul", result, x)
    return result


@handles("pow.Tensor_Tensor")
def _power(plan: PlanBuilder, x: Value, exponent: Value | float) -> Value:
    """Return a power with a real exponent; only a positive base has one."""
    return apply(plan, "exp", apply(plan, "mul", apply(plan, "log", x), exponent))


@handles("pow.Scalar")
def _exponential(plan: PlanBuilder, base: float, exponent: Value) -> Value:
    if base <= 0:
        raise Unsupported(f"Unsupported: aten.pow.Scalar with base {base}")
    return apply(plan, "exp", apply(plan, "mul", exponent, log(base)))


@handles("where.self")
def _where(plan: PlanBuilder, condition: Value, left: Value | float, right: Value | float) -> Value:
    if plan.expert and isinstance(right, Value) and _is_nan(left) and _marks_nan(condition, right):
        return right
    if isinstance(left, Broadcast) and left.argument == -inf and isinstance(right, Value):
        # As a minimum the mask can be left out: what remains is the value without it.
        return apply(plan, "min", right, apply(plan, "where", condition, -inf, inf), idiom="attention.mask")
    return apply(plan, "where", condition, left, right)


def _is_nan(value: Value | float) -> bool:
    number = value.argument if isinstance(value, Broadcast) else value
    return isinstance(number, float) and number != number


def _marks_nan(condition: Value, value: Value) -> bool:
    """Return whether a condition holds where some x is not a number, and there the value is not a number anyway."""
    match condition:
        case Map(function="ne", arguments=(x, y)) if x is y:
            return _passes_nan(value, x)
    return False


def _passes_nan(value: Value | float, x: Value | float) -> bool:
    match value:
        case Map(function="add" | "sub" | "mul" | "div" | "exp" | "log" | "neg"):
            return any(_passes_nan(argument, x) for argument in value.arguments)
        case Map(function="where", arguments=(Map(function="eq") as condition, _, other)):
            return condition.arguments[0] is x and _passes_nan(other, x)
    return value is x


@handles("tanh.default")
def _tanh(plan: PlanBuilder, x: Value) -> Value:
    base = _softplus_of(x) if plan.expert else None
    if base is None:
        return apply(plan, "tanh", x)
    # tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2); beyond 20 it is 1.
    power = apply(plan, "exp", apply(plan, "min", base, 20.0))
    n = apply(plan, "mul", power, apply(plan, "add", power, 2.0))
    return apply(plan, "div", n, apply(plan, "add", n, 2.0))


def _softplus_of(value: Value) -> Value | None:
    """Return x if the value is x where x is large, and log(1 + exp(x)) elsewhere."""
    match value:
        case Map(
            function="where",
            arguments=(
                Map(function="gt", arguments=(Value() as x, _)),
                high,
                Map(function="log", arguments=(Map(function="add", arguments=(Map(function="exp") as power, _)),)),
            ),
        ) if high is x and power.arguments[0] is x:
            return x
    return None


@handles("logical_not.default")
def _logical_not(plan: PlanBuilder, x: Value) -> Value:
    return apply(plan, "eq", x, 0.0, dtype="bool")


HANDLERS["aten.bitwise_not.default"] = _logical_not


@handles("isnan.default")
def _isnan(plan: PlanBuilder, x: Value) -> Value:
    return apply(plan, "ne", x, x, dtype="bool")


@handles("scalar_tensor.default", "full.default")
def _constant(plan: PlanBuilder, *arguments: Any, **_: Any) -> Value:
    extents, value = ((), arguments[0]) if len(arguments) == 1 else arguments
    shape = tuple(sympify(n) for n in extents)
    if isinstance(value, Value):  # a number that depends on the sizes
        return Broadcast(shape, "float32", value)
    return Broadcast(shape, "float32", float(value))


@handles("empty_permuted.default", "empty.memory_format", "zeros.default")
def _zeros(plan: PlanBuilder, shape: list[int], *_: Any, **__: Any) -> Value:
    """Return zeros, also for memory that may hold anything: whoever asked for it writes to it before it is read."""
    return Broadcast(tuple(plan.sizes.named(n) if isinstance(n, int) else n for n in shape), "float32", 0.0)


@handles("full_like.default")
def _full_like(plan: PlanBuilder, like: Value, value: float, **_: Any) -> Value:
    return Broadcast(like.shape, like.dtype, float(value))
