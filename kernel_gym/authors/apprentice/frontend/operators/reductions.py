"""Reductions, softmax and norms."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Extent, Regrouped, Tensor, Value, reorder, split
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.table import apply, extent, handles, reduce
from kernel_gym.authors.apprentice.frontend.plan import GroupNorm, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, c_expression, product, row_major, size

#: Elements on chip for a group of a norm, and of groups that several of fit in a tile.
HELD, SMALL = 47_500, 4096


@handles("sum.dim_IntList", "sum.default")
def _sum(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return reduce(plan, "sum", x, axes, keep)


@handles("mean.dim", "mean.default")
def _mean(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return mean(plan, x, axes, keep)


def mean(plan: PlanBuilder, x: Value, axes: Any, keep: bool = True) -> Value:
    """Return the mean over axes; the divisor is a run-time size."""
    total = reduce(plan, "sum", x, axes, keep)
    return apply(plan, "div", total, Extent((), "float32", extent(x, axes)), idiom="numeric.mean-divisor")


@handles("amax.default", "max.default")
def _amax(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(plan, "max", x, axes, keep)


@handles("amin.default", "min.default")
def _amin(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(plan, "min", x, axes, keep)


@handles("any.dim", "any.dims", "any.default")
def _any(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(plan, "max", x, axes, keep)


@handles("all.dim", "all.dims", "all.default")
def _all(plan: PlanBuilder, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(plan, "min", x, axes, keep)


@handles("prod.dim_int")
def _prod(plan: PlanBuilder, x: Value, axis: int, keep: bool = False, **_: Any) -> Value:
    """Multiply along an axis: the last of the running products."""
    axis %= len(x.shape)
    running = plan.scan(x, axis, "prod")
    place = running.offset + (x.shape[axis] - 1) * running.strides[axis]
    shape = (*x.shape[:axis], ONE, *x.shape[axis + 1 :])
    last = Tensor(shape, running.dtype, running.buffer, running.strides, place)
    return last if keep else reorder(last, tuple(n for n in range(len(shape)) if n != axis))


@handles("prod.default")
def _prod_of_all(plan: PlanBuilder, x: Value, **_: Any) -> Value:
    return _prod(plan, plan.reshape(x, (product(x.shape),)), 0)  # type: ignore[no-any-return]


@handles("max.dim")
def _max_dim(plan: PlanBuilder, x: Value, axis: int, keep: bool = False) -> tuple[Value, Value]:
    return reduce(plan, "max", x, axis, keep), reduce(plan, "argmax", x, axis, keep)


@handles("min.dim")
def _min_dim(plan: PlanBuilder, x: Value, axis: int, keep: bool = False) -> tuple[Value, Value]:
    return reduce(plan, "min", x, axis, keep), reduce(plan, "argmin", x, axis, keep)


@handles("argmax.default")
def _argmax(plan: PlanBuilder, x: Value, axis: int | None = None, keep: bool = False) -> Value:
    return reduce(plan, "argmax", x, axis, keep)


@handles("argmin.default")
def _argmin(plan: PlanBuilder, x: Value, axis: int | None = None, keep: bool = False) -> Value:
    return reduce(plan, "argmin", x, axis, keep)


@handles("linalg_vector_norm.default")
def _vector_norm(
    plan: PlanBuilder, x: Value, order: float = 2, axes: Any = None, keep: bool = False, **_: Any
) -> Value:
    if order == 1:
        return reduce(plan, "sum", apply(plan, "abs", x), axes, keep)
    if order != 2:
        raise Unsupported(f"Unsupported: aten.linalg_vector_norm of order {order}")
    return apply(plan, "sqrt", reduce(plan, "sum", apply(plan, "mul", x, x), axes, keep))


def _shifted(plan: PlanBuilder, x: Value, axis: int) -> Value:
    """Return x minus its maximum, so that exp of it cannot overflow."""
    return apply(plan, "sub", x, reduce(plan, "max", x, axis), idiom="numeric.max-subtraction")


@handles("_softmax.default")
def _softmax(plan: PlanBuilder, x: Value, axis: int, half_to_float: bool = False) -> Value:
    powers = apply(plan, "exp", _shifted(plan, x, axis))
    return apply(plan, "div", powers, reduce(plan, "sum", powers, axis))


@handles("_log_softmax.default")
def _log_softmax(plan: PlanBuilder, x: Value, axis: int, half_to_float: bool = False) -> Value:
    shifted = _shifted(plan, x, axis)
    return apply(plan, "sub", shifted, apply(plan, "log", reduce(plan, "sum", apply(plan, "exp", shifted), axis)))


def normalised(plan: PlanBuilder, x: Value, axes: Any, epsilon: float) -> Value:
    """Return x normalised to mean 0 and variance 1 over axes."""
    centred = apply(plan, "sub", x, mean(plan, x, axes))
    variance = mean(plan, apply(plan, "mul", centred, centred), axes)
    deviation = apply(plan, "sqrt", apply(plan, "add", variance, epsilon))
    return apply(plan, "div", centred, deviation)


def scaled(plan: PlanBuilder, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """Return x * weight + bias, each optional."""
    if weight is not None:
        x = apply(plan, "mul", x, weight)
    return x if bias is None else apply(plan, "add", x, bias)


@handles("native_layer_norm.default")
def _layer_norm(
    plan: PlanBuilder, x: Value, shape: Any, weight: Value | None, bias: Value | None, epsilon: float
) -> Any:
    axes = list(range(-len(shape), 0))
    return (scaled(plan, normalised(plan, x, axes, epsilon), weight, bias), None, None)


def per_channel(value: Value | None, rank: int) -> Value | None:
    """Return a vector of channels aligned with dimension 1."""
    return None if value is None else reorder(value, (0,) + (None,) * (rank - 2))


@handles("native_group_norm.default")
def _group_norm(
    plan: PlanBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    n: int,
    c: int,
    hw: int,
    groups: int,
    epsilon: float,
) -> Any:
    held = _held_norm(plan, x, weight, bias, groups, epsilon) if plan.expert else None
    if held:
        return (held, None, None)
    if plan.expert:
        return (_grouped_norm(plan, x, weight, bias, groups, epsilon), None, None)
    dense = plan.tensor(x)
    grouped = (dense.shape[0], size(groups), dense.shape[1] / groups, product(dense.shape[2:]))
    view = Tensor(grouped, x.dtype, dense.buffer, row_major(grouped), dense.offset)
    centred = normalised(plan, view, [2, 3], epsilon)
    channels = [
        None if p is None else plan.reshape(p, (size(groups), p.shape[0] / groups, ONE)) for p in (weight, bias)
    ]
    return (plan.reshape(scaled(plan, centred, *channels), x.shape), None, None)


def _held_norm(
    plan: PlanBuilder, x: Value, weight: Value | None, bias: Value | None, groups: int, epsilon: float
) -> Tensor | None:
    """Add the stage of a norm of a tensor in memory whose groups stay on chip; None for another, or small groups."""
    floats = [each for each in (x, weight, bias) if isinstance(each, Tensor) and each.contiguous]
    if len(floats) < 3 or any(each.dtype != "float32" for each in floats) or len(x.shape) < 3:
        return None
    axis, length = x.shape[1] / groups, product(x.shape[2:])
    sizes = [(plan.sizes.value_at(axis, at), plan.sizes.value_at(length, at)) for at in plan.dimensions_at]
    on_chip = [(5 * -(-n // 4) + 3) * (-(-each // 8) * 8) for n, each in sizes]
    if max(on_chip) > HELD or max(n * each for n, each in sizes) <= SMALL:
        return None
    target = plan.scratch(x.shape)
    source, factor, shift = (each.buffer for each in floats)
    rows, channels, elements = (c_expression(extent) for extent in (x.shape[0] * groups, axis, length))
    stage = GroupNorm("", source, factor, shift, target.buffer, rows, channels, elements, groups, epsilon)
    plan.add(stage, IterationSpace(length))
    return target


def _grouped_norm(
    plan: PlanBuilder, x: Value, weight: Value | None, bias: Value | None, groups: int, epsilon: float
) -> Value:
    """Return the norm in one stage with what follows, and for rows with what comes before.

    An image does not stay on chip between the passes over it, in each of which what comes before would be computed.
    """
    parts, rank = (size(groups), x.shape[1] / groups), len(x.shape)
    view = (split(x, 1, parts) if rank == 2 else None) or split(plan.tensor(x), 1, parts)
    assert view is not None
    channels = [p and plan.reshape(p, (*parts, *[ONE] * (rank - 2))) for p in (weight, bias)]
    normal = scaled(plan, normalised(plan, view, list(range(2, rank + 1)), epsilon), *channels)
    return Regrouped(x.shape, x.dtype, normal, 1)


@handles("_native_batch_norm_legit_no_training.default")
def _batch_norm(
    plan: PlanBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean_: Value,
    variance: Value,
    momentum: float,
    eps: float,
) -> Any:
    rank = len(x.shape)
    centred = apply(plan, "sub", x, per_channel(mean_, rank))  # type: ignore[arg-type]
    deviation = apply(plan, "sqrt", apply(plan, "add", per_channel(variance, rank), eps))  # type: ignore[arg-type]
    scaled_ = scaled(plan, apply(plan, "div", centred, deviation), per_channel(weight, rank), per_channel(bias, rank))
    return (scaled_, None, None)


@handles("_native_batch_norm_legit_functional.default")
def _batch_norm_in_training(
    plan: PlanBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean_: Value,
    variance: Value,
    training: bool,
    momentum: float,
    epsilon: float,
) -> Any:
    """Normalise by the batch's own statistics; they also move the running ones."""
    rank = len(x.shape)
    axes = [axis for axis in range(rank) if axis != 1]
    centre = plan.tensor(mean(plan, x, axes, keep=False))
    centred = apply(plan, "sub", x, per_channel(centre, rank))  # type: ignore[arg-type]
    total = plan.tensor(reduce(plan, "sum", apply(plan, "mul", centred, centred), axes, keep=False))
    count = extent(x, axes)
    spread = apply(plan, "div", total, Extent((), "float32", count))
    deviation = apply(plan, "sqrt", apply(plan, "add", per_channel(spread, rank), epsilon))  # type: ignore[arg-type]
    normal = scaled(plan, apply(plan, "div", centred, deviation), per_channel(weight, rank), per_channel(bias, rank))
    unbiased = apply(plan, "div", total, Extent((), "float32", count - 1))
    moved = [
        apply(plan, "add", apply(plan, "mul", old, 1.0 - momentum), apply(plan, "mul", new, momentum))
        for old, new in ((mean_, centre), (variance, unbiased))
    ]
    return (normal, centre, deviation, *moved)


@handles("_native_batch_norm_legit.no_stats")
def _instance_statistics(
    plan: PlanBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> Any:
    rank = len(x.shape)
    axes = [axis for axis in range(rank) if axis != 1]
    centred = normalised(plan, x, axes, epsilon)
    return (scaled(plan, centred, per_channel(weight, rank), per_channel(bias, rank)), None, None)


@handles("var.correction")
def _variance(
    plan: PlanBuilder, x: Value, axes: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> Value:
    centred = apply(plan, "sub", x, mean(plan, x, axes))
    total = reduce(plan, "sum", apply(plan, "mul", centred, centred), axes, keepdim)
    degrees = Extent((), "float32", extent(x, axes) - int(1 if correction is None else correction))
    return apply(plan, "div", total, degrees)


@handles("var_mean.correction")
def _variance_and_mean(plan: PlanBuilder, x: Value, axes: Any = None, **settings: Any) -> tuple[Value, Value]:
    keep = bool(settings.get("keepdim", False))
    return _variance(plan, x, axes, **settings), mean(plan, x, axes, keep)
