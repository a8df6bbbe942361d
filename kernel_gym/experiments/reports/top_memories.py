"""The memories that a run made most of: by the table of values that its agent left, or else by their record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from kernel_gym.agents import value
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.memory.item import MemoryItem, Outcomes, Stage

#: A memory that was shown less often says little about its worth.
LEAST_USES = 3
#: Without values, means are drawn towards the stage's as if so many attempts of that mean had been seen: those that
#: were shown three times by luck would come first otherwise.
PRIOR_USES = 10


@dataclass(frozen=True)
class Valuable:
    """A memory with what it is worth in a stage: its learned value, or its shrunken mean reward."""

    item: MemoryItem
    stage: Stage
    worth: float
    record: Outcomes


def most_valuable(run: FinishedRun, count: int) -> tuple[str, dict[Stage, list[Valuable]]]:
    """By what memories are ranked, in words, and the first of each stage."""
    if not run.folder.bank.exists():
        return "", {}
    with run.folder.memory() as bank:
        items = {item.id: item for item in bank.items()}
        outcomes = bank.outcomes(list(items))
    learned = _learned(run)
    found: dict[Stage, list[Valuable]] = {}
    for stage in Stage:
        records = {id: stages[stage] for id, stages in outcomes.items() if stages[stage].uses >= LEAST_USES}
        worth = learned[stage] if learned else _shrunken(records)
        ranked = [Valuable(items[id], stage, worth[id], one) for id, one in records.items() if id in worth]
        ranked.sort(key=lambda one: (-one.worth, -one.record.uses, one.item.id))
        found[stage] = ranked[:count]
    how = f"the values that {run.config.agent} learned" if learned else "mean reward, drawn towards the stage's"
    return how, {stage: some for stage, some in found.items() if some}


def _learned(run: FinishedRun) -> dict[Stage, dict[int, float]]:
    """The table of values that the run left, by stage and item: the mean over states; empty if it left none."""
    if not (run.folder.agent / value.FILE).exists():
        return {}
    by_stage: dict[Stage, dict[int, float]] = {stage: {} for stage in Stage}
    for item, values in value.read_item_values(run.folder.agent).items():
        for stage in Stage:
            if found := [worth for state, worth in values.items() if state.partition(" of ")[0] == stage.value]:
                by_stage[stage][item] = fmean(found)
    return by_stage


def _shrunken(records: Mapping[int, Outcomes]) -> dict[int, float]:
    uses = sum(one.uses for one in records.values())
    usual = sum(one.mean * one.uses for one in records.values()) / uses if uses else 0.0
    return {id: (one.mean * one.uses + usual * PRIOR_USES) / (one.uses + PRIOR_USES) for id, one in records.items()}
