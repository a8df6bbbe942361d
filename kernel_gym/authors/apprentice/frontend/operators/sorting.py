"""Sorting: an element's place is the number of elements that come before it, and it is written there."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Position, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, reduce
from kernel_gym.authors.apprentice.frontend.operators.views import select, sliced
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import product


@handles("sort.default")
def _sort(plan: PlanBuilder, x: Value, axis: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """Return the elements along an axis in order, and where they were; equal ones keep their order."""
    axis %= len(x.shape)
    order = (*(n for n in range(len(x.shape)) if n != axis), axis)
    back = tuple(order.index(n) for n in range(len(x.shape)))
    values, places = _sorted_rows(plan, reorder(x, order), descending)
    return reorder(values, back), reorder(places, back)


@handles("sort.stable")
def _stable_sort(
    plan: PlanBuilder, x: Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    return _sort(plan, x, dim, descending)  # type: ignore[no-any-return]


@handles("topk.default")
def _topk(
    plan: PlanBuilder, x: Value, count: Any, axis: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Value, ...]:
    return tuple(sliced(plan, plan.strided(part), axis, 0, count, 1) for part in _sort(plan, x, axis, largest))


@handles("kthvalue.default")
def _kth_value(plan: PlanBuilder, x: Value, k: int, axis: int = -1, keep: bool = False) -> tuple[Value, ...]:
    parts = _sort(plan, x, axis)
    if keep:
        return tuple(sliced(plan, plan.strided(part), axis, k - 1, k, 1) for part in parts)
    return tuple(select(plan, part, axis, k - 1) for part in parts)


def _sorted_rows(plan: PlanBuilder, x: Value, descending: bool) -> tuple[Tensor, Tensor]:
    """Return rows in order, and where their elements were."""
    dense = plan.floats(x)
    length = x.shape[-1]
    rows = Tensor((product(x.shape[:-1]), length), "float32", dense.buffer, (length, dense.strides[-1]), dense.offset)
    here, others = reorder(rows, (0, 1, None)), reorder(rows, (0, None, 1))
    place = Position((length,), "float32")
    first = apply(plan, "gt" if descending else "lt", others, here, dtype="bool")
    equal = apply(plan, "eq", others, here, dtype="bool")
    earlier = apply(plan, "lt", place, reorder(place, (0, None)), dtype="bool")
    before = apply(plan, "max", first, apply(plan, "min", equal, earlier, dtype="bool"), dtype="bool")
    rank = plan.tensor(reduce(plan, "sum", apply(plan, "same", before), 2, keep=False))
    values = plan.scatter(rows, rank, rows, 1, adds=False)
    places = plan.scatter(rows, rank, Broadcast(rows.shape, "float32", place), 1, adds=False)
    return plan.reshape(values, x.shape), plan.reshape(places, x.shape)  # type: ignore[return-value]
