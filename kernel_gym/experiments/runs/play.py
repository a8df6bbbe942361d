"""The simplest loop: one environment, one agent, attempt after attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from kernel_gym.agents.contract import Agent
from kernel_gym.envs.attempt import Attempt


def play(env: gym.Env[Any, Any], agent: Agent, attempts: int, seed: int | None = None) -> Iterator[Attempt]:
    """Let `agent` act and learn for so many attempts, over as many episodes as that takes; yields each of them."""
    observation, info = env.reset(seed=seed)
    while attempts > 0:
        observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
        if attempt := info.get("attempt"):
            agent.learn(attempt)
            attempts -= 1
            yield attempt
        if (terminated or truncated) and attempts > 0:
            observation, info = env.reset()
