"""Replay a run attempt by attempt from its journal, to examine what the agent saw."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kernel_gym.agents.contract import Info
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.config import RunConfig
from kernel_gym.envs import factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.observation import Vector
from kernel_gym.envs.vector import view
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.journal import Drift, Journal
from kernel_gym.experiments.runs.recording_env import finished_attempts
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import RunPlan, environment_options
from kernel_gym.experiments.runs.run_recorder import RunRecorder, original_error
from kernel_gym.experiments.runs.training import make_environments


@dataclass(frozen=True)
class ReplayedAttempt:
    """An attempt of a replayed run, with what the agent saw before its first pick.

    Attributes:
        info: The info at the first pick.
        mask: The action mask at the first pick: 1 for every legal action.
        values: The agent's values of the candidates; None if it has none.
        attempt: The finished attempt.
    """

    info: Info
    mask: Vector
    values: Sequence[float] | None
    attempt: Attempt

    @property
    def state(self) -> Info:
        """The info when the context was picked, with the start point that was chosen."""
        return dict(self.info) | {"start": self.attempt.start or 0}


class Replay:
    """A run replayed in a temporary folder, so that its own folder does not change."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        self.run, source = run, RunFolder(run)
        initial = {name: str(getattr(config, name)) for name in ("initial_memory", "initial_agent")}
        paths = {name: str(source.resolve(path).absolute()) for name, path in initial.items() if path}
        self.config = config.model_copy(update=paths)
        self._stack = ExitStack()
        self._verifier: Any = None
        self._folder = RunFolder.open(Path(self._stack.enter_context(TemporaryDirectory())) / "run", self.config)
        for file in (source.journal, source.embeddings):
            if file.exists():
                shutil.copyfile(file, self._folder.path / file.name)

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def verifier(self) -> Any:
        """Return a verifier for kernels that are not in the journal; it is made when it is first needed."""
        if self._verifier is None:
            self._verifier = factories.verifier(environment_options(self.config, self._folder))
            self._stack.callback(self._verifier.close)
        return self._verifier

    def attempts(self, oracle: OracleAgent) -> Iterator[ReplayedAttempt]:
        """Yield the attempts of the journal in order; the oracle sees every info."""
        journal, plan = Journal(self._folder.journal), RunPlan.of(self.config, self._folder)
        self._stack.callback(journal.close)
        recorder = self._stack.enter_context(RunRecorder(plan, journal))
        environments = self._stack.enter_context(make_environments(plan, recorder))
        agent, envs = environments.agent(), environments.vector()
        first = dict[int, tuple[Info, Vector, Sequence[float] | None]]()
        with self._naming_the_run():
            observations, infos = envs.reset(seed=self.config.seed)
        while journal.replaying:
            actions = []
            for i in range(envs.num_envs):
                observation, info = view(observations, infos, i)
                oracle.remember_start_points(info)
                if not info["start_due"] and not info["picked"] and observation["action_mask"][:-1].any():
                    first[i] = info, observation["action_mask"].copy(), agent.candidate_values(observation, info)
                actions.append(agent.act(observation, info))
            with self._naming_the_run():
                observations, _, _, _, infos = envs.step(np.asarray(actions))
            for i, attempt in finished_attempts(infos, envs.num_envs):
                if self.config.learning:
                    agent.learn(attempt)
                yield ReplayedAttempt(*first[i], attempt)

    @contextmanager
    def _naming_the_run(self) -> Iterator[None]:
        """Let errors name the run's folder instead of the temporary one."""
        try:
            with original_error():
                yield
        except Drift as drift:
            raise KernelGymError(
                f"{self.run} cannot be replayed: {drift.what}; use the code that made it (provenance.json)"
            ) from drift
