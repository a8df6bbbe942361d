"""Read a complete run for a report: how far every attempt and every task came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.config import RunConfig
from kernel_gym.experiments.runs.earlier_versions import current_contender
from kernel_gym.experiments.runs.figures import RunOutcome, outcome
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config

#: How far a task came in a run, from nothing to fast.
TIERS = (
    "nothing compiled",
    "compiled, never correct",
    "correct",
    "correct, and made at least twice as fast as the first draft",
)
#: How far an attempt came.
STEPS = ("does not compile", "compiles, is not correct", "correct", "faster than any before")
#: Speedup over the first feasible draft that makes the highest tier.
FAST = 2.0


@dataclass(frozen=True)
class FinishedRun:
    """A complete run: its configuration, and the records that count (of the last round; of first episodes)."""

    contender: str
    folder: RunFolder
    config: RunConfig
    records: list[Record]

    @classmethod
    def read(cls, folder: RunFolder, root: Path) -> FinishedRun:
        """Read a run from its folder; the contender's name is the folder's path below `root`."""
        relative = folder.path.relative_to(root) if folder.path != root else Path(folder.path.name)
        config = load_config(folder.path)
        name = "/".join(part for part in relative.parts if not part.startswith("seed-")) or config.agent
        return cls(current_contender(name), folder, config, folder.last_round(config, _task_count(config, folder)))

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the order of their first attempts."""
        return list(dict.fromkeys(record["task"] for record in self.records))

    @property
    def outcome(self) -> RunOutcome:
        """The figures over all tasks."""
        return self.over(self.tasks)

    def over(self, tasks: Sequence[str]) -> RunOutcome:
        """Return the figures over some of the tasks."""
        return outcome(self.contender, self.config, self.records, tasks, self.folder.oracle_us)

    def histories(self) -> dict[str, list[Record]]:
        """Return task -> its records."""
        histories: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            histories[record["task"]].append(record)
        return histories

    def speedups(self) -> list[float]:
        """Return first feasible latency / best latency of every solved task; none with stages=draft."""
        if self.config.env.stages == "draft":
            return []
        return [ratio for history in self.histories().values() if (ratio := speedup(history)) is not None]

    def tiers(self) -> dict[str, int]:
        """Return task -> how far it came, an index of `TIERS`."""
        return {task: tier(history) for task, history in self.histories().items()}

    def steps(self) -> dict[str, list[int]]:
        """Return task -> how far each of its attempts came, indices of `STEPS`."""
        return {task: steps(history) for task, history in self.histories().items()}


def _task_count(config: RunConfig, folder: RunFolder) -> int:
    """Return how many tasks a run worked on, by its journal if the configuration names a whole suite."""
    return len(config.tasks) or len({record["task"] for record in Journal.read(folder.journal)})


def speedup(history: list[Record]) -> float | None:
    """Return first feasible latency / best latency; None without a feasible kernel."""
    latencies = [record["verdict"]["latency_us"] for record in history if record["verdict"]["feasible"]]
    return latencies[0] / min(latencies) if latencies else None


def tier(history: list[Record]) -> int:
    """Return how far a task came, an index of `TIERS`."""
    ratio = speedup(history)
    if ratio is None:
        return int(any(record["verdict"]["compiled"] for record in history))
    return 3 if ratio >= FAST else 2


def steps(history: list[Record]) -> list[int]:
    """Return how far each attempt at a task came, indices of `STEPS`."""
    reached, best = [], float("inf")
    for record in history:
        verdict = record["verdict"]
        latency = verdict["latency_us"] if verdict["feasible"] else None
        if latency is None:
            reached.append(int(bool(verdict["compiled"])))
            continue
        reached.append(3 if latency < best < float("inf") else 2)
        best = min(best, latency)
    return reached
