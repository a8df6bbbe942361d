"""Resolve what a run's configuration stands for: tasks, batch size, environment options, agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gym import plugins
from kernel_gym.agents.contract import Agent
from kernel_gym.config import RunConfig
from kernel_gym.envs import factories
from kernel_gym.envs.curriculum import whole_levels
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.run_folder import RunFolder

#: Devices whose time is free: the oracle's kernels run on them too, to compare latencies with.
SIMULATED_DEVICES = ("ascend-sim",)


@dataclass(frozen=True)
class RunPlan:
    """A run's configuration and folder with its task ids and the number of tasks that are attempted in parallel."""

    config: RunConfig
    folder: RunFolder
    task_ids: tuple[str, ...]
    batch: int

    @classmethod
    def of(cls, config: RunConfig, folder: RunFolder) -> RunPlan:
        """Resolve a configuration.

        Args:
            config: The run's configuration.
            folder: The run's folder.

        Returns:
            The plan of the run.

        Raises:
            ConfigError: A task is named twice, the batch does not divide the tasks, or the settings contradict
                each other.
        """
        if config.env.bank and (config.env.offline or config.initial_memory):
            raise ConfigError("a shared bank needs kernels that are judged, and memories that are imported into it")
        if config.rounds > 1 and config.env.stages == "draft":
            raise ConfigError("rounds have no common end with stages=draft: leave rounds or stages out")
        tasks = task_ids(config, folder)
        return cls(config, folder, tuple(tasks), batch_size(config, folder, tasks))

    @property
    def attempts_per_round(self) -> int:
        """The number of attempts in one round over all tasks."""
        return len(self.task_ids) * self.config.budget

    @property
    def attempts(self) -> int:
        """The number of attempts in the whole run."""
        return self.attempts_per_round * self.config.rounds


def task_ids(config: RunConfig, folder: RunFolder) -> list[str]:
    """Return the ids of the tasks that a run works on."""
    options = environment_options(config, folder)
    if config.env.table:
        raise ConfigError(
            "env.table was removed with the tabular environment: use env.forecast=true and name the tasks"
        )
    ids = [task.id for task in factories.tasks(options)]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise ConfigError(f"{', '.join(repeated)} would count twice: name each task once")
    return ids


def batch_size(config: RunConfig, folder: RunFolder, ids: Sequence[str]) -> int:
    """Return how many tasks are attempted in parallel.

    That is `config.batch`, or all tasks if it is 0. With the curriculum `levels` a batch never mixes levels.
    """
    largest = len(ids)
    if config.env.curriculum == "levels":
        options = environment_options(config, folder)
        largest = whole_levels(factories.tasks(options))
    batch = config.batch or largest
    if len(ids) % batch:
        raise ConfigError(f"{len(ids)} tasks don't make whole batches of {batch}")
    if largest % batch:
        raise ConfigError(f"batches of {batch} would mix the levels: batch must divide {largest}, or be 0")
    return batch


def environment_options(config: RunConfig, folder: RunFolder) -> Options:
    """Return the environment's options; they are the same for every agent with the same settings."""
    return Options(
        suite=config.suite,
        tasks=config.tasks or None,
        budget=config.budget,
        workers=config.workers,
        seed=config.seed,
        bank=config.env.bank or folder.bank,
        # An evaluation freezes agent and memory: usage statistics would be learned from by agents that read them.
        statistics=config.learning or config.env.memory != "frozen",
        **config.env.model_dump(exclude={"table", "forecast", "bank"}),
    )


def make_agent(config: RunConfig) -> Agent:
    """Return a new agent of the kind that a configuration names."""
    kind = plugins.load("kernel_gym.agents", config.agent)
    _check_agent_class(config.agent, kind)
    defaults = kind.options_for(config.env) if hasattr(kind, "options_for") else {}  # a plug-in may be any callable
    try:
        agent = kind(seed=config.seed, **{**defaults, **config.agent_options})
    except TypeError as error:
        raise ConfigError(f"agent {config.agent!r} does not take these options: {error}") from error
    if not isinstance(agent, Agent):
        raise ConfigError(f"agent {config.agent!r} makes a {type(agent).__name__}, which is not a kernel_gym.Agent")
    return agent


def _check_agent_class(name: str, kind: Any) -> None:
    """Raise a ConfigError if a class cannot be an agent's."""
    if not callable(kind):
        raise ConfigError(f"agent {name!r} is not a class")
    if not isinstance(kind, type):  # a function that makes the agent
        return
    if not callable(getattr(kind, "act", None)) or "act" in getattr(kind, "__abstractmethods__", ()):
        raise ConfigError(f"agent {name!r} lacks act: define act(self, observation, info) that returns an action")
    if not issubclass(kind, Agent):
        raise ConfigError(f"agent {name!r} is not an Agent: derive {kind.__name__} from kernel_gym.Agent")
