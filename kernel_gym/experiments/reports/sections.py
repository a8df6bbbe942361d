"""Sections of a report: runs on the same tasks, with their curves and the tables that compare them.

Runs on different tasks are never compared with each other; one suite may have several sections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kernel_gym.experiments import drawing
from kernel_gym.experiments.reports.answer import answer
from kernel_gym.experiments.runs.figures import ALL_TASKS, RunOutcome, by_seed, comparable
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.experiments.studies import tables
from kernel_gym.experiments.studies.study_definition import StudyDefinition

#: With more contenders than this, each arm gets its own picture.
MOST_IN_A_PICTURE = 12
UNIT = "attempts per task"

Pairs = Sequence[tuple[str, str]]


def sections(
    groups: Mapping[str, Sequence[FinishedRun]],
    reference: str,
    definition: StudyDefinition | None,
    yardsticks: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the sections of each group of runs: one per suite, and one over all tasks if all runs have the same.

    The key of a group says which settings it has; it is empty if there is no other group. `yardsticks` are contenders
    that cannot be the best.
    """
    content = []
    for settings, runs in groups.items():
        for name, outcomes in comparable((run.tasks, run.over) for run in runs).items():
            section = _section(f"{name}, {settings}" if settings else name, outcomes, reference, definition)
            content.append(section | {"answer": answer(outcomes, yardsticks), "whole": name == ALL_TASKS})
    return content


def answers(compared: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the sentences at the top of a report, each with the name of its section.

    The sections over all tasks answer if there are any. A single sentence has no name.
    """
    chosen = [section for section in compared if section["whole"]] or compared
    return [(section["name"] if len(chosen) > 1 else "", section["answer"]) for section in chosen]


def _section(
    name: str, outcomes: Sequence[RunOutcome], reference: str, definition: StudyDefinition | None
) -> dict[str, Any]:
    pairs = _pairs(list(by_seed(outcomes, "area")), reference, definition)
    return {
        "name": name,
        "curves": [_drawn(arm, group) for arm, group in _arms(outcomes).items()],
        "figures": tables.figures_table(outcomes),
        "standing": tables.standing_table(outcomes, definition.yardstick if definition else ""),
        "compared": tables.compared_tables(outcomes, pairs, definition),
    }


def _pairs(names: Sequence[str], reference: str, definition: StudyDefinition | None) -> Pairs:
    """Return the study's pairs; all with the reference if one is named or if there is no study."""
    if definition and not reference:
        return definition.compared(names)
    against = reference if reference in names else names[0]
    return [(name, against) for name in names if name != against]


def _arms(outcomes: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    """Group the outcomes by picture: all in one or, if they are many, one picture per arm."""
    many = len({run.agent for run in outcomes}) > MOST_IN_A_PICTURE
    arms: dict[str, list[RunOutcome]] = defaultdict(list)
    for run in outcomes:
        arms[run.agent.rpartition("/")[0] if many else ""].append(run)
    return arms


def _drawn(arm: str, outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    series = curves(outcomes)
    key = [(name.removeprefix(f"{arm}/"), drawing.swatch(i)) for i, name in enumerate(series)]
    return {"arm": arm, "svg": drawing.curves(series, UNIT), "key": key}


def curves(outcomes: Sequence[RunOutcome]) -> dict[str, list[tuple[float, ...]]]:
    """Return contender -> the solve curves of its seeds."""
    series: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for run in outcomes:
        series[run.agent].append(run.curve)
    return series
