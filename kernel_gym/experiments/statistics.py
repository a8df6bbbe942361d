"""Statistics of runs: intervals over seeds, and means over seeds and tasks with both resampled.

A study has a cell for every seed and task. Seeds and tasks are both samples: another study would have others. So the
standard error of a mean over cells comes from a two-way bootstrap (Owen 2007): seeds alone, tasks alone and both are
drawn with replacement, which separates the variance of seeds, tasks and single cells. The sum of the first two counts
the cells' variance twice, so it is subtracted once (Cameron, Gelbach and Miller 2011). Intervals are those of Student's
t with Satterthwaite's degrees of freedom; percentiles would be too narrow with few seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

Curve = NDArray[np.float64]
Cells = NDArray[np.float64]
"""Values by seed (rows) and task (columns); NaN where there is none."""

#: Two-sided level, and the power at which the smallest detectable effect is stated.
LEVEL, POWER = 0.05, 0.8
#: Numbers that are closer than this are equal except for rounding.
SAME = 1e-9
#: Samples of a two-way bootstrap: they give the standard error to about 2%.
SAMPLES = 2_000


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
class CrossedMean:
    """The mean over cells of seeds and tasks, with the variance that each of them gives it.

    `by_seed` is what seeds and cells contribute, `by_task` what tasks and cells contribute, `by_cell` what cells
    contribute alone. With one task, the mean is over seeds alone and holds for that task.
    """

    mean: float
    seeds: int
    tasks: int
    by_seed: float
    by_task: float
    by_cell: float

    @property
    def error(self) -> float:
        """The standard error over seeds and tasks."""
        return float(np.sqrt(max(self.by_seed + self.by_task - self.by_cell, self.by_seed, self.by_task)))

    @property
    def noisy(self) -> bool:
        """Whether the cells vary and there are several seeds; if not, nothing is known about noise."""
        return self.seeds > 1 and self.error > SAME

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error after Satterthwaite; at least those of the rarer factor."""
        seeds, tasks = self.seeds - 1, max(1, self.tasks - 1)
        spread = self.by_seed**2 / seeds + self.by_task**2 / tasks + self.by_cell**2 / (seeds * tasks)
        return max(self.error**4 / spread, min(seeds, tasks) if self.tasks > 1 else seeds)

    @property
    def interval(self) -> Interval:
        """The 95% interval; without width if nothing is known about noise."""
        if not self.noisy:
            return Interval(self.mean, self.mean, self.mean)
        half = float(scipy.stats.t.ppf(1 - LEVEL / 2, self.freedom)) * self.error
        return Interval(self.mean, self.mean - half, self.mean + half)

    @property
    def p(self) -> float:
        """The two-sided p of a zero mean. If all cells are equal it is a sign test over seeds; 1 with one seed."""
        if self.noisy:
            return float(2 * scipy.stats.t.sf(abs(self.mean) / self.error, self.freedom))
        return 1.0 if abs(self.mean) <= SAME else float(2.0 ** (1 - self.seeds))

    def detectable(self, comparisons: int = 1) -> float | None:
        """Return the smallest true mean that the same design shows with 80% power, among so many comparisons."""
        return detectable_effect(round(self.freedom, 2), comparisons) * self.error if self.noisy else None

    def with_seeds(self, seeds: int) -> CrossedMean:
        """Return what the same tasks with equally noisy seeds, but another number of them, would give."""
        share = self.seeds / seeds
        by_task = max(0.0, self.by_task - self.by_cell) + self.by_cell * share
        return replace(self, seeds=seeds, by_seed=self.by_seed * share, by_task=by_task, by_cell=self.by_cell * share)


