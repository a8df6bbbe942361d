"""Comparing runs: what each came to, with intervals, and paired differences between agents.

The seed is the unit: all figures of one run are one observation. Runs are compared at equal cost, counted in attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

Record = Mapping[str, Any]

#: Figures of a run that the tables show, with what they mean.
FIGURES: dict[str, str] = {
    "compiled": "share of operators with a kernel that compiled",
    "correct": "share of operators with a feasible kernel",
    "area": "area under the curve of that share over the budget",
    "speedup": "median over solved operators of first feasible latency / best latency",
    "reward": "mean reward of an attempt",
}


@dataclass(frozen=True)
class RunOutcome:
    """One run in figures; None where nothing was solved. `curve[t]`: share solved after t + 1 attempts each."""

    agent: str
    seed: int
    figures: dict[str, float | None]
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95% bootstrap interval; without width if there is only one seed."""

    mean: float
    low: float
    high: float


def outcome(agent: str, seed: int, records: Sequence[Record], tasks: Sequence[str], budget: int) -> RunOutcome:
    """The figures of one run from its journal."""
    by_task: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_task[record["task"]].append(record)
    first_solved = [_first(by_task[task], "feasible") for task in tasks]
    curve = tuple(float(np.mean([first <= t for first in first_solved])) for t in range(budget))
    return RunOutcome(
        agent,
        seed,
        {
            "compiled": float(np.mean([_first(by_task[task], "compiled") < budget for task in tasks])),
            "correct": curve[-1],
            "area": float(np.mean(curve)),
            "speedup": _median_speedup([by_task[task] for task in tasks]),
            "reward": float(np.mean([record["reward"] for record in records])) if records else 0.0,
        },
        curve,
    )


def _first(records: Sequence[Record], key: str) -> float:
    """Index of the first attempt at a task whose verdict says yes to `key`; infinite if none does."""
    return next((index for index, record in enumerate(records) if record["verdict"][key]), float("inf"))


def _median_speedup(histories: Sequence[Sequence[Record]]) -> float | None:
    ratios = []
    for history in histories:
        latencies = [r["verdict"]["latency_us"] for r in history if r["verdict"]["latency_us"] is not None]
        if latencies:
            ratios.append(latencies[0] / min(latencies))
    return float(np.median(ratios)) if ratios else None


def interval(values: Sequence[float | None], seed: int = 0) -> Interval | None:
    """Mean and 95% percentile-bootstrap interval over the seeds that have a value; None if none has."""
    data = np.asarray([value for value in values if value is not None], dtype=float)
    if data.size == 0:
        return None
    mean = float(data.mean())
    if data.size == 1 or np.ptp(data) == 0:
        return Interval(mean, mean, mean)
    spread = bootstrap((data,), np.mean, method="percentile", rng=np.random.default_rng(seed)).confidence_interval
    return Interval(mean, float(spread.low), float(spread.high))


def intervals(runs: Sequence[RunOutcome]) -> dict[str, dict[str, Interval | None]]:
    """Agent -> figure -> interval over its seeds, agents in the order of the runs."""
    by_agent: dict[str, list[RunOutcome]] = defaultdict(list)
    for run in runs:
        by_agent[run.agent].append(run)
    return {
        agent: {name: interval([run.figures[name] for run in group]) for name in FIGURES}
        for agent, group in by_agent.items()
    }


def paired_differences(runs: Sequence[RunOutcome], reference: str, figure: str) -> dict[str, Interval | None]:
    """For each other agent: its figure minus the reference's, paired by seed, with an interval."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for run in runs:
        if (value := run.figures[figure]) is not None:
            values[run.agent][run.seed] = value
    base = values[reference]
    return {
        agent: interval([own[seed] - base[seed] for seed in sorted(own) if seed in base])
        for agent, own in values.items()
        if agent != reference
    }


def mean_curve(runs: Sequence[RunOutcome], agent: str) -> NDArray[np.float64]:
    """The solve curve of an agent, averaged over its seeds."""
    return np.asarray(np.mean([run.curve for run in runs if run.agent == agent], axis=0))
