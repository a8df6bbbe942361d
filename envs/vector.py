"""The vector form: a batch of tasks in lock-step on one bank, the paper's outer iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kernel_gym.envs.episode import AttemptResult, Episode
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.envs.options import Options, reset_option
from kernel_gym.envs.picture import Pixels, picture
from kernel_gym.envs.rendering import frame, known_mode
from kernel_gym.envs.services import Services
from kernel_gym.errors import ConfigError
from kernel_gym.memory.bank import MemoryBank

Actions = NDArray[np.int64]


class KernelSynthesisVectorEnv(VectorEnv[dict[str, Vector], Actions, NDArray[Any]]):
    """
    `KernelSynthesisEnv` for a batch of tasks that share one bank and move in lock-step.

    ## Description
    One *outer iteration* gives every task of the batch one attempt. Each sub-environment picks as in
    `KernelSynthesisEnv`. One that is done (it chose `K` or used its picks) has only `K` legal until all are done. In
    the step in which the last one is done, all kernels are written, verified in parallel and committed to the bank in
    index order. So all attempts of an iteration see the bank as it was at its start. That step pays all rewards and
    adds `attempt` (or `failure`) to the infos of all; every other step pays 0.

    ## Spaces, rewards, information
    Those of `KernelSynthesisEnv`, batched. Infos are arrays of objects, one place for each sub-environment; `_key`
    says which of them have the key. `view(observations, infos, i)` returns one sub-environment's observation and info.

    ## Episode End
    Autoreset is NEXT_STEP: the step after an end resets that sub-environment to the curriculum's next task, ignores
    its action and pays 0, while the others pick on. `make_vec(id, num_envs=len(tasks))` and `T` iterations are the
    paper's protocol.

    ## Arguments
    `num_envs` and those of `KernelSynthesisEnv`. `reset(seed=s)` takes one seed: there is one bank.
    `reset(options={"tasks": [...]})` names the tasks. With `memory="fresh"` every sub-environment has a bank of its
    own.

    ## Version History
    * v0: initial version
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        """Make the environments.

        Args:
            num_envs: Number of sub-environments.
            render_mode: `ansi`, `human`, `rgb_array` or None.
            **options: The arguments of `KernelSynthesisEnv`, which `Options` declares.

        Raises:
            ConfigError: If an option does not exist or has a value that is not accepted.
        """
        self.closed = True  # there is nothing to close if an option is wrong
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, not {num_envs}")
        self.options = Options.of(options)
        self.num_envs, self.render_mode = num_envs, known_mode(render_mode, self.metadata)
        self._begun = False
        self._services = Services(self.options)
        self._episodes = [Episode(self._services, bank) for bank in self._banks()]
        self._results: list[AttemptResult | None] = [None] * num_envs
        self.single_observation_space = self.layout.space()
        self.single_action_space = gym.spaces.Discrete(self.options.slots + 1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False

    def _banks(self) -> list[MemoryBank]:
        if self.options.memory != "fresh":
            return [self._services.bank] * self.num_envs
        with TemporaryDirectory() as folder:
            file = Path(folder) / "bank"
            self._services.bank.export(file)
            return [_imported(file, self._services.bank) for _ in range(self.num_envs)]

    @property
    def layout(self) -> Layout:
        """The layout of one sub-environment's observation: where each feature lies."""
        return self._services.layout

    @property
    def bank(self) -> MemoryBank:
        """The memory bank that all sub-environments share."""
        return self._services.bank

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, Any]]:
        """Begin the next task in every sub-environment.

        Args:
            seed: Restores bank and curriculum as constructed and becomes the run seed. None keeps them and goes on.
            options: `{"tasks": [...]}` names the tasks instead of the curriculum, one for each sub-environment.

        Returns:
            The first observations and their infos.

        Raises:
            ConfigError: Several seeds are given, not one task for each sub-environment, or `options` has another key.
            TaskError: A task is not one of this environment's.
        """
        if seed is not None and not isinstance(seed, int | np.integer):
            raise ConfigError("the sub-environments share one bank: give one seed, not a list")
        names: Sequence[str | None] = reset_option(options, "tasks") or [None] * self.num_envs
        if len(names) != self.num_envs:
            raise ConfigError(f"{self.num_envs} sub-environments need as many tasks, not {len(names)}")
        super().reset(seed=self.options.seed if seed is None and not self._begun else seed)
        if seed is not None:
            self._services.restart(int(self.np_random_seed or 0))
        elif not self._begun:
            self._services.begin(int(self.np_random_seed or 0))
        for episode, name in zip(self._episodes, names, strict=True):
            episode.begin(self._services.next_task(name))
        self._results, self._begun = [None] * self.num_envs, True
        return self._observations(), self._infos()

    def step(
        self, actions: Actions
    ) -> tuple[dict[str, Vector], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Make one pick in each sub-environment. When all are done, all kernels are written, judged and stored.

        Args:
            actions: One action for each sub-environment.

        Returns:
            Observations, rewards, terminated, truncated and infos.

        Raises:
            gymnasium.error.InvalidAction: An action is outside the action space.
            gymnasium.error.ResetNeeded: The episodes have not begun.
        """
        if not self._begun:
            raise gym.error.ResetNeeded("the episodes have not begun; call reset()")
        if not self.action_space.contains(np.asarray(actions, np.int64)):
            raise gym.error.InvalidAction(f"actions must be {self.num_envs} numbers in 0..{self.options.slots}")
        self._results = [None] * self.num_envs
        for episode, action in zip(self._episodes, actions, strict=True):
            self._advance(episode, int(action))
        if self._all_ready() and self._episodes[0].needs_drafts:
            drafts = self._services.write_drafts([episode.request() for episode in self._episodes])
            for episode, kernels in zip(self._episodes, drafts, strict=True):
                episode.offer_drafts(kernels)
        if self._all_ready():
            self._iterate()
        if self.render_mode == "human":
            print(self._frame(), flush=True)
        rewards = np.array([result.reward if result else 0.0 for result in self._results])
        terminated = np.array([episode.over for episode in self._episodes])
        truncated = np.array([episode.given_up for episode in self._episodes])
        return self._observations(), rewards, terminated, truncated, self._infos()

    def _advance(self, episode: Episode, action: int) -> None:
        if episode.over or episode.given_up:
            episode.begin(self._services.next_task())
        elif not episode.ready:
            episode.pick(action)

    def _all_ready(self) -> bool:
        return all(episode.ready for episode in self._episodes)

    def _iterate(self) -> None:
        """End an outer iteration: have all kernels judged, commit in index order, then open the next attempts."""
        requests, drafts = zip(*((episode.request(), episode.draft) for episode in self._episodes), strict=True)
        generated = self._services.generate_and_verify(requests, drafts)
        self._results = [episode.commit(result) for episode, result in zip(self._episodes, generated, strict=True)]
        for episode in self._episodes:
            episode.open_attempt()

    def _observations(self) -> dict[str, Vector]:
        each = [episode.observation() for episode in self._episodes]
        return {key: np.stack([observation[key] for observation in each]) for key in each[0]}

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for i, (episode, result) in enumerate(zip(self._episodes, self._results, strict=True)):
            for key, value in (episode.info() | (result.info() if result else {})).items():
                infos.setdefault(key, np.full(self.num_envs, None, object))[i] = value
                infos.setdefault(f"_{key}", np.zeros(self.num_envs, np.bool_))[i] = True
        return infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return True for every legal action, one row for each sub-environment."""
        if not self._begun:
            raise gym.error.ResetNeeded("there are no masks yet; call reset()")
        return np.stack([episode.mask() for episode in self._episodes]) > 0.5

    def render(self) -> tuple[str, ...] | tuple[Pixels, ...] | None:  # type: ignore[override]
        """Return one text for each sub-environment with `ansi`, one picture each with `rgb_array`, else None."""
        if self.render_mode not in ("ansi", "rgb_array"):
            return None
        if not self._begun:
            raise gym.error.ResetNeeded("there is nothing to show yet; call reset()")
        if self.render_mode == "rgb_array":
            states = zip(self._episodes, self._results, strict=True)
            return tuple(picture(episode, result, self.options.slots) for episode, result in states)
        return tuple(frame(episode, result) for episode, result in zip(self._episodes, self._results, strict=True))

    def _frame(self) -> str:
        return "\n".join(frame(episode, result) for episode, result in zip(self._episodes, self._results, strict=True))

    def close_extras(self, **kwargs: Any) -> None:
        """Close the parts that the environment made; parts that were given as objects stay open."""
        self._services.close()
        if self.options.memory == "fresh":
            for episode in self._episodes:
                episode.bank.close()


def view(
    observations: Mapping[str, Vector], infos: Mapping[str, Any], i: int
) -> tuple[dict[str, Vector], dict[str, Any]]:
    """Return one sub-environment's observation and info, as the single environment would give them.

    Args:
        observations: Observations of the vector form.
        infos: Infos of the vector form.
        i: Index of the sub-environment.

    Returns:
        Its observation and its info.
    """
    info = {key: infos[key][i] for key in infos if not key.startswith("_") and infos[f"_{key}"][i]}
    return {key: value[i] for key, value in observations.items()}, info


def _imported(file: Path, like: MemoryBank) -> MemoryBank:
    bank = MemoryBank(None, like.embedder)
    bank.import_(file)
    return bank