def crossed_mean(cells: Cells) -> CrossedMean | None:
    """Return the mean of a matrix of seeds (rows) and tasks (columns); None if no cell has a value.

    Args:
        cells: The matrix; NaN where a cell has no value. Rows and columns without any value do not count.

    Returns:
        The mean with its variances from a two-way bootstrap; the same cells give the same numbers.
    """
    present = ~np.isnan(cells)
    cells = cells[present.any(axis=1)][:, present.any(axis=0)]
    if cells.size == 0:
        return None
    seeds, tasks = cells.shape
    mean = float(np.nanmean(cells))
    if seeds == 1 or float(np.nanmax(cells) - np.nanmin(cells)) <= SAME:
        return CrossedMean(mean, seeds, tasks, 0.0, 0.0, 0.0)
    rows, columns = samples(seeds, tasks)
    values, counts = np.nan_to_num(cells), (~np.isnan(cells)).astype(float)
    row_values, row_counts = rows @ values, rows @ counts
    of_seeds = _ratio(row_values.sum(axis=1), row_counts.sum(axis=1))
    by_seed = float(np.nanvar(of_seeds)) * seeds / (seeds - 1)
    if tasks == 1:
        return CrossedMean(mean, seeds, tasks, by_seed, 0.0, 0.0)
    of_tasks = _ratio(columns @ values.sum(axis=0), columns @ counts.sum(axis=0))
    of_both = _ratio((row_values * columns).sum(axis=1), (row_counts * columns).sum(axis=1))
    by_task = float(np.nanvar(of_tasks)) * tasks / (tasks - 1)
    by_cell = float(np.nanvar(of_both - of_seeds - of_tasks)) * seeds * tasks / ((seeds - 1) * (tasks - 1))
    return CrossedMean(mean, seeds, tasks, by_seed, by_task, by_cell)


@cache
def samples(seeds: int, tasks: int) -> tuple[Cells, Cells]:
    """Return how often each seed and each task is drawn in every sample of a two-way bootstrap."""
    rng = np.random.default_rng(0)
    rows, columns = (rng.multinomial(count, np.full(count, 1 / count), size=SAMPLES) for count in (seeds, tasks))
    return rows.astype(float), columns.astype(float)


def _ratio(total: Cells, count: Cells) -> Cells:
    """Return the mean of every sample; NaN for one that draws no cell with a value."""
    return np.asarray(np.divide(total, count, out=np.full(SAMPLES, np.nan), where=count > 0))


def interval(values: Sequence[float | None], seed: int = 0) -> Interval | None:
    """Return the mean and 95% percentile-bootstrap interval over the seeds that have a value; None if none has."""
    data = np.asarray([value for value in values if value is not None], dtype=float)
    if data.size == 0:
        return None
    mean = float(data.mean())
    if data.size == 1 or np.ptp(data) == 0:
        return Interval(mean, mean, mean)
    spread = scipy.stats.bootstrap(
        (data,), np.mean, method="percentile", rng=np.random.default_rng(seed)
    ).confidence_interval
    return Interval(mean, float(spread.low), float(spread.high))


def band(curves: Sequence[Sequence[float]], seed: int = 0) -> tuple[Curve, Curve, Curve]:
    """Return the mean of curves over seeds, and both ends of its 95% percentile-bootstrap interval at every point."""
    data = np.asarray(curves, dtype=float)
    mean = data.mean(axis=0)
    if len(data) == 1:
        return mean, mean, mean
    rng = np.random.default_rng(seed)
    spread = scipy.stats.bootstrap((data,), np.mean, axis=0, method="percentile", rng=rng).confidence_interval
    return mean, np.asarray(spread.low), np.asarray(spread.high)


@cache
def detectable_effect(freedom: float, comparisons: int = 1) -> float:
    """Return the smallest detectable mean in units of its standard error.

    The level is that of Holm's first step, so the difference is found whatever the other comparisons give.
    """
    critical = float(scipy.stats.t.ppf(1 - LEVEL / comparisons / 2, freedom))

    def lacking(shift: float) -> float:
        return float(scipy.stats.nct.sf(critical, freedom, shift)) - POWER

    return float(scipy.optimize.brentq(lacking, 0.0, 2 * critical + 10))


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction, in the same order."""
    adjusted, floor = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        floor = max(floor, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = floor
    return adjusted


def interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half, which neither the easiest nor the hardest quarter changes."""
    cut = len(values) // 4
    # As scipy's trim_mean, whose import takes a second of every run.
    return float(np.partition(values, (cut, len(values) - cut - 1))[cut : len(values) - cut].mean())
