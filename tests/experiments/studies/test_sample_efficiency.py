"""Attempts that an agent needs: the restricted mean, and the attempt at which a share of the tasks is solved."""

from math import inf

import numpy as np
import pytest
from scipy import stats

from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome, TaskOutcome
from kernel_gym.experiments.statistics import Cells
from kernel_gym.experiments.studies.sample_efficiency import attempts_needed, attempts_to_solve

BUDGET = 12


def runs(attempts: Cells) -> list[RunOutcome]:
    """One run for each row; tasks are solved at these attempts, infinite if never."""
    return [
        RunOutcome(
            "agent",
            seed,
            dict.fromkeys(FIGURES, 0.0),
            (0.0,) * BUDGET,
            {f"t/{i}": TaskOutcome(None if at == inf else int(at)) for i, at in enumerate(row)},
        )
        for seed, row in enumerate(attempts)
    ]


def drawn(chance: float, seeds: int = 8, tasks: int = 20) -> Cells:
    """First successes with this chance an attempt, censored at the budget."""
    attempts = np.random.default_rng(0).geometric(chance, (seeds, tasks)).astype(float)
    return np.where(attempts > BUDGET, inf, attempts)


@pytest.mark.parametrize("chance", [0.05, 0.2, 0.5])
def test_levels_are_quantiles_of_the_kaplan_meier_estimate(chance: float) -> None:
    attempts = drawn(chance)
    censored = stats.CensoredData.right_censored(np.minimum(attempts, BUDGET).ravel(), (attempts == inf).ravel())
    estimate = stats.ecdf(censored).cdf
    for level in (0.25, 0.5, 0.75):
        needed = attempts_needed(runs(attempts), level)
        assert needed is not None
        reached = [at for at in range(1, BUDGET + 1) if estimate.evaluate(at) >= level - 1e-9]
        assert needed.attempts == (reached[0] if reached else inf)
        assert needed.low <= needed.attempts <= needed.high


def test_a_level_beyond_the_budget_is_said_to_be_beyond_it() -> None:
    attempts = np.asarray([[1.0, 3.0, inf, inf]] * 2)
    assert str(attempts_needed(runs(attempts), 0.5)).startswith("3 [")
    assert str(attempts_needed(runs(attempts), 0.75)).startswith(">12 [")
    assert str(attempts_needed(runs(attempts), 0.75)).endswith(", >12]")
    assert str(attempts_needed(runs(attempts[:1]), 0.5)) == "3 [3, 3]"
    assert attempts_needed([], 0.5) is None


def test_the_mean_is_restricted_to_the_budget() -> None:
    attempts = drawn(0.1)
    mean = attempts_to_solve(runs(attempts))
    assert mean is not None
    assert mean.mean == pytest.approx(np.minimum(attempts, BUDGET).mean())
    assert mean.interval.low < mean.mean < mean.interval.high
    assert attempts_to_solve([]) is None
