"""Conformance tests for agents, to be inherited by the authors of plug-ins.

Write a test class that says how your agent is made, and run it with pytest:

    from kernel_gym.agents.conformance import AgentContract
    from kernel_gym.agents.contract import Agent

    class TestMyAgent(AgentContract):
        def make(self, seed: int) -> Agent:
            return MyAgent(seed=seed)

The agent plays on an environment with a known optimum, in drafting and refining; no compiler is needed. Override
`environment` for an agent that needs real tasks, and `attempts` for one that is slow. An agent that owns its training
loop is tested as `make` returns it: it must be able to act whether it is trained or not, and for the test of saving it
must have something to save.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from kernel_gym.agents.contract import Agent
from kernel_gym.envs.attempt import Attempt

Step = tuple[int, Attempt | None]


class AgentContract:
    """Tests that every agent must pass.

    Attributes:
        attempts: Attempts that the agent makes in a test.
    """

    attempts = 24

    @abstractmethod
    def make(self, seed: int) -> Agent:
        """Make the agent under test.

        Args:
            seed: The agent's seed. Two agents made with the same seed must act alike.

        Returns:
            A new agent.
        """

    def environment(self) -> gym.Env[Any, Any]:
        """Make the environment that the agent plays on.

        Returns:
            A new environment; by default the one with a known optimum.
        """
        return gym.make("kernel_gym/KnownOptimum-v0", stages="both", memory="shared", budget=8)

    def test_actions_are_legal(self) -> None:
        """Every action is an int that the mask allows."""
        env = self.environment()
        agent, (observation, info) = self.make(0), env.reset(seed=1)
        for _ in range(4 * self.attempts):
            action = agent.act(observation, info)
            assert isinstance(action, int), f"act must return an int, not {type(action).__name__}"
            assert observation["action_mask"][action] == 1.0, f"action {action} is masked"
            observation, _, terminated, truncated, info = env.step(action)
            if "attempt" in info:
                agent.learn(info["attempt"])
            if terminated or truncated:
                observation, info = env.reset()

    def test_same_seed_same_actions(self) -> None:
        """Two agents with the same seed act alike."""
        assert list(self._steps(self.make(3))) == list(self._steps(self.make(3)))

    def test_observations_are_not_changed(self) -> None:
        """`act` leaves the observation as it is."""
        env, agent = self.environment(), self.make(0)
        observation, info = env.reset(seed=1)
        before = {key: value.copy() for key, value in observation.items()}
        agent.act(observation, info)
        assert all(np.array_equal(before[key], observation[key]) for key in before)

    def test_candidate_values_are_finite_and_change_nothing(self) -> None:
        """`candidate_values` returns None or one number per candidate, and the next action stays the same."""
        env, agent, other = self.environment(), self.make(4), self.make(4)
        (observation, info), (same_observation, same_info) = env.reset(seed=1), self.environment().reset(seed=1)
        values = agent.candidate_values(observation, info)
        assert values is None or len(values) == len(info["candidates"])
        assert values is None or all(isfinite(value) for value in values)
        assert agent.act(observation, info) == other.act(same_observation, same_info)

    def test_metrics_are_finite_numbers(self) -> None:
        """`learn` returns finite numbers by name."""
        agent = self.make(0)
        for _, attempt in self._steps(agent):
            metrics = agent.learn(attempt) if attempt is not None else {}
            assert all(isinstance(name, str) and isfinite(value) for name, value in metrics.items())

    def test_a_loaded_agent_acts_as_the_saved_one(self, tmp_path: Path) -> None:
        """After `save` and `load` two agents with the same random generator act alike."""
        agent, loaded = self.make(5), self.make(6)
        list(self._steps(agent))
        agent.save(tmp_path / "agent")
        loaded.load(tmp_path / "agent")
        agent.rng, loaded.rng = np.random.default_rng(7), np.random.default_rng(7)
        assert list(self._steps(agent)) == list(self._steps(loaded))

    def _steps(self, agent: Agent) -> Iterator[Step]:
        env, attempts = self.environment(), self.attempts
        observation, info = env.reset(seed=1)
        while attempts > 0:
            action = agent.act(observation, info)
            observation, _, terminated, truncated, info = env.step(action)
            if attempt := info.get("attempt"):
                agent.learn(attempt)
                attempts -= 1
            yield action, attempt
            if terminated or truncated:
                observation, info = env.reset()
