"""The memories that a run made most of: by what its agent learned of them, or by their record if it keeps no values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from kernel_gym.agents.finished_run import FinishedRun
from kernel_gym.agents.training import make_agent
from kernel_gym.errors import KernelGymError
from kernel_gym.memory.bank import Bank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import MemoryItem, Outcomes, Stage

#: A memory that was shown less often says little about its worth.
LEAST_USES = 3
#: Without values, means are drawn towards the stage's as if so many attempts of that mean had been seen: those that
#: were shown three times by luck would come first otherwise.
PRIOR_USES = 10


@dataclass(frozen=True)
class Valuable:
    """A memory with what it is worth in a stage: the agent's value, or its shrunken mean reward."""

    item: MemoryItem
    stage: Stage
    worth: float
    record: Outcomes


def most_valuable(run: FinishedRun, count: int) -> tuple[str, dict[Stage, list[Valuable]]]:
    """By what memories are ranked, in words, and the first of each stage."""
    if not run.folder.bank.exists():
        return "", {}
    with Bank(run.folder.bank, StaticEmbedder(), read_only=True) as bank:
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
    """The values of the run's agent by stage and item, the mean over what else they hang on; empty if it keeps none."""
    try:
        agent = make_agent(run.config)
        agent.load(run.folder.agent)
    except KernelGymError:  # it left nothing, or its libraries are not here
        return {}
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (stage, *_, item), value in getattr(agent, "values", {}).items():
        found[stage, item].append(value)
    by_stage: dict[Stage, dict[int, float]] = {stage: {} for stage in Stage}
    for (stage, item), values in found.items():
        by_stage[Stage(stage)][item] = fmean(values)
    return by_stage if found else {}


def _shrunken(records: Mapping[int, Outcomes]) -> dict[int, float]:
    uses = sum(one.uses for one in records.values())
    usual = sum(one.mean * one.uses for one in records.values()) / uses if uses else 0.0
    return {id: (one.mean * one.uses + usual * PRIOR_USES) / (one.uses + PRIOR_USES) for id, one in records.items()}
