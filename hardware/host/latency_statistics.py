"""The latency of many timed calls and how certain it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

#: Number of calls on known values that a call on new values is compared with: those nearest in time.
NEAREST = 6
#: Timed calls of a kernel on a GPU: at least, at most, and how long they may take together once there are enough.
FEWEST, MOST, PATIENCE = 30, 100, 0.25
#: Or until the interval of the median is no wider than this share of it.
SURE = 0.02


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


def is_enough(samples: Sequence[float], seconds: float) -> bool:
    """Return whether the median of timed calls on a GPU is known well enough, or as well as it is going to be."""
    if len(samples) < FEWEST:
        return False
    return (len(samples) % 10 == 0 and _is_sure(samples)) or len(samples) >= MOST or seconds > PATIENCE


def _is_sure(samples: Sequence[float]) -> bool:
    """Return True if the median is known within one percent."""
    timing = measured(samples)
    return timing.high_us - timing.low_us <= SURE * timing.latency_us


def set_medians(samples: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    """Return the median of the timed calls on each set of values."""
    by_set: dict[int, list[float]] = {}
    for sample in samples:
        by_set.setdefault(int(sample["set"]), []).append(float(sample["microseconds"]))
    return tuple(median(by_set[number]) for number in sorted(by_set))


@dataclass(frozen=True)
class Novelty:
    """Timed calls on new values, later calls on known ones, and for each of the former the median of calls nearby."""

    firsts: tuple[float, ...]
    repeats: tuple[float, ...]
    nearby: tuple[float, ...]


def novelty(samples: Sequence[Mapping[str, Any]]) -> Novelty:
    """Separate calls on new values from those on known ones; the samples are in the order of the calls."""
    times = [float(sample["microseconds"]) for sample in samples]
    new = [at for at, sample in enumerate(samples) if sample["first"]]
    known = [at for at, sample in enumerate(samples) if not sample["first"]]
    nearby = [median(times[at] for at in sorted(known, key=lambda k: abs(k - n))[:NEAREST]) for n in new if known]
    return Novelty(tuple(times[at] for at in new), tuple(times[at] for at in known), tuple(nearby))
