"""Separates runs that are in one folder but not of one comparison, so that a report does not average them.

The runs of a study or a comparison belong together by design. In any other folder runs can have the same name and
different settings, or settings under which the same figure means something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernel_gym.config import RunConfig
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.experiments.studies import agent_comparison, study_commands

#: Settings that decide what a figure means: runs that differ in them are never in one table.
DECIDING = (
    "budget",
    "rounds",
    "env.author",
    "env.author_options",
    "env.device",
    "env.device_options",
    "env.policy",
    "env.stages",
    "env.forecast",
    "env.table",
)
#: Settings that differ between the seeds of one contender. Runs on different tasks are distinguished by their records.
_OF_A_SEED = ("seed", "suite", "tasks", "initial_memory", "initial_agent")


def is_designed(folder: Path) -> bool:
    """Return whether a folder holds a study, a comparison or a single run."""
    return (
        (folder / "config.yaml").exists()
        or (folder / agent_comparison.FILE).exists()
        or study_commands.definition_in(folder) is not None
    )


def with_own_names(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Return the runs; contenders whose runs have different settings get these settings in their names."""
    keys = {
        name: [key for key in _differing([run.config for run in group]) if key not in _OF_A_SEED]
        for name, group in _by_contender(runs).items()
    }
    return [
        replace(run, contender=f"{run.contender} ({run.config.describe(keys[run.contender])})")
        if keys[run.contender]
        else run
        for run in runs
    ]


def by_settings(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Group the runs by the settings that decide what a figure means; the keys are the settings in words."""
    keys = deciding_keys(runs)
    groups: dict[str, list[FinishedRun]] = defaultdict(list)
    for run in runs:
        groups[run.config.describe(keys)].append(run)
    return groups


def deciding_keys(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the keys in which the runs differ and that decide what a figure means."""
    return [key for key in _differing([run.config for run in runs]) if _is_deciding(key)]


def notes(runs: Sequence[FinishedRun]) -> list[str]:
    """Return sentences that say what keeps the runs from being one comparison."""
    sentences = []
    if keys := deciding_keys(runs):
        sentences.append(f"The runs differ in {', '.join(keys)}: those that do are in separate sections.")
    if renamed := sorted({run.contender for run in runs if _has_own_name(run.contender)}):
        sentences.append(f"Runs of one name have different settings and are not averaged: {'; '.join(renamed)}.")
    commits = dict.fromkeys(commit[:12] for run in runs for commit in run.folder.commits)
    if len(commits) > 1:
        sentences.append(f"The runs were made at different commits: {', '.join(commits)}.")
    return sentences


def _has_own_name(contender: str) -> bool:
    """Return whether `with_own_names` extended a name: the brackets at its end begin with a key."""
    key = contender.rpartition(" (")[2].partition(" ")[0]
    return contender.endswith(")") and key.partition(".")[0] in RunConfig.model_fields


def _by_contender(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    groups: dict[str, list[FinishedRun]] = defaultdict(list)
    for run in runs:
        groups[run.contender].append(run)
    return groups


def _differing(configs: Sequence[RunConfig]) -> list[str]:
    return sorted({key for config in configs[1:] for key in configs[0].differing_keys(config)})


def _is_deciding(key: str) -> bool:
    return any(key == deciding or key.startswith(f"{deciding}.") for deciding in DECIDING)
