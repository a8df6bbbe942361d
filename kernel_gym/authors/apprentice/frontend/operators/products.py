"""Matrix multiplication and convolution."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import sympy
from sympy import expand

from kernel_gym.authors.apprentice.frontend.expression import (
    Broadcast,
    Reduce,
    Reorder,
    Tensor,
    Value,
    contiguous,
    reorder,
)
from kernel_gym.authors.apprentice.frontend.operators.lines import by_lines
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, reduce
from kernel_gym.authors.apprentice.frontend.operators.taps import tapped
from kernel_gym.authors.apprentice.frontend.operators.windows import (
    aligned,
    pooled_windows,
    spread,
    window_count,
    windows,
)
from kernel_gym.authors.apprentice.frontend.plan import Either, Matrix, Pieces, Product, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import Size, c_expression, product, row_major, size

#: Elements of gathered windows that are laid out at a time, to within one row.
PIECE = 4 << 20
#: A product whose sums are this many times as long as the result is high or wide, and this long, is bound by its loads.
DEEP, LONG = 4, 1024
#: Several cores share a sum that is this many times as long as the result is high and wide.
SPLIT = 16
#: Elements on chip for the lines of depthwise convolutions.
LINES = 30_000


@handles("mm.default")
def _mm(plan: PlanBuilder, left: Value, right: Value) -> Value:
    return matrix_product(plan, left, right, 0)


@handles("bmm.default")
def _bmm(plan: PlanBuilder, left: Value, right: Value) -> Value:
    return matrix_product(plan, _once(left), _once(right), 1)


def _once(operand: Value) -> Value:
    """Return a single matrix in place of a batch of the same matrix."""
    matrix = operand.argument if isinstance(operand, Broadcast) else None
    if not isinstance(matrix, Value) or matrix.shape[-2:] != operand.shape[-2:]:
        return operand
    if len(matrix.shape) == 2:
        return reorder(matrix, (None, 0, 1))
    return matrix if matrix.shape[0] == 1 else operand


@handles("addmm.default")
def _addmm(plan: PlanBuilder, bias: Value, left: Value, right: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    if plan.expert and beta == 1 and alpha == 1 and isinstance(bias, Tensor) and len(bias.shape) == 1:
        return matrix_product(plan, left, right, 0, bias)
    total = _mm(plan, left, right)
    scaled = total if alpha == 1 else apply(plan, "mul", total, alpha)
    return apply(plan, "add", scaled, bias if beta == 1 else apply(plan, "mul", bias, beta))


def matrix_product(plan: PlanBuilder, left: Value, right: Value, batch: int, bias: Tensor | None = None) -> Value:
    """Add the stage of a matrix product over `batch` leading dimensions; return its result.

    The cube unit adds a bias, one number for each column, unless several cores share a sum.
    """
    operands = [plan.strided(operand) for operand in (left, right)]
    x, y = (_dense(plan, operand, batch) for operand in operands)
    value = by_vectors(plan, x, y, batch)
    split = plan.expert and _is_split(plan, x, y)
    inside = bias is not None and not split and bias.contiguous and bias.dtype == "float32" and bias.offset == 0
    if bias is not None and inside:
        value = apply(plan, "add", value, bias)
    target = plan.scratch(value.shape)
    nest, space = plan.nest(value, target)
    count = product(value.shape[:batch])
    times, m, n, k = (c_expression(e) for e in (count, x.shape[-2], y.shape[-1], x.shape[-1]))
    cube = Product("", _matrix(x, batch), _matrix(y, batch), target.buffer, times, m, n, k)
    if plan.expert:
        cube = replace(cube, deep=_is_deep(plan, x, y), split=split, bias=bias.buffer if bias and inside else "")
    if cube.split:
        plan.computed(Broadcast(target.shape, "float32", 0.0), target)
    plan.add(Either("", (cube,), nest), space)
    return target if bias is None or inside else apply(plan, "add", target, bias)


def _is_deep(plan: PlanBuilder, x: Tensor, y: Tensor) -> bool:
    """Return whether a sum is much longer than the result is high or wide at some case, so that loads take longest."""
    return any(k > DEEP * min(m, n) and k >= LONG for m, n, k in _extents(plan, x, y))


def _is_split(plan: PlanBuilder, x: Tensor, y: Tensor) -> bool:
    """Return whether sums are so long, at the largest case, that a result for each core would be too small."""
    m, n, k = max(_extents(plan, x, y), key=prod)
    return k > SPLIT * max(m, n) and k >= SPLIT * LONG


def _extents(plan: PlanBuilder, x: Tensor, y: Tensor) -> list[list[int]]:
    """Return rows and columns of the result and elements of a sum, at every case."""
    sizes = (x.shape[-2], y.shape[-1], x.shape[-1])
    return [[plan.sizes.value_at(n, at) for n in sizes] for at in plan.dimensions_at]


def _dense(plan: PlanBuilder, tensor: Tensor, batch: int) -> Tensor:
    """Return the operand, copied unless its matrices lie one behind the other and are stored by rows or by columns."""
    rows, columns = tensor.shape[-2:]
    by_rows = row_major(tensor.shape)
    by_columns = (*row_major((*tensor.shape[:batch], columns, rows))[:batch], size(1), rows)
    fits = any(_walked(plan, tensor, strides) for strides in (by_rows, by_columns)) and tensor.offset == 0
    return tensor if fits and tensor.dtype == "float32" else plan.tensor(plan.copied(tensor))


def _walked(plan: PlanBuilder, tensor: Tensor, strides: tuple[Size, ...]) -> bool:
    """Return whether the tensor has these strides in every dimension that is not 1."""
    same = plan.sizes.canonical
    return all(
        extent == 1 or same(stride) == same(other)
        for extent, stride, other in zip(tensor.shape, tensor.strides, strides, strict=True)
    )


def _matrix(tensor: Tensor, batch: int) -> Matrix:
    transposed = tensor.strides[-1] != 1 and tensor.shape[-1] != 1
    return Matrix(tensor.buffer, transposed, c_expression(product(tensor.shape[:batch])), "")


@handles("convolution.default")
def _convolution(
    plan: PlanBuilder, x: Value, weight: Tensor, bias: Value | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Value:  # fmt: skip
    directions = len(x.shape) - 2
    strides, pads, hops = (spread(setting, directions) for setting in (stride, padding, dilation))
    extra = spread(output_padding, directions)
    total = None
    if plan.expert and groups == 1:
        settings = list(zip(strides, pads, hops, extra, strict=True))
        total = by_lines(plan, x, weight, transposed, settings)
        total = tapped(plan, x, weight, transposed, settings) if total is None else total
    if plan.expert and not transposed and directions == 2 and strides == [1, 1]:
        total = _depthwise(plan, x, weight, pads, hops) if total is None else total
    if total is None:
        total = _by_windows(plan, x, weight, strides, pads, hops, transposed, extra, groups)
    return total if bias is None else apply(plan, "add", total, reorder(bias, (0,) + (None,) * directions))


def _depthwise(plan: PlanBuilder, x: Value, weight: Tensor, pads: list[int], hops: list[int]) -> Tensor | None:
    """Add an expert's stage of a convolution of single channels; None if it is another one, or lines do not fit."""
    alone = weight.shape[1] == 1 and plan.sizes.same(weight.shape[0], x.shape[1])
    sizes = [{plan.sizes.value_at(extent, at) for at in plan.dimensions_at} for extent in weight.shape[2:]]
    if not alone or not weight.contiguous or weight.dtype != "float32" or any(len(each) > 1 for each in sizes):
        return None
    down, across = (size.pop() for size in sizes)
    if across == 1:
        return None  # no column is shifted
    wide = max(plan.sizes.value_at(x.shape[3], at) for at in plan.dimensions_at) + 2 * pads[1] + 8
    if (hops[0] * (down - 1) + 1) * wide > LINES // (across + 2):
        return None
    return pooled_windows(plan, x, [down, across], [1, 1], pads, hops, "sum", 2, weights=weight)


