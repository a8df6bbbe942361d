"""The matrix of tasks and contenders: in how many seeds a task was solved, how fast, after how many attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from urllib.parse import quote

from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.experiments.runs.journal import Record


@dataclass(frozen=True)
class Cell:
    """The result of a task in the runs of a contender.

    Attributes:
        solved: The number of seeds with a feasible kernel.
        seeds: The number of seeds.
        latency: The lowest latency in microseconds; None if the task was never solved.
        first: The mean number of the attempt that solved it first, over the seeds that did.
        link: The address of the fastest attempt in the page's episodes; empty if it is not there.
    """

    solved: int
    seeds: int
    latency: float | None
    first: float | None
    link: str

    @property
    def kind(self) -> str:
        """How many of the seeds solved the task: `none`, `some` or `all`."""
        return "none" if not self.solved else "all" if self.solved == self.seeds else "some"


def contenders_of(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the contenders in the order of their runs."""
    return list(dict.fromkeys(run.contender for run in runs))


def task_matrix(runs: Sequence[FinishedRun], browsed: Sequence[FinishedRun] = ()) -> dict[str, dict[str, Cell]]:
    """Return task -> contender -> cell; a contender that did not work on a task has none there.

    Cells lead to attempts of the runs that can be browsed.
    """
    histories: dict[str, dict[str, list[tuple[FinishedRun, list[Record]]]]] = {}
    for run in runs:
        for task, history in run.histories().items():
            histories.setdefault(task, {}).setdefault(run.contender, []).append((run, history))
    return {
        task: {contender: _cell(task, seeds, browsed) for contender, seeds in by_contender.items()}
        for task, by_contender in sorted(histories.items())
    }


def _cell(task: str, seeds: Sequence[tuple[FinishedRun, list[Record]]], browsed: Sequence[FinishedRun]) -> Cell:
    first = [number for _, history in seeds if (number := _first_feasible(history))]
    run, history = min(seeds, key=lambda seed: _lowest_latency(seed[1]))
    lowest = _lowest_latency(history)
    return Cell(
        len(first),
        len(seeds),
        lowest if first else None,
        fmean(first) if first else None,
        link(run, task, _number_of(lowest, history)) if run in browsed else "",
    )


def link(run: FinishedRun, task: str, attempt: int) -> str:
    """Return the address of an attempt in the page's episodes."""
    return f"#run={quote(run_name(run))}&task={quote(task)}&attempt={attempt}"


def run_name(run: FinishedRun) -> str:
    """Return the name of a run in the page's episodes."""
    return f"{run.contender}, seed {run.config.seed}"


def _first_feasible(history: Sequence[Record]) -> int | None:
    return next((number for number, record in enumerate(history, 1) if record["verdict"]["feasible"]), None)


def _lowest_latency(history: Sequence[Record]) -> float:
    """Return the lowest latency; infinite without a feasible kernel."""
    return min((r["verdict"]["latency_us"] for r in history if r["verdict"]["feasible"]), default=float("inf"))


def _number_of(latency: float, history: Sequence[Record]) -> int:
    """Return the number of the first attempt with a latency; 1 if there is none."""
    return next((number for number, r in enumerate(history, 1) if r["verdict"]["latency_us"] == latency), 1)
