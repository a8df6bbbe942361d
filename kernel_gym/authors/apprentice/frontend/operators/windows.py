"""Pooling: reductions over windows that slide over a padded tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import sympy

from kernel_gym.authors.apprentice.frontend.expression import Map, Tensor, Value
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles, reduce
from kernel_gym.authors.apprentice.frontend.plan import Pooling, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, c_expression, product, size

LOWEST = float("-inf")
#: Functions of one instruction, and how many instructions are at most computed on the places of a window one by one.
_SIMPLE = frozenset({"add", "sub", "mul", "max", "min", "relu", "leaky_relu"})
MOST_ON_PLACES = 32
#: What can be put before a line as it is loaded, and the elements on chip for the lines of a result of an expert.
MOST_BEFORE, ROOM = 7, 41_000


def spread(values: Any, directions: int) -> list[int]:
    """Return a setting for each direction; a single number applies to all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * directions if len(listed) == 1 else listed


def window_count(
    plan: PlanBuilder, extent: Size, kernel: Size, stride: int | Size, dilation: int, *, ceil: bool = False
) -> Size:
    """Return how many windows fit along one direction of a padded tensor."""
    room = sympy.expand(extent - dilation * (kernel - 1) - 1)
    count = room + 1 if stride == 1 else sympy.floor((room + (stride - 1 if ceil else 0)) / stride) + 1
    return plan.sizes.derive(f"windows{len(plan.sizes.derived)}", count) if count.free_symbols else count


def windows(
    plan: PlanBuilder,
    x: Tensor,
    kernel: Sequence[Size],
    stride: Sequence[int],
    dilation: Sequence[int],
    counts: Sequence[Size],
) -> Tensor:
    """View a contiguous tensor as leading dimensions, then the places in a window, then the windows."""
    directions = len(kernel)
    lead, inner = x.strides[:-directions], x.strides[-directions:]
    shape = (*x.shape[:-directions], *kernel, *counts)
    steps = tuple(stride * hop for stride, hop in zip(inner, dilation, strict=True))
    jumps = tuple(stride_ * jump for stride_, jump in zip(inner, stride, strict=True))
    return Tensor(shape, x.dtype, x.buffer, (*lead, *steps, *jumps), x.offset)


def _windows_of_map(
    x: Value, kernel: Sequence[Size], stride: Sequence[int], dilation: Sequence[int], counts: Sequence[Size]
) -> Value | None:
    """Return what `windows` does for a few functions of one image and numbers; None for other values.

    No element is in two windows, so each is computed once.
    """
    directions, images, maps = len(kernel), set[int](), set[int]()
    if any(place > step for place, step in zip(kernel, stride, strict=True)) or any(hop != 1 for hop in dilation):
        return None

    def walk(node: Value | float) -> Value | float | None:
        if not isinstance(node, Value) or not node.shape:
            return node
        flat = all(extent == 1 for extent in node.shape[-directions:])
        places, found = ([ONE] * directions, [ONE] * directions) if flat else (kernel, counts)
        shape = (*node.shape[:-directions], *places, *found)
        match node:
            case Tensor() if len(node.shape) >= directions:
                images.update([] if flat else [id(node)])
                inner = node.strides[-directions:]
                jumps = tuple(step * jump for step, jump in zip(inner, stride, strict=True))
                return Tensor(shape, node.dtype, node.buffer, (*node.strides, *jumps), node.offset)
            case Map() if node.function in _SIMPLE:
                maps.add(id(node))
                arguments = tuple(walk(each) for each in node.arguments)
                if None not in arguments:
                    return Map(shape, node.dtype, node.function, arguments, node.idiom)  # type: ignore[arg-type]
        return None

    view, few = walk(x), len(maps) * prod(int(place) for place in kernel) <= MOST_ON_PLACES
    return view if isinstance(view, Value) and len(images) == 1 and few else None


def _pool(
    plan: PlanBuilder,
    x: Value,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    fill: float,
    directions: int,
) -> tuple[Value, tuple[int, ...], list[int]]:
    """Return the windows of a pooling operator, the axes to reduce, and the sizes of a window."""
    kernels = spread(kernel, directions)
    strides = spread(stride or kernels, directions)
    pads, dilations = spread(padding, directions), spread(dilation, directions)
    places = [size(k) for k in kernels]
    # With ceil_mode the last window may extend beyond the edge: pad by as much as it could need.
    extra = [step - 1 if ceil else 0 for step in strides]
    base = [extent + 2 * pad for extent, pad in zip(x.shape[-directions:], pads, strict=True)]
    counts = [
        window_count(plan, extent, k, step, hop, ceil=ceil)
        for extent, k, step, hop in zip(base, places, strides, dilations, strict=True)
    ]
    lead = len(x.shape) - directions
    lazy = plan.expert and isinstance(x, Map) and not any((*pads, *extra))
    view = _windows_of_map(x, places, strides, dilations, counts) if lazy else None
    if view is None:
        around = plan.padded(x, pads, [pad + more for pad, more in zip(pads, extra, strict=True)], fill)
        view = windows(plan, around, places, strides, dilations, counts)
    return view, tuple(range(lead, lead + directions)), kernels


