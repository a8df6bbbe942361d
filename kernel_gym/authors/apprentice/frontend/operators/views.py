"""Views: operators that compute nothing and only change indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Position, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, listed
from kernel_gym.authors.apprentice.frontend.operators.windows import window_count
from kernel_gym.authors.apprentice.frontend.plan import Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import Size, row_major, size

#: The most terms of a size that is written out wherever it is used.
TERMS = 4


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
        plan.repetitions(index, extent)
        if index < shift or (plan.sizes.value(x.shape[index - shift]) != extent and extent != -1)
        else x.shape[index - shift]
        for index, extent in enumerate(shape)
    )
    return x if target == x.shape else Broadcast(target, x.dtype, x)


@handles("clone.default", "alias.default", "contiguous.default", "detach.default", "lift_fresh_copy.default")
def _same(plan: PlanBuilder, x: Value, **_: Any) -> Value:
    return x


@handles("_to_copy.default")
def _converted(plan: PlanBuilder, x: Value, *, dtype: str = "", **_: Any) -> Value:
    """Return a value as another element type: fractions are cut off for whole numbers, other types are floats here."""
    kind, whole = dtype.removeprefix("torch."), x.dtype == "bool" or "int" in x.dtype
    if kind.startswith("float8"):
        raise Unsupported(f"Unsupported: a conversion to {kind}, which Ascend 910B does not have")
    if kind == "bool" and x.dtype != "bool":
        return apply(plan, "ne", x, 0.0, dtype="bool")
    if kind in ("float16", "bfloat16") and x.dtype == "float32":
        return apply(plan, f"as_{kind}", x)
    return apply(plan, "trunc", x) if "int" in kind and not whole else x


@handles("_assert_tensor_metadata.default", "_assert_async.msg", "_assert_scalar.default")
def _checked(plan: PlanBuilder, *_: Any, **__: Any) -> None:
    """Leave out a check of the exporter."""


@handles("copy.default")
def _copy(plan: PlanBuilder, target: Value, source: Value, *_: Any) -> Value:
    return source if source.shape == target.shape else Broadcast(target.shape, source.dtype, source)


@handles("repeat.default")
def _repeat(plan: PlanBuilder, x: Value, times: list[int]) -> Value:
    """Repeat along dimensions, each by a new dimension that is merged with its own."""
    shape = ((size(1),) * (len(times) - len(x.shape))) + tuple(x.shape)
    if all(count == 1 or extent == 1 for count, extent in zip(times, shape, strict=True)):
        wide = tuple(sympy.sympify(n) if n != 1 else extent for n, extent in zip(times, shape, strict=True))
        return x if wide == x.shape else Broadcast(wide, x.dtype, x)
    lead = plan.reshape(x, shape)
    apart = reorder(lead, tuple(place for axis in range(len(shape)) for place in (None, axis)))
    wide = tuple(e for n, extent in zip(times, shape, strict=True) for e in (sympy.sympify(n), extent))
    return plan.reshape(Broadcast(wide, x.dtype, apart), tuple(e * n for n, e in zip(times, shape, strict=True)))


@handles("slice.Tensor")
def _slice(
    plan: PlanBuilder, x: Value, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    return sliced(plan, plan.strided(x), axis, start, end, step)


def sliced(plan: PlanBuilder, dense: Tensor, axis: int, start: Any, end: Any, step: int) -> Tensor:
    """Return a part of a tensor; bounds that change with the sizes are sizes."""
    axis %= len(dense.shape)
    first, stop = _bounds(plan, dense.shape[axis], start, end)
    extent = plan.one_or_size(stop - first)
    if step != 1:
        extent = plan.sizes.derive(f"part{len(plan.sizes.derived)}", sympy.floor((extent + step - 1) / step))
    shape = (*dense.shape[:axis], extent, *dense.shape[axis + 1 :])
    strides = (*dense.strides[:axis], dense.strides[axis] * step, *dense.strides[axis + 1 :])
    return Tensor(shape, dense.dtype, dense.buffer, strides, dense.offset + first * dense.strides[axis])


def _bounds(plan: PlanBuilder, whole: Size, start: Any, end: Any) -> tuple[Size, Size]:
    """Return the first index of a slice and the one behind its last."""
    length = plan.sizes.value(whole)

    def place(bound: Any, default: Size) -> Size:
        if bound is None or (isinstance(bound, int) and bound >= length):
            return default
        if isinstance(bound, int):
            return max(size(0), whole + bound) if bound < -length else whole + bound if bound < 0 else size(bound)
        return whole + bound if plan.sizes.value(bound) < 0 else bound

    first = place(start, size(0)) if not isinstance(start, int) or start < length else whole
    stop = place(end, whole)
    unknown = isinstance(end, int) and 0 <= end < length and not plan.elsewhere
    return first, plan.sizes.named(stop) if unknown else stop


@handles("slice_scatter.default")
def _slice_scatter(
    plan: PlanBuilder, x: Value, part: Value, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    whole = plan.computed(plan.copied(x), plan.scratch(x.shape))
    plan.computed(part, sliced(plan, whole, axis, start, end, step))
    return whole


@handles("select_scatter.default")
def _select_scatter(plan: PlanBuilder, x: Value, part: Value, axis: int, index: int) -> Value:
    whole = plan.computed(plan.copied(x), plan.scratch(x.shape))
    plan.computed(part, select(plan, whole, axis, index))
    return whole


@handles("split_with_sizes.default")
def _split(plan: PlanBuilder, x: Value, sizes: list[Any], axis: int = 0) -> list[Tensor]:
    dense, parts, at = plan.strided(x), [], size(0)
    axis %= len(x.shape)
    for number in range(len(sizes)):
        share = _share(plan, x.shape[axis], sizes, number)
        parts.append(sliced(plan, dense, axis, at, at + share, 1))
        at = at + share
    return parts


def _share(plan: PlanBuilder, whole: Size, sizes: list[Any], number: int) -> Size:
    """Return the extent of one part of a split: a share of the whole if all parts are equal."""
    if len(set(sizes)) == 1 and isinstance(sizes[0], int):
        return whole / len(sizes) if whole.free_symbols else size(sizes[0])
    last = number == len(sizes) - 1
    return whole - sum(sizes[:-1]) if last else sympy.sympify(sizes[number])


@handles("unfold.default")
def _unfold(plan: PlanBuilder, x: Value, axis: int, length: Any, step: Any) -> Value:
    dense, window = plan.strided(x), sympy.sympify(length)
    axis %= len(x.shape)
    count = window_count(plan, x.shape[axis], window, step, 1)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], window)
    stride = dense.strides[axis]
    strides = (*dense.strides[:axis], stride * step, *dense.strides[axis + 1 :], stride)
    return Tensor(shape, dense.dtype, dense.buffer, strides, dense.offset)


@handles("as_strided.default")
def _as_strided(plan: PlanBuilder, x: Value, shape: list[int], strides: list[int], offset: int | None = None) -> Value:
    """Return a value whose elements stay in their order: torch gives a pooled image the strides of channels-last."""
    sizes = [plan.sizes.value(extent) for extent in x.shape]
    steps = zip(sizes, strides, row_major(sizes), strict=False)
    dense = not isinstance(x, Tensor) or x.strides == row_major(x.shape)
    if shape != sizes or offset or not dense or any(n > 1 and stride != step for n, stride, step in steps):
        raise Unsupported("Unsupported: aten.as_strided.default that moves elements")
    return x


@handles("constant_pad_nd.default")
def _pad(plan: PlanBuilder, x: Value, widths: list[Any], fill: float = 0.0) -> Value:
    if any(isinstance(width, sympy.Basic) for width in widths):  # they follow the sizes
        return plan.padded(x, widths[::2][::-1], widths[1::2][::-1], float(fill))
    before, after = widths[::2][::-1], widths[1::2][::-1]
    lead = len(x.shape) - len(before)
    cut = plan.strided(x) if min(widths) < 0 else x
    for number, (low, high) in enumerate(zip(before, after, strict=True)):
        if min(low, high) < 0 and isinstance(cut, Tensor):
            cut = sliced(plan, cut, lead + number, max(0, -low), min(0, high) or None, 1)
    return plan.padded(cut, [max(0, n) for n in before], [max(0, n) for n in after], float(fill))


@handles("select.int")
def select(plan: PlanBuilder, x: Value, axis: int, index: int) -> Tensor:
    """Return one entry along an axis."""
    dense = plan.strided(x)
    axis %= len(x.shape)
    place = index if index >= 0 else x.shape[axis] + index
    keep = [n for n in range(len(x.shape)) if n != axis]
    shape, strides = tuple(x.shape[n] for n in keep), tuple(dense.strides[n] for n in keep)
    return Tensor(shape, dense.dtype, dense.buffer, strides, dense.offset + place * dense.strides[axis])


@handles("flip.default")
def flipped(plan: PlanBuilder, x: Value, axes: list[int]) -> Tensor:
    """Return the value backwards along axes."""
    dense = plan.strided(x)
    chosen = {axis % len(x.shape) for axis in axes}
    if len(x.shape) - 1 in chosen and dense.strides[-1] not in (1, -1):
        dense = plan.tensor(plan.copied(dense))  # backwards, elements are read only if they are neighbours
    offset = dense.offset + sum((x.shape[axis] - 1) * dense.strides[axis] for axis in chosen)
    strides = tuple(-stride if axis in chosen else stride for axis, stride in enumerate(dense.strides))
    return Tensor(x.shape, dense.dtype, dense.buffer, strides, offset)


@handles("cat.default")
def joined(plan: PlanBuilder, parts: Sequence[Value], axis: int = 0) -> Tensor:
    """Return values one behind the other along an axis."""
    axis %= len(parts[0].shape)
    extents = [part.shape[axis] for part in parts]
    total = sum(extents, size(0))
    if len(total.args) > TERMS:  # a name of its own keeps the text of a network of many concatenations short
        total = plan.sizes.derive(f"joined{len(plan.sizes.derived)}", total)
    shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
    whole = plan.scratch(shape)
    at = size(0)
    for part, extent in zip(parts, extents, strict=True):
        place = (*part.shape[:axis], extent, *part.shape[axis + 1 :])
        plan.computed(part, Tensor(place, "float32", whole.buffer, whole.strides, at * whole.strides[axis]))
        at = at + extent
    if axis == len(shape) - 1:
        plan.joined[whole.buffer] = tuple(parts)
    return whole


@handles("arange.start_step", "arange.default", "arange.start")
def _arange(plan: PlanBuilder, first: Any, end: Any = None, step: int = 1, **_: Any) -> Value:
    first, end = (0, first) if end is None else (first, end)
    if not isinstance(end, int | float):
        count = end - first
        if step != 1:
            rounded = sympy.floor((count + step - 1) / step)
            count = plan.sizes.derive(f"steps{len(plan.sizes.derived)}", rounded) if rounded.free_symbols else rounded
    else:
        whole = first == 0 and step == 1 and end == int(end)
        count = plan.sizes.named(int(end), plan.elsewhere) if whole else size(-(-(end - first) // step))
    return Position((count,), "float32", first, step)