def _by_windows(
    plan: PlanBuilder, x: Value, weight: Tensor, strides: list[int], pads: list[int], hops: list[int],
    transposed: bool, extra: list[int], groups: int,
) -> Tensor:  # fmt: skip
    """Add the stages of a convolution that gathers its windows."""
    kernel = weight.shape[2:]
    # One channel to a filter at every case: there are as many groups as channels, however many these are.
    depthwise = not transposed and groups > 1 and weight.shape[1] == 1
    parts = x.shape[1] if depthwise else size(groups)
    if transposed:
        source = _spread_out(plan, x, kernel, strides, pads, hops, extra)
        filters, strides = _turned(weight, parts), [1] * len(kernel)
    else:
        source, filters = plan.padded(x, pads, pads, 0.0), _grouped(weight, parts)
    counts = [
        window_count(plan, extent, k, step, hop)
        for extent, k, step, hop in zip(source.shape[2:], kernel, strides, hops, strict=True)
    ]
    view = windows(plan, source, kernel, strides, hops, counts)
    return _convolve(plan, view, filters, strides)


def _convolve(plan: PlanBuilder, view: Tensor, filters: Tensor, strides: list[int]) -> Tensor:
    """Add the contraction as a stage: by vectors, or as a matrix product of the filters and the gathered windows."""
    directions = len(strides)
    _, each, inputs, *_ = filters.shape
    value = _contract(plan, view, filters, directions)
    if plan.sizes.value(each) == 1 and plan.sizes.value(inputs) == 1:
        dense = plan.tensor(value)
        return contiguous(dense.buffer, _result_shape(view, filters, directions), "float32")
    if not isinstance(value, Reduce | Reorder):
        raise Unsupported("Unsupported: a convolution over nothing")
    target = plan.scratch(_result_shape(view, filters, directions))
    dense = filters if filters.contiguous and filters.dtype == "float32" else plan.tensor(plan.copied(filters))
    nest, space = plan.nest(value, Tensor(value.shape, "float32", target.buffer, row_major(value.shape)))
    plan.add(Either("", (gathered_product(plan, view, dense, strides, target),), nest), space)
    return target


