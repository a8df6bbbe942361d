"""Running sums and products."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Map, Tensor, Value
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.table import handles
from kernel_gym.authors.apprentice.frontend.operators.views import flipped
from kernel_gym.authors.apprentice.frontend.plan import Running
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import c_expression, product

#: What does not change a result, by function.
_NEUTRAL = {"sum": 0.0, "prod": 1.0}


@handles("cumsum.default")
def _cumsum(plan: PlanBuilder, x: Value, axis: int, **_: Any) -> Tensor:
    return _scan(plan, x, axis, "sum")


@handles("cumprod.default")
def _cumprod(plan: PlanBuilder, x: Value, axis: int, **_: Any) -> Tensor:
    return _scan(plan, x, axis, "prod")


def _scan(plan: PlanBuilder, x: Value, axis: int, function: str) -> Tensor:
    if not plan.expert or axis % len(x.shape) != len(x.shape) - 1:
        return plan.scan(x, axis, function)
    source, ways = _source(plan, x, function)
    target = plan.scratch(x.shape)
    rows, length = c_expression(product(x.shape[:-1])), c_expression(x.shape[-1])
    stage = Running("", function, source.buffer, target.buffer, rows, length, **ways)
    plan.add(stage, IterationSpace(x.shape[-1]))
    return flipped(plan, target, [-1]) if stage.backwards else target


def _source(plan: PlanBuilder, x: Value, function: str) -> tuple[Tensor, dict[str, Any]]:
    """Return the tensor that a value is made of, and how a running result of it gives that of the value."""
    if isinstance(x, Map) and x.function == "mul" and function == "sum":
        source, factor = (_like(plan, each, x) for each in x.arguments)
        if source and factor and source.dtype == "float32" and factor.dtype in ("float32", "bool", "uint8"):
            return source, {"factor": factor.buffer, "factor_dtype": factor.dtype}
    if isinstance(x, Tensor) and x.dtype == "float32" and x.strides[-1] == -1:
        forwards = flipped(plan, x, [-1])
        if forwards.contiguous:
            return forwards, {"backwards": True}
    if isinstance(x, Tensor) and x.offset == 0 and len(plan.joined.get(x.buffer, ())) == 2:
        first, rest = plan.joined[x.buffer]
        source = _like(plan, rest, x)
        neutral = isinstance(first, Broadcast) and first.argument == _NEUTRAL[function] and first.shape[-1] == 1
        if neutral and source and source.dtype == "float32":
            return source, {"exclusive": True}
    return plan.floats(x), {}


def _like(plan: PlanBuilder, value: Value | float, x: Value) -> Tensor | None:
    """Return a value that is a tensor in memory and has the shape of another one at every case."""
    if not isinstance(value, Tensor) or not value.contiguous or len(value.shape) != len(x.shape):
        return None
    pairs = [(own, extent, at) for own, extent in zip(value.shape, x.shape, strict=True) for at in plan.dimensions_at]
    return value if all(plan.sizes.value_at(own, at) == plan.sizes.value_at(e, at) for own, e, at in pairs) else None
