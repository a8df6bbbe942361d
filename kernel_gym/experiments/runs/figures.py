"""Compute the figures of a run, and group the runs that can be compared.

Runs are compared at equal cost, counted in attempts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.config import RunConfig
from kernel_gym.experiments.statistics import Interval, interquartile_mean, interval

Record = Mapping[str, Any]

#: The figures of a run, with their meanings.
FIGURES: dict[str, str] = {
    "compiled": "share of tasks with a kernel that compiled",
    "correct": "share of tasks with a feasible kernel",
    "area": "area under the curve of that share over the budget",
    "middle": "the same for the middle half of the tasks (interquartile mean)",
    "speedup": "median over solved tasks of first feasible latency / best latency",
    "reward": "mean reward of an attempt",
}


#: The name of the group of runs over all tasks.
ALL_TASKS = "All tasks"


@dataclass(frozen=True)
class TaskOutcome:
    """What a run reached on one task.

    `solved_at` is the first feasible attempt, counted from 1, `best_us` the lowest latency and `first_us` that of the
    first feasible attempt; None if the task was not solved. `oracle_us` is the latency of the oracle's kernel, None if
    the run did not record it. `compiled_at` is the first attempt whose kernel compiled, None if there was none.
    """

    solved_at: int | None = None
    best_us: float | None = None
    oracle_us: float | None = None
    first_us: float | None = None
    compiled_at: int | None = None


@dataclass(frozen=True)
class RunOutcome:
    """The figures of a run; a figure is None if nothing was solved or refined.

    `curve[t]` is the share solved after t + 1 attempts per task. `tasks` has what was reached on each task.
    """

    agent: str
    seed: int
    figures: dict[str, float | None]
    curve: tuple[float, ...]
    tasks: dict[str, TaskOutcome] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        """Attempts per task."""
        return len(self.curve)

    @property
    def available(self) -> dict[str, float]:
        """The figures that the run has."""
        return {name: value for name, value in self.figures.items() if value is not None}


Over = Callable[[Sequence[str]], RunOutcome]
"""Returns the figures of a run over some of its tasks."""


def outcome(
    contender: str,
    config: RunConfig,
    records: Sequence[Record],
    tasks: Sequence[str],
    oracle_us: Mapping[str, float] = MappingProxyType({}),
) -> RunOutcome:
    """Return the figures of a run over some tasks, from the records that count.

    `oracle_us` has the latencies of the oracle's kernels, as far as the run recorded them.
    """
    budget = config.budget
    by_task = _by_task(records, tasks)
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
        {task: _task_outcome(by_task[task], oracle_us.get(task)) for task in tasks},
    )


def _by_task(records: Sequence[Record], tasks: Sequence[str]) -> dict[str, list[Record]]:
    by_task: dict[str, list[Record]] = {task: [] for task in tasks}
    for record in records:
        if record["task"] in by_task:
            by_task[record["task"]].append(record)
    return by_task


def curves(config: RunConfig, records: Sequence[Record], tasks: Sequence[str]) -> dict[str, list[float | None]]:
    """Return the curves of a run over the attempts per task.

    `solved` is the share of tasks solved after t attempts, `reward` the mean reward of the attempts number t, `speedup`
    the median speedup after t attempts. Values are None where no task has one.
    """
    by_task = _by_task(records, tasks)
    series: dict[str, list[float | None]] = {"solved": [], "reward": [], "speedup": []}
    for t in range(config.budget):
        rewards = [history[t]["reward"] for history in by_task.values() if t < len(history)]
        series["solved"].append(float(np.mean([_first(history, "feasible") <= t for history in by_task.values()])))
        series["reward"].append(float(np.mean(rewards)) if rewards else None)
        series["speedup"].append(_median_speedup(history[: t + 1] for history in by_task.values()))
    return series if config.env.stages != "draft" else series | {"speedup": [None] * config.budget}


def _task_outcome(history: Sequence[Record], oracle_us: float | None) -> TaskOutcome:
    latencies = [latency for record in history if (latency := record["verdict"]["latency_us"]) is not None]
    first_us, best_us = (latencies[0], min(latencies)) if latencies else (None, None)
    solved_at, compiled_at = _number(history, "feasible"), _number(history, "compiled")
    return TaskOutcome(solved_at, best_us, oracle_us, first_us, compiled_at)


def comparable(runs: Iterable[tuple[Sequence[str], Over]]) -> dict[str, list[RunOutcome]]:
    """Group runs that can be compared: by suite, and over all tasks where all runs have the same.

    Each run is given as its tasks and a function that returns its figures over some of them. Runs on different tasks of
    one suite are in different groups.
    """
    runs_by_tasks = [(tuple(tasks), over) for tasks, over in runs]
    suites = sorted({task.partition("/")[0] for tasks, _ in runs_by_tasks for task in tasks})
    same_tasks = len({frozenset(tasks) for tasks, _ in runs_by_tasks}) == 1
    grouped: dict[str, list[RunOutcome]] = {}
    for suite in [""] if len(suites) == 1 else [*suites, ""] if same_tasks else suites:
        groups: dict[frozenset[str], list[RunOutcome]] = defaultdict(list)
        for tasks, over in runs_by_tasks:
            if own := [task for task in tasks if not suite or task.startswith(f"{suite}/")]:
                groups[frozenset(own)].append(over(own))
        for own_tasks, group in groups.items():
            title = _title(suite, len(own_tasks), group) if len(groups) > 1 else suite or ALL_TASKS
            grouped[title if title not in grouped else f"{title}, from {min(own_tasks)} on"] = group
    return grouped


def _title(suite: str, tasks: int, runs: Sequence[RunOutcome]) -> str:
    names = dict.fromkeys(run.agent.rpartition("/")[0] or run.agent for run in runs)
    plural = "s" if tasks > 1 else ""
    return f"{suite or ALL_TASKS}: {tasks} task{plural} of {', '.join(names)}"


def _first(records: Sequence[Record], key: str) -> float:
    """Return the index of the first attempt at a task whose verdict has `key`; infinite if there is none."""
    return next((index for index, record in enumerate(records) if record["verdict"][key]), float("inf"))


def _number(records: Sequence[Record], key: str) -> int | None:
    """Return the number, from 1, of the first attempt at a task whose verdict has `key`; None if there is none."""
    first = _first(records, key)
    return int(first) + 1 if first < len(records) else None


def _median_speedup(histories: Iterable[Sequence[Record]]) -> float | None:
    ratios = []
    for history in histories:
        latencies = [r["verdict"]["latency_us"] for r in history if r["verdict"]["latency_us"] is not None]
        if latencies:
            ratios.append(latencies[0] / min(latencies))
    return float(np.median(ratios)) if ratios else None


def intervals(runs: Sequence[RunOutcome]) -> dict[str, dict[str, Interval | None]]:
    """Return agent -> figure -> interval over its seeds, agents in the order of the runs."""
    by_agent: dict[str, list[RunOutcome]] = defaultdict(list)
    for run in runs:
        by_agent[run.agent].append(run)
    return {
        agent: {name: interval([run.figures[name] for run in group]) for name in FIGURES}
        for agent, group in by_agent.items()
    }


def by_seed(runs: Sequence[RunOutcome], figure: str) -> dict[str, dict[int, float]]:
    """Return agent -> seed -> figure, for paired comparisons; agents in the order of the runs."""
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for run in runs:
        if (value := run.figures[figure]) is not None:
            values[run.agent][run.seed] = value
    return dict(values)


def mean_curve(runs: Sequence[RunOutcome], agent: str) -> NDArray[np.float64]:
    """Return the solve curve of an agent, averaged over its seeds."""
    return np.asarray(np.mean([run.curve for run in runs if run.agent == agent], axis=0))
