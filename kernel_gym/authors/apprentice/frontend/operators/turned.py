"""Filters of transposed convolutions, arranged for products in one pass."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.authors.apprentice.frontend.expression import Tensor
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.plan import Turned
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import Size, c_expression, size

#: The most inputs and places of a window, and elements on chip.
INPUTS, PLACES, ROOM = 4_095, 128, 44_000


def turned(plan: PlanBuilder, weight: Tensor, groups: Sequence[tuple[int, ...]]) -> Tensor | None:
    """Return filters (in, out, places) as (out, places of the group, in) for each group; None if it takes more passes.

    Groups follow each other; together they have every place.
    """
    inputs, outputs, *_ = weight.shape
    places = sum(map(len, groups))

    def most(extent: Size) -> int:
        return max([plan.sizes.value(extent), *(plan.sizes.value_at(extent, at) for at in plan.dimensions_at)])

    if not weight.contiguous or weight.dtype != "float32" or places > PLACES or most(inputs) > INPUTS:
        return None
    if (most(inputs) + 8) * (2 * places + 9) > ROOM:
        return None
    target = plan.scratch((size(places), outputs, inputs))
    sizes = (c_expression(outputs), c_expression(inputs))
    plan.add(Turned("", weight.buffer, target.buffer, *sizes, tuple(groups)), IterationSpace(inputs))
    return target
