"""Differences between contenders, paired by seed and task, and what may be said of them.

A study names its contrasts before it is run. These are tested, corrected after Holm over the named ones alone. Every
other difference is descriptive: it has an interval and no conclusion. A conclusion follows from the interval and from p
after Holm: better, worse, equivalent within a margin, or undecided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, isnan, log, nan
from statistics import fmean
from types import MappingProxyType

import numpy as np

from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome
from kernel_gym.experiments.statistics import LEVEL, SAME, CrossedMean, Interval, crossed_mean, holm

#: The largest logarithm that is shown as a factor; two seeds with two tasks may give more than a float holds.
LARGEST = 700.0
#: Contender, reference, measure. `*/AGENT` stands for an agent in all arms; then arms take the place of seeds.
Contrast = tuple[str, str, str]


@dataclass(frozen=True)
class Measure:
    """What contenders are compared by: the value of a task, from its outcome and the budget.

    Attributes:
        meaning: One line.
        margin: Contenders that differ by less count as equivalent, unless a study has a margin of its own.
        value: Returns the value; None for a task that does not count.
        ratio: Whether values are logarithms, so that their difference is shown as a factor.
    """

    meaning: str
    margin: float
    value: Callable[[TaskOutcome, int], float | None]
    ratio: bool = False


def _area(task: TaskOutcome, budget: int) -> float:
    return 0.0 if task.solved_at is None else 1 - (task.solved_at - 1) / budget


def _correct(task: TaskOutcome, _budget: int) -> float:
    return float(task.solved_at is not None)


def _speed(task: TaskOutcome, _budget: int) -> float | None:
    return None if task.best_us is None else -log(task.best_us)


MEASURES: dict[str, Measure] = {
    "area": Measure("share of the budget that was left when a task was solved", 0.05, _area),
    "correct": Measure("share of tasks with a feasible kernel", 0.05, _correct),
    "speedup": Measure(
        "latency of the reference's best kernel / the contender's, geometric mean over the tasks that both solved",
        log(1.1),
        _speed,
        ratio=True,
    ),
}


@dataclass(frozen=True)
class Difference:
    """One measure of a contender minus the reference's, paired by seed and task.

    `adjusted` is p after Holm; None for a difference that is not tested. `detectable` is the smallest true difference
    that the same design shows with 80% power at the level of Holm's first step among so many `comparisons`; None if
    nothing is known about noise. The numbers of a ratio are logarithms. `cells` are the pairs of seed and task that
    count, `cells_in_all` those that both contenders worked on.
    """

    contender: str
    reference: str
    measure: str
    per_seed: dict[str, float]
    interval: Interval
    p: float
    adjusted: float | None
    detectable: float | None
    margin: float
    comparisons: int
    estimate: CrossedMean
    cells: int
    cells_in_all: int

    def detectable_with(self, seeds: int) -> float | None:
        """Return the smallest difference that the same design detects with another number of seeds."""
        return self.estimate.with_seeds(seeds).detectable(self.comparisons) if self.estimate.noisy else None

    @property
    def shown(self) -> str:
        """The mean and its 95% interval as text."""
        if not MEASURES[self.measure].ratio:
            return self.interval.signed
        mean, low, high = map(self.size, (self.interval.mean, self.interval.low, self.interval.high))
        return f"{mean} [{low}, {high}]"

    @property
    def favourable(self) -> str:
        """How many seeds have a difference in favour of the contender, as text."""
        return f"{sum(value > SAME for value in self.per_seed.values())} of {len(self.per_seed)}"

    @property
    def conclusion(self) -> str:
        """What a tested difference shows, in words."""
        width = self.interval.high - self.interval.low
        if self.estimate.seeds < 2:
            return "undecided: one seed has no interval"
        if width <= SAME and abs(self.interval.mean) <= SAME:
            return "equal in every seed and task"
        significant = self.adjusted is not None and self.adjusted < LEVEL
        side = "better" if self.interval.mean > 0 else "worse"
        if width <= SAME:
            return side if significant else "undecided: all cells differ by the same, so the noise is unknown"
        equivalent = f"equivalent within {self.size(self.margin)}"
        if -self.margin < self.interval.low and self.interval.high < self.margin:
            return f"{side}, but {equivalent}" if significant else equivalent
        if significant:
            return side
        excludes = " (its interval excludes zero, but p after Holm is not below 0.05)"
        detectable = "" if self.detectable is None else f"; {self.size(self.detectable)} could have been detected"
        return f"undecided{excludes * (self.p < LEVEL)}{detectable}"

    def __str__(self) -> str:
        adjusted = "not tested" if self.adjusted is None else f"p after Holm {self.adjusted:.3f}"
        return f"{self.contender} - {self.reference} in {self.measure}: {self.shown}: {self.conclusion} ({adjusted})"

    def size(self, value: float) -> str:
        """Return the size of a difference as text: a factor if the measure is a ratio."""
        return f"{exp(min(value, LARGEST)):.3g}x" if MEASURES[self.measure].ratio else f"{value:.3g}"


def judged(
    runs: Sequence[RunOutcome], contrasts: Sequence[Contrast], margins: Mapping[str, float] = MappingProxyType({})
) -> list[Difference]:
    """Return the differences of contrasts that were named before the runs, with p after Holm over all of them.

    A contrast without runs is left out, but counts in the correction: the number of tests was decided before.
    """
    differences = [difference(runs, contrast, margins, len(contrasts)) for contrast in contrasts]
    adjusted = holm([1.0 if row is None else row.p for row in differences])
    return [replace(row, adjusted=p) for row, p in zip(differences, adjusted, strict=True) if row is not None]


def difference(
    runs: Sequence[RunOutcome],
    contrast: Contrast,
    margins: Mapping[str, float] = MappingProxyType({}),
    comparisons: int = 1,
) -> Difference | None:
    """Return a difference over all seeds and tasks that both contenders have.

    Args:
        runs: The runs of both contenders, among others.
        contrast: Contender, reference and measure.
        margins: Margins of equivalence by measure, instead of the measures' own.
        comparisons: The number of contrasts that are tested together, for the smallest detectable difference.

    Returns:
        The difference, not tested; None if no cell counts.
    """
    contender, reference, measure = contrast
    own, base = _rows(runs, contender, measure), _rows(runs, reference, measure)
    seeds = [seed for seed in own if seed in base]
    tasks = sorted({task for seed in seeds for task in own[seed].keys() & base[seed].keys()})
    if not tasks:
        return None
    cells = np.asarray([[own[s].get(t, np.nan) - base[s].get(t, np.nan) for t in tasks] for s in seeds])
    estimate = crossed_mean(cells)
    if estimate is None:
        return None
    return Difference(
        contender,
        reference,
        measure,
        {seed: float(np.nanmean(row)) for seed, row in zip(seeds, cells, strict=True) if not np.isnan(row).all()},
        estimate.interval,
        estimate.p,
        None,
        estimate.detectable(comparisons),
        margins.get(measure, MEASURES[measure].margin),
        comparisons,
        estimate,
        int((~np.isnan(cells)).sum()),
        cells.size,
    )


def _rows(runs: Sequence[RunOutcome], contender: str, measure: str) -> dict[str, dict[str, float]]:
    """Return seed -> task -> value, NaN for a task that does not count; for `*/AGENT`, arm -> task -> mean value."""
    arm, _, agent = contender.rpartition("/")
    if arm != "*":
        return {str(run.seed): _values(run, measure) for run in runs if run.agent == contender}
    arms: dict[str, list[dict[str, float]]] = defaultdict(list)
    for run in runs:
        own_arm, _, own_agent = run.agent.rpartition("/")
        if own_agent == agent:
            arms[own_arm].append(_values(run, measure))
    return {arm: {task: _mean([row[task] for row in rows]) for task in rows[0]} for arm, rows in arms.items()}


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there is none."""
    counted = [value for value in values if not isnan(value)]
    return fmean(counted) if counted else nan


def _values(run: RunOutcome, measure: str) -> dict[str, float]:
    values = {task: MEASURES[measure].value(outcome, run.budget) for task, outcome in run.tasks.items()}
    return {task: nan if value is None else value for task, value in values.items()}
