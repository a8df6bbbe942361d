"""Images with zeros around them, in a copy for each shift along a row that a convolution needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sympy import expand, floor, sympify

from kernel_gym.authors.apprentice.frontend.expression import Tensor, Value, contiguous
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.plan import Pad
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, c_expression, product, size

#: The most zeros that a copy puts before a line, and the elements on chip, of all copies twice and a line of zeros.
ZEROS, ROOM = 8, 44_000

#: Elements of a block of 32 bytes: lines of whole blocks are moved without gaps between them.
ALIGNED = 8


def ending(begin: Size, after: Any) -> Size:
    """Return how many zeros complete a line of `begin` elements and `after` zeros to whole blocks."""
    whole = ALIGNED * floor((begin + after + ALIGNED - 1) / ALIGNED)
    return expand(whole - begin)


def images(plan: PlanBuilder, x: Value, before: Sequence[int], after: Sequence[Any], shifts: Sequence[int]) -> Tensor:
    """Return x (batch, channels, ...) as (batch, shifts, channels, ...) with zeros along its last dimensions.

    A shifted copy is `shift` elements ahead; what it has at its end is not defined.
    """
    widths = [plan.sizes.value(sympify(n)) for n in (*before, *after)]
    if not any(widths) and len(shifts) == 1:
        return _apart(plan.floats(x))
    if min(widths) < 0 or before[-1] > ZEROS or not _fits(plan, x, before, after, shifts):
        return _in_passes(plan, x, before, after, shifts)
    source = plan.floats(x)
    batch, channels, *extents = source.shape
    wide = [expand(extent + low + high) for extent, low, high in zip(extents, before, after, strict=True)]
    named = [plan.sizes.derive(f"padded{len(plan.sizes.derived)}", extent) for extent in wide]
    target = plan.scratch((batch, size(len(shifts)), channels, *named))
    missing = 3 - len(extents)
    length, padded = (tuple(map(c_expression, [*[ONE] * missing, *sizes])) for sizes in (extents, named))
    counts = (c_expression(batch), c_expression(channels))
    stage = Pad("", source.buffer, target.buffer, *counts, length, padded, (*[0] * missing, *before), tuple(shifts))
    elements = most(plan, product(target.shape))
    plan.add(replace(stage, elements=elements), IterationSpace(named[-1]))
    return target


def _apart(whole: Tensor) -> Tensor:
    batch, channels, *extents = whole.shape
    return contiguous(whole.buffer, (batch, ONE, channels, *extents), whole.dtype)


def _fits(plan: PlanBuilder, x: Value, before: Sequence[int], after: Sequence[Any], shifts: Sequence[int]) -> bool:
    """Return whether a line of every copy fits on chip at every case."""
    line = expand(x.shape[-1] + before[-1] + after[-1])
    return (2 * len(shifts) + 1) * (most(plan, line) + 8) <= ROOM


def most(plan: PlanBuilder, extent: Size) -> int:
    """Return the largest value of an extent at any case."""
    return max([plan.sizes.value(extent), *(plan.sizes.value_at(extent, at) for at in plan.dimensions_at)])


def _in_passes(
    plan: PlanBuilder, x: Value, before: Sequence[int], after: Sequence[Any], shifts: Sequence[int]
) -> Tensor:
    """Add stages that fill, copy, and copy again for each shift."""
    source = plan.padded(x, before, after, 0.0)
    if len(shifts) == 1:
        return _apart(source)
    batch, channels, *extents = source.shape
    volume = product(extents)
    reach = plan.sizes.derive(f"reach{len(plan.sizes.derived)}", expand(volume - shifts[-1]))
    whole = plan.scratch((batch, size(len(shifts)), channels, volume))
    shape = (batch, channels, size(len(shifts)), reach)
    strides = (channels * volume, volume, size(shifts[1] - shifts[0]), ONE)
    view = Tensor(shape, "float32", source.buffer, strides, size(shifts[0]))
    by_sample, by_shift, by_channel, _ = whole.strides
    plan.computed(plan.copied(view), Tensor(shape, "float32", whole.buffer, (by_sample, by_channel, by_shift, ONE)))
    return contiguous(whole.buffer, (batch, size(len(shifts)), channels, *extents), "float32")
