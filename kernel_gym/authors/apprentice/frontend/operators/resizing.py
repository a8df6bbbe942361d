"""Resizing and sampling of images.

Each direction is resized on its own: the elements that a new one is computed from are looked up and weighted. A new
element that is the mean of many is a row of a matrix of weights instead.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Extent, Position, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.products import matrix_product
from kernel_gym.authors.apprentice.frontend.operators.table import HANDLERS, Handler, apply, handles, reduce
from kernel_gym.authors.apprentice.frontend.operators.views import select
from kernel_gym.authors.apprentice.frontend.plan import Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, product, size

#: The parameter of the cubic kernel that torch uses.
CUBIC = -0.75

#: The elements that one new element is computed from: for each, its index and its weight along the new direction.
Taps = list[tuple[Value, Value]]
#: Returns the taps of one direction from its old and new extents and the distance between new elements.
TapRule = Callable[[PlanBuilder, Size, Size, Value | float], Taps]


def _extents(plan: PlanBuilder, x: Value, sizes: Any, factors: Any) -> tuple[list[Size], list[Value | float]]:
    """Return the new extent of each direction, and how far apart its elements are in the old one."""
    old = x.shape[-len(sizes or factors) :]
    if not factors:
        new = [size(n) if isinstance(n, int) else n for n in sizes]
        return new, [_ratio(plan, before, after) for before, after in zip(old, new, strict=True)]
    fractions = [Fraction(factor).limit_denominator(64) for factor in factors]
    new = [
        plan.sizes.derive(f"resized{len(plan.sizes.derived)}", sympy.floor(before * f.numerator / f.denominator))
        for before, f in zip(old, fractions, strict=True)
    ]
    return new, [1.0 / factor for factor in factors]


def _ratio(plan: PlanBuilder, above: Size, below: Size) -> Value:
    return apply(plan, "div", Extent((), "float32", above), Extent((), "float32", below))


def _corners(plan: PlanBuilder, old: Size, new: Size) -> Value | float:
    """Return the distance of new elements if the corners of both images are the same."""
    return _ratio(plan, old - 1, new - 1) if plan.sizes.value(new) > 1 else 0.0


def _centres(plan: PlanBuilder, new: Size, distance: Value | float, corners: bool) -> Value:
    """Return where new elements lie in the old image."""
    position = Position((new,), "float32")
    if corners:
        return apply(plan, "mul", position, distance)
    return apply(plan, "sub", apply(plan, "mul", apply(plan, "add", position, 0.5), distance), 0.5)


def _within(plan: PlanBuilder, place: Value, extent: Size) -> Value:
    return apply(plan, "min", apply(plan, "max", place, 0.0), Extent((), "float32", extent - 1))


def _linear(corners: bool) -> TapRule:
    def taps(plan: PlanBuilder, old: Size, new: Size, distance: Value | float) -> Taps:
        centre = _within(plan, _centres(plan, new, _corners(plan, old, new) if corners else distance, corners), old)
        before = apply(plan, "floor", centre)
        share = apply(plan, "sub", centre, before)
        after = _within(plan, apply(plan, "add", before, 1.0), old)
        return [(before, apply(plan, "sub", 1.0, share)), (after, share)]

    return taps


def _cubic(corners: bool) -> TapRule:
    def taps(plan: PlanBuilder, old: Size, new: Size, distance: Value | float) -> Taps:
        centre = _centres(plan, new, _corners(plan, old, new) if corners else distance, corners)
        before = apply(plan, "floor", centre)
        share = apply(plan, "sub", centre, before)
        return [
            (
                _within(plan, apply(plan, "add", before, float(step)), old),
                _cubic_weight(plan, apply(plan, "sub", share, float(step))),
            )
            for step in (-1, 0, 1, 2)
        ]

    return taps


def _cubic_weight(plan: PlanBuilder, distance: Value) -> Value:
    """Return the cubic kernel: one polynomial up to a distance of 1, another one up to 2."""
    t = apply(plan, "abs", distance)

    def polynomial(*factors: float) -> Value:
        value: Value = apply(plan, "add", apply(plan, "mul", t, factors[0]), factors[1])
        for factor in factors[2:]:
            value = apply(plan, "add", apply(plan, "mul", value, t), factor)
        return value

    near = polynomial(CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)
    far = polynomial(CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)
    return apply(plan, "where", apply(plan, "le", t, 1.0, dtype="bool"), near, far)


def _nearest(shift: float) -> Callable[[bool], TapRule]:
    def taps(plan: PlanBuilder, old: Size, new: Size, distance: Value | float) -> Taps:
        position: Value = Position((new,), "float32")
        centre = position if shift == 0 else apply(plan, "add", position, shift)
        place = apply(plan, "floor", apply(plan, "mul", centre, distance))
        return [(_within(plan, place, old), Broadcast((new,), "float32", 1.0))]

    return lambda corners: taps


def _tapped(plan: PlanBuilder, x: Value, axis: int, taps: Taps) -> Value:
    """Return a value resized along one axis."""
    behind = len(x.shape) - axis - 1
    total: Value | None = None
    for index, weight in taps:
        element: Value = plan.lookup(x, plan.tensor(reorder(index, (None, 0))), axis)
        if len(taps) == 1:
            return element
        part = apply(plan, "mul", element, reorder(plan.tensor(weight), (0, *[None] * behind)))
        total = part if total is None else apply(plan, "add", total, part)
    assert total is not None
    return plan.tensor(total)


def _by_taps(directions: int, rule: Callable[[bool], TapRule], *, has_corners: bool = True) -> Handler:
    def handler(plan: PlanBuilder, x: Value, sizes: Any, *settings: Any) -> Value:
        corners, factors = (settings[0], settings[1:]) if has_corners else (False, settings)
        new, distances = _extents(plan, x, sizes, _listed(factors, directions))
        lead = len(x.shape) - directions
        for number in reversed(range(directions)):
            axis = lead + number
            x = _tapped(plan, x, axis, rule(corners)(plan, x.shape[axis], new[number], distances[number]))
        return x

    return handler


@handles("_upsample_bilinear2d_aa.default", "_upsample_bilinear2d_aa.vec")
def _smooth(plan: PlanBuilder, x: Value, sizes: Any, corners: bool, *factors: Any) -> Value:
    """Resize by means over all elements that a new one covers: products with matrices of weights."""
    new, distances = _extents(plan, x, sizes, _listed(factors, 2))
    lead = len(x.shape) - 2
    for axis, extent, distance in zip((lead, lead + 1), new, distances, strict=True):
        old, inner = x.shape[axis], product(x.shape[axis + 1 :])
        matrix = plan.tensor(_means(plan, old, extent, distance))
        wide = plan.reshape(x, (product(x.shape[:axis]), old, inner))
        total = matrix_product(plan, plan.reshape(matrix, (ONE, *matrix.shape)), wide, 1)
        x = plan.reshape(total, (*x.shape[:axis], extent, *x.shape[axis + 1 :]))
    return x


def _means(plan: PlanBuilder, old: Size, new: Size, distance: Value | float) -> Value:
    """Return the weights (new, old) of the elements that each new one covers."""
    reach = apply(plan, "max", distance, 1.0) if isinstance(distance, Value) else max(distance, 1.0)
    centre = reorder(_centres(plan, new, distance, corners=False), (0, None))
    apart = apply(plan, "abs", apply(plan, "div", apply(plan, "sub", centre, Position((old,), "float32")), reach))
    weights = apply(plan, "relu", apply(plan, "sub", 1.0, apart))
    return apply(plan, "div", weights, reduce(plan, "sum", weights, 1))


def _listed(factors: tuple[Any, ...], directions: int) -> list[float]:
    """Return the factor of each direction: operators have them as one list or one by one."""
    flat = factors[0] if len(factors) == 1 and isinstance(factors[0], list) else list(factors)
    return [float(factor) for factor in flat or () if factor is not None] if len(flat or ()) == directions else []


for _form in ("vec", "default"):
    for _directions, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
        HANDLERS[f"aten.upsample_{_name}.{_form}"] = _by_taps(_directions, _linear)
    HANDLERS[f"aten.upsample_bicubic2d.{_form}"] = _by_taps(2, _cubic)
    for _directions in (1, 2, 3):
        for _name, _shift in (("upsample_nearest", 0.0), ("_upsample_nearest_exact", 0.5)):
            _handler = _by_taps(_directions, _nearest(_shift), has_corners=False)
            HANDLERS[f"aten.{_name}{_directions}d.{_form}"] = _handler


@handles("grid_sampler_2d.default", "grid_sampler.default")
def _grid_sampler(plan: PlanBuilder, x: Value, grid: Value, mode: int, padding: int, corners: bool) -> Value:
    """Sample an image at places of a grid: the weighted sum of the four elements around each place."""
    if mode != 0 or padding > 1:
        raise Unsupported("Unsupported: aten.grid_sampler_2d other than bilinear with zeros or the border around")
    batch, channels, *extents = x.shape
    count = product(grid.shape[1:-1])
    rows = plan.reshape(x, (batch * channels, product(extents)))
    along = [_along(plan, select(plan, grid, 3, 1 - n), extents[n], padding, corners) for n in (0, 1)]
    total: Value | None = None
    for (row, row_weight), (column, column_weight) in ((r, c) for r in along[0] for c in along[1]):
        place = apply(plan, "add", apply(plan, "mul", row, Extent((), "float32", extents[1])), column)
        shared = reorder(plan.reshape(place, (batch, count)), (0, None, 1))
        index = plan.reshape(Broadcast((batch, channels, count), "float32", shared), (batch * channels, count))
        values = plan.reshape(plan.lookup(rows, index, 1), (batch, channels, *grid.shape[1:-1]))
        weight = reorder(apply(plan, "mul", row_weight, column_weight), (0, None, 1, 2))
        part = apply(plan, "mul", values, weight)
        total = part if total is None else apply(plan, "add", total, part)
    assert total is not None
    return total


def _along(plan: PlanBuilder, place: Tensor, extent: Size, padding: int, corners: bool) -> list[tuple[Value, Value]]:
    """Return the elements before and after a place along one direction, each with its weight."""
    whole, last = Extent((), "float32", extent), Extent((), "float32", extent - 1)
    from_left = apply(plan, "add", place, 1.0)
    if corners:
        at = apply(plan, "mul", apply(plan, "mul", from_left, 0.5), last)
    else:
        at = apply(plan, "mul", apply(plan, "sub", apply(plan, "mul", from_left, whole), 1.0), 0.5)
    if padding == 1:
        at = apply(plan, "min", apply(plan, "max", at, 0.0), last)
    before = apply(plan, "floor", at)
    share = apply(plan, "sub", at, before)
    result: list[tuple[Value, Value]] = []
    for element, weight in ((before, apply(plan, "sub", 1.0, share)), (apply(plan, "add", before, 1.0), share)):
        inside = apply(plan, "min", apply(plan, "max", element, 0.0), last)
        visible = apply(plan, "eq", inside, element, dtype="bool")
        result.append((inside, apply(plan, "where", visible, weight, 0.0)))
    return result
