"""What each ATen operator means, in maps, reductions and views.

A handler gets the reader and the node's arguments (tensors already turned into values) and returns a value, or a tuple
for operators with several results. The table is open: a new operator is one decorated function.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from kernel_gym.errors import KernelGymError
from kernel_gym.generators.apprentice.expression import (
    Broadcast,
    Extent,
    Map,
    Reduce,
    Reduction,
    Tensor,
    Value,
    reorder,
)
from kernel_gym.generators.apprentice.sizes import ONE, Size, product, row_major, size

if TYPE_CHECKING:
    from kernel_gym.generators.apprentice.reader import Reader

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


class Unsupported(KernelGymError):
    """An operator, or a use of one, that the apprentice cannot lower."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for ATen operators."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[f"aten.{name}"] = handler
        return handler

    return register


# ---- building blocks -------------------------------------------------------------------------------------------


def broadcast_shape(r: Reader, *values: Value | float) -> tuple[Size, ...]:
    """The shape that values are broadcast to."""
    shapes = [value.shape for value in values if isinstance(value, Value)]
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = []
    for axis in range(rank):
        extents = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        large = [extent for extent in extents if r.sizes.value(extent) != 1]
        for other in large[1:]:
            r.sizes.unify(large[0], other)
        result.append((large or extents)[0])
    return tuple(result)


def apply(r: Reader, function: str, *arguments: Value | float, idiom: str = "", dtype: str = "float32") -> Map:
    """An elementwise function."""
    return Map(broadcast_shape(r, *arguments), dtype, function, arguments, idiom)


def reduce(r: Reader, function: Reduction, value: Value, axes: Any, keep: bool = True, idiom: str = "") -> Value:
    """A reduction over axes; none given means all."""
    rank = len(value.shape)
    chosen = sorted({axis % rank for axis in _listed(axes)}) if axes not in (None, [], ()) else list(range(rank))
    shape = tuple(ONE if axis in chosen else extent for axis, extent in enumerate(value.shape))
    dtype = "int64" if function in ("argmax", "argmin") else value.dtype
    result: Value = Reduce(shape, dtype, function, value, tuple(chosen), idiom)
    return result if keep else reorder(result, tuple(axis for axis in range(rank) if axis not in chosen))


def _listed(axes: Any) -> list[int]:
    return [axes] if isinstance(axes, int) else list(axes)


def extent(value: Value, axes: Any) -> Size:
    """How many elements a reduction over axes takes together."""
    rank = len(value.shape)
    chosen = {axis % rank for axis in _listed(axes)} if axes not in (None, [], ()) else set(range(rank))
    return product(value.shape[axis] for axis in chosen)


# ---- elementwise -----------------------------------------------------------------------------------------------

