"""Random values on which kernels are checked.

There are five kinds, each against another way of passing without being correct: `normal` (random scale and offset per
tensor), `quiet` (normal values, but a slice of zeros and a faint one, where the epsilon of a norm shows), `integers`
(small and exact, so that the results of linear functions must be exact), `stress` (large magnitudes, ties, spikes, and
infinities where the reference is defined on them) and `structured` (all rows differ, so that swapped rows and
transpositions show). Each kind has rungs from severe to tame; the reference decides which rung is used.

The kind `mixed` is for the timing sizes: normal values, and milder stress values in a random quarter of the rows of the
first argument. These are large enough for an exponential to overflow and small enough for the tolerance to show every
other element. Where rows do not depend on each other, a few more rows are severe: they have the spikes of `stress`,
which make an exponential overflow behind a matrix product, too. The kind `ordinary` is `mixed` without stress. In both
every row has a scale and an offset of its own, so that a sample of the rows does not stand for the others. In
`ordinary` a few elements at random places outweigh those around them, so that a part of a row does not stand for the
rest of it; in a loss they have all magnitudes. Large arguments are put together from pieces of two pools, because
drawing every value would take longer than running a kernel on them. The pieces of the pools have different lengths, so
that no part of an argument repeats another one. The kind `overflow` has spikes that grow with the rungs, until the
exponentials of a softmax overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.tasks.specs import InputSpec, Signature

Kind: TypeAlias = Literal["normal", "quiet", "integers", "stress", "structured", "mixed", "ordinary", "overflow"]
Array: TypeAlias = NDArray[Any]
Doubles: TypeAlias = NDArray[np.float64]

#: Largest spike of each rung. 2e5 is more than float16 can hold; up to 40 exp is finite. Spikes of the timing sizes are
#: so small that a sum over all rows still shows the rows without them. Those of `overflow` grow.
SPIKES: dict[Kind, tuple[float, ...]] = {
    "stress": (2e5, 2e5, 2e5, 40.0, 8.0),
    "mixed": (200.0, 40.0, 8.0),
    "overflow": (200.0, 500.0, 1e3, 2e3, 5e3, 2e4, 2e5),
}
#: Factor of a bias from a rung of `overflow` to the next.
SHIFTED = 8.0
#: Number of rungs of each kind, severe to tame.
RUNGS: dict[Kind, int] = {
    "normal": 2,
    "quiet": 2,  # the second one has no zeros
    "integers": 2,
    "stress": len(SPIKES["stress"]),
    "structured": 2,
    "mixed": len(SPIKES["mixed"]) + 1,  # the last one has no stressed rows
    "ordinary": 1,
    "overflow": len(SPIKES["overflow"]),
}
#: Standard deviation of the logarithm of a row's factor at the timing sizes, of which three count at most, and largest
#: offset of a row. Without stress a few rows may outweigh the others; beside it the tolerance is that of all rows.
ROW_FACTOR: dict[Kind, float] = {"mixed": 0.2, "ordinary": 0.4}
ROW_OFFSET = 0.5
#: One of so many elements is a peak without stress, and its factor. Peaks are most of a sum of squares.
PEAKS, PEAK = 512, 32.0
#: Inputs for each output from which on peaks are of all magnitudes, where no layer is between them: then a few of them
#: are a large part of a sum of absolute values, too. The largest of their factors.
INPUTS_PER_OUTPUT, HIGHEST = 64, 4096.0
#: In the unit interval peaks cannot be large. There they are so many times rarer, and all others are powers of two with
#: exponents between these.
RARER, SMALLEST, SMALL = 16, -24.0, -14.0
#: Least distance of values at the timing sizes from the edges of the unit interval.
EDGE = 2.0**-12
#: Factor of a faint slice: its variance is about the epsilon of common norms.
FAINT = 2.0**-8
#: Distance, in elements, of the second of two spikes that are nearly equal, and their difference, at most.
NEIGHBOUR, NEARLY = 32, 3.0
#: Values of a pool, and of each piece of the two pools that goes into a large argument.
POOL, PIECE, OTHER_PIECE = 1 << 18, 1 << 14, 12_289
#: Most indices that count as few: how much work there is at the timing sizes may depend on each of them.
FEW_INDICES = 16
#: One of so many numbers of an argument between 0 and 1 is zero at the timing sizes.
ZEROS = 1 << 14
#: Least number of rows that the leading dimensions of an argument are read as, and of values in a row that is stressed.
ROWS, ROW = 8, 1024
#: One of so many rows is stressed, and one of so many is severe.
STRESSED, SEVERE = 4, 32
#: Most values in severe rows if there are several, and their rung of `stress`: the largest spikes, without infinities.
SEVERE_VALUES, SEVERE_RUNG = 1 << 15, 2


@dataclass(frozen=True)
class Rows:
    """The leading dimensions of an argument, which of its rows hold stress values, and which other ones are severe."""

    shape: tuple[int, ...]
    stressed: NDArray[np.bool_]
    severe: NDArray[np.bool_] | None = None

    @property
    def special(self) -> NDArray[np.bool_]:
        """Which rows are stressed or severe."""
        return self.stressed if self.severe is None else self.stressed | self.severe


def draw(signature: Signature, kind: Kind, rung: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Draw one value set: an array for every input of `signature`."""
    if kind in ("mixed", "ordinary"):
        return draw_mixed(signature, rung, rng, stress=kind == "mixed")[0]
    if kind == "quiet":
        return _quiet(signature, rung, rng)
    if kind == "overflow":
        return tuple(_pooled(spec, kind, rung, rng) for spec in signature.inputs)
    return tuple(
        np.asarray(_tensor(spec, kind, rung, rng), dtype=numpy_dtype(spec.dtype)).reshape(spec.shape)
        for spec in signature.inputs
    )


