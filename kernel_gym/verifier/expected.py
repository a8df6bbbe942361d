"""Expected outputs of a kernel: the truth, which of its elements count, and how far a result may be from it.

Outputs at the timing sizes have millions of elements, and every one of them is compared. Large arrays are therefore
read in pieces that fit the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.verifier.values import SEVERE, Array, Doubles, Rows

Bools: TypeAlias = NDArray[np.bool_]

#: Relative tolerance where the reference has no noise: wide enough for an approximate exp (1e-5) and for other orders
#: of summation, and an order of magnitude below the error of inputs rounded to half precision (5e-4).
BASE = {"float64": 1e-9, "float32": 5e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
#: Largest distance of two neighbours in types of 16 bits, relative to the number: rounding is off by half of it.
SPACING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
#: An honest kernel may be this many times as noisy as the reference in the same precision.
MULTIPLE = 8.0
#: Values on which the reference itself is noisier than this do not tell an honest kernel from one of lower precision.
TOO_NOISY = 4.0
#: Least relative tolerance of a few severe rows, where near ties of a softmax magnify rounding: nothing may overflow
#: there. Where severe rows are a large share, they may be this many times as noisy as the reference.
LOOSE, LOOSER = 0.25, 32.0
#: The reference may be this many times as noisy as rounding the result of each operator explains. What exceeds that is
#: due to the order in which it adds, which a kernel need not share.
OTHER_ORDER = 8.0
#: All elements share noise if its median is at least this part of its highest decile.
SHARED_NOISE = 0.5
#: Avoids a division by zero in the noise of an all-zero reference.
TINY = 1e-300
#: Share of elements on which the reference may be undefined (its two precisions disagree on what is finite).
UNDEFINED = 0.01
#: Larger shares of infinities leave too little to compare.
MOST_INFINITE = 0.25
#: Share of the elements whose error may exceed the tolerance, and by which factor.
OUTLIERS, OUTLIER = 5e-5, 4.0
#: Elements of a piece.
PIECE = 1 << 15
#: Rows, and elements of each, from which the scale of rows with spikes is estimated.
SAMPLE = 256
#: Elements that show whether an output depends on the arguments; what a row that differs in one element tells, and the
#: same for a row of fewer than so many elements.
TOLD, ROW_TOLD, SHORT_ROW_TOLD, WIDE = 1 << 17, 0.125, 0.25, 8
#: Least number of pairs of whole rows that are compared, if there are as many.
FEW_PAIRS = 8
#: An element this many times as large as the median is a spike. A scale without spikes is at least this part of the
#: root mean square: results such as those of a softmax have all magnitudes.
SPIKE, LEAST_SCALE = 4.0, 0.125
#: The scale of a kind of rows is at least this part of the largest one. The elements of one kind may all vanish, as
#: behind a GELU, where an honest kernel has the smallest numbers instead of zeros.
VANISHED = 2.0**-24
#: The scale of an output that is zero everywhere, so that its tolerance is not zero.
SCALE_OF_ZEROS = 1.0


@dataclass(frozen=True)
class Expected:
    """One expected output: the truth in float64 (or integers), which elements count, and the tolerance.

    `noise` is the largest error of the reference in the task's own precision, `scale` the truth's root mean square,
    `whole` says that the truth is known to be finite everywhere, `left_out` is the number of elements of severe rows
    that are not compared. `spacing` is that of a type of 16 bits to which the reference rounds once, at its end: errors
    may be larger by that part of the truth. It is 0 for all other outputs.
    Where rows of the output belong to different kinds of values, there is a column of them, one number for each row.
    """

    truth: Array
    counts: Bools
    base: float | Doubles = 0.0
    noise: float | Doubles = 0.0
    scale: float | Doubles = 0.0
    exact: bool = False
    whole: bool = False
    left_out: int = 0
    spacing: float = 0.0

    @property
    def rtol(self) -> float | Doubles:
        """Relative tolerance."""
        return 0.0 if self.exact else np.maximum(self.base, MULTIPLE * self.noise)

    @property
    def tolerance(self) -> Array:
        """Largest error that passes, for each element."""
        return np.asarray(self.rtol * (np.abs(self.truth) + self.scale) + self.spacing * np.abs(self.truth))

    @cached_property
    def finite(self) -> bool:
        """Whether the truth is finite everywhere."""
        return self.whole or self.truth.dtype.kind != "f" or is_finite(self.truth)

    @property
    def undefined(self) -> float:
        """Share of elements that the reference does not define, beside those of severe rows."""
        defined = np.count_nonzero(self.counts) + self.left_out
        return 1.0 - defined / self.counts.size if self.counts.size else 0.0

    @property
    def noisy(self) -> bool:
        """Whether the reference is too noisy to tell an honest kernel from one of lower precision."""
        return bool(np.any(MULTIPLE * self.noise > TOO_NOISY * self.base))

    @property
    def clear(self) -> bool:
        """Whether an honest kernel, a null kernel and one of lower precision can be distinguished on these values."""
        if not self.finite:
            truth = self.truth[self.counts] if self.left_out else self.truth
            if np.isnan(truth).any() or float(np.isinf(truth).mean()) > MOST_INFINITE:
                return False
        return self.undefined <= UNDEFINED and not self.noisy


def expected_from(
    truth: Array, native: Array, dtype: str, rows: Rows | None = None, *, rounds_once: bool = False
) -> Expected:
    """Return the expected output from the reference in float64 and in the task's own precision.

    If the output has the rows of the argument with stressed rows, noise and scale are separate for both kinds of rows,
    and the few spikes of stressed rows do not widen the tolerance of the elements beside them. Severe rows are compared
    where the reference is finite, with a wide tolerance if they are few.

    With `rounds_once` a kernel may round to a type of 16 bits at its end only, if the reference does so, too.
    """
    if truth.dtype.kind != "f":
        return Expected(truth, np.asarray(truth == native), exact=True)
    if rounds_once and dtype in SPACING:
        once = _expected(truth, _unrounded(native, truth, SPACING[dtype] / 2), dtype, BASE["float32"], rows)
        if not once.noisy:
            return replace(once, spacing=SPACING[dtype])
    return _expected(truth, native, dtype, BASE[dtype], rows)


def _expected(truth: Array, native: Array, dtype: str, least_base: float, rows: Rows | None) -> Expected:
    truth, counts, whole = _defined(truth, native, dtype)
    if rows is None or truth.shape[: len(rows.shape)] != rows.shape:
        every_row = np.ones(prod(truth.shape[:-1]), bool)
        noise, scale = _statistics(truth, native, None if whole else counts, [every_row])
        largest = float(noise.max(initial=0.0)), float(scale.max(initial=0.0))
        return Expected(truth, counts, least_base, *largest, whole=whole)
    severe = np.zeros_like(rows.stressed) if rows.severe is None else rows.severe
    left_out = 0 if whole else _leave_out(counts, np.isfinite(truth) & np.isfinite(native), severe)
    groups = [rows.stressed, severe, ~(rows.stressed | severe)]
    noise, scale = _statistics(truth, native, None if whole else counts, groups, spiked=rows.stressed)
    base = np.full(severe.size, least_base)
    least, multiple = (LOOSE, MULTIPLE) if severe.mean() <= 1 / SEVERE else (least_base, LOOSER)
    base[severe] = np.maximum(least, multiple * noise[severe])
    noise[severe] = 0.0
    column = (*rows.shape, *(1 for _ in truth.shape[len(rows.shape) :]))
    base, noise, scale = base.reshape(column), noise.reshape(column), scale.reshape(column)
    return Expected(truth, counts, base, noise, scale, whole=whole, left_out=left_out)


def _leave_out(counts: Bools, finite: Bools, severe: Bools) -> int:
    """Count no element of severe rows that is not finite, and return how many of these rows do not count."""
    counted = as_rows(counts, severe.size)
    counted[severe] &= as_rows(finite, severe.size)[severe]
    return int(np.count_nonzero(~counted[severe]))


def _unrounded(values: Array, truth: Array, rounding: float) -> Array:
    """Return values with errors that are smaller by those of rounding the truth, which are relative to it."""
    with np.errstate(invalid="ignore"):
        error = values.astype(np.float64) - truth
        off = np.maximum(np.abs(error) - rounding * np.abs(truth), 0.0)
        return np.where(np.isfinite(error), truth + np.copysign(off, error), values)


def with_noise_of(expected: Expected, native: Array) -> Expected:
    """Return the expected output with the noise of another run of the reference, where that is larger, row by row."""
    if expected.truth.dtype.kind != "f" or expected.exact:
        return expected
    error = _relative_error(expected, native)
    if np.ndim(expected.scale):
        noise = as_rows(error, np.size(expected.scale)).max(axis=1, initial=0.0).reshape(np.shape(expected.scale))
    else:
        noise = np.broadcast_to(error.max(axis=-1, keepdims=True, initial=0.0), error.shape)
    return replace(expected, noise=np.maximum(expected.noise, noise))


def with_noise(expected: Expected, noise: float) -> Expected:
    """Return the expected output with at least this noise in all rows."""
    if expected.truth.dtype.kind != "f" or expected.exact:
        return expected
    return replace(expected, noise=np.maximum(expected.noise, noise))


def largest_error(expected: Expected, native: Array) -> float:
    """Return how far the elements of another run of the reference are off at most; 0 where they are no floats."""
    if expected.truth.dtype.kind != "f" or expected.exact:
        return 0.0
    return float(_relative_error(expected, native).max(initial=0.0))


def _relative_error(expected: Expected, native: Array) -> Doubles:
    """Return how far the elements of a run of the reference are off."""
    native = _unrounded(native, expected.truth, expected.spacing) if expected.spacing else native
    counted = expected.counts & np.isfinite(expected.truth) & np.isfinite(native)
    error = np.where(counted, np.abs(native - expected.truth), 0.0)
    return np.asarray(error / (np.abs(np.where(counted, expected.truth, 0.0)) + np.maximum(expected.scale, TINY)))


def with_noise_at_most(expected: Expected, native: Array, explained: Expected) -> Expected:
    """Return the expected output with no more noise than results that are rounded explain, if these have any.

    Noise that differs from element to element stays: a formula has it whose steps are within one operator.
    """
    if expected.truth.dtype.kind != "f" or expected.exact or not np.any(explained.noise):
        return expected
    native = _unrounded(native, expected.truth, expected.spacing) if expected.spacing else native
    counted = expected.counts & np.isfinite(expected.truth) & np.isfinite(native)
    size = (np.abs(expected.truth) + expected.scale)[counted]  # elements near zero would have the largest errors
    error = np.abs(native[counted] - expected.truth[counted]) / np.where(size, size, 1.0)
    if not error.size or float(np.median(error)) < SHARED_NOISE * float(np.quantile(error, 0.9)):
        return expected
    most = np.maximum(expected.base / MULTIPLE, OTHER_ORDER * explained.noise)
    return replace(expected, noise=np.minimum(expected.noise, most))


def telling(expected: Expected, batch: int, apart: bool = True) -> float:
    """Return how much of an output depends on the arguments: the rest follows from the parameters alone.

    It is the share of elements that differ from those of the next of so many rows, from a sample, and at most
    `ROW_TOLD` times the share of rows that differ at all. With `apart` these are rows without stress. It is 1 for
    outputs that have other rows.
    """
    if not _has_rows(expected, batch):
        return 1.0
    height = _height(expected, batch)
    return min(_told(expected, batch, kinds(expected, height)[0] if apart else np.ones(height, bool)))


def telling_of_stress(expected: Expected, batch: int) -> float:
    """Return how many of the stressed rows of an output depend on the arguments, as `telling` does of the others.

    These may differ in a few elements only, as those of a softmax do, so that the sample has whole rows.
    """
    if not _has_rows(expected, batch):
        return 1.0
    stressed = kinds(expected, _height(expected, batch))[1:]
    return min((_told(expected, batch, rows, whole=True)[1] for rows in stressed), default=1.0)


def _has_rows(expected: Expected, batch: int) -> bool:
    truth = expected.truth
    return truth.dtype.kind == "f" and batch >= 2 and truth.shape[:1] == (batch,) and truth.size > 0


def _height(expected: Expected, batch: int) -> int:
    return np.size(expected.scale) if np.ndim(expected.scale) else batch


def _told(expected: Expected, batch: int, chosen: Bools, whole: bool = False) -> tuple[float, float]:
    """Return which share of the elements of the chosen rows differs from those of the next such row, and what the rows
    that differ tell."""
    truth, height = expected.truth, chosen.size
    matrix = as_rows(truth, height)
    most = max(FEW_PAIRS, TOLD // matrix.shape[1]) if whole else TOLD
    # By an odd step, because every other element of a transposed convolution may be the bias.
    matrix = matrix[:, :: 1 if whole else max(1, min(matrix.shape[1] // 2, truth.size // TOLD) - 1 | 1)]
    rtol, scale = (np.broadcast_to(np.ravel(each), height)[:, None] for each in (expected.rtol, expected.scale))
    rows, following = _pairs(chosen.reshape(batch, -1))
    if not rows.size:
        return 1.0, 1.0
    step = -(-rows.size // most)
    rows, following = rows[::step], following[::step]
    with np.errstate(invalid="ignore"):
        near = np.abs(matrix[rows] - matrix[following]) <= rtol[rows] * (np.abs(matrix[rows]) + scale[rows])
    told = ROW_TOLD if near.shape[1] >= WIDE else SHORT_ROW_TOLD
    return 1.0 - float(near.mean()), told * (1.0 - float(near.all(axis=1).mean()))


def kinds(expected: Expected, height: int) -> list[Bools]:
    """Return which of so many rows are of each kind, the most frequent first: rows of one kind share their scale.

    Severe rows are left out if they have a wide tolerance.
    """
    scale, base = (np.broadcast_to(np.ravel(each), height) for each in (expected.scale, expected.base))
    scales, counts = np.unique(scale[base < LOOSE], return_counts=True)
    return [np.asarray((scale == scales[i]) & (base < LOOSE)) for i in np.argsort(-counts, kind="stable")]


def _pairs(chosen: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the chosen rows that have another one below them, and of the next such one."""
    columns, places = np.nonzero(chosen.T)
    same = np.flatnonzero(columns[1:] == columns[:-1])
    numbers = places * chosen.shape[1] + columns
    return numbers[same], numbers[same + 1]