def _result_shape(view: Tensor, filters: Tensor, directions: int) -> tuple[Size, ...]:
    return (view.shape[0], filters.shape[0] * filters.shape[1], *view.shape[-directions:])


def gathered_product(plan: PlanBuilder, view: Tensor, filters: Tensor, strides: list[int], target: Tensor) -> Pieces:
    """Return the stages that lay windows out as columns of a matrix, as many at a time as fit, and multiply them."""
    directions = len(strides)
    groups, each, inputs, *kernel = filters.shape
    batch, channels = view.shape[:2]
    first, *rest = view.shape[-directions:]
    depth, inner = inputs * product(kernel), product(rest)
    number = len(plan.sizes.derived)
    row = channels * product(kernel) * inner
    rows = plan.sizes.derive(f"pieceRows{number}", sympy.Min(first, sympy.floor(PIECE / row) + 1))
    samples = plan.sizes.derive(f"pieceSamples{number}", sympy.Min(batch, sympy.floor(PIECE / (row * rows)) + 1))
    here = plan.sizes.bound(f"samplesHere{number}", samples)
    rows_here = plan.sizes.bound(f"rowsHere{number}", rows)
    shape = (here, *view.shape[1:-directions], rows_here, *rest)
    columns = plan.scratch((samples, channels, *kernel, rows, *rest))
    piece = Tensor(shape, view.dtype, view.buffer, view.strides, view.offset)
    nest, space = plan.nest(plan.copied(piece), Tensor(shape, "float32", columns.buffer, row_major(shape)))
    nest = replace(nest, name=f"windows{number}")
    plan.spaces[nest.name] = space
    pitch = first * inner
    n, m, k = (c_expression(expand(extent)) for extent in (rows_here * inner, each, depth))
    left = Matrix(filters.buffer, False, c_expression(groups), "")
    right = Matrix(columns.buffer, False, c_expression(here * groups), "")
    step = c_expression(expand(each * pitch))
    cube = Product(
        "", left, right, target.buffer, c_expression(here * groups), m, n, k, c_expression(expand(pitch)), step
    )
    moves = (
        (
            view.buffer,
            f"sample * ({c_expression(view.strides[0])}) + row * ({c_expression(expand(view.strides[-directions]))})",
        ),
        (target.buffer, f"sample * ({c_expression(expand(groups * each * pitch))}) + row * ({c_expression(inner)})"),
    )
    loops = (("sample", c_expression(batch), str(samples)), ("row", c_expression(first), str(rows)))
    inside = (
        (str(here), f"AtMost({samples}, {c_expression(batch)} - sample)"),
        (str(rows_here), f"AtMost({rows}, {c_expression(first)} - row)"),
    )
    return Pieces("", loops, inside, moves, (nest, cube))


