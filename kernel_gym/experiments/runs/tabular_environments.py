"""Make the environments of a run on a table of kernels and their verdicts, without compiler and device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from kernel_gym.envs import factories
from kernel_gym.envs.tabular.bank import TabularBank
from kernel_gym.envs.tabular.environment import TabularEnv, TabularVectorEnv
from kernel_gym.envs.tabular.item_arrays import item_arrays
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.recording_env import RecordingEnv, RecordingVectorEnv
from kernel_gym.experiments.runs.run_environments import RunEnvironments, keyword_arguments
from kernel_gym.experiments.runs.run_plan import environment_options
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Stage


class TabularEnvironments(RunEnvironments):
    """Makes the environments of a run on a table."""

    def _prepare(self) -> None:
        """Read the table; there is no author to ask and no kernel to verify."""
        config = self.plan.config
        if config.initial_memory:
            raise ConfigError("a run on a table begins with the seed knowledge: leave initial_memory out")
        self._options = replace(environment_options(config, self.plan.folder), bank=None)
        self._begin_with_seed_items(item_arrays(config.env.table, self._options.embedder).seed_size)
        self._bank: TabularBank | None = None

    def __call__(self) -> gym.Env[Any, Any]:
        """Make the environment that works on one task after another."""
        env = TabularEnv(self.plan.config.env.table, **keyword_arguments(self._options))
        self._bank = env.bank
        return RecordingEnv(env, self.recorder)

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """Make the environment that works on all tasks of a batch in lock-step."""
        envs = TabularVectorEnv(self.plan.batch, self.plan.config.env.table, **keyword_arguments(self._options))
        self._bank = envs.bank
        return RecordingVectorEnv(envs, self.recorder)

    def save_memory(self) -> None:
        """Write the shared memory as a bank: reports read it, and runs on a device can begin with it."""
        if self._bank is not None and self.plan.config.env.memory == "shared":
            with MemoryBank(self.plan.folder.bank, factories.embedder(self._options)) as bank:
                self._fill(bank, self._bank)

    def _fill(self, bank: MemoryBank, tabular: TabularBank) -> None:
        """Add the items attempt by attempt, as a run on a device does, so that they keep their ids."""
        items, added = tabular.joined(), set[tuple[int | None, int]]()
        bank.add(items[: tabular.arrays.seed_size], attempt=False)
        for record in self.recorder.journal.records:
            trace, *others = (items[id - 1] for id in record["produced"])
            step = (record["start"], record["produced"][0])
            # A repeated step produces nothing new, and embedding its items again would cost the most.
            bank.add([] if step in added else [replace(trace, parent=record["start"]), *others])
            added.add(step)
            shown = record["context"] if record["start"] is None else [record["start"], *record["context"]]
            bank.record(Stage(record["stage"]), shown, record["reward"])
