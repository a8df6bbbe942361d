"""Comparing runs: what each came to in figures, and tables of figures over seeds.

Runs are compared at equal cost, counted in attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.config import RunConfig
from kernel_gym.experiments.statistics import Interval, interquartile_mean, interval

Record = Mapping[str, Any]

#: Figures of a run that the tables show, with what they mean.
FIGURES: dict[str, str] = {
    "compiled": "share of operators with a kernel that compiled",
    "correct": "share of operators with a feasible kernel",
    "area": "area under the curve of that share over the budget",
    "middle": "the same for the middle half of the operators (interquartile mean)",
    "speedup": "median over solved operators of first feasible latency / best latency",
    "reward": "mean reward of an attempt",
}


@dataclass(frozen=True)
class RunOutcome:
    """One run in figures, None where nothing was solved or refined. `curve[t]`: share solved after t + 1 attempts."""

    agent: str
    seed: int
    figures: dict[str, float | None]
    curve: tuple[float, ...]


Over = Callable[[Sequence[str]], RunOutcome]
"""What a run came to over some of its operators."""


def outcome(contender: str, config: RunConfig, records: Sequence[Record], tasks: Sequence[str]) -> RunOutcome:
    """The figures of one run from the attempts that count, over the given tasks."""
    budget = config.budget
    by_task: dict[str, list[Record]] = {task: [] for task in tasks}
    for record in records:
        if record["task"] in by_task:
            by_task[record["task"]].append(record)
    first_solved = [_first(by_task[task], "feasible") for task in tasks]
    curve = tuple(float(np.mean([first <= t for first in first_solved])) for t in range(budget))
    rewards = [record["reward"] for history in by_task.values() for record in history]
    return RunOutcome(
        contender,
        config.seed,
        {
            "compiled": float(np.mean([_first(by_task[task], "compiled") < budget for task in tasks])),
            "correct": curve[-1],
            "area": float(np.mean(curve)),
            "middle": interquartile_mean([max(0.0, 1 - first / budget) for first in first_solved]),
            "speedup": _median_speedup(by_task.values()) if config.env.stages != "draft" else None,
            "reward": float(np.mean(rewards)) if rewards else 0.0,
        },
        curve,
    )


def comparable(runs: Iterable[tuple[Sequence[str], Over]]) -> dict[str, list[RunOutcome]]:
    """Runs that can be compared, by what they are of: the operators of a suite, and all where all runs have the same.

    A run is its operators and what makes its outcome over some of them. Runs on other operators of a suite stand apart.
    """
    known = [(tuple(tasks), over) for tasks, over in runs]
    suites = sorted({task.partition("/")[0] for tasks, _ in known for task in tasks})
    together = len({frozenset(tasks) for tasks, _ in known}) == 1
    found: dict[str, list[RunOutcome]] = {}
    for suite in [""] if len(suites) == 1 else [*suites, ""] if together else suites:
        groups: dict[frozenset[str], list[RunOutcome]] = defaultdict(list)
        for tasks, over in known:
            if own := [task for task in tasks if not suite or task.startswith(f"{suite}/")]:
                groups[frozenset(own)].append(over(own))
        for own_tasks, group in groups.items():
            title = _title(suite, len(own_tasks), group) if len(groups) > 1 else suite or "All operators"
            found[title if title not in found else f"{title}, from {min(own_tasks)} on"] = group
    return found


def _title(suite: str, operators: int, runs: Sequence[RunOutcome]) -> str:
    whose = dict.fromkeys(run.agent.rpartition("/")[0] or run.agent for run in runs)
    plural = "s" if operators > 1 else ""
    return f"{suite or 'All operators'}: {operators} operator{plural} of {', '.join(whose)}"


def _first(records: Sequence[Record], key: str) -> float:
    """Index of the first attempt at a task whose verdict says yes to `key`; infinite if none does."""
    return next((index for index, record in enumerate(records) if record["verdict"][key]), float("inf"))


def _median_speedup(histories: Iterable[Sequence[Record]]) -> float | None:
    ratios = []
    for history in histories:
        latencies = [r["verdict"]["latency_us"] for r in history if r["verdict"]["latency_us"] is not None]
        if latencies:
            ratios.append(latencies[0] / min(latencies))
    return float(np.median(ratios)) if ratios else None


def intervals(runs: Sequence[RunOutcome]) -> dict[str, dict[str, Interval | None]]:
    """Agent -> figure -> interval over its seeds, agents in the order of the runs."""
    by_agent: dict[str, list[RunOutcome]] = defaultdict(list)
    for run in runs:
        by_agent[run.agent].append(run)
    return {
        agent: {name: interval([run.figures[name] for run in group]) for name in FIGURES}
        for agent, group in by_agent.items()
    }


def by_seed(runs: Sequence[RunOutcome], figure: str) -> dict[str, dict[int, float]]:
    """Agent -> seed -> figure, for paired comparisons; agents in the order of the runs."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for run in runs:
        if (value := run.figures[figure]) is not None:
            values[run.agent][run.seed] = value
    return dict(values)


def mean_curve(runs: Sequence[RunOutcome], agent: str) -> NDArray[np.float64]:
    """The solve curve of an agent, averaged over its seeds."""
    return np.asarray(np.mean([run.curve for run in runs if run.agent == agent], axis=0))