def _defined(truth: Array, native: Array, dtype: str) -> tuple[Array, Bools, bool]:
    """Return the truth as its type holds it, the elements on which both precisions agree about what is finite, and
    whether that is finite everywhere."""
    if all(is_finite(array, numpy_dtype(dtype)) for array in (truth, native)):
        return truth, np.ones(truth.shape, bool), True
    with np.errstate(over="ignore"):
        held = truth.astype(numpy_dtype(dtype)).astype(np.float64)
    truth = np.where(np.isinf(held), held, truth)
    counts = np.isfinite(truth) & np.isfinite(native) | (truth == native) | (np.isnan(truth) & np.isnan(native))
    return truth, counts, False


def is_finite(array: Array, dtype: DTypeLike | None = None) -> bool:
    """Return whether every element is finite, also as another type.

    The Euclidean norm bounds them all. It takes less time than the extremes, which decide where it is too large.
    """
    flat, dtype = array.reshape(-1), array.dtype if dtype is None else dtype
    with np.errstate(over="ignore", invalid="ignore"):
        bound = 2.0 * np.sqrt(np.einsum("i,i->", flat, flat, optimize=False))
        return bool(np.isfinite(np.asarray(bound).astype(dtype)) or np.isfinite(_extremes(flat).astype(dtype)).all())


