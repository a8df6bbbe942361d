"""Extend a finished run to a larger budget.

The run is replayed with the larger budget, as if it were resumed, and continues where it ended. Its attempts must
be the same up to there: the replay compares every one, and a run whose attempts would differ is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernel_gym import plugins
from kernel_gym.config import RunConfig
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.journal import Drift
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.run_plan import RunPlan


def owns_loop(agent: str) -> bool:
    """Return whether an agent owns its training loop."""
    return bool(getattr(plugins.load("kernel_gym.agents", agent), "owns_loop", False))


def extends(config: RunConfig, folder: RunFolder) -> bool:
    """Return whether a configuration has a larger budget than the run that its folder holds."""
    return folder.begun and load_config(folder.path).budget < config.budget


def check_extension(plan: RunPlan) -> None:
    """Raise a ConfigError if the folder's run is to be extended and cannot be."""
    config, folder = plan.config, plan.folder
    if extends(config, folder) and (reason := _obstacle(plan)):
        raise ConfigError(f"{folder.path} cannot be extended to {config.budget} attempts a task: {reason}")


def _obstacle(plan: RunPlan) -> str:
    config = plan.config
    if config.learning and owns_loop(config.agent):
        return f"{config.agent} observes the share of the budget that is left, so it must train anew in another --out"
    if config.rounds > 1:
        return "it has several rounds, each of the old budget; choose another --out"
    if plan.batch < len(plan.task_ids):
        return "its tasks come in batches, each of the old budget; choose another --out"
    return ""


@contextmanager
def explaining_drift(config: RunConfig, folder: RunFolder) -> Iterator[None]:
    """Say, if an attempt comes out differently while a run is extended, that the larger budget may be the cause."""
    extended = extends(config, folder)
    try:
        yield
    except Drift as drift:
        if not extended:
            raise
        raise KernelGymError(
            f"{folder.path} cannot be extended to {config.budget} attempts a task: {drift.what}, or its agent chooses "
            "differently with a larger budget; the run is left as it was, choose another --out"
        ) from drift
