"""PPO through RLlib: masks obeyed, the known optimum found, training deterministic."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")

from kernel_gym.agents.contract import BudgetSpent
from kernel_gym.agents.ppo import PPOAgent
from kernel_gym.envs.known_optimum import KnownOptimumEnv

pytestmark = pytest.mark.usefixtures("shared_ray")


class Counted(gym.vector.VectorWrapper):
    """Counts attempts and illegal actions, and ends the training once the budget is spent."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any], budget: int) -> None:
        super().__init__(envs)
        self.budget = budget
        self.rewards: list[float] = []
        self.illegal = 0

    def reset(self, **arguments: Any) -> Any:
        observations, infos = self.env.reset(**arguments)
        self._mask = observations["action_mask"]
        return observations, infos

    def step(self, actions: Any) -> Any:
        if len(self.rewards) >= self.budget:
            raise BudgetSpent
        self.illegal += int((self._mask[np.arange(self.num_envs), actions] < 0.5).sum())
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._mask = observations["action_mask"]
        ended = infos.get("_attempt", np.zeros(self.num_envs, bool))
        self.rewards += [float(reward) for reward, end in zip(rewards, ended, strict=True) if end]
        return observations, rewards, terminated, truncated, infos


class KnownOptimum:
    """Four known-optimum environments side by side."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def __call__(self) -> gym.Env[Any, Any]:
        return KnownOptimumEnv()

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        self.envs = Counted(gym.vector.SyncVectorEnv([KnownOptimumEnv] * 4), self.budget)
        return self.envs


def trained(budget: int) -> tuple[PPOAgent, Counted, list[Mapping[str, float]]]:
    agent, make_env = PPOAgent(seed=3), KnownOptimum(budget)
    log: list[Mapping[str, float]] = []
    agent.fit(make_env, budget, lambda metrics, step: log.append(metrics))
    return agent, make_env.envs, log


@pytest.fixture(scope="module")
def training(shared_ray: None) -> tuple[PPOAgent, Counted, list[Mapping[str, float]]]:
    return trained(600)


def test_ppo_finds_the_useful_memory_and_keeps_to_the_mask(training: Any, tmp_path: Path) -> None:
    agent, envs, log = training
    assert envs.illegal == 0
    assert len(envs.rewards) < 600 + 4
    assert np.mean(envs.rewards[:200]) < 0
    assert np.mean(envs.rewards[-200:]) > 0.9
    assert any(name.endswith("entropy") for name in log[-1])
    agent.save(tmp_path)
    loaded = PPOAgent(seed=3)
    loaded.load(tmp_path)
    env = KnownOptimumEnv()
    observation, info = env.reset(seed=1)
    agent.rng, loaded.rng = np.random.default_rng(0), np.random.default_rng(0)
    assert [agent.act(observation, info) for _ in range(20)] == [loaded.act(observation, info) for _ in range(20)]


def test_training_is_deterministic(training: Any) -> None:
    again = trained(200)[1].rewards
    assert again == training[1].rewards[: len(again)]
