"""Sections of a report: runs on the same operators, with their curves and the tables that compare them.

Runs on different operators are never held against each other: those of one suite fall into several sections then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kernel_gym.experiments import drawing
from kernel_gym.experiments.runs.comparison import RunOutcome, by_seed, comparable
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.experiments.studies import tables
from kernel_gym.experiments.studies.study_definition import Protocol

#: More contenders than this are drawn apart, arm by arm.
TOGETHER = 12
UNIT = "attempts an operator"

Pairs = Sequence[tuple[str, str]]


def sections(runs: Sequence[FinishedRun], reference: str, protocol: Protocol | None) -> list[dict[str, Any]]:
    """What is compared: suite by suite, and over all operators where these are the same for all runs."""
    found = comparable((run.tasks, run.over) for run in runs)
    return [_section(name, outcomes, reference, protocol) for name, outcomes in found.items()]


def _section(name: str, outcomes: Sequence[RunOutcome], reference: str, protocol: Protocol | None) -> dict[str, Any]:
    pairs = _pairs(list(by_seed(outcomes, "area")), reference, protocol)
    return {
        "name": name,
        "curves": [_drawn(arm, group) for arm, group in _arms(outcomes).items()],
        "figures": tables.figures_table(outcomes),
        "compared": tables.compared_tables(outcomes, pairs, protocol),
        "power": tables.power(len({one.seed for one in outcomes}), len(pairs)),
    }


def _pairs(names: Sequence[str], reference: str, protocol: Protocol | None) -> Pairs:
    """Those of the study; all with the reference if one is asked for, or if it is no study."""
    if protocol and not reference:
        return protocol.compared(names)
    against = reference if reference in names else names[0]
    return [(name, against) for name in names if name != against]


def _arms(outcomes: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    """Outcomes that are drawn into one picture: all of them, or those of each arm if they are many."""
    many = len({one.agent for one in outcomes}) > TOGETHER
    found: dict[str, list[RunOutcome]] = defaultdict(list)
    for one in outcomes:
        found[one.agent.rpartition("/")[0] if many else ""].append(one)
    return found


def _drawn(arm: str, outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    series = curves(outcomes)
    key = [(name.removeprefix(f"{arm}/"), drawing.swatch(i)) for i, name in enumerate(series)]
    return {"arm": arm, "svg": drawing.curves(series, UNIT), "key": key}


def curves(outcomes: Sequence[RunOutcome]) -> dict[str, list[tuple[float, ...]]]:
    """Contender -> the solve curves of its seeds."""
    series: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for one in outcomes:
        series[one.agent].append(one.curve)
    return series
