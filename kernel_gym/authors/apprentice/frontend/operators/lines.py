"""Convolutions of stride 1 line by line, on cube cores alone, also transposed ones, which are turned round."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sympy import expand

from kernel_gym.authors.apprentice.frontend.expression import Tensor, Value, contiguous
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.images import ALIGNED, ending, images
from kernel_gym.authors.apprentice.frontend.operators.taps import literal
from kernel_gym.authors.apprentice.frontend.operators.turned import turned
from kernel_gym.authors.apprentice.frontend.plan import Convolution, Filters
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, c_expression, product, row_major, size

#: The most rows of a window, elements of a channel and elements of a row of filters: what fits on chip, and into the
#: fields of a copy, which have 16 bits.
ROWS, VOLUME, FILTERS = 8, 65_535, 12_000


def by_lines(
    plan: PlanBuilder,
    x: Value,
    weight: Tensor,
    transposed: bool,
    settings: Sequence[tuple[int, int, int, int]],
) -> Tensor | None:
    """Add the stages of a convolution; return its result, or None if it cannot be computed line by line.

    `settings` has stride, padding, dilation and output padding for each direction.
    """
    kernel = [literal(plan, extent) for extent in weight.shape[2:]]
    if not all(kernel) or any(stride != 1 for stride, *_ in settings) or not weight.contiguous:
        return None
    window, hops = [k for k in kernel if k], [hop for _, _, hop, _ in settings]
    before, after = [pad for _, pad, _, _ in settings], [pad for _, pad, _, _ in settings]
    if transposed:
        before = [hop * (k - 1) - pad for k, (_, pad, hop, _) in zip(window, settings, strict=True)]
        after = [low + extra for low, (*_, extra) in zip(before, settings, strict=True)]
    extents = [n + low + high for n, low, high in zip(x.shape[2:], before, after, strict=True)]
    if min(before) < 0 or not _fits(plan, extents, x.shape[1], window, hops):
        return None
    padded = any(before) or any(after)
    # Whole lines of a multiple of 8 columns are loaded without gaps between them.
    ends = [*after[:-1], ending(x.shape[-1] + before[-1], after[-1])] if padded else after
    source = images(plan, x, before, ends, [0])
    filters = _turned(plan, weight, window) if transposed else _arranged(plan, weight, window)
    return _convolved(plan, source, extents, filters, window, hops, transposed or filters is not weight)


def _fits(plan: PlanBuilder, extents: Sequence[Size], inputs: Size, window: Sequence[int], hops: Sequence[int]) -> bool:
    """Return whether a channel and a row of filters are small enough at every case."""
    volume = product([*extents[:-1], extents[-1] + ALIGNED])
    depth = inputs * product(size(k) for k in window)

    def most(extent: Size) -> int:
        return max([plan.sizes.value(extent), *(plan.sizes.value_at(extent, at) for at in plan.dimensions_at)])

    rows = window[-2] if len(window) > 1 else 1
    reach = (rows - 1) * hops[-2] if len(window) > 1 else 0
    return rows <= ROWS and reach <= 64 and most(expand(volume)) <= VOLUME and most(depth) <= FILTERS


def _arranged(plan: PlanBuilder, weight: Tensor, window: Sequence[int]) -> Tensor:
    """Return the filters (out, in, places) as (out, places, in), or as they are if the window has one row."""
    outputs, inputs, *_ = weight.shape
    places = prod(window)
    if places == window[-1]:
        return weight
    target = plan.scratch((outputs, size(places), inputs))
    sizes = (c_expression(outputs), c_expression(inputs))
    plan.add(Filters("", weight.buffer, target.buffer, *sizes, places), IterationSpace(inputs))
    return target


def _turned(plan: PlanBuilder, weight: Tensor, window: Sequence[int]) -> Tensor:
    """Return the filters (in, out, places) of a transposed convolution as (out, places, in), the last place first."""
    inputs, outputs, *_ = weight.shape
    whole = turned(plan, weight, [tuple(reversed(range(prod(window))))])
    if whole is not None:
        places, *_ = whole.shape
        return contiguous(whole.buffer, (outputs, places, inputs), whole.dtype)
    shape = (*(size(k) for k in window),)
    by_in, by_out, *steps = row_major((inputs, outputs, *shape))
    offset = expand(sum((k - 1) * step for k, step in zip(window, steps, strict=True)))
    walk = (by_out, *(-step for step in steps), by_in)
    view = Tensor((outputs, *shape, inputs), weight.dtype, weight.buffer, walk, offset)
    return plan.tensor(plan.copied(view))


def _convolved(
    plan: PlanBuilder,
    source: Tensor,
    extents: Sequence[Size],
    filters: Tensor,
    window: Sequence[int],
    hops: Sequence[int],
    arranged: bool,
) -> Tensor:
    """Add the stage; return its result. `extents` is without what lines have behind their ends."""
    batch, _, inputs, *held = source.shape
    outputs, missing = filters.shape[0], 3 - len(window)
    results = [
        plan.sizes.derive(f"windows{len(plan.sizes.derived)}", expand(extent - hop * (k - 1)))
        for extent, k, hop in zip(extents, window, hops, strict=True)
    ]
    target = plan.scratch((batch, outputs, *results))

    def texts(sizes: Sequence[Size]) -> tuple[str, ...]:
        return tuple(c_expression(extent) for extent in [*[ONE] * missing, *sizes])

    stage = Convolution(
        "",
        filters.buffer,
        source.buffer,
        target.buffer,
        c_expression(batch),
        c_expression(inputs),
        c_expression(outputs),
        texts(held),
        texts(results),
        (*(1,) * missing, *window),
        (*(1,) * missing, *hops),
        arranged,
    )
    plan.add(stage, IterationSpace(results[-1]))
    return target
