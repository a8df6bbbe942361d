"""Statistics of a comparison. The seed is the unit: all figures of one run are one observation.

Differences are paired by seed. Intervals are percentile bootstraps over seeds. With few seeds these are too narrow, so
a paired t-test, corrected after Holm over the comparisons of a table, decides whether a difference counts. Where all
seeds differ by the same amount there is no noise to compare with; then a sign test decides, which needs six seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Curve = NDArray[np.float64]
Values = Sequence[float] | NDArray[np.float64]

#: Two-sided level, and the power at which the smallest detectable effect is stated.
LEVEL, POWER = 0.05, 0.8
#: Differences that are closer than this are equal except for rounding.
SAME = 1e-9


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95% bootstrap interval; without width if there is only one seed."""

    mean: float
    low: float
    high: float

    @property
    def signed(self) -> str:
        """The mean and interval as text, with signs."""
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


@dataclass(frozen=True)
class Difference:
    """One figure of a contender minus the reference's, paired by seed.

    `p` is that of a paired test (1 with a single seed) and `adjusted` the same after Holm. `detectable` is the smallest
    true difference that so many seeds with so much noise show with 80% power at the level of Holm's first step (None if
    the seeds say nothing about noise).
    """

    contender: str
    reference: str
    per_seed: dict[int, float]
    interval: Interval
    p: float
    adjusted: float
    detectable: float | None

    @property
    def effect(self) -> float | None:
        """The difference in units of its own deviation over seeds (Cohen's d of pairs); None without one."""
        data = self._data
        return float(data.mean() / data.std(ddof=1)) if noisy(data) else None

    @property
    def counts(self) -> bool:
        """Whether the difference is beyond noise, all comparisons considered."""
        return self.adjusted < LEVEL

    @property
    def verdict(self) -> str:
        """Whether the difference counts, in words."""
        if self._data.size < 2:
            return "a single seed tells nothing"
        if np.abs(self._data).max() <= SAME:
            return "equal in every seed"
        return "differs" if self.counts else "no difference beyond noise"

    def __str__(self) -> str:
        shown = "" if self.detectable is None else f", detectable {self.detectable:.3f}"
        return f"{self.interval.signed}, {self.verdict} (Holm p {self.adjusted:.3f}{shown})"

    @property
    def _data(self) -> NDArray[np.float64]:
        return np.asarray(list(self.per_seed.values()), dtype=float)


def interval(values: Sequence[float | None], seed: int = 0) -> Interval | None:
    """Return the mean and 95% percentile-bootstrap interval over the seeds that have a value; None if none has."""
    data = np.asarray([value for value in values if value is not None], dtype=float)
    if data.size == 0:
        return None
    mean = float(data.mean())
    if data.size == 1 or np.ptp(data) == 0:
        return Interval(mean, mean, mean)
    spread = stats.bootstrap((data,), np.mean, method="percentile", rng=np.random.default_rng(seed)).confidence_interval
    return Interval(mean, float(spread.low), float(spread.high))


def band(curves: Sequence[Sequence[float]], seed: int = 0) -> tuple[Curve, Curve, Curve]:
    """Return the mean of curves over seeds, and both ends of its 95% percentile-bootstrap interval at every point."""
    data = np.asarray(curves, dtype=float)
    mean = data.mean(axis=0)
    if len(data) == 1:
        return mean, mean, mean
    rng = np.random.default_rng(seed)
    spread = stats.bootstrap((data,), np.mean, axis=0, method="percentile", rng=rng).confidence_interval
    return mean, np.asarray(spread.low), np.asarray(spread.high)


def differences(values: Mapping[str, Mapping[int, float]], pairs: Sequence[tuple[str, str]]) -> list[Difference]:
    """Return the difference of every pair, corrected over all of them; `values` has contender -> seed -> figure."""
    uncorrected = [
        pair
        for contender, reference in pairs
        if (pair := difference(contender, values.get(contender, {}), reference, values.get(reference, {})))
    ]
    return corrected(uncorrected)


def corrected(rows: Sequence[Difference]) -> list[Difference]:
    """Return the differences of one table with p after Holm, and what is detectable at the level that this leaves."""
    adjusted = holm([row.p for row in rows])
    return [
        replace(row, adjusted=p, detectable=smallest_detectable(list(row.per_seed.values()), len(rows)))
        for row, p in zip(rows, adjusted, strict=True)
    ]


def difference(
    contender: str, own: Mapping[int, float], reference: str, base: Mapping[int, float]
) -> Difference | None:
    """Return the paired difference; None if no seed has both."""
    per_seed = {seed: own[seed] - base[seed] for seed in sorted(own) if seed in base}
    spread = interval(list(per_seed.values()))
    if spread is None:
        return None
    data = np.asarray(list(per_seed.values()))
    p = paired_p(data)
    return Difference(contender, reference, per_seed, spread, p, p, smallest_detectable(data))


def noisy(differences: Values) -> bool:
    """Return whether the differences vary over seeds; if not, nothing is known about noise."""
    return len(differences) > 1 and float(np.ptp(differences)) > SAME


def paired_p(differences: Values) -> float:
    """Return the two-sided p of a zero mean difference: a t-test, or a sign test if all are equal; 1 with one seed."""
    data = np.asarray(differences, dtype=float)
    if data.size < 2 or np.abs(data).max() <= SAME:
        return 1.0
    if not noisy(data):
        return float(2.0 ** (1 - data.size))
    return float(stats.ttest_1samp(data, 0.0).pvalue)


def smallest_detectable(differences: Values, comparisons: int = 1) -> float | None:
    """Return the true difference that as many and as noisy seeds show with 80% power, among so many comparisons."""
    data = np.asarray(differences, dtype=float)
    return detectable_effect(data.size, comparisons) * float(data.std(ddof=1)) if noisy(data) else None


@cache
def detectable_effect(seeds: int, comparisons: int = 1) -> float:
    """Return the smallest detectable difference in units of the deviation over seeds, for at least two seeds.

    The level is that of Holm's first step, so the difference is found whatever the other comparisons give.
    """
    freedom = seeds - 1
    critical = float(stats.t.ppf(1 - LEVEL / comparisons / 2, freedom))

    def lacking(shift: float) -> float:
        return float(stats.nct.sf(critical, freedom, shift)) - POWER

    return float(optimize.brentq(lacking, 0.0, 2 * critical + 10)) / float(np.sqrt(seeds))


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction, in the same order."""
    adjusted, floor = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        floor = max(floor, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = floor
    return adjusted


def interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half, which neither the easiest nor the hardest quarter changes."""
    return float(stats.trim_mean(values, 0.25))
