"""A study: several agents, several seeds, the same everything else; resumable, in parallel, one folder.

Runs are processes of their own, so that one that fails leaves the others alone. Starting a study again takes up every
run where it was stopped.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.agents.comparison import RunOutcome, intervals, paired_differences
from kernel_gym.agents.run_folder import RunFolder
from kernel_gym.config import RunConfig
from kernel_gym.errors import KernelGymError

Watch = Callable[[int, int], None]
"""Called about twice a second with: attempts on record, attempts in all."""


@dataclass(frozen=True)
class Failure:
    """A run that could not be finished, and why."""

    agent: str
    seed: int
    reason: str


@dataclass(frozen=True)
class Study:
    """Agents x seeds on one base configuration, in one folder."""

    base: RunConfig
    agents: tuple[str, ...]
    seeds: int
    folder: Path

    def configs(self) -> list[RunConfig]:
        """One configuration a run, seed by seed so that agents can be compared early."""
        return [
            self.base.model_copy(update={"agent": agent, "seed": seed})
            for seed in range(self.seeds)
            for agent in self.agents
        ]

    def path(self, config: RunConfig) -> Path:
        """Where a run lies."""
        return self.folder / config.agent.replace(":", "-").replace("/", "-") / f"seed-{config.seed}"

    def run(self, parallel: int, watch: Watch, tasks: int) -> tuple[list[RunOutcome], list[Failure]]:
        """Make all runs that are not complete yet; what they came to."""
        configs = self.configs()
        folders = [RunFolder.open(self.path(config), config) for config in configs]
        context = multiprocessing.get_context("spawn")
        # A fresh process a run: what one leaves behind (threads, Ray, memory) can't reach the next.
        with ProcessPoolExecutor(parallel, mp_context=context, max_tasks_per_child=1) as pool:
            futures = [
                pool.submit(_train, config.model_dump_json(), folder.path)
                for config, folder in zip(configs, folders, strict=True)
            ]
            try:
                _watch(futures, folders, watch, len(configs) * tasks * self.base.budget)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return self._gather(configs, futures)

    def _gather(
        self, configs: Sequence[RunConfig], futures: Sequence[Future[RunOutcome]]
    ) -> tuple[list[RunOutcome], list[Failure]]:
        outcomes, failures = [], []
        for config, future in zip(configs, futures, strict=True):
            error = future.exception()
            if error is None:
                outcomes.append(future.result())
            elif isinstance(error, KernelGymError):
                failures.append(Failure(config.agent, config.seed, str(error)))
            else:
                failures.append(Failure(config.agent, config.seed, f"{type(error).__name__}: {error}"))
        return outcomes, failures

    def write_summary(self, outcomes: Sequence[RunOutcome]) -> None:
        """Write `comparison.json`: every run, the intervals, and the differences from the first agent."""
        summary = {
            "runs": [asdict(run) for run in outcomes],
            "intervals": {
                agent: {name: value and asdict(value) for name, value in figures.items()}
                for agent, figures in intervals(outcomes).items()
            },
            "differences_from": self.agents[0],
            "differences": {
                name: {
                    agent: value and asdict(value)
                    for agent, value in paired_differences(outcomes, self.agents[0], name).items()
                }
                for name in ("correct", "area")
            },
        }
        (self.folder / "comparison.json").write_text(json.dumps(summary, indent=1))


def _train(config: str, path: Path) -> RunOutcome:
    """One run, in a process of its own."""
    import torch

    from kernel_gym.agents.training import train

    torch.set_num_threads(1)
    return train(RunConfig.model_validate_json(config), RunFolder(path))


def _watch(futures: Sequence[Future[RunOutcome]], folders: Sequence[RunFolder], watch: Watch, total: int) -> None:
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=0.5)
        watch(sum(_lines(folder.journal) for folder in folders), total)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