def pooled_windows(
    plan: PlanBuilder,
    x: Value,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    function: str,
    directions: int,
    scale: float = 1.0,
    weights: Tensor | None = None,
) -> Tensor | None:
    """Return the result of an expert's pooling; None if windows are neither padded nor overlap, or are too large."""
    kernels = spread(kernel, directions)
    strides, pads = spread(stride or kernels, directions), spread(padding, directions)
    hops, places = spread(dilation, directions), [size(k) for k in kernels]
    reaches = [hop * (k - 1) + 1 for hop, k in zip(hops, kernels, strict=True)]
    apart = not any(pads) and all(reach <= step for reach, step in zip(reaches, strides, strict=True))
    if not plan.expert or apart or pads[-1] > MOST_BEFORE:
        return None
    wide = max(plan.sizes.value_at(x.shape[-1], at) for at in plan.dimensions_at) + 2 * pads[-1] + 16
    if (2 * prod([*kernels[:-2], *reaches[-2:-1]]) + 5) * wide > ROOM:
        return None
    source = plan.floats(x)
    extents = source.shape[-directions:]
    counts = [
        window_count(plan, extent + 2 * pad, k, step, hop)
        for extent, pad, k, step, hop in zip(extents, pads, places, strides, hops, strict=True)
    ]
    lead = source.shape[:-directions]
    target = plan.scratch((*lead, *counts))
    # Rows are the lines of one image.
    images, alone = (ONE, (product(lead),)) if directions == 1 else (product(lead), ())
    ones, zeros = (1,) * (3 - directions), (0,) * (3 - directions)
    lines = (ONE,) * (3 - directions - len(alone)) + alone
    stage = Pooling(
        "",
        function,
        source.buffer,
        target.buffer,
        c_expression(images),
        tuple(c_expression(extent) for extent in (*lines, *extents)),
        tuple(c_expression(extent) for extent in (*lines, *counts)),
        (*ones, *kernels),
        (*ones, *strides),
        (*ones, *hops),
        (*zeros, *pads),
        scale,
        weights.buffer if weights else "",
        c_expression(weights.shape[0]) if weights else "",
    )
    plan.add(stage, IterationSpace(extents[-1]))
    return target


def _max_pool(directions: int) -> Any:
    def handler(
        plan: PlanBuilder,
        x: Value,
        kernel: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil: bool = False,
    ) -> Any:
        if not ceil and (pooled := pooled_windows(plan, x, kernel, stride, padding, dilation, "max", directions)):
            return (pooled, None)
        view, axes, _ = _pool(plan, x, kernel, stride, padding, dilation, ceil, LOWEST, directions)
        # Stored in memory: a comparison fused into this nest would rule out handling short rows together.
        return (plan.tensor(reduce(plan, "max", view, axes, keep=False)), None)

    return handler


def _average_pool(directions: int) -> Any:
    def handler(
        plan: PlanBuilder, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
        include_pad: bool = True, divisor: int | None = None,
    ) -> Value:  # fmt: skip
        if (any(spread(padding, directions)) and not include_pad) or (ceil and any(spread(padding, directions))):
            raise Unsupported("Unsupported: average pooling that leaves the padding out of the mean")
        scale = 1.0 / (divisor or prod(spread(kernel, directions)))
        if not ceil and (pooled := pooled_windows(plan, x, kernel, stride, padding, 1, "sum", directions, scale)):
            return pooled
        view, axes, _ = _pool(plan, x, kernel, stride, padding, 1, ceil, 0.0, directions)
        total = reduce(plan, "sum", view, axes, keep=False)
        return apply(plan, "mul", total, scale)

    return handler


for _directions in (1, 2, 3):
    handles(f"max_pool{_directions}d_with_indices.default")(_max_pool(_directions))
    handles(f"avg_pool{_directions}d.default")(_average_pool(_directions))


@handles("max_pool1d.default")
def _max_pool1d(plan: PlanBuilder, *arguments: Any, **settings: Any) -> Value:
    return _max_pool(1)(plan, *arguments, **settings)[0]  # type: ignore[no-any-return]


def aligned(view: Tensor, positions: Sequence[int], rank: int) -> Tensor:
    """View a tensor with its dimensions at the given positions of a larger rank, and 1 elsewhere."""
    shape, strides = [ONE] * rank, [sympy.Integer(0)] * rank
    for extent, stride, position in zip(view.shape, view.strides, positions, strict=True):
        shape[position], strides[position] = extent, stride
    return Tensor(tuple(shape), view.dtype, view.buffer, tuple(strides), view.offset)
