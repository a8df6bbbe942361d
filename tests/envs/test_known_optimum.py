"""The environment whose best policy is known, and that it can be known from the observation alone."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kernel_gym  # noqa: F401
from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.random import RandomAgent
from kernel_gym.envs.known_optimum import DRAFT_SECRET, REFINE_SECRET
from kernel_gym.envs.observation import Layout
from kernel_gym.experiments.runs.play import play


class OracleAgent(Agent):
    """Reads the items and so knows which one helps."""

    def act(self, observation: Observation, info: Info) -> int:
        if info["start_due"]:
            return 0
        secret = DRAFT_SECRET if info["stage"] == "draft" else REFINE_SECRET
        for slot, candidate in enumerate(info["candidates"]):
            if secret in candidate.item.text and observation["action_mask"][slot]:
                return slot
        return len(observation["action_mask"]) - 1


class BoxAgent(Agent):
    """A value rule that reads nothing but the observation: greedy on the recorded outcomes of the stage."""

    def __init__(self, layout: Layout, seed: int) -> None:
        super().__init__(seed)
        self.layout = layout

    def act(self, observation: Observation, info: Info) -> int:
        legal = np.flatnonzero(observation["action_mask"][:-1])
        if not len(legal):
            return len(observation["action_mask"]) - 1
        if self.rng.random() < 0.05:
            return int(self.rng.choice(legal))
        box = observation["observations"]
        stage = "draft" if box[self.layout.globals("stage.draft")] else "refine"
        return int(legal[np.argmax(box[self.layout.candidate(f"recent.{stage}")][legal])])


def returns(env: gym.Env[Any, Any], agent: Agent, attempts: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Reward of each attempt."""
    return np.array([attempt.reward for attempt in play(env, agent, attempts, seed)])


@pytest.mark.parametrize("stages", ["draft", "both"])
def test_a_policy_with_the_secret_reaches_the_optimum(stages: str) -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", stages=stages)
    agent, (observation, info), total, over = OracleAgent(), env.reset(seed=1), 0.0, False
    while not over:
        observation, reward, over, _, info = env.step(agent.act(observation, info))
        total += float(reward)
    assert total == pytest.approx(env.unwrapped.optimum)  # type: ignore[attr-defined]


@pytest.mark.parametrize("secret", [0, 1, 2])
def test_random_picks_rarely_find_the_useful_memory(secret: int) -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", secret=secret)
    assert returns(env, RandomAgent(0), 200).mean() < -0.4
    helpful = {item.id for item in env.unwrapped.bank.items() if DRAFT_SECRET in item.text}  # type: ignore[attr-defined]
    assert len(helpful) == 1


@pytest.mark.parametrize("secret", [0, 1, 2])
def test_a_value_rule_that_reads_only_the_observation_solves_it(secret: int) -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", secret=secret)
    rewards = returns(env, BoxAgent(env.unwrapped.layout, seed=secret), 300)  # type: ignore[attr-defined]
    assert rewards[-150:].mean() > 0.9


def test_neither_slot_nor_similarity_reveals_the_secret() -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", tasks_count=24)
    places = []
    for _ in range(24):
        _, info = env.reset(seed=None if places else 0)
        places += [i for i, candidate in enumerate(info["candidates"]) if DRAFT_SECRET in candidate.item.text]
    assert len(set(places)) > 6
