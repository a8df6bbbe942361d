"""The latency of many timed calls and how certain it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """The median of timed calls and its 95% interval."""

    latency_us: float
    low_us: float
    high_us: float
    samples: int


def measured(samples: Sequence[float]) -> Measured:
    """Return the median and its interval by order statistics, which needs no assumption about the distribution."""
    ordered = sorted(samples)
    count = len(ordered)
    reach = 0.98 * count**0.5  # half of 1.96 standard deviations of a binomial with p = 1/2
    low, high = max(0, int(count / 2 - reach)), min(count - 1, int(count / 2 + reach))
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return Measured(middle, ordered[low], ordered[high], count)
