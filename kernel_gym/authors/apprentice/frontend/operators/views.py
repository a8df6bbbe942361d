"""Views: operators that compute nothing and only change indices."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Position, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, listed, reduce
from kernel_gym.authors.apprentice.frontend.plan import Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import size


@handles("permute.default")
def _permute(plan: PlanBuilder, x: Value, order: list[int]) -> Value:
    return reorder(x, tuple(axis % len(x.shape) for axis in order))


@handles("unsqueeze.default")
def _unsqueeze(plan: PlanBuilder, x: Value, axis: int) -> Value:
    rank = len(x.shape) + 1
    sources: list[int | None] = list(range(len(x.shape)))
    sources.insert(axis % rank, None)
    return reorder(x, tuple(sources))


@handles("squeeze.dims", "squeeze.dim")
def _squeeze(plan: PlanBuilder, x: Value, axes: Any) -> Value:
    dropped = {axis % len(x.shape) for axis in listed(axes) if x.shape[axis] == 1}
    return reorder(x, tuple(axis for axis in range(len(x.shape)) if axis not in dropped))


@handles("view.default", "reshape.default", "_unsafe_view.default")
def _view(plan: PlanBuilder, x: Value, shape: list[int]) -> Value:
    return plan.view(x, tuple(shape))


@handles("expand.default")
def _expand(plan: PlanBuilder, x: Value, shape: list[int], **_: Any) -> Value:
    shift = len(shape) - len(x.shape)
    target = tuple(
        plan.sizes.named(extent)
        if index < shift or (plan.sizes.value(x.shape[index - shift]) != extent and extent != -1)
        else x.shape[index - shift]
        for index, extent in enumerate(shape)
    )
    return x if target == x.shape else Broadcast(target, x.dtype, x)


@handles("clone.default", "alias.default", "_to_copy.default", "contiguous.default")
def _same(plan: PlanBuilder, x: Value, **_: Any) -> Value:
    return x


@handles("slice.Tensor")
def _slice(
    plan: PlanBuilder, x: Value, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    dense = plan.strided(x)
    axis %= len(x.shape)
    length = plan.sizes.value(x.shape[axis])
    first = min(length, start if start is None or start >= 0 else length + start) if start else 0
    stop = length if end is None else min(length, end if end >= 0 else length + end)
    if step != 1:
        raise Unsupported(f"Unsupported: aten.slice.Tensor with step {step}")
    extent = x.shape[axis] - first if stop == length else plan.sizes.named(stop) - first
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
    return Tensor(shape, dense.dtype, dense.buffer, dense.strides, dense.offset + first * dense.strides[axis])


@handles("select.int")
def _select(plan: PlanBuilder, x: Value, axis: int, index: int) -> Value:
    dense = plan.strided(x)
    axis %= len(x.shape)
    place = index if index >= 0 else x.shape[axis] + index
    keep = [n for n in range(len(x.shape)) if n != axis]
    shape, strides = tuple(x.shape[n] for n in keep), tuple(dense.strides[n] for n in keep)
    return Tensor(shape, dense.dtype, dense.buffer, strides, dense.offset + place * dense.strides[axis])


@handles("flip.default")
def _flip(plan: PlanBuilder, x: Value, axes: list[int]) -> Value:
    dense = plan.strided(x)
    chosen = {axis % len(x.shape) for axis in axes}
    offset = dense.offset + sum((x.shape[axis] - 1) * dense.strides[axis] for axis in chosen)
    strides = tuple(-stride if axis in chosen else stride for axis, stride in enumerate(dense.strides))
    return Tensor(x.shape, dense.dtype, dense.buffer, strides, offset)


@handles("cat.default")
def _cat(plan: PlanBuilder, parts: list[Value], axis: int = 0) -> Value:
    axis %= len(parts[0].shape)
    extents = [part.shape[axis] for part in parts]
    shape = (*parts[0].shape[:axis], sum(extents, size(0)), *parts[0].shape[axis + 1 :])
    whole = plan.scratch(shape)
    at = size(0)
    for part, extent in zip(parts, extents, strict=True):
        place = (*part.shape[:axis], extent, *part.shape[axis + 1 :])
        plan.computed(part, Tensor(place, "float32", whole.buffer, whole.strides, at * whole.strides[axis]))
        at = at + extent
    return whole


@handles("arange.start_step", "arange.default")
def _arange(plan: PlanBuilder, first: int, end: int | None = None, step: int = 1, **_: Any) -> Value:
    first, end = (0, first) if end is None else (first, end)
    count = plan.sizes.named(end) if first == 0 and step == 1 else size(-(-(end - first) // step))
    return Position((count,), "float32", first, step)


@handles("gather.default")
def _gather(plan: PlanBuilder, x: Value, axis: int, index: Value) -> Value:
    """Pick one element of each row, as the sum over the row of x where the position equals the index."""
    axis %= len(x.shape)
    if axis != len(x.shape) - 1 or index.shape[axis] != 1:
        raise Unsupported("Unsupported: aten.gather.default other than of one element of each row")
    here = apply(plan, "eq", Position((x.shape[axis],), "float32"), index, dtype="bool")
    return reduce(plan, "sum", apply(plan, "where", here, x, 0.0), axis)