def _contract(plan: PlanBuilder, view: Tensor, filters: Tensor, directions: int) -> Value:
    """Return the sum over input channels and places.

    `filters` is (group, out, in, places), `view` is (batch, in, places, windows).

    The dimensions of the product are batch, group, out, in, places, windows; a single group has none of its own.
    """
    groups, _, inputs, *_ = filters.shape
    batch, _, *rest = view.shape
    rank = 4 + 2 * directions
    grouped = (batch, groups, inputs, *rest)
    walk = (view.strides[0], view.strides[1] * inputs, *view.strides[1:])
    x = aligned(Tensor(grouped, view.dtype, view.buffer, walk, view.offset), (0, 1, 3, *range(4, rank)), rank)
    w = aligned(filters, (1, 2, 3, *range(4, 4 + directions)), rank)
    total = reduce(plan, "sum", apply(plan, "mul", x, w), tuple(range(3, 4 + directions)), keep=False)
    return total if groups != 1 else reorder(total, (0, 2, *range(3, 3 + directions)))


def _grouped(weight: Tensor, groups: Size) -> Tensor:
    """View filters (out, in / groups, places) as (group, out / groups, in / groups, places)."""
    each = _share(weight.shape[0], groups)
    shape = (groups, each, *weight.shape[1:])
    return Tensor(shape, weight.dtype, weight.buffer, (weight.strides[0] * each, *weight.strides), weight.offset)


def _share(channels: Size, groups: Size) -> Size:
    """Return the channels of one group; 1 if the number of groups is itself a run-time size."""
    return channels / groups if groups.is_Integer else sympy.Integer(1)


def _turned(weight: Tensor, groups: Size) -> Tensor:
    """View filters (in, out / groups, places) of a transposed convolution grouped and with their places reversed."""
    inputs, outputs, *kernel = weight.shape
    step_in, step_out, *steps = weight.strides
    offset = weight.offset + sum((k - 1) * step for k, step in zip(kernel, steps, strict=True))
    shape = (groups, outputs, _share(inputs, groups), *kernel)
    walk = (step_in * _share(inputs, groups), step_out, step_in, *(-step for step in steps))
    return Tensor(shape, weight.dtype, weight.buffer, walk, expand(offset))


def _spread_out(
    plan: PlanBuilder,
    x: Value,
    kernel: tuple[Size, ...],
    strides: list[int],
    pads: list[int],
    hops: list[int],
    extra: list[int],
) -> Tensor:
    """Pad the input of a transposed convolution with zeros between and around, so that a plain convolution remains."""
    before = [hop * (k - 1) - pad for hop, k, pad in zip(hops, kernel, pads, strict=True)]
    return plan.padded(x, before, [low + more for low, more in zip(before, extra, strict=True)], 0.0, strides)


def by_vectors(plan: PlanBuilder, left: Tensor, right: Tensor, batch: int) -> Value:
    """Return a matrix product as a map and a reduction, with the loops ordered so that vectors are contiguous."""
    rank = batch + 3
    lead = tuple(range(batch))
    if right.strides[-1] == 1 or right.shape[-1] == 1:
        rows, inner, columns = batch, batch + 1, batch + 2
    elif left.strides[-1] == 1:
        rows, columns, inner = batch, batch + 1, batch + 2
    else:
        return by_vectors(plan, left, plan.tensor(right), batch)
    x = aligned(left, (*lead, rows, inner), rank)
    y = aligned(right, (*lead, inner, columns), rank)
    return reduce(plan, "sum", apply(plan, "mul", x, y), inner, keep=False)
