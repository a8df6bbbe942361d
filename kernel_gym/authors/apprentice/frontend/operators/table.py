"""The table of handlers of ATen operators, and the building blocks that handlers use.

A handler gets the plan under construction and the node's arguments, with tensors as values. It returns a value, or a
tuple for an operator with several results. To support a new operator, add a function decorated with `handles`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import (
    Map,
    Reduce,
    Reduction,
    Regrouped,
    Value,
    reorder,
)
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, product

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a function as the handler of ATen operators."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[f"aten.{name}"] = handler
        return handler

    return register


# ---- building blocks -------------------------------------------------------------------------------------------


def broadcast_shape(plan: PlanBuilder, *values: Value | float) -> tuple[Size, ...]:
    """Return the shape that values are broadcast to; dimensions that meet here are equal in every run."""
    shapes = [value.shape for value in values if isinstance(value, Value)]
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = []
    for axis in range(rank):
        extents = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        large = [extent for extent in extents if plan.sizes.value(extent) != 1]
        for other in large[1:]:
            plan.sizes.unify(large[0], other)
        open_ = [extent for extent in extents if extent != 1]
        result.append((large or open_ or extents)[0])
    return tuple(result)


def apply(plan: PlanBuilder, function: str, *arguments: Value | float, idiom: str = "", dtype: str = "float32") -> Map:
    """Return an elementwise function of values."""
    return Map(broadcast_shape(plan, *arguments), dtype, function, arguments, idiom)


def reduce(
    plan: PlanBuilder, function: Reduction, value: Value, axes: Any, keep: bool = True, idiom: str = ""
) -> Value:
    """Return a reduction over axes; over all if none are given."""
    rank = len(value.shape)
    chosen = sorted({axis % rank for axis in listed(axes)}) if axes not in (None, [], ()) else list(range(rank))
    if len(chosen) == rank > 1 and function in ("sum", "max", "min"):
        # Rows are reduced first, which many cores can share, and then their results.
        value = plan.tensor(reduce(plan, function, value, [rank - 1]))
    elif plan.expert and isinstance(value, Regrouped) and chosen == [value.axis] and function in ("sum", "max", "min"):
        # Each group has a result of its own, so that the value itself is not written.
        value = plan.tensor(reduce(plan, function, value.argument, value.axis + 1, keep=False))
    shape = tuple(ONE if axis in chosen else extent for axis, extent in enumerate(value.shape))
    dtype = "int64" if function in ("argmax", "argmin") else value.dtype
    result: Value = Reduce(shape, dtype, function, value, tuple(chosen), idiom)
    return result if keep else reorder(result, tuple(axis for axis in range(rank) if axis not in chosen))


def listed(axes: Any) -> list[int]:
    """Return axes as a list."""
    return [axes] if isinstance(axes, int) else list(axes)


def extent(value: Value, axes: Any) -> Size:
    """Return how many elements a reduction over axes combines into one."""
    rank = len(value.shape)
    chosen = {axis % rank for axis in listed(axes)} if axes not in (None, [], ()) else set(range(rank))
    return product(value.shape[axis] for axis in chosen)