_UNARY = {
    "exp": "exp", "log": "log", "abs": "abs", "sqrt": "sqrt", "relu": "relu", "neg": "neg", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "sin": "sin", "cos": "cos",
    "floor": "floor", "ceil": "ceil", "sign": "sign",
}  # fmt: skip
_BINARY = {"mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}
_COMPARE = {"gt": "gt", "lt": "lt", "ge": "ge", "le": "le", "eq": "eq", "ne": "ne"}


def _elementwise(function: str, dtype: str = "float32") -> Handler:
    def handler(r: Reader, *arguments: Value | float, **_: Any) -> Value:
        return apply(r, function, *arguments, dtype=dtype)

    return handler


for _name, _function in _UNARY.items():
    HANDLERS[f"aten.{_name}.default"] = _elementwise(_function)
for _name, _function in _BINARY.items():
    for _form in ("default", "Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function)
for _name, _function in _COMPARE.items():
    for _form in ("Tensor", "Scalar"):
        HANDLERS[f"aten.{_name}.{_form}"] = _elementwise(_function, "bool")


@handles("add.Tensor", "add.Scalar")
def _add(r: Reader, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(r, "add", left, right if alpha == 1 else apply(r, "mul", right, alpha))


@handles("sub.Tensor", "sub.Scalar")
def _sub(r: Reader, left: Value, right: Value | float, *, alpha: float = 1) -> Value:
    return apply(r, "sub", left, right if alpha == 1 else apply(r, "mul", right, alpha))


@handles("rsub.Scalar")
def _rsub(r: Reader, left: Value, right: float) -> Value:
    return apply(r, "sub", right, left)


@handles("log1p.default")
def _log1p(r: Reader, x: Value) -> Value:
    return apply(r, "log", apply(r, "add", x, 1.0))


@handles("gelu.default")
def _gelu(r: Reader, x: Value, *, approximate: str = "none") -> Value:
    if approximate == "tanh":
        cube = apply(r, "mul", apply(r, "mul", x, x), x)
        inner = apply(r, "mul", apply(r, "add", x, apply(r, "mul", cube, 0.044715)), sqrt(2 / pi))
        bell = apply(r, "add", apply(r, "tanh", inner), 1.0)
    else:
        bell = apply(r, "add", apply(r, "erf", apply(r, "mul", x, sqrt(0.5))), 1.0)
    return apply(r, "mul", apply(r, "mul", x, 0.5), bell)


@handles("leaky_relu.default")
def _leaky_relu(r: Reader, x: Value, slope: float = 0.01) -> Value:
    return apply(r, "leaky_relu", x, float(slope))


@handles("clamp.default", "hardtanh.default")
def _clamp(r: Reader, x: Value, low: float | None = None, high: float | None = None) -> Value:
    if low is not None:
        x = apply(r, "max", x, float(low))
    return x if high is None else apply(r, "min", x, float(high))


HANDLERS["aten.hardtanh.default"] = lambda r, x, low=-1.0, high=1.0: _clamp(r, x, low, high)


@handles("elu.default")
def _elu(r: Reader, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    # For x <= 0 the first term vanishes, for x > 0 the second: no comparison needed.
    low = apply(r, "min", x, 0.0)
    curve = apply(r, "add", apply(r, "exp", apply(r, "mul", low, float(input_scale))), -1.0)
    high = apply(r, "relu", x)
    total = apply(r, "add", high, apply(r, "mul", curve, float(alpha)))
    return total if scale == 1.0 else apply(r, "mul", total, float(scale))


@handles("pow.Tensor_Scalar")
def _pow(r: Reader, x: Value, exponent: float) -> Value:
    if exponent == 0.5:
        return apply(r, "sqrt", x)
    if exponent != int(exponent) or not 1 <= exponent <= 8:
        raise Unsupported(f"Unsupported: aten.pow.Tensor_Scalar with exponent {exponent}")
    result = x
    for _ in range(int(exponent) - 1):
        result = apply(r, "mul", result, x)
    return result


@handles("where.self")
def _where(r: Reader, condition: Value, left: Value | float, right: Value | float) -> Value:
    return apply(r, "where", condition, left, right)


@handles("logical_not.default")
def _logical_not(r: Reader, x: Value) -> Value:
    return apply(r, "eq", x, 0.0, dtype="bool")


@handles("isnan.default")
def _isnan(r: Reader, x: Value) -> Value:
    return apply(r, "ne", x, x, dtype="bool")


@handles("scalar_tensor.default", "full.default")
def _constant(r: Reader, *arguments: Any, **_: Any) -> Value:
    shape, value = ((), arguments[0]) if len(arguments) == 1 else (tuple(size(n) for n in arguments[0]), arguments[1])
    return Broadcast(shape, "float32", float(value))


@handles("full_like.default")
def _full_like(r: Reader, like: Value, value: float, **_: Any) -> Value:
    return Broadcast(like.shape, like.dtype, float(value))


# ---- reductions and what is made of them -------------------------------------------------------------------------


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
    deviation = apply(r, "sqrt", apply(r, "add", variance, epsilon, idiom="numeric.epsilon"))
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
    channels = [None if p is None else r.view(p, (groups, c // groups, 1)) for p in (weight, bias)]
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
    deviation = apply(r, "sqrt", apply(r, "add", per_channel(variance, rank), eps, idiom="numeric.epsilon"))  # type: ignore[arg-type]
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


# ---- views -----------------------------------------------------------------------------------------------------


@handles("permute.default")
def _permute(r: Reader, x: Value, order: list[int]) -> Value:
    return reorder(x, tuple(axis % len(x.shape) for axis in order))


@handles("unsqueeze.default")
def _unsqueeze(r: Reader, x: Value, axis: int) -> Value:
    rank = len(x.shape) + 1
    sources: list[int | None] = list(range(len(x.shape)))
    sources.insert(axis % rank, None)
    return reorder(x, tuple(sources))


@handles("squeeze.dims", "squeeze.dim")
def _squeeze(r: Reader, x: Value, axes: Any) -> Value:
    dropped = {axis % len(x.shape) for axis in _listed(axes) if x.shape[axis] == 1}
    return reorder(x, tuple(axis for axis in range(len(x.shape)) if axis not in dropped))


@handles("view.default", "reshape.default", "_unsafe_view.default")
def _view(r: Reader, x: Value, shape: list[int]) -> Value:
    return r.view(x, tuple(shape))


@handles("expand.default")
def _expand(r: Reader, x: Value, shape: list[int], **_: Any) -> Value:
    shift = len(shape) - len(x.shape)
    target = tuple(
        size(extent)
        if index < shift or (r.sizes.value(x.shape[index - shift]) != extent and extent != -1)
        else x.shape[index - shift]
        for index, extent in enumerate(shape)
    )
    return x if target == x.shape else Broadcast(target, x.dtype, x)


@handles("clone.default", "alias.default", "_to_copy.default", "contiguous.default")
def _same(r: Reader, x: Value, **_: Any) -> Value:
    return x
