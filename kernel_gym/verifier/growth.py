"""Extrapolates a measured figure of a kernel to larger tensors.

`predict` gives the latency of correct kernels that are too slow to run at the timing sizes, from two smaller sizes. A
figure grows at least in proportion to the bytes, and faster if it did so between the two sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

#: The largest credible power of growth; more is noise of tiny figures.
STEEPEST = 4.0


@dataclass(frozen=True)
class Point:
    """A figure measured on tensors of `nbytes` bytes."""

    nbytes: int
    figure: float


def exponent(points: Sequence[Point]) -> float:
    """Return the power of the size with which the figure grows; 1 if the points do not determine it."""
    small, large = points[0], points[-1]
    if small.nbytes >= large.nbytes or min(small.figure, large.figure) <= 0:
        return 1.0
    return min(max(1.0, log(large.figure / small.figure) / log(large.nbytes / small.nbytes)), STEEPEST)


def predict(points: Sequence[Point], nbytes: int) -> float:
    """Return the expected figure on larger tensors; `points` are ordered from small to large."""
    return float(points[-1].figure * (nbytes / points[-1].nbytes) ** exponent(points))
