"""Predictions of a study beside the published figures: hit or miss.

Every seed of the study is one author of an ensemble that fits what is known equally well. For a published share of n
tasks the prediction is a mixture over these authors: of binomial counts of n tasks with the author's share. A
difference is predicted by two counts that are independent given the author. The median speedup is predicted by
bootstrap samples of n of the author's solved tasks. The published figure is a hit if it lies in the central 95%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome
from kernel_gym.experiments.studies.study_definition import Prediction

Array = NDArray[np.float64]

#: Bounds of the central 95%.
CENTRAL = (0.025, 0.975)
#: Bootstrap samples for each author.
SAMPLES = 400


@dataclass(frozen=True)
class PredictionRow:
    """A prediction with the values of the single authors, and the interval in which the published figure is a hit."""

    prediction: Prediction
    values: tuple[float, ...]
    low: float
    high: float

    @property
    def hit(self) -> bool:
        """Whether the published figure lies in the interval."""
        return self.low - 1e-9 <= self.prediction.published <= self.high + 1e-9

    @property
    def mean(self) -> float:
        """The mean over the authors."""
        return float(np.mean(self.values))

    @property
    def agreeing(self) -> int:
        """The number of authors whose difference has the sign of the published one."""
        return sum(value * self.prediction.published > 0 for value in self.values)


def prediction_rows(predictions: Sequence[Prediction], runs: Sequence[RunOutcome]) -> list[PredictionRow]:
    """Return the predictions for which there are runs.

    Args:
        predictions: What is predicted.
        runs: The figures of all complete runs of the study, each over all its tasks.

    Returns:
        A row for each prediction that some seed has all runs for.
    """
    by_contender: dict[str, dict[int, RunOutcome]] = {}
    for run in runs:
        by_contender.setdefault(run.agent, {})[run.seed] = run
    rows = (_row(prediction, by_contender) for prediction in predictions)
    return [row for row in rows if row is not None]


def _row(prediction: Prediction, runs: Mapping[str, Mapping[int, RunOutcome]]) -> PredictionRow | None:
    named = [*prediction.of, *([prediction.minus] if prediction.minus else [])]
    seeds = sorted(set.intersection(*(set(runs.get(name, {})) for name in named)))
    if not seeds:
        return None
    if prediction.measure == "speedup":
        return _speedup_row(prediction, [[runs[name][seed] for name in prediction.of] for seed in seeds])
    shares = [_share(prediction, [runs[name][seed] for name in prediction.of]) for seed in seeds]
    counts = np.arange(prediction.tasks + 1)
    chances = [np.asarray(stats.binom.pmf(counts, prediction.tasks, share), np.float64) for share in shares]
    if not prediction.minus:
        low, high = _central(counts / prediction.tasks, np.mean(chances, axis=0))
        return PredictionRow(prediction, tuple(shares), low, high)
    others = [_share(prediction, [runs[prediction.minus][seed]]) for seed in seeds]
    reversed_chances = [stats.binom.pmf(counts[::-1], prediction.tasks, share) for share in others]
    pairs = zip(chances, reversed_chances, strict=True)
    differences = np.arange(-prediction.tasks, prediction.tasks + 1) / prediction.tasks
    low, high = _central(differences, np.mean([np.convolve(one, other) for one, other in pairs], axis=0))
    return PredictionRow(prediction, tuple(a - b for a, b in zip(shares, others, strict=True)), low, high)


def _share(prediction: Prediction, runs: Sequence[RunOutcome]) -> float:
    """Return the share of the tasks of a suite that an author's runs solved, or had a kernel compile for, in time."""
    reached = [
        number is not None and number <= (prediction.after or run.budget)
        for run in runs
        for task in _tasks(prediction, run).values()
        for number in (task.compiled_at if prediction.measure == "compiled" else task.solved_at,)
    ]
    return float(np.mean(reached))


def _tasks(prediction: Prediction, run: RunOutcome) -> dict[str, TaskOutcome]:
    return {name: task for name, task in run.tasks.items() if name.startswith(prediction.suite)}


def _speedup_row(prediction: Prediction, authors: Sequence[Sequence[RunOutcome]]) -> PredictionRow | None:
    rng, medians, samples = np.random.default_rng(0), list[float](), list[Array]()
    for runs in authors:
        tasks = [task for run in runs for task in _tasks(prediction, run).values()]
        ratios = np.array([task.first_us / task.best_us for task in tasks if task.first_us and task.best_us])
        if len(ratios):
            medians.append(float(np.median(ratios)))
            samples.append(np.median(rng.choice(ratios, (SAMPLES, prediction.tasks)), axis=1))
    if not medians:
        return None
    low, high = np.quantile(np.concatenate(samples), CENTRAL)
    return PredictionRow(prediction, tuple(medians), float(low), float(high))


def _central(values: Array, chances: Array) -> tuple[float, float]:
    """Return the bounds of the central 95% of a distribution."""
    below = np.cumsum(chances)
    low, high = (int(np.searchsorted(below, bound - 1e-12)) for bound in CENTRAL)
    return float(values[low]), float(values[min(high, len(values) - 1)])


def predictions_table(rows: Sequence[PredictionRow]) -> list[list[str]]:
    """Return the predictions as a table."""
    head = ["figure", "published", "predicted", "95% interval", "authors", "from", "to", "same sign", "hit"]
    return [head, *(_cells(row) for row in rows)]


def _cells(row: PredictionRow) -> list[str]:
    prediction = row.prediction

    def text(value: float) -> str:
        if prediction.measure == "speedup":
            return f"{value:.2f}"
        return f"{100 * value:+.0f}" if prediction.minus else f"{100 * value:.0f}%"

    sign = f"{row.agreeing} of {len(row.values)}" if prediction.minus else "-"
    interval = f"[{text(row.low)}, {text(row.high)}]"
    spread = [text(min(row.values)), text(max(row.values))]
    figures = [text(prediction.published), text(row.mean), interval, str(len(row.values)), *spread, sign]
    return [prediction.figure, *figures, "hit" if row.hit else "miss"]


def predictions_summary(rows: Sequence[PredictionRow]) -> str:
    """Return how many predictions are hits, in one sentence."""
    hits = sum(row.hit for row in rows)
    fewest, most = min(len(row.values) for row in rows), max(len(row.values) for row in rows)
    authors = f"{most}" if fewest == most else f"{fewest} to {most}"
    ensemble = "1 author of the ensemble predicts" if most == 1 else f"{authors} authors of the ensemble predict"
    return (
        f"{hits} of {len(rows)} published figures lie in the central 95% of what {ensemble}. "
        "A wide interval hits easily."
    )
