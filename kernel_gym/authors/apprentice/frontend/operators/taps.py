"""Convolutions of stride 1 without gathered windows: products of the filters with shifted rows, one for each tap."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import expand

from kernel_gym.authors.apprentice.frontend.expression import Tensor
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.windows import window_count
from kernel_gym.authors.apprentice.frontend.plan import Taps
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, c_expression, product, row_major, size


def tapped(plan: PlanBuilder, source: Tensor, filters: Tensor, hops: Sequence[int]) -> Tensor:
    """Add the stages of a convolution of a padded tensor; return its result, whose rows are as long as the source's.

    A window that begins at the end of a row runs on into the next one. Such windows are computed and never read, so
    that all windows of a sample are neighbours in memory. `filters` is (1, out, in, places).
    """
    _, outputs, inputs, *kernel = filters.shape
    batch, _, *extents = source.shape
    volume, steps = product(extents), row_major(extents)
    counts = [window_count(plan, extent, k, 1, hop) for extent, k, hop in zip(extents, kernel, hops, strict=True)]
    columns = sum(((count - 1) * step for count, step in zip(counts, steps, strict=True)), ONE)
    target = plan.scratch((batch, outputs, volume))
    stage = Taps(
        "",
        _by_taps(plan, filters).buffer,
        _shifted(plan, source, kernel[-1], hops[-1]).buffer,
        target.buffer,
        *(c_expression(expand(e)) for e in (batch, outputs, columns, inputs * kernel[-1], volume)),
        tuple(
            (c_expression(k), c_expression(expand(hop * step)))
            for k, hop, step in zip(kernel[:-1], hops, steps, strict=False)
            if k != 1
        ),
    )
    plan.add(stage, IterationSpace(columns))
    strides = (outputs * volume, volume, *steps)
    return Tensor((batch, outputs, *counts), "float32", target.buffer, strides)


def _by_taps(plan: PlanBuilder, filters: Tensor) -> Tensor:
    """Return the filters as (places but those along a row, out, in, places along a row), in memory."""
    _, outputs, inputs, *kernel = filters.shape
    _, step_out, step_in, *steps = filters.strides
    shape = (*kernel[:-1], outputs, inputs, kernel[-1])
    view = Tensor(shape, filters.dtype, filters.buffer, (*steps[:-1], step_out, step_in, steps[-1]), filters.offset)
    once = [place for place, extent in enumerate(shape) if extent != 1]
    by_rows = row_major(shape)
    dense = view.offset == 0 and all(view.strides[place] == by_rows[place] for place in once)
    return view if dense and view.dtype == "float32" else plan.tensor(plan.copied(view))


def _shifted(plan: PlanBuilder, source: Tensor, width: Size, hop: int) -> Tensor:
    """Return a copy of every channel for each place along a row of the window, shifted to begin there."""
    if width == 1:
        return source
    batch, channels, *extents = source.shape
    volume = product(extents)
    reach = plan.sizes.derive(f"reach{len(plan.sizes.derived)}", expand(volume - (width - 1) * hop))
    whole = plan.scratch((batch, channels, width, volume))
    shape = (batch, channels, width, reach)
    view = Tensor(shape, "float32", source.buffer, (channels * volume, volume, size(hop), ONE), source.offset)
    plan.computed(plan.copied(view), Tensor(shape, "float32", whole.buffer, whole.strides))
    return whole
