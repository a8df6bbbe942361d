"""Rank the memories of a run: by the values that its agent learned or, without values, by their mean rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from kernel_gym.agents import value
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.memory.item import MemoryItem, Outcomes, Stage

#: Memories that were shown less often are left out: little is known about them.
LEAST_USES = 3
#: Without learned values, mean rewards are shrunk towards the stage's mean, as if so many attempts of that mean had
#: been seen. Otherwise memories that were shown three times with luck would be first.
PRIOR_USES = 10


@dataclass(frozen=True)
class RankedMemory:
    """A memory with its value in a stage: learned, or the shrunk mean reward."""

    item: MemoryItem
    stage: Stage
    value: float
    record: Outcomes


def top_memories(run: FinishedRun, count: int) -> tuple[str, dict[Stage, list[RankedMemory]]]:
    """Return what memories are ranked by, in words, and the first memories of each stage."""
    if not run.folder.bank.exists():
        return "", {}
    with run.folder.open_bank() as bank:
        items = {item.id: item for item in bank.items()}
        outcomes = bank.outcomes(list(items))
    learned = _learned_values(run)
    ranked: dict[Stage, list[RankedMemory]] = {}
    for stage in Stage:
        records = {id: stages[stage] for id, stages in outcomes.items() if stages[stage].uses >= LEAST_USES}
        values = learned[stage] if learned else _shrunk_means(records)
        memories = [
            RankedMemory(items[id], stage, values[id], record) for id, record in records.items() if id in values
        ]
        memories.sort(key=lambda memory: (-memory.value, -memory.record.uses, memory.item.id))
        ranked[stage] = memories[:count]
    how = f"the values that {run.config.agent} learned" if learned else "mean reward, shrunk towards the stage's mean"
    return how, {stage: memories for stage, memories in ranked.items() if memories}


def _learned_values(run: FinishedRun) -> dict[Stage, dict[int, float]]:
    """Return the values that the agent saved by stage and item, as means over states; empty if it saved none."""
    if not (run.folder.agent / value.FILE).exists():
        return {}
    by_stage: dict[Stage, dict[int, float]] = {stage: {} for stage in Stage}
    for item, values in value.read_item_values(run.folder.agent).items():
        for stage in Stage:
            if in_stage := [number for state, number in values.items() if state.partition(" of ")[0] == stage.value]:
                by_stage[stage][item] = fmean(in_stage)
    return by_stage


def _shrunk_means(records: Mapping[int, Outcomes]) -> dict[int, float]:
    uses = sum(record.uses for record in records.values())
    mean = sum(record.mean * record.uses for record in records.values()) / uses if uses else 0.0
    return {
        id: (record.mean * record.uses + mean * PRIOR_USES) / (record.uses + PRIOR_USES)
        for id, record in records.items()
    }
