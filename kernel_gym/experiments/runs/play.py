"""The simplest training loop: one environment, one agent, one attempt after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym

from kernel_gym.agents.contract import Agent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.experiments.runs.agent_actions import AgentActions


def play(env: gym.Env[Any, Any], agent: Agent, attempts: int, seed: int | None = None) -> Iterator[Attempt]:
    """Let an agent act and learn in an environment.

    Args:
        env: The environment, on one or several tasks.
        agent: The agent; it must not own its training loop.
        attempts: The number of attempts, over as many episodes as that takes.
        seed: The seed of the first `reset`.

    Yields:
        Each finished attempt, after the agent learned from it.

    Raises:
        KernelGymError: If the agent returns something that is no action.
    """
    agent_actions, number = AgentActions(agent, type(agent).__name__), 1
    observation, info = env.reset(seed=seed)
    while attempts > 0:
        action = agent_actions.ask(observation, info, number)
        observation, _, terminated, truncated, info = env.step(action)
        if attempt := info.get("attempt"):
            agent.learn(attempt)
            attempts -= 1
            number = attempt.index + 2
            yield attempt
        if (terminated or truncated) and attempts > 0:
            observation, info = env.reset()
            number = 1
    agent_actions.warn_of_masked()