def _quiet(signature: Signature, rung: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Draw normal values, and make one leading slice of each argument zero, and another one faint.

    Arguments that have as many slices share the places. Where these are fewer than three, the values stay as they are.
    Nothing is zero for a module that sorts, because equal elements have no order.
    """
    values, places = draw(signature, "normal", 0, rng), rng.random(2)
    for array, spec in zip(values, signature.inputs, strict=True):
        slices = len(array) if array.ndim and _is_float_argument(spec) and spec.domain.kind == "real" else 0
        if slices >= 3 and not spec.domain.factors:
            zero = int(places[0] * slices)
            if rung == 0 and not signature.unordered:
                array[zero] = 0.0
            array[(zero + 1 + int(places[1] * (slices - 1))) % slices] *= FAINT
    return values


def draw_mixed(
    signature: Signature,
    rung: int,
    rng: np.random.Generator,
    stress: bool = True,
    independent: int = 0,
    severe: bool = True,
) -> tuple[tuple[Array, ...], Rows | None]:
    """Draw a value set of the kind `mixed`, and return it with the rows of the first argument that are stressed.

    Without `stress` it is of the kind `ordinary`, and no rows are returned. `independent` leading dimensions count rows
    that do not depend on each other; with none of them no row is severe. Without `severe` none is where rows are few.
    """
    spread, tame = ROW_FACTOR["mixed" if stress else "ordinary"], rung == len(SPIKES["mixed"])
    values = [_varied(_pooled(spec, "normal", int(tame), rng), spec, spread, rng) for spec in signature.inputs]
    for i, spec in enumerate(signature.inputs):
        if spec.domain.kind == "index" and not spec.domain.distinct and spec.numel > 2:
            values[i] = _even_indices(spec, rng) if spec.numel <= FEW_INDICES else _with_ends(values[i], spec, rng)
    if not stress:
        high = _is_reduction(signature)
        values = [_with_peaks(array, spec, rng, high) for array, spec in zip(values, signature.inputs, strict=True)]
    elif not tame:
        _with_zeros(values, signature, rung, rng)
    position = stressed_input(signature)
    if position is None or not stress:
        return tuple(values), None
    spec = signature.inputs[position]
    rows = _stressed_rows(spec.shape, rng)
    if tame:
        rows = replace(rows, stressed=np.zeros_like(rows.stressed))
    else:
        _redraw(values[position], rows.stressed, spec, "mixed", rung, rng)
    if independent >= len(rows.shape) and spec.numel and (severe or prod(spec.shape[:independent]) >= SEVERE):
        rows = _with_severe(rows, spec.shape, independent, rng)
    if rows.severe is not None:
        _redraw(values[position], rows.severe, spec, "stress", SEVERE_RUNG, rng)
    return tuple(values), rows


def _redraw(
    array: Array, rows: NDArray[np.bool_], spec: InputSpec, kind: Kind, rung: int, rng: np.random.Generator
) -> None:
    """Draw some rows of an argument again, with values of another kind."""
    matrix = array.reshape(rows.size, -1)
    spec = replace(spec, shape=(int(rows.sum()), matrix.shape[1]))
    matrix[rows] = _varied(_pooled(spec, kind, rung, rng), spec, ROW_FACTOR["mixed"], rng)


def _varied(array: Array, spec: InputSpec, spread: float, rng: np.random.Generator) -> Array:
    """Return an array, changed in place, whose rows differ in scale and offset, as far as its domain allows."""
    if not _is_float_argument(spec) or spec.domain.factors or not array.size:
        return array
    height = prod(spec.shape[: row_dimensions(spec.shape)])
    matrix = array.reshape(height, -1)
    factors = np.exp(spread * np.clip(rng.standard_normal((height, 1)), -3, 3)).astype(array.dtype)
    if spec.domain.kind == "unit":
        matrix **= factors
        return np.clip(array, EDGE, 1.0 - EDGE, out=array)
    matrix *= factors
    if spec.domain.kind == "real":
        matrix += rng.uniform(-ROW_OFFSET, ROW_OFFSET, (height, 1)).astype(array.dtype)
    return array


def _is_reduction(signature: Signature) -> bool:
    """Return whether outputs are few beside the inputs, and no layer is between them, as in a loss."""
    inputs, outputs = (sum(spec.numel for spec in specs) for specs in (signature.inputs, signature.outputs))
    return inputs >= INPUTS_PER_OUTPUT * outputs and all(spec.origin == "argument" for spec in signature.inputs)


def _with_peaks(array: Array, spec: InputSpec, rng: np.random.Generator, high: bool) -> Array:
    """Return an array, changed in place, with peaks at random places; in the unit interval they are near its edges.

    High ones have all magnitudes; in the unit interval they have all values, beside others that are small.
    """
    if not _is_float_argument(spec) or spec.domain.factors or not array.size:
        return array
    flat, unit = array.reshape(-1), spec.domain.kind == "unit"
    peaks = rng.integers(0, flat.size, flat.size // (PEAKS * RARER if unit and high else PEAKS))
    if not unit:
        flat[peaks] *= PEAK / (rng.uniform(1 / HIGHEST, 1.0, peaks.size) if high else 1.0)
    elif high:
        values = flat[peaks]
        np.exp2(SMALL + (SMALLEST - SMALL) * flat, out=flat)
        flat[peaks] = values
    else:
        flat[peaks] = rng.choice((EDGE, 1.0 - EDGE), peaks.size)
    return array


def stressed_input(signature: Signature) -> int | None:
    """Return the position of the input whose rows are stressed; None if there is none."""
    return next((i for i, spec in enumerate(signature.inputs) if _is_float_argument(spec)), None)


def row_dimensions(shape: tuple[int, ...]) -> int:
    """Return how many leading dimensions count the rows of an argument."""
    return next((d for d in range(1, len(shape)) if prod(shape[:d]) >= ROWS), max(1, len(shape) - 1))


def _is_float_argument(spec: InputSpec) -> bool:
    return spec.origin == "argument" and is_float(spec.dtype)


def is_vector(spec: InputSpec) -> bool:
    """Return whether an input has one dimension alone that is not 1, as a bias has."""
    return max(spec.shape, default=1) == spec.numel


def _stressed_rows(shape: tuple[int, ...], rng: np.random.Generator) -> Rows:
    """Choose a quarter of the rows: single ones, or groups of neighbours where rows are short."""
    dimensions = row_dimensions(shape)
    height = prod(shape[:dimensions])
    group = max(1, ROW // max(1, prod(shape[dimensions:])))
    groups = -(-height // group)
    stressed = np.zeros(groups, bool)
    stressed[rng.permutation(groups)[: -(-(groups - 1) // STRESSED)]] = True
    return Rows(shape[:dimensions], np.repeat(stressed, group)[:height])


def _with_severe(rows: Rows, shape: tuple[int, ...], dimensions: int, rng: np.random.Generator) -> Rows:
    """Return the rows that so many leading dimensions count, some of those without stress as severe ones."""
    height = prod(shape[:dimensions])
    stressed = np.repeat(rows.stressed, height // rows.stressed.size)
    others = np.flatnonzero(~stressed)
    count = max(1, min(height // SEVERE, SEVERE_VALUES * height // prod(shape)))
    if others.size <= count:
        return rows
    severe = np.zeros(height, bool)
    severe[rng.choice(others, count, replace=False)] = True
    return Rows(shape[:dimensions], stressed, severe)


def _pooled(spec: InputSpec, kind: Kind, rung: int, rng: np.random.Generator) -> Array:
    """Draw one input; a large argument is put together from pieces of two pools at random places."""
    dtype = numpy_dtype(spec.dtype)
    if spec.numel <= POOL or not _is_float_argument(spec):
        return np.array(_tensor(spec, kind, rung, rng), dtype=dtype).reshape(spec.shape)
    pool = np.asarray(_tensor(replace(spec, shape=(POOL,)), kind, rung, rng), dtype=dtype)
    values = np.empty(spec.numel, dtype)
    for target, piece in _pieces(values, pool, PIECE, rng):
        target[:] = piece
    change, changes = _changes(spec, rung, rng)
    for target, piece in _pieces(values, changes.astype(dtype), OTHER_PIECE, rng):
        change(target, piece, out=target)
    return values.reshape(spec.shape)


def _pieces(values: Array, pool: Array, length: int, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield the pieces of an array, each with a piece of a pool at a random place."""
    starts = range(0, values.size, length)
    for start, offset in zip(starts, rng.integers(0, pool.size - length, len(starts)), strict=True):
        target = values[start : start + length]
        yield target, pool[offset : offset + target.size]


def _changes(spec: InputSpec, rung: int, rng: np.random.Generator) -> tuple[Callable[..., object], Doubles]:
    """Return the operation that applies the second pool, and the pool. The results stay in the domain of the input.

    The changes are about as large as the spread of the values. So the sum or maximum of a piece cannot be computed from
    another piece with the same values of the first pool.
    """
    changes = rng.uniform(-1.0, 1.0, POOL)
    if spec.domain.kind == "unit":
        return _add_in_unit, changes / 2 + 0.5
    if spec.domain.factors:
        return np.multiply, np.exp2(changes * _largest_exponent(spec.domain.factors) / 2)
    if spec.domain.kind == "positive":
        return np.multiply, 1.5 + changes / 2
    return np.add, changes * (0.5 if rung else 1.0)


def _add_in_unit(values: Array, changes: Array, out: Array) -> None:
    """Add modulo one."""
    np.add(values, changes, out=out)
    np.subtract(out, out >= 1.0, out=out)


def _tensor(spec: InputSpec, kind: Kind, rung: int, rng: np.random.Generator) -> Array:
    domain = spec.domain
    if domain.kind == "bool" or spec.dtype == "bool":
        return np.asarray(rng.integers(0, 2, spec.shape))
    if domain.kind == "index":
        return _indices(spec, kind, rng)
    if not is_float(spec.dtype):
        low = 0 if spec.dtype.startswith("u") else -8
        return np.asarray(rng.integers(low, 9, spec.shape))
    if domain.factors and domain.kind != "unit":
        return _factors(spec, kind, rng)
    return _fit(np.asarray(_DRAWS[kind](spec, rung, rng)), spec, tame=rung > 0 or kind == "mixed")


def is_float(dtype: str) -> bool:
    """Return whether numbers of a type have a fraction."""
    return "float" in dtype


def _indices(spec: InputSpec, kind: Kind, rng: np.random.Generator) -> Array:
    low, limit = spec.domain.low, max(spec.domain.limit, 1) - spec.domain.low
    if spec.domain.distinct and 0 < spec.shape[-1] <= limit:
        rows = np.tile(np.arange(low, low + limit), (spec.numel // spec.shape[-1], 1))
        return rng.permuted(rows, axis=1)[:, : spec.shape[-1]].reshape(spec.shape)
    if kind == "structured":
        step = int(rng.integers(1, limit + 1))
        return np.arange(spec.numel, dtype=np.int64) * step % limit + low
    return np.asarray(rng.integers(low, low + limit, spec.shape))


def _with_zeros(values: list[Array], signature: Signature, rung: int, rng: np.random.Generator) -> None:
    """Set a few numbers to zero in one of the arguments between 0 and 1: in the last of them on rung 0, then in others.

    The reference may be infinite where the argument of a logarithm is zero, and finite where a factor is.
    """
    units = [i for i, spec in enumerate(signature.inputs) if _is_float_argument(spec) and spec.domain.kind == "unit"]
    if rung < len(units):
        array = values[units[-1 - rung]].reshape(-1)
        array[rng.integers(0, array.size, 1 + array.size // ZEROS)] = 0.0


def _with_ends(indices: Array, spec: InputSpec, rng: np.random.Generator) -> Array:
    """Return indices, changed in place, among which are both ends of their range."""
    places = rng.choice(spec.numel, 2, replace=False)
    indices.reshape(-1)[places] = spec.domain.low, max(spec.domain.limit, 1) - 1
    return indices


def _even_indices(spec: InputSpec, rng: np.random.Generator) -> Array:
    """Return both ends of the range, and between them an index from the middle of each part of it.

    The sum of a few lengths is alike for all kernels, and work on what the longest one needs cannot be left out.
    """
    places = np.arange(spec.numel) + rng.uniform(3 / 8, 5 / 8, spec.numel)
    low, limit = spec.domain.low, max(spec.domain.limit, 1) - spec.domain.low
    indices = np.floor(low + places * limit / spec.numel)
    indices[0], indices[-1] = low, low + limit - 1
    return rng.permutation(indices).astype(spec.dtype).reshape(spec.shape)


def _normal(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    scale = float(np.exp(rng.uniform(np.log(0.5), np.log(2.0)))) * (0.5 if rung else 1.0)
    if spec.origin == "state" and len(spec.shape) > 1:  # weights as layers are initialised: sums stay of order one
        scale /= max(1.0, (spec.numel / spec.shape[0]) ** 0.5)
    offset = scale * float(rng.uniform(-0.75, 0.75))
    values = np.asarray(rng.standard_normal(spec.shape))
    values *= scale  # in place: most of the time of large tensors goes into fresh memory
    values += offset
    return values


def _integers(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    if spec.domain.kind == "unit":
        return rng.integers(rung, 5 - rung, spec.shape) / 4.0
    if spec.domain.kind == "positive":
        return rng.integers(1, 5, spec.shape).astype(np.float64)
    return rng.integers(-4, 5, spec.shape).astype(np.float64)


def _stress(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    """Return values over many magnitudes, with ties and spikes at random places.

    On rung 0 there are infinities of both signs, on rung 1 of one sign.
    """
    values, _ = _spiked(spec, SPIKES["stress"][rung], rng)
    if rung <= 1 and spec.origin == "argument" and values.size:
        holes = rng.integers(0, values.size, 2)
        values[holes] = (-np.inf, np.inf) if rung == 0 else rng.choice((-np.inf, np.inf))
    return values.reshape(spec.shape)


def _overflow(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    """Return values with spikes, or parameters that magnify or shift what is spiked: all grow with the rungs."""
    values = _spiked(spec, SPIKES["overflow"][rung], rng)[0].reshape(spec.shape)
    return values if spec.origin == "argument" else values * (SHIFTED if is_vector(spec) else 2.0) ** rung


def _mixed(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    """Return values over many magnitudes with ties and spikes, half of which have a nearly equal one close by.

    A sum of exponentials that is taken for its largest term is wrong there.
    """
    values, spikes = _spiked(spec, SPIKES["mixed"][rung], rng)
    first = spikes[: spikes.size // 2]
    second = (first + rng.integers(1, NEIGHBOUR, first.size)) % max(1, values.size)
    values[second] = values[first] - rng.uniform(0.0, NEARLY, first.size)
    return values.reshape(spec.shape)


def _spiked(spec: InputSpec, largest: float, rng: np.random.Generator) -> tuple[Doubles, NDArray[np.int64]]:
    """Return flat values over many magnitudes, with ties and spikes at random places, and these places."""
    if spec.origin != "argument" or spec.numel == 0:
        return np.ravel(_normal(spec, 0, rng) * 2.0), np.empty(0, np.int64)
    values = np.ravel(rng.standard_normal(spec.shape) * np.exp(rng.uniform(-2.0, 2.0, spec.shape)))
    size = values.size
    ties = rng.integers(0, size, size // 8)
    values[ties] = rng.choice(values, 3)[rng.integers(0, 3, ties.size)]
    spikes = rng.integers(0, size, max(2, size // 64))
    values[spikes] = rng.choice((-1.0, 1.0), spikes.size) * largest * rng.uniform(0.1, 1.0, spikes.size)
    return values, spikes


def _structured(spec: InputSpec, rung: int, rng: np.random.Generator) -> Doubles:
    columns = spec.shape[-1] if spec.shape else 1
    row, column = np.divmod(np.arange(spec.numel, dtype=np.int64), max(columns, 1))
    steps = rng.choice((3, 5, 7, 11, 13, 17, 19, 23), 2, replace=False)
    values = ((row * steps[0] + 1) % 89) / 16.0 - 2.75 + ((column * steps[1]) % 61) / 32.0 - 0.95
    scale = float(rng.uniform(0.7, 1.4)) * (0.5 if rung else 1.0)
    if spec.origin == "state" and len(spec.shape) > 1:
        scale /= max(1.0, (spec.numel / spec.shape[0]) ** 0.5)
    return np.asarray(values * scale).reshape(spec.shape)


def _factors(spec: InputSpec, kind: Kind, rng: np.random.Generator) -> Doubles:
    """Return signs times powers of two near one: no product of neighbours overflows, in whichever order it is computed.

    The exponents have mean zero. Their sum over all factors has a standard deviation of about two, so that the products
    stay of order one, too, and every one of them is compared.
    """
    span = _largest_exponent(spec.domain.factors)
    exponents = rng.uniform(-span, span, spec.shape)
    signs = rng.choice((-1.0, 1.0), spec.shape)
    if kind == "integers":  # powers of two, whose products are exact
        exponents = np.sign(exponents) * (rng.random(spec.shape) < span**2 / 3)
    elif kind == "structured":
        row, column = np.divmod(np.arange(spec.numel, dtype=np.int64), max(spec.shape[-1] if spec.shape else 1, 1))
        steps = rng.choice((3, 5, 7, 11, 13, 17, 19, 23), 2, replace=False)
        exponents = (span * ((row * steps[0] + column * steps[1]) % 61 / 30.0 - 1.0)).reshape(spec.shape)
        signs = np.where((row * steps[1] + column) % 89 < 44, -1.0, 1.0).reshape(spec.shape)
    values = np.asarray((1.0 if spec.domain.kind == "positive" else signs) * np.exp2(exponents))
    if kind in SPIKES and spec.domain.kind != "positive" and values.size:  # zeros and ties
        flat = values.reshape(-1)
        flat[rng.integers(0, flat.size, flat.size // 8)] = 1.0
        flat[rng.integers(0, flat.size, 2)] = 0.0
    return values


def _largest_exponent(factors: int) -> float:
    """Return the largest power of two in each of `factors` numbers whose product stays of order one."""
    return min(1.0, 4.0 / sqrt(factors))


def _fit(values: Doubles, spec: InputSpec, tame: bool) -> Doubles:
    """Return the values, mapped into the tensor's domain; tame ones keep away from its edges."""
    if spec.domain.kind == "positive":
        return np.clip(np.abs(values), 0.25 if tame else 2.0**-6, 1e4)
    if spec.domain.kind == "unit":
        edge = 2.0**-6 if tame else 0.0
        finite = np.nan_to_num(values, posinf=1.0, neginf=0.0)
        inside = np.where((finite >= 0) & (finite <= 1), finite, np.abs(finite) % 1.0)
        return np.clip(inside, edge, 1.0 - edge)
    if spec.dtype == "float16":  # spikes that this type can hold
        return np.where(np.isfinite(values), np.clip(values, -1e4, 1e4), values)
    return values


_DRAWS: dict[Kind, Callable[[InputSpec, int, np.random.Generator], Doubles]] = {
    "normal": _normal,
    "integers": _integers,
    "stress": _stress,
    "structured": _structured,
    "mixed": _mixed,
    "overflow": _overflow,
}
