"""Tolerances that results in half precision do not meet, where an honest kernel in float32 still does.

The usual tolerance is relative to the root mean square of an output. The error of half precision is smaller than that
behind a sum over many elements, and where a product is only a small part of the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernel_gym.tasks.rounding import in_half_precision
from kernel_gym.verifier.expected import (
    BASE,
    LOOSE,
    MULTIPLE,
    TINY,
    TOLD,
    Bools,
    Expected,
    as_rows,
    kinds,
    wrong_elements,
)
from kernel_gym.verifier.reference import to_torch
from kernel_gym.verifier.values import Array

#: Least relative tolerance of a sum of up to so many products, which may be added one after another, and which part the
#: tolerance is of the error that inputs in half precision typically make.
FINEST, SHORT_SUM, PART_OF_HALF = 2.5e-6, 1024, 0.5
#: For the sake of a single product the tolerance is at least so many times the finest: other steps may be approximate.
#: The quantile of the product's errors that must be beyond the tolerance, and by which factor: the least one, and one
#: that is enough.
COARSER, SEEN, JUST_SEEN, WELL_SEEN = 2.0, 0.9995, 1.25, 2.0


def sharpened(expected: Expected, shadow: Array, depth: int) -> Expected:
    """Return the expected output with a tolerance that the reference on inputs in half precision does not meet.

    Sums have at most `depth` products; what is lost by adding them one after another grows with its root. Severe rows
    stay as they are.
    """
    if expected.truth.dtype.kind != "f" or expected.exact or expected.spacing:
        return expected
    counted = expected.counts & np.isfinite(expected.truth) & np.isfinite(shadow) & (expected.base < LOOSE)
    unit = np.abs(expected.truth) + np.maximum(expected.scale, TINY)
    error = (np.abs(shadow - expected.truth) / unit)[counted]
    if not error.size:
        return expected
    finest = np.maximum(max(_finest(depth), PART_OF_HALF * float(np.median(error))), MULTIPLE * expected.noise)
    base = np.where(expected.base < LOOSE, np.minimum(expected.base, finest), expected.base)
    return replace(expected, base=base if np.ndim(expected.base) else float(base))


def _finest(depth: int) -> float:
    return float(FINEST * max(1.0, depth / SHORT_SUM) ** 0.5)


@dataclass(frozen=True)
class _Rows:
    """The rows of one kind in an output, their relative tolerance, and the highest errors of a shadow in them."""

    chosen: Bools
    rtol: float
    error: float


def seeing(expected: tuple[Expected, ...], shadows: tuple[Array, ...], depth: int) -> tuple[Expected, ...]:
    """Return expected outputs with tolerances that a shadow does not meet.

    A shadow is a run with one product in half precision, or with constant weights of a softmax. It must be wrong in
    each kind of rows of one of the outputs. Tolerances are not smaller than what honest kernels need; where that is not
    enough, they stay as they are.
    """
    by_kind = [_by_kind(output, shadow) for output, shadow in zip(expected, shadows, strict=True)]
    if any(each and all(rows.error > rows.rtol for rows in each) for each in by_kind):
        return expected
    return tuple(
        _seeing(output, each, COARSER * _finest(depth)) for output, each in zip(expected, by_kind, strict=True)
    )


def _by_kind(expected: Expected, shadow: Array) -> list[_Rows]:
    """Return the errors of a shadow in each kind of rows, from a sample."""
    wide = expected.spacing or np.min(expected.base, initial=1.0) > BASE["float32"]
    if expected.truth.dtype.kind != "f" or expected.exact or wide:
        return []
    height = np.size(expected.scale)
    truths, shadows = as_rows(expected.truth, height), as_rows(shadow, height)
    scale, rtol = (np.broadcast_to(np.ravel(each), height) for each in (expected.scale, expected.rtol))
    found = []
    for rows in kinds(expected, height):
        chosen = np.flatnonzero(rows)
        step = -(-chosen.size * truths.shape[1] // TOLD)
        sample = (chosen[::step], slice(None)) if step < chosen.size else (chosen, slice(None, None, step | 1))
        truth, other = (matrix[sample[0]][:, sample[1]] for matrix in (truths, shadows))
        with np.errstate(invalid="ignore"):
            error = np.abs(other - truth) / (np.abs(truth) + max(float(scale[chosen[0]]), TINY))
        highest = np.quantile(np.nan_to_num(error, posinf=0.0), SEEN)
        found.append(_Rows(rows, float(rtol[chosen[0]]), float(highest)))
    return found


def _seeing(expected: Expected, by_kind: list[_Rows], least: float) -> Expected:
    base = np.array(np.broadcast_to(np.ravel(expected.base), np.size(expected.scale)), np.float64)
    noise = np.broadcast_to(np.ravel(expected.noise), base.size)
    for rows in by_kind:
        finest = max(least, MULTIPLE * float(noise[rows.chosen].max()), rows.error / WELL_SEEN)
        if finest < min(rows.rtol, rows.error / JUST_SEEN):
            base[rows.chosen] = np.minimum(base[rows.chosen], finest)
    return replace(expected, base=base.reshape(np.shape(expected.base)) if np.ndim(expected.base) else float(base[0]))


def is_seen_without_stress_only(expected: tuple[Expected, ...], shadows: tuple[Array, ...]) -> bool:
    """Return whether a shadow is wrong in rows without stress, and right in all the others of some kind."""
    for output, shadow in zip(expected, shadows, strict=True):
        by_kind = [rows for rows in _by_kind(output, shadow) if rows.chosen.sum() > 1]
        if len(by_kind) > 1 and any(rows.error <= rows.rtol for rows in by_kind):
            wrong = np.asarray(as_rows(wrong_elements(shadow, output), np.size(output.scale)).any(axis=1))
            seen = [bool(wrong[rows.chosen].any()) for rows in by_kind]
            if seen[0] and not all(seen):
                return True
    return False


def rounded(array: Array) -> Array:
    """Return an array of float32 with values of half precision, any other as it is."""
    return in_half_precision(to_torch(array)).numpy() if array.dtype == np.float32 else array
