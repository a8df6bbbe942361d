"""Evaluate trained agents: agent and memory are frozen, and the tasks are ones that the run never worked on.

Each complete run becomes one shard with the same seed. The agent acts and no longer learns. The bank takes in start
points only and keeps no usage statistics. Memories of the evaluated tasks are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_gym.config import RunConfig
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.replay_backup import ReplayBackup
from kernel_gym.experiments.runs.run_folder import RunFolder, keeps_memory, load_config
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard
from kernel_gym.verdict import Policy


def complete_runs(folders: Sequence[Path]) -> list[RunFolder]:
    """Return all complete runs in or below the folders."""
    marks = [mark for folder in folders for mark in sorted(folder.rglob("complete"))]
    runs = [RunFolder(mark.parent) for mark in marks if not ReplayBackup.has(mark)]
    if not runs:
        raise KernelGymError(f"no complete run in {', '.join(map(str, folders))}; train first")
    return runs


def evaluation_study(
    runs: Sequence[RunFolder], tasks: Sequence[str], budget: int, out: Path, policy: Policy | None = None
) -> Study:
    """Return the study that evaluates trained runs.

    Args:
        runs: Complete runs.
        tasks: Ids of tasks that none of the runs worked on.
        budget: Attempts per task.
        out: The folder of the evaluation.
        policy: How kernels are judged; None: as in training.

    Returns:
        A study with one shard for each run; the first run's agent is the reference.

    Raises:
        ConfigError: A run kept no memory or worked on one of the tasks, or two runs have the same agent and seed.
    """
    shards = [_shard(run, load_config(run.path), tuple(tasks), budget, policy) for run in runs]
    if len({shard.label for shard in shards}) < len(shards):
        raise ConfigError("several of these runs have the same agent and seed; evaluate them one at a time")
    return Study(tuple(shards), out, shards[0].contender)


def _shard(run: RunFolder, trained: RunConfig, tasks: tuple[str, ...], budget: int, policy: Policy | None) -> Shard:
    if not keeps_memory(trained):
        raise ConfigError(f"{run.path} kept no memory: train with env.memory=shared to evaluate")
    if seen := sorted(set(tasks) & _trained_on(run)):
        raise ConfigError(f"{run.path} was trained on {', '.join(seen[:4])}: choose tasks that it has not seen")
    judged = {"policy": policy or trained.env.policy, "memory": "frozen", "table": "", "forecast": False}
    config = trained.model_copy(
        update={
            "suite": tasks[0].partition("/")[0],
            "tasks": tasks,
            "budget": budget,
            "batch": 0,
            "rounds": 1,
            "workers": 1,
            "learning": False,
            "initial_memory": MEMORY_FILE,
            "initial_agent": AGENT_FOLDER if run.learned else "",
            "env": trained.env.model_copy(update=judged),
        }
    )
    return Shard("", trained.agent, trained.seed, config, tasks, memory=str(run.path.absolute()))


def training_costs(runs: Sequence[RunFolder]) -> dict[str, set[int]]:
    """Return the numbers of verifications that runs were trained with, by agent."""
    costs: dict[str, set[int]] = {}
    for run in runs:
        costs.setdefault(load_config(run.path).agent, set()).add(len(Journal.read(run.journal)))
    return costs


def _trained_on(run: RunFolder) -> set[str]:
    """Return the tasks that a run worked on, and those that its initial memory comes from."""
    with run.open_bank() as bank:
        return {record["task"] for record in Journal.read(run.journal)} | set(bank.tasks())
