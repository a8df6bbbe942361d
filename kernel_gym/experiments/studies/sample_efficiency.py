"""How many attempts an agent needs: until a task is solved, and until a share of the tasks is.

Tasks that are never solved are censored at the budget, all at the same attempt. So the mean is restricted to the
budget, and the Kaplan-Meier estimate of the share solved is the solve curve itself. A share that the curve does not
reach takes more attempts than the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from kernel_gym.experiments.runs.figures import RunOutcome
from kernel_gym.experiments.statistics import LEVEL, Cells, CrossedMean, crossed_mean, samples

#: Shares of the tasks for which the attempts needed are stated.
LEVELS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class AttemptsNeeded:
    """Attempts per task until a share of the tasks is solved, with a 95% interval; infinite if beyond the budget."""

    attempts: float
    low: float
    high: float
    budget: int

    def __str__(self) -> str:
        attempts, low, high = (self._words(value) for value in (self.attempts, self.low, self.high))
        return f"{attempts} [{low}, {high}]"

    def _words(self, attempts: float) -> str:
        return f">{self.budget}" if attempts == inf else f"{attempts:.0f}"


def attempts_to_solve(runs: Sequence[RunOutcome]) -> CrossedMean | None:
    """Return the mean attempts until a task is solved, restricted to the budget: a task not solved counts with it."""
    solved_at = _solved_at(runs)
    return None if solved_at is None else crossed_mean(np.minimum(solved_at, runs[0].budget))


def attempts_needed(runs: Sequence[RunOutcome], level: float) -> AttemptsNeeded | None:
    """Return the attempts until a share of the tasks is solved.

    Args:
        runs: The runs of one contender, one for each seed, on the same tasks.
        level: The share of the tasks.

    Returns:
        The first attempt at which the mean curve reaches the share, with the percentiles of a two-way bootstrap (no
        width with one seed); None without runs.
    """
    solved_at = _solved_at(runs)
    if solved_at is None:
        return None
    budget = runs[0].budget
    curve = [float(np.mean(solved_at <= attempt)) for attempt in range(1, budget + 1)]
    attempts = float(_first_at(np.asarray(curve), level))
    if len(runs) == 1:
        return AttemptsNeeded(attempts, attempts, attempts, budget)
    rows, columns = samples(*solved_at.shape)
    drawn = [
        ((rows @ (solved_at <= attempt).astype(float)) * columns).sum(axis=1) / solved_at.size
        for attempt in range(1, budget + 1)
    ]
    first = _first_at(np.asarray(drawn), level)
    low, high = np.quantile(first, [LEVEL / 2, 1 - LEVEL / 2], method="inverted_cdf")
    return AttemptsNeeded(attempts, float(low), float(high), budget)


def _first_at(curves: Cells, level: float) -> Cells:
    """Return the first attempt (along the first axis) at which curves reach a level; infinite if they do not."""
    reached = curves >= level - 1e-12
    return np.where(reached.any(axis=0), reached.argmax(axis=0) + 1.0, inf)


def _solved_at(runs: Sequence[RunOutcome]) -> Cells | None:
    """Return the first feasible attempt by seed and task, infinite if there is none."""
    tasks = sorted(set.intersection(*(set(run.tasks) for run in runs))) if runs else []
    if not tasks:
        return None
    return np.asarray([[run.tasks[task].solved_at or inf for task in tasks] for run in runs], dtype=float)
