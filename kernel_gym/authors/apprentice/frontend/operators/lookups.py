"""Operators that read or write at places which other tensors hold."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Extent, Position, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, reduce
from kernel_gym.authors.apprentice.frontend.plan import Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, product


@handles("embedding.default")
def _embedding(plan: PlanBuilder, table: Value, index: Value, *_: Any) -> Value:
    return _picked(plan, table, 0, index)


@handles("index_select.default")
def _index_select(plan: PlanBuilder, x: Value, axis: int, index: Value) -> Value:
    return _picked(plan, x, axis % len(x.shape), index)


@handles("index.Tensor", "_unsafe_index.Tensor")
def _index(plan: PlanBuilder, x: Value, indices: list[Value | None]) -> Value:
    first, count = _axes(indices)
    merged, index = _merged(plan, x, indices, first, count)
    return _picked(plan, merged, first, index)


@handles("gather.default")
def _gather(plan: PlanBuilder, x: Value, axis: int, index: Value, **_: Any) -> Value:
    axis %= len(x.shape)
    last = len(x.shape) - 1
    if axis == last and index.shape[axis] == 1:
        # One element of each row: the sum over the row of x where the position equals the index.
        here = apply(plan, "eq", Position((x.shape[axis],), "float32"), index, dtype="bool")
        return reduce(plan, "sum", apply(plan, "where", here, x, 0.0), axis)
    if axis != last:
        swapped = _swapped(last, axis)
        return reorder(_gather(plan, reorder(x, swapped), last, reorder(index, swapped)), swapped)
    rows = _cut(plan, x, index, axis)
    places = plan.reshape(index, (product(index.shape[:-1]), index.shape[-1]))
    return plan.lookup(rows, places, last)


@handles("index_put.default", "_unsafe_index_put.default")
def _index_put(
    plan: PlanBuilder, x: Value, indices: list[Value | None], update: Value, accumulate: bool = False
) -> Value:
    if indices[0] is not None and indices[0].dtype == "bool":
        return _masked(plan, x, indices, update)
    first, count = _axes(indices)
    merged, index = _merged(plan, x, indices, first, count)
    shape = (*x.shape[:first], *index.shape, *x.shape[first + count :])
    entries = update if update.shape == shape else Broadcast(shape, update.dtype, update)
    flat = plan.reshape(index, (ONE, product(index.shape)))
    written = plan.scatter(merged, flat, entries, first, adds=accumulate)
    return plan.reshape(written, x.shape)


@handles("scatter.src", "scatter.value")
def _scatter(plan: PlanBuilder, x: Value, axis: int, index: Value, update: Value | float, adds: bool = False) -> Value:
    axis %= len(x.shape)
    last = len(x.shape) - 1
    if not isinstance(update, Value):
        update = Broadcast(index.shape, "float32", float(update))
    if axis != last:
        swapped = _swapped(last, axis)
        moved = [reorder(value, swapped) for value in (x, index, update)]
        return reorder(_scatter(plan, moved[0], last, moved[1], moved[2], adds), swapped)
    if any(not plan.sizes.same(a, b) for a, b in zip(x.shape[:-1], index.shape[:-1], strict=True)):
        raise Unsupported("Unsupported: aten.scatter into a part of the rows")
    places = plan.reshape(index, (product(index.shape[:-1]), index.shape[-1]))
    entries = _cut(plan, update, index, last)
    if entries.shape[-1] != index.shape[-1]:  # there may be more values than places, of which the first are written
        dense = plan.strided(entries)
        entries = Tensor((*entries.shape[:-1], index.shape[-1]), dense.dtype, dense.buffer, dense.strides, dense.offset)
    return plan.scatter(x, places, entries, last, adds=adds)


@handles("scatter_add.default")
def _scatter_add(plan: PlanBuilder, x: Value, axis: int, index: Value, update: Value) -> Value:
    return _scatter(plan, x, axis, index, update, adds=True)  # type: ignore[no-any-return]


def _picked(plan: PlanBuilder, x: Value, axis: int, index: Value) -> Value:
    """Return entries along an axis; the index's dimensions take its place."""
    picked = plan.lookup(x, plan.reshape(index, (ONE, product(index.shape))), axis)
    return plan.reshape(picked, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _axes(indices: list[Value | None]) -> tuple[int, int]:
    """Return the first indexed axis and how many there are; they must be neighbours."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise Unsupported("Unsupported: aten.index with indices on axes that are not neighbours")
    if any(index.dtype == "bool" for index in indices if index is not None):
        raise Unsupported("Unsupported: aten.index with a mask: the shape of its result depends on the values")
    return axes[0], len(axes)


def _merged(plan: PlanBuilder, x: Value, indices: list[Value | None], first: int, count: int) -> tuple[Value, Value]:
    """Return the value with its indexed axes merged into one, and one index along it. Negative indices count back."""
    extents = x.shape[first : first + count]
    places = [
        apply(plan, "where", apply(plan, "lt", index, 0.0, dtype="bool"), apply(plan, "add", index, end), index)
        for index, end in zip(indices[first:], (Extent((), "float32", e) for e in extents), strict=False)
        if index is not None
    ]
    place: Value = places[0]
    for inner, extent in zip(places[1:], extents[1:], strict=True):
        place = apply(plan, "add", apply(plan, "mul", place, Extent((), "float32", extent)), inner)
    return plan.reshape(x, (*x.shape[:first], product(extents), *x.shape[first + count :])), place


def _masked(plan: PlanBuilder, x: Value, indices: list[Value | None], update: Value) -> Value:
    """Return the value with a single number written where a mask is true."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or product(update.shape) != 1:
        raise Unsupported("Unsupported: aten.index_put with a mask, of more than a single number")
    sources = (*range(len(mask.shape)), *([None] * (len(x.shape) - len(mask.shape))))
    return apply(plan, "where", reorder(mask, sources), plan.reshape(update, ()), x)


def _cut(plan: PlanBuilder, x: Value, index: Value, axis: int) -> Value:
    """Return the part of x that an index of smaller extents reaches, in all dimensions but the axis."""
    shape = tuple(e if n == axis else index.shape[n] for n, e in enumerate(x.shape))
    if all(plan.sizes.same(a, b) for a, b in zip(shape, x.shape, strict=True)):
        return x
    dense = plan.strided(x)
    return Tensor(shape, dense.dtype, dense.buffer, dense.strides, dense.offset)


def _swapped(last: int, axis: int) -> tuple[int, ...]:
    order = list(range(last + 1))
    order[axis], order[last] = last, axis
    return tuple(order)