def _extremes(flat: Array) -> Array:
    """Return the least and the largest element; one that is not finite shows in them."""
    parts = [flat[start : start + PIECE] for start in range(0, flat.size, PIECE)] or [flat]
    least, largest = [part.min(initial=0.0) for part in parts], [part.max(initial=0.0) for part in parts]
    return np.asarray([np.min(least), np.max(largest)])


def _statistics(
    truth: Array, native: Array, counts: Bools | None, groups: list[Bools], spiked: Bools | None = None
) -> tuple[Doubles, Doubles]:
    """Return for each row the noise and the scale of the group of rows that it belongs to.

    `counts` is None if every element is finite and counts. The scale of the group `spiked` is that without its spikes.
    """
    height = groups[0].size
    truths, natives = as_rows(truth, height), as_rows(native, height)
    numbers = np.full(height, truths.shape[1])
    if counts is not None:
        counted = as_rows(counts, height) & np.isfinite(truths)
        numbers = counted.sum(axis=1)
        truths, natives = np.where(counted, truths, 0.0), np.where(counted, natives, 0.0)
    noise, scale = np.zeros(height), np.zeros(height)
    squares = np.einsum("ij,ij->i", truths, truths)
    for group in groups:
        scale[group] = np.sqrt(squares[group].sum() / max(int(numbers[group].sum()), 1))
    if spiked is not None and spiked.any():
        scale[spiked] = _scale_without_spikes(truths, spiked, float(scale[spiked][0]))
    np.maximum(scale, VANISHED * scale.max(initial=0.0), out=scale)
    for piece in pieces(truths):
        value = natives[piece].astype(np.float64)
        if (value != truths[piece]).any():
            unit = np.abs(truths[piece]) + np.maximum(scale[piece, None], TINY)
            noise[piece] = (np.abs(value - truths[piece]) / unit).max(axis=1, initial=0.0)
    for group in groups:
        noise[group] = noise[group].max(initial=0.0)
    return noise, scale if scale.any() else np.full_like(scale, SCALE_OF_ZEROS)


