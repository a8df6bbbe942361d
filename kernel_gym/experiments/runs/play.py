"""The simplest training loop: one environment, one agent, one attempt after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from kernel_gym.agents.contract import Agent
from kernel_gym.envs.attempt import Attempt


def play(env: gym.Env[Any, Any], agent: Agent, attempts: int, seed: int | None = None) -> Iterator[Attempt]:
    """Let an agent act and learn in an environment.

    Args:
        env: The environment, on one or several tasks.
        agent: The agent; it must not own its training loop.
        attempts: The number of attempts, over as many episodes as that takes.
        seed: The seed of the first `reset`.

    Yields:
        Each finished attempt, after the agent learned from it.
    """
    observation, info = env.reset(seed=seed)
    while attempts > 0:
        observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
        if attempt := info.get("attempt"):
            agent.learn(attempt)
            attempts -= 1
            yield attempt
        if (terminated or truncated) and attempts > 0:
            observation, info = env.reset()
