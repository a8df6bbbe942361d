"""Rank the agents of a study by who beats whom, over authors, seeds and tasks.

In one run of each, an agent beats another at a task if its best kernel is faster, or if it alone has a feasible one.
Latencies within 1% are a tie and count half. A share of wins is a mean over runs (arm and seed) and tasks, with the
two-way bootstrap interval of the other differences. All of it is descriptive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log

import numpy as np

from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome
from kernel_gym.experiments.statistics import Cells, CrossedMean, crossed_mean

Table = list[list[str]]

#: Latencies that differ by less than this factor are a tie.
TIE = 1.01
LEGEND = (
    "An agent beats another at a task if its best kernel is more than 1% faster, or if it alone has a feasible one; a "
    "tie counts half. `beats another` is the share of wins over all other agents, runs and tasks, with the 95% "
    "interval of a two-way bootstrap over runs (authors and seeds) and tasks; 0.5 is the average agent. `never beaten` "
    "is the share of runs and tasks in which no other agent was better. In the table of pairs the row beats the "
    "column; `+` and `-` mark shares whose interval lies above or below 0.5. A share without an interval is that of a "
    "single run, or is the same in all runs and tasks: its noise is unknown. All of this is descriptive."
)


def win(own: TaskOutcome, other: TaskOutcome) -> float:
    """Return 1 if the first outcome is better, 0 if it is worse, 0.5 for a tie."""
    ours, theirs = own.best_us or inf, other.best_us or inf
    if ours == theirs or (max(ours, theirs) < inf and abs(log(ours / theirs)) < log(TIE)):
        return 0.5
    return float(ours < theirs)


class Ranking:
    """The wins of agents over each other in some arms of a study.

    Args:
        runs: The runs of the study.
        arms: The arms that count; their authors are pooled.
    """

    def __init__(self, runs: Sequence[RunOutcome], arms: Sequence[str]) -> None:
        by_run: dict[tuple[str, int], dict[str, RunOutcome]] = {}
        for run in runs:
            arm, _, agent = run.agent.rpartition("/")
            if arm in arms:
                by_run.setdefault((arm, run.seed), {})[agent] = run
        agents = dict.fromkeys(agent for own in by_run.values() for agent in own)
        self._rows = [by_run[key] for key in sorted(by_run)]
        self.tasks = sorted({task for row in self._rows for run in row.values() for task in run.tasks})
        self._wins = {(a, b): self._cells(a, b) for a in agents for b in agents if a != b}
        means = {agent: crossed_mean(self.against_all(agent, list(agents))) for agent in agents}
        self.means: dict[str, CrossedMean] = {agent: mean for agent, mean in means.items() if mean is not None}
        #: Agents, the best first.
        self.agents = sorted(self.means, key=lambda agent: -self.means[agent].mean)

    def _cells(self, agent: str, other: str) -> Cells:
        """Return the wins of an agent over another by run and task; NaN where one of them has no run."""
        return np.array(
            [[self._win(row, agent, other, task) for task in self.tasks] for row in self._rows], dtype=float
        )

    @staticmethod
    def _win(row: Mapping[str, RunOutcome], agent: str, other: str, task: str) -> float:
        if agent not in row or other not in row or task not in row[agent].tasks or task not in row[other].tasks:
            return float("nan")
        return win(row[agent].tasks[task], row[other].tasks[task])

    def against_all(self, agent: str, others: Sequence[str]) -> Cells:
        """Return the share of other agents that an agent beats, by run and task."""
        cells = np.stack([self._wins[agent, other] for other in others if other != agent] or [np.zeros((0, 0))])
        counts = (~np.isnan(cells)).sum(axis=0)
        means = np.divide(np.nansum(cells, axis=0), counts, out=np.full(counts.shape, np.nan), where=counts > 0)
        return np.asarray(means, np.float64)

    def standings(self) -> Table:
        """Return the agents with their shares of wins and how often nobody was better."""
        rows = [
            [str(place), agent, shown(self.means[agent]), f"{self._unbeaten(agent):.2f}"]
            for place, agent in enumerate(self.agents, 1)
        ]
        return [["rank", "agent", "beats another", "never beaten"], *rows]

    def _unbeaten(self, agent: str) -> float:
        cells = np.stack([self._wins[agent, other] for other in self.agents if other != agent])
        return float(np.nanmean(np.nanmin(cells, axis=0) >= 0.5))

    def pairs(self) -> Table:
        """Return how often the agent of a row beats that of a column."""
        rows = [[agent, *(self._pair(agent, other) for other in self.agents)] for agent in self.agents]
        return [["beats", *self.agents], *rows]

    def _pair(self, agent: str, other: str) -> str:
        mean = None if agent == other else crossed_mean(self._wins[agent, other])
        if mean is None:
            return ""
        if not mean.noisy:
            return f"{mean.mean:.2f}"
        side = "+" if mean.interval.low > 0.5 else "-" if mean.interval.high < 0.5 else ""
        return f"{mean.mean:.2f}{side}"

    def by_category(self, categories: Mapping[str, str]) -> Table:
        """Return each agent's share of wins by category of the tasks.

        Args:
            categories: Category by task.
        """
        names = sorted({categories[task] for task in self.tasks})
        columns = {name: [i for i, task in enumerate(self.tasks) if categories[task] == name] for name in names}
        rows = [
            [
                agent,
                *(shown(crossed_mean(self.against_all(agent, self.agents)[:, where])) for where in columns.values()),
            ]
            for agent in self.agents
        ]
        return [["beats another", *(f"{name} ({len(where)})" for name, where in columns.items())], *rows]


def shown(mean: CrossedMean | None) -> str:
    """Return a mean with its interval as text; without one if nothing is known about noise."""
    if mean is None:
        return "-"
    if not mean.noisy:
        return f"{mean.mean:.2f}"
    low, high = max(0.0, mean.interval.low), min(1.0, mean.interval.high)
    return f"{mean.mean:.2f} [{low:.2f}, {high:.2f}]"
