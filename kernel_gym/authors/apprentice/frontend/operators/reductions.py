"""Reductions, and what is made of them: softmax, norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_gym.authors.apprentice.frontend.expression import Extent, Tensor, Value, reorder
from kernel_gym.authors.apprentice.frontend.operators.table import Unsupported, apply, extent, handles, reduce
from kernel_gym.authors.apprentice.frontend.sizes import ONE, product, row_major, size

if TYPE_CHECKING:
    from kernel_gym.authors.apprentice.frontend.reader import Reader


@handles("sum.dim_IntList", "sum.default")
def _sum(r: Reader, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return reduce(r, "sum", x, axes, keep)


@handles("mean.dim", "mean.default")
def _mean(r: Reader, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return mean(r, x, axes, keep)


def mean(r: Reader, x: Value, axes: Any, keep: bool = True) -> Value:
    """The mean over axes; the divisor is a size of the run."""
    total = reduce(r, "sum", x, axes, keep)
    return apply(r, "div", total, Extent((), "float32", extent(x, axes)), idiom="numeric.mean-divisor")


@handles("amax.default")
def _amax(r: Reader, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(r, "max", x, axes, keep)


@handles("amin.default")
def _amin(r: Reader, x: Value, axes: Any = None, keep: bool = False) -> Value:
    return reduce(r, "min", x, axes, keep)


@handles("any.dim")
def _any(r: Reader, x: Value, axis: int, keep: bool = False) -> Value:
    return reduce(r, "max", x, axis, keep)


@handles("max.dim")
def _max_dim(r: Reader, x: Value, axis: int, keep: bool = False) -> tuple[Value, Value]:
    return reduce(r, "max", x, axis, keep), reduce(r, "argmax", x, axis, keep)


@handles("min.dim")
def _min_dim(r: Reader, x: Value, axis: int, keep: bool = False) -> tuple[Value, Value]:
    return reduce(r, "min", x, axis, keep), reduce(r, "argmin", x, axis, keep)


@handles("argmax.default")
def _argmax(r: Reader, x: Value, axis: int | None = None, keep: bool = False) -> Value:
    return reduce(r, "argmax", x, axis, keep)


@handles("argmin.default")
def _argmin(r: Reader, x: Value, axis: int | None = None, keep: bool = False) -> Value:
    return reduce(r, "argmin", x, axis, keep)


@handles("linalg_vector_norm.default")
def _vector_norm(r: Reader, x: Value, order: float = 2, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    if order == 1:
        return reduce(r, "sum", apply(r, "abs", x), axes, keep)
    if order != 2:
        raise Unsupported(f"Unsupported: aten.linalg_vector_norm of order {order}")
    return apply(r, "sqrt", reduce(r, "sum", apply(r, "mul", x, x), axes, keep))


def _shifted(r: Reader, x: Value, axis: int) -> Value:
    """x minus its maximum: exp of it cannot overflow."""
    return apply(r, "sub", x, reduce(r, "max", x, axis), idiom="numeric.max-subtraction")


@handles("_softmax.default")
def _softmax(r: Reader, x: Value, axis: int, half_to_float: bool = False) -> Value:
    powers = apply(r, "exp", _shifted(r, x, axis))
    return apply(r, "div", powers, reduce(r, "sum", powers, axis))


@handles("_log_softmax.default")
def _log_softmax(r: Reader, x: Value, axis: int, half_to_float: bool = False) -> Value:
    shifted = _shifted(r, x, axis)
    return apply(r, "sub", shifted, apply(r, "log", reduce(r, "sum", apply(r, "exp", shifted), axis)))


def normalised(r: Reader, x: Value, axes: Any, epsilon: float) -> Value:
    """x with mean 0 and variance 1 over axes."""
    centred = apply(r, "sub", x, mean(r, x, axes))
    variance = mean(r, apply(r, "mul", centred, centred), axes)
    deviation = apply(r, "sqrt", apply(r, "add", variance, epsilon))
    return apply(r, "div", centred, deviation)


def scaled(r: Reader, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """x * weight + bias, each optional."""
    if weight is not None:
        x = apply(r, "mul", x, weight)
    return x if bias is None else apply(r, "add", x, bias)


@handles("native_layer_norm.default")
def _layer_norm(r: Reader, x: Value, shape: Any, weight: Value | None, bias: Value | None, epsilon: float) -> Any:
    axes = list(range(-len(shape), 0))
    return (scaled(r, normalised(r, x, axes, epsilon), weight, bias), None, None)


def per_channel(value: Value | None, rank: int) -> Value | None:
    """A vector of channels lined up with dimension 1."""
    return None if value is None else reorder(value, (0,) + (None,) * (rank - 2))


@handles("native_group_norm.default")
def _group_norm(
    r: Reader, x: Value, weight: Value | None, bias: Value | None, n: int, c: int, hw: int, groups: int, epsilon: float
) -> Any:
    dense = r.tensor(x)
    grouped = (dense.shape[0], size(groups), dense.shape[1] / groups, product(dense.shape[2:]))
    view = Tensor(grouped, x.dtype, dense.buffer, row_major(grouped), dense.offset)
    centred = normalised(r, view, [2, 3], epsilon)
    channels = [None if p is None else r.reshape(p, (size(groups), p.shape[0] / groups, ONE)) for p in (weight, bias)]
    return (r.reshape(scaled(r, centred, *channels), x.shape), None, None)


@handles("_native_batch_norm_legit_no_training.default")
def _batch_norm(
    r: Reader,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean_: Value,
    variance: Value,
    momentum: float,
    eps: float,
) -> Any:
    rank = len(x.shape)
    centred = apply(r, "sub", x, per_channel(mean_, rank))  # type: ignore[arg-type]
    deviation = apply(r, "sqrt", apply(r, "add", per_channel(variance, rank), eps))  # type: ignore[arg-type]
    scaled_ = scaled(r, apply(r, "div", centred, deviation), per_channel(weight, rank), per_channel(bias, rank))
    return (scaled_, None, None)


@handles("_native_batch_norm_legit.no_stats")
def _instance_statistics(
    r: Reader, x: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, epsilon: float
) -> Any:
    rank = len(x.shape)
    axes = [axis for axis in range(rank) if axis != 1]
    centred = normalised(r, x, axes, epsilon)
    return (scaled(r, centred, per_channel(weight, rank), per_channel(bias, rank)), None, None)


@handles("var.correction")
def _variance(r: Reader, x: Value, axes: Any = None, *, correction: float | None = 1, keepdim: bool = False) -> Value:
    centred = apply(r, "sub", x, mean(r, x, axes))
    total = reduce(r, "sum", apply(r, "mul", centred, centred), axes, keepdim)
    degrees = Extent((), "float32", extent(x, axes) - int(1 if correction is None else correction))
    return apply(r, "div", total, degrees)
