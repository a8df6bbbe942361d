"""A complete run as reports read it, from its folder alone: what came of every attempt and of every operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.config import RunConfig
from kernel_gym.experiments.runs.comparison import RunOutcome, outcome
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config

#: How far an operator came in a run, from nothing to fast.
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
    """Configuration of a complete run, and those of its attempts that count: of the last round, of first drafts."""

    contender: str
    folder: RunFolder
    config: RunConfig
    records: list[Record]

    @classmethod
    def read(cls, folder: RunFolder, root: Path) -> FinishedRun:
        """From its folder; its name is where it lies below the study's folder."""
        relative = folder.path.relative_to(root) if folder.path != root else Path(folder.path.name)
        config = load_config(folder.path)
        name = "/".join(part for part in relative.parts if not part.startswith("seed-")) or config.agent
        return cls(name, folder, config, folder.last_round(config, _tasks(config, folder)))

    @property
    def tasks(self) -> list[str]:
        """Its operators, in the order they were met."""
        return list(dict.fromkeys(record["task"] for record in self.records))

    @property
    def outcome(self) -> RunOutcome:
        """Its figures over all its operators."""
        return self.over(self.tasks)

    def over(self, tasks: Sequence[str]) -> RunOutcome:
        """Its figures over some of its operators."""
        return outcome(self.contender, self.config, self.records, tasks)

    def histories(self) -> dict[str, list[Record]]:
        """Operator -> its attempts."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            found[record["task"]].append(record)
        return found

    def speedups(self) -> list[float]:
        """First feasible latency / best latency of every solved operator; none where drafting is all."""
        if self.config.env.stages == "draft":
            return []
        return [found for history in self.histories().values() if (found := speedup(history)) is not None]

    def tiers(self) -> dict[str, int]:
        """Operator -> how far it came, an index of `TIERS`."""
        return {task: tier(history) for task, history in self.histories().items()}

    def steps(self) -> dict[str, list[int]]:
        """Operator -> how far each of its attempts came, indices of `STEPS`."""
        return {task: steps(history) for task, history in self.histories().items()}


def _tasks(config: RunConfig, folder: RunFolder) -> int:
    """How many operators a run worked on, by its journal if the configuration names a whole suite."""
    return len(config.tasks) or len({record["task"] for record in Journal.read(folder.journal)})


def speedup(history: list[Record]) -> float | None:
    """First feasible latency / best latency; None without a feasible kernel."""
    found = [record["verdict"]["latency_us"] for record in history if record["verdict"]["feasible"]]
    return found[0] / min(found) if found else None


def tier(history: list[Record]) -> int:
    """How far an operator came."""
    gained = speedup(history)
    if gained is None:
        return int(any(record["verdict"]["compiled"] for record in history))
    return 3 if gained >= FAST else 2


def steps(history: list[Record]) -> list[int]:
    """How far each attempt at an operator came."""
    found, best = [], float("inf")
    for record in history:
        verdict = record["verdict"]
        latency = verdict["latency_us"] if verdict["feasible"] else None
        if latency is None:
            found.append(int(bool(verdict["compiled"])))
            continue
        found.append(3 if latency < best < float("inf") else 2)
        best = min(best, latency)
    return found
