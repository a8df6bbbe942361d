"""How a figure of a kernel grows with the size of its tensors.

For kernels that are right but too slow to be run at the timing sizes: what they take there follows from two smaller
sizes. A figure grows at least in proportion to the bytes, faster if it did between the two (work of a higher order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

#: No operator's work grows by a higher power of its bytes; what seems to is noise of tiny figures.
STEEPEST = 4.0


@dataclass(frozen=True)
class Point:
    """A figure that was measured on tensors of so many bytes."""

    nbytes: int
    figure: float


def exponent(points: Sequence[Point]) -> float:
    """The power of the size by which the figure grows; 1 if there is nothing to tell it from."""
    small, large = points[0], points[-1]
    if small.nbytes >= large.nbytes or min(small.figure, large.figure) <= 0:
        return 1.0
    return min(max(1.0, log(large.figure / small.figure) / log(large.nbytes / small.nbytes)), STEEPEST)


def predict(points: Sequence[Point], nbytes: int) -> float:
    """The figure on larger tensors; `points` from small to large."""
    return float(points[-1].figure * (nbytes / points[-1].nbytes) ** exponent(points))


def line(points: Sequence[Point], nbytes: int) -> float:
    """The figure on larger tensors if it goes on along the line through two points; the last one if there is none."""
    small, large = points[0], points[-1]
    slope = (large.figure - small.figure) / (large.nbytes - small.nbytes) if large.nbytes > small.nbytes else 0.0
    return large.figure + max(0.0, slope) * (nbytes - large.nbytes)


def steepest_drop(points: Sequence[Point]) -> float:
    """The smallest share that a figure is of what the line through the two before it lets expect; 1 of two or fewer."""
    shares = [1.0]
    for first, second, third in zip(points, points[1:], points[2:], strict=False):
        expected = line([first, second], third.nbytes)
        shares.append(third.figure / expected if expected > 0 else 1.0)
    return min(shares)
