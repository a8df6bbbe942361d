"""Make the environments of a run whose verdicts are forecast, without compiler and device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from kernel_gym.envs import factories
from kernel_gym.envs.forecast.bank import ForecastBank
from kernel_gym.envs.forecast.environment import ForecastEnv, ForecastVectorEnv
from kernel_gym.envs.forecast.initial_memory import load_initial_memory
from kernel_gym.experiments.runs.recording_env import RecordingEnv, RecordingVectorEnv
from kernel_gym.experiments.runs.run_environments import RunEnvironments, keyword_arguments
from kernel_gym.experiments.runs.run_plan import environment_options
from kernel_gym.memory import rows
from kernel_gym.memory.bank import PREVIOUS, MemoryBank
from kernel_gym.memory.item import MemoryItem, Stage
from kernel_gym.memory.seed import seed_items


class ForecastEnvironments(RunEnvironments):
    """Makes the environments of a run on forecasts."""

    def _prepare(self) -> None:
        """There is no author to ask and no kernel to verify."""
        config, folder, seeds = self.plan.config, self.plan.folder, seed_items("ascendc")
        self._options = replace(environment_options(config, folder), bank=None)
        self._begin_with_seed_items(len(seeds))
        self._bank: ForecastBank | None = None
        self._memory = folder.resolve(config.initial_memory) if config.initial_memory else None
        if self._memory is not None:
            initial = load_initial_memory(self._memory, seeds, self.plan.task_ids)
            self._initial_items, self._new_ids = len(seeds) + len(initial.items), initial.new_ids

    def __call__(self) -> gym.Env[Any, Any]:
        """Make the environment that works on one task after another."""
        env = ForecastEnv(initial_memory=self._memory, **keyword_arguments(self._options))
        self._bank = env.bank
        return RecordingEnv(env, self.recorder)

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """Make the environment that works on all tasks of a batch in lock-step."""
        envs = ForecastVectorEnv(self.plan.batch, initial_memory=self._memory, **keyword_arguments(self._options))
        self._bank = envs.bank
        return RecordingVectorEnv(envs, self.recorder)

    def save_memory(self) -> None:
        """Write the shared memory as a bank, which reports read."""
        if self._bank is not None and self.plan.config.env.memory == "shared":
            with MemoryBank(self.plan.folder.bank, factories.embedder(self._options)) as bank:
                self._fill(bank, _distinct(self._bank.joined()))

    def _fill(self, bank: MemoryBank, items: list[MemoryItem]) -> None:
        """Add the items attempt by attempt, as a run on a device does, so that they keep their ids."""
        bank.add(items[: self._initial_items], attempt=False)
        added: set[tuple[int | None, int]] = set()
        for record in self.recorder.journal.records:
            trace, *others = (items[id - 1] for id in record["produced"])
            step = (record["start"], record["produced"][0])
            # A repeated step produces nothing new, and embedding its items again would cost the most.
            linked = [replace(trace, parent=record["start"]), *(replace(item, source=PREVIOUS) for item in others)]
            bank.add([] if step in added else linked)
            added.add(step)
            shown = record["context"] if record["start"] is None else [record["start"], *record["context"]]
            bank.record(Stage(record["stage"]), shown, record["reward"])


def _distinct(items: list[MemoryItem]) -> list[MemoryItem]:
    """Return the items so that each has a text of its own; a bank would take those that read the same for one."""
    known: set[str] = set()
    for place, item in enumerate(items):
        while rows.digest(item) in known:
            item = replace(item, text=f"{item.text}\n", code=item.code and f"{item.code}\n")
        items[place] = item
        known.add(rows.digest(item))
    return items
