"""Training on a table of kernels and their verdicts: the same loop, journal and events, without compiler and device.

A run repeats exactly and costs little, so it may be long: the operators are worked on round after round.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from kernel_gym import suites
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.envs.tabular.bank import TabularBank
from kernel_gym.envs.tabular.environment import TabularEnv, TabularVectorEnv
from kernel_gym.envs.tabular.item_arrays import lore
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.comparison import RunOutcome
from kernel_gym.experiments.runs.recording_env import RecordingEnv, RecordingVectorEnv
from kernel_gym.experiments.runs.training import Session, arguments, environment_options
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Stage


class TabularSession(Session):
    """A run on a table."""

    def _prepare(self) -> None:
        """There is nobody to ask and nothing to judge."""
        if self.config.initial_memory:
            raise ConfigError("a run on a table begins with the seed knowledge: leave initial_memory out")
        self._options = replace(environment_options(self.config, self.folder), bank=None)
        self._know(lore(self.config.env.table, self._options.embedder).seed)
        self._bank: TabularBank | None = None

    def __call__(self) -> gym.Env[Any, Any]:
        """The environment, one task after another."""
        env = TabularEnv(self.config.env.table, **arguments(self._options))
        self._bank = env.bank
        return RecordingEnv(env, self)

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """All tasks of a batch at once."""
        envs = TabularVectorEnv(self.batch, self.config.env.table, **arguments(self._options))
        self._bank = envs.bank
        return RecordingVectorEnv(envs, self)

    def conclude(self, result: RunOutcome) -> None:
        """Write what stands at the end, the memory too: reports read it, and runs on a device can begin with it."""
        super().conclude(result)
        if self._bank is not None and self.config.env.memory == "shared":
            with MemoryBank(self.folder.bank, factories.embedder(self._options)) as bank:
                self._remember_all(bank, self._bank)

    def _remember_all(self, bank: MemoryBank, found: TabularBank) -> None:
        """The memory attempt by attempt, as a live run would have built it; items get the ids that they had."""
        items, steps = found.joined(), set[tuple[int | None, int]]()
        bank.add(items[: found.lore.seed], attempt=False)
        for record in self.journal.records:
            left, *others = (items[id - 1] for id in record["produced"])
            step = (record["start"], record["produced"][0])
            # A step that was taken before leaves nothing new, and embedding its items again would cost the most.
            bank.add([] if step in steps else [replace(left, parent=record["start"]), *others])
            steps.add(step)
            shown = record["context"] if record["start"] is None else [record["start"], *record["context"]]
            bank.record(Stage(record["stage"]), shown, record["reward"])


def tasks(options: Options, table: str) -> list[str]:
    """The operators that a run works on: those named, or all of the table."""
    from kernel_gym.envs.tabular.table import load

    known = [task.id for task in load(table).tasks]
    if options.tasks is None:
        return known
    names = [suites.task_id(name, options.suite) for name in map(str, options.tasks)]
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError(f"the table {table} has no {', '.join(unknown)}; it has {', '.join(known)}")
    return names