def _scale_without_spikes(truths: Array, rows: Bools, scale: float) -> float:
    """Return the root mean square of some rows with spikes cut off, from a sample; `scale` is that with spikes."""
    chosen = np.flatnonzero(rows)
    columns, step = max(1, truths.shape[1] // SAMPLE), max(1, chosen.size // SAMPLE)
    sample = np.abs(truths[:, ::columns][chosen[::step]])
    sample = sample[sample > 0]
    if not sample.size:
        return scale
    cut = np.minimum(sample, SPIKE * np.median(sample))
    return max(LEAST_SCALE * scale, min(scale, float(np.sqrt(np.square(cut).mean()))))


def as_rows(array: Array, height: int) -> Array:
    """Return an array as a matrix of so many rows."""
    return array.reshape(height, array.size // max(height, 1))


def pieces(matrix: Array) -> Iterator[slice]:
    """Yield slices of rows that together have about `PIECE` elements."""
    step = max(1, PIECE // max(1, matrix.shape[1]))
    return (slice(start, start + step) for start in range(0, matrix.shape[0], step))


def any_wrong(outputs: Iterable[Array], expected: Iterable[Expected]) -> bool:
    """Return whether an element of any output is wrong."""
    return any(wrong_elements(*pair).any() for pair in zip(outputs, expected, strict=True))


def wrong_elements(actual: Array, expected: Expected) -> Bools:
    """Return which elements are wrong: errors beyond the tolerance, and any difference in what is finite.

    In large tensors a few elements may exceed the tolerance by a factor of up to `OUTLIER`, because the largest of a
    million honest rounding errors is larger than that of a thousand. That does not hold for tolerances of `LOOSE`.
    """
    truth = expected.truth
    if truth.dtype.kind != "f":
        if truth.dtype.kind == "b":  # a kernel may store any byte, numpy would read all but 0 as true
            actual, truth = actual.view(np.uint8), truth.view(np.uint8)
        return np.asarray((actual != truth) & expected.counts)
    height = np.size(expected.scale) if np.ndim(expected.scale) else truth.size
    rtol, scale = (np.broadcast_to(np.reshape(each, (-1, 1)), (height, 1)) for each in (expected.rtol, expected.scale))
    values, truths, counts = (as_rows(array, height) for array in (actual, truth, expected.counts))
    beyond, far_beyond, outliers = np.zeros(values.shape, bool), np.zeros(values.shape, bool), 0
    for piece in pieces(truths):
        value = values[piece].astype(np.float64)
        if not (value != truths[piece]).any():
            continue
        with np.errstate(invalid="ignore"):
            error = np.abs(value - truths[piece])
            tolerance = rtol[piece] * (np.abs(truths[piece]) + scale[piece])
            if expected.spacing:
                tolerance += expected.spacing * np.abs(truths[piece])
            outlier = np.where(rtol[piece] < LOOSE, OUTLIER, 1.0)  # else any result of a softmax would pass
            near = error <= tolerance
        if expected.finite and near.all():
            continue
        finite = np.isfinite(truths[piece])
        same = (value == truths[piece]) | (np.isnan(value) & np.isnan(truths[piece]))
        outliers += int((~near & finite).sum())
        beyond[piece] = ~np.where(finite, near, same) & counts[piece]
        far_beyond[piece] = ~np.where(finite, error <= outlier * tolerance, same) & counts[piece]
    wrong = far_beyond if 0 < outliers <= OUTLIERS * truth.size else beyond
    return wrong.reshape(truth.shape)
