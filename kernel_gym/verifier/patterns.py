"""Describes wrong results: where they are and what the mistake looks like, without the expected values.

Descriptions have numbers at the public sizes only. Elsewhere an author could choose them to tell itself what its kernel
has seen (`without_numbers`). `Mismatch.elements` has expected values, for verdicts at public sizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel_gym.verifier.expected import Bools, Expected
from kernel_gym.verifier.values import Array

_NUMBER = r"(?<!line )(?<![\w.])-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)"


def without_numbers(text: str) -> str:
    """Return a message with no number but those of lines: remarks that give one are left out, any other becomes N."""
    return re.sub(_NUMBER, "N", re.sub(rf" \([^()]*?{_NUMBER}[^()]*\)", "", text))


#: How many wrong elements are listed with their values.
SHOWN = 5


@dataclass(frozen=True)
class Mismatch:
    """How one output differs: first wrong index, worst error, number of wrong elements, and the pattern in words.

    `elements` has the first wrong elements with their expected and actual values.
    """

    output: int
    first: tuple[int, ...]
    wrong: int
    total: int
    worst: float
    pattern: str
    elements: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return one line for the author."""
        where = ", ".join(map(str, self.first))
        error = "not finite" if not np.isfinite(self.worst) else f"{self.worst:.0e} of the output's scale"
        share = f"{self.wrong} of {self.total} elements ({100 * self.wrong / self.total:.3g}%)"
        return f"output {self.output}: {share} wrong, first at [{where}], worst error {error}; {self.pattern}"

    def describe_hidden(self) -> str:
        """Return one line for the author that has no number which the kernel or its values decide."""
        return f"output {self.output}: {without_numbers(self.pattern)}"


def locate(output: int, actual: Array, expected: Expected, wrong: Bools, poison: int) -> Mismatch:
    """Describe the wrong elements of one output."""
    flat = np.flatnonzero(wrong)
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.abs(expected.truth) + np.where(expected.scale, expected.scale, 1.0)
        error = np.abs(actual.astype(np.float64) - expected.truth) / unit
    worst = float(np.nan_to_num(error, nan=np.inf)[wrong].max())
    first = tuple(int(i) for i in np.unravel_index(flat[0], actual.shape))
    words = pattern(actual, expected, wrong, poison)
    return Mismatch(output, first, flat.size, actual.size, worst, words, _elements(output, actual, expected, flat))


def _elements(output: int, actual: Array, expected: Expected, flat: NDArray[np.intp]) -> tuple[str, ...]:
    """Return the first wrong elements, one line each."""
    lines = []
    for at in flat[:SHOWN]:
        index = ", ".join(str(int(i)) for i in np.unravel_index(at, actual.shape))
        lines.append(f"output {output} [{index}]: expected {_number(expected.truth, at)}, got {_number(actual, at)}")
    return tuple(lines)


def _number(values: Array, at: int) -> str:
    element = values.flat[at]
    return str(int(element)) if values.dtype.kind in "iub" else f"{float(element):.6g}"


def pattern(actual: Array, expected: Expected, wrong: Bools, poison: int) -> str:
    """Return what the mistake looks like: the first description that fits."""
    unwritten = is_poison(actual, poison) & wrong
    if unwritten.any():
        return _unwritten(unwritten, wrong)
    values, truth = actual.astype(np.float64), expected.truth.astype(np.float64)
    if (np.isnan(values) & ~np.isnan(truth)).any():
        count = int((np.isnan(values) & ~np.isnan(truth)).sum())
        return f"NaN where a number is expected ({count} elements): an overflow, 0/0, or memory that was never written"
    if (np.isinf(values) & np.isfinite(truth)).any():
        return "infinite where a finite number is expected: an intermediate overflows, subtract the maximum before Exp"
    whole = _whole(values, truth, expected) if wrong.mean() > 0.1 else ""
    return whole or _place(wrong)


def is_poison(actual: Array, poison: int) -> Bools:
    """Return which elements still hold the poison that they were filled with."""
    if actual.size == 0:
        return np.zeros(actual.shape, bool)
    raw = np.ascontiguousarray(actual).view(np.uint8).reshape(*actual.shape, actual.dtype.itemsize)
    return np.asarray((raw == poison).all(axis=-1))


def _unwritten(unwritten: Bools, wrong: Bools) -> str:
    if unwritten.all():
        return "nothing was written: the kernel was not launched, or never copies its result out"
    kind = "never written" if unwritten.sum() == wrong.sum() else "of these some were never written"
    return f"{kind} ({int(unwritten.sum())} elements); {_place(unwritten)}"


def _whole(values: Array, truth: Array, expected: Expected) -> str:
    """Return the pattern of the tensor as a whole; empty if there is none."""
    finite = np.isfinite(values) & np.isfinite(truth)
    if not finite.any():
        return ""
    v, t = values[finite], truth[finite]
    slack = _slack(truth, expected)[finite]
    if v.size > 1 and np.ptp(v) == 0 and np.ptp(t) != 0:
        return "every element has the same value"
    if (np.abs(v - t) <= slack).all():
        return "errors are small and everywhere: a step has less precision than the tensors"
    ratio = float(v @ t / max(t @ t, 1e-300))
    if ratio and (np.abs(v - ratio * t) <= slack * abs(ratio)).all():
        return f"everything is off by a factor of {ratio:.3g}"
    shift = float(np.median(v - t))
    if shift and (np.abs(v - t - shift) <= slack).all():
        return "everything is off by the same constant"
    if _is_transposed(values, truth, expected):
        return "the result looks transposed"
    return ""


def _is_transposed(values: Array, truth: Array, expected: Expected) -> bool:
    if truth.ndim < 2 or min(truth.shape[-2:]) < 2:
        return False
    swapped = np.swapaxes(truth, -1, -2).reshape(truth.shape)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(values - swapped) <= _slack(swapped, expected)).mean() > 0.9)


def _slack(truth: Array, expected: Expected) -> Array:
    """Return how far a result may be from `truth` to have its pattern."""
    return np.asarray(20 * np.where(expected.rtol, expected.rtol, 1e-6) * (np.abs(truth) + expected.scale))


def _place(wrong: Bools) -> str:
    """Return where the wrong elements are."""
    flat = np.flatnonzero(wrong)
    size, low, high = wrong.size, int(flat[0]), int(flat[-1])
    if flat.size == size:
        return "every element is wrong"
    if flat.size == 1:
        return "a single element is wrong"
    if high - low + 1 == flat.size:
        return _run(low, high, size)
    columns = wrong.shape[-1] if wrong.ndim else 1
    first_column = int((flat % columns).min())
    if wrong.ndim > 1 and first_column >= columns // 2 and first_column > 0:
        return f"only the end of the rows is wrong (from column {first_column}): check the tail of a row"
    rows = wrong.reshape(-1, columns)
    if wrong.ndim > 1 and (rows.all(axis=1) | ~rows.any(axis=1)).all():
        return f"whole rows are wrong ({int(rows.all(axis=1).sum())} of {rows.shape[0]})"
    if low >= size // 2:
        return f"only the last part is wrong (from element {low}): check the tail"
    return "wrong elements are scattered"


def _run(low: int, high: int, size: int) -> str:
    if high == size - 1:
        return f"only the tail is wrong (from element {low}): check the last, partial tile and the last core"
    if low == 0:
        return f"only the beginning is wrong (up to element {high})"
    return f"one contiguous block is wrong (elements {low} to {high}): check one core's or one tile's share"
