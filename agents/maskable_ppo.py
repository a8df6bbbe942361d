"""Show the author what a policy trained with MaskablePPO picks (sb3-contrib).

Algorithm: sb3-contrib's PPO with invalid-action masking, with a plain network over the whole observation. It shows that
the environment also works with another library; the network of `ppo` suits pools better. Options of
`MaskablePPOAgent`: constants of the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.agents.contract import Agent, BudgetSpent, Info, MakeEnv, Metrics, Observation
from kernel_gym.errors import ConfigError

try:
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.logger import KVWriter, Logger
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ConfigError("the agent 'maskable-ppo' needs sb3-contrib: pip install 'kernel_gym[sb3]'") from error


class LockStepVecEnv(VecEnv):  # type: ignore[misc]
    """The lock-step vector environment with the interface of stable-baselines3.

    After the end of an episode our next step resets and ignores its action. For the learner that is the first step of
    the new episode: only "generate now" is legal, and the reward is 0.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._envs = envs

    def reset(self) -> Any:
        """Reset all environments."""
        self._observations, _ = self._envs.reset()
        return self._observations

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Store the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step all environments with the stored actions."""
        self._observations, rewards, terminated, truncated, _ = self._envs.step(self._actions)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            last = {key: value[i] for key, value in self._observations.items()}
            infos[i] = {"terminal_observation": last, "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
        return self._observations, rewards.astype(np.float32), ended, infos

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call `action_masks`, the only method that sub-environments have."""
        if method_name != "action_masks":
            raise AttributeError(method_name)
        return [mask > 0.5 for mask in self._observations["action_mask"]]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the attribute is the action mask."""
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return None for every attribute: nothing is rendered."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise: there is nothing to set."""
        raise AttributeError(attr_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False: there are no wrappers."""
        return [False] * self.num_envs

    def close(self) -> None:
        """Do nothing: the run closes its environments."""


class MaskablePPOAgent(Agent):
    """PPO with invalid-action masking over picks, trained by sb3-contrib.

    Constants are the library's except for the defaults below, which suit short budgets.

    Args:
        seed: Seed of training and of the draws in `act`.
        learning_rate: Learning rate.
        gamma: Discount of rewards per step.
        entropy: Coefficient of the entropy bonus.
        epochs: Passes over each batch.
        steps_per_batch: Steps of every environment in one batch.
    """

    owns_loop = True

    def __init__(
        self,
        seed: int = 0,
        learning_rate: float = 1e-3,
        gamma: float = 1.0,
        entropy: float = 0.01,
        epochs: int = 8,
        steps_per_batch: int = 24,
    ) -> None:
        super().__init__(seed)
        self.seed, self.learning_rate, self.gamma = seed, learning_rate, gamma
        self.entropy, self.epochs, self.steps_per_batch = entropy, epochs, steps_per_batch
        self.model: MaskablePPO | None = None

    def act(self, observation: Observation, info: Info) -> int:
        """Return an action drawn from the trained policy; a random legal one before training."""
        legal = observation["action_mask"] > 0.5
        if self.model is None:
            return int(self.rng.choice(legal.nonzero()[0]))
        batch, _ = self.model.policy.obs_to_tensor(dict(observation))
        with torch.no_grad():
            policy = self.model.policy.get_distribution(batch, action_masks=legal[None])
        probabilities = policy.distribution.probs[0].double().numpy() * legal
        return int(self.rng.choice(len(legal), p=probabilities / probabilities.sum()))

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the environment raises `BudgetSpent`."""
        envs = LockStepVecEnv(make_env.vector())
        model = MaskablePPO(
            "MultiInputPolicy",
            envs,
            learning_rate=self.learning_rate,
            gamma=self.gamma,
            ent_coef=self.entropy,
            n_epochs=self.epochs,
            n_steps=self.steps_per_batch,
            batch_size=min(128, self.steps_per_batch * envs.num_envs),
            seed=self.seed,
            device="cpu",
        )
        if self.model is not None:
            model.set_parameters(self.model.get_parameters())
        model.set_logger(Logger(None, [_LogWriter(log)]))
        self.model = model
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            model.learn(2**62, log_interval=1)
        except BudgetSpent:
            return
        finally:
            torch.set_num_threads(threads)

    def save(self, path: Path) -> None:
        """Write the library's own archive; nothing before training."""
        if self.model is not None:
            path.mkdir(parents=True, exist_ok=True)
            self.model.save(path / "maskable_ppo.zip")

    def load(self, path: Path) -> None:
        """Read back the archive.

        Raises:
            ConfigError: If the folder has no archive.
        """
        file = path / "maskable_ppo.zip"
        if not file.exists():
            raise ConfigError(f"{file} holds no trained network: train the agent first")
        self.model = MaskablePPO.load(file, device="cpu")


class _LogWriter(KVWriter):  # type: ignore[misc]
    """Passes the library's metrics on to the run's log."""

    def __init__(self, log: Callable[[Metrics, int], None]) -> None:
        self._log = log

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Sequence[str]], step: int = 0) -> None:
        """Log all numbers except timings."""
        numbers = {
            f"sb3/{key}": float(value)
            for key, value in key_values.items()
            if isinstance(value, int | float | np.number) and not key.startswith("time/")
        }
        self._log(numbers, step)

    def close(self) -> None:
        """Do nothing: no file is open."""
