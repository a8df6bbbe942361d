"""MaskablePPO of sb3-contrib on the same environment, with a plain network over the whole observation.

It shows that the environment is not shaped to one library; `ppo` has the network that suits pools.
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


class LockStep(VecEnv):  # type: ignore[misc]
    """The lock-step environment as stable-baselines3 wants it.

    Our step after an end resets and ignores its action; to the learner it is the first step of the new episode, in
    which only "generate now" is legal and nothing is paid.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._envs = envs

    def reset(self) -> Any:
        """Begin."""
        self._observations, _ = self._envs.reset()
        return self._observations

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Take down the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Make the step."""
        self._observations, rewards, terminated, truncated, _ = self._envs.step(self._actions)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(ended):
            last = {key: value[i] for key, value in self._observations.items()}
            infos[i] = {"terminal_observation": last, "TimeLimit.truncated": bool(truncated[i] and not terminated[i])}
        return self._observations, rewards.astype(np.float32), ended, infos

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Only masks can be asked for."""
        if method_name != "action_masks":
            raise AttributeError(method_name)
        return [mask > 0.5 for mask in self._observations["action_mask"]]

    def has_attr(self, attr_name: str) -> bool:
        """It has masks."""
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Nothing is rendered."""
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """There is nothing to set."""
        raise AttributeError(attr_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """It is not."""
        return [False] * self.num_envs

    def close(self) -> None:
        """The run closes its environments."""


class MaskablePPOAgent(Agent):
    """PPO with invalid-action masking. Constants are the library's but for those below, which suit short budgets."""

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
        """An action drawn from the trained policy; a random legal one before training."""
        legal = observation["action_mask"] > 0.5
        if self.model is None:
            return int(self.rng.choice(legal.nonzero()[0]))
        batch, _ = self.model.policy.obs_to_tensor(dict(observation))
        with torch.no_grad():
            drawn = self.model.policy.get_distribution(batch, action_masks=legal[None])
        probabilities = drawn.distribution.probs[0].double().numpy() * legal
        return int(self.rng.choice(len(legal), p=probabilities / probabilities.sum()))

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the environment says that the budget is spent."""
        envs = LockStep(make_env.vector())
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
        model.set_logger(Logger(None, [_Log(log)]))
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
        """Write the library's own archive."""
        if self.model is not None:
            path.mkdir(parents=True, exist_ok=True)
            self.model.save(path / "maskable_ppo.zip")

    def load(self, path: Path) -> None:
        """Read it back."""
        file = path / "maskable_ppo.zip"
        if not file.exists():
            raise ConfigError(f"{file} holds no trained network: train the agent first")
        self.model = MaskablePPO.load(file, device="cpu")


class _Log(KVWriter):  # type: ignore[misc]
    """The library's figures, handed on."""

    def __init__(self, log: Callable[[Metrics, int], None]) -> None:
        self._log = log

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Sequence[str]], step: int = 0) -> None:
        """Hand on what is a number and no clock reading."""
        numbers = {
            f"sb3/{key}": float(value)
            for key, value in key_values.items()
            if isinstance(value, int | float | np.number) and not key.startswith("time/")
        }
        self._log(numbers, step)

    def close(self) -> None:
        """Nothing is open."""
