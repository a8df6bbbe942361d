"""The contract of agents as tests that a plug-in author inherits.

    class TestMyAgent(AgentContract):
        def make(self, seed: int) -> Agent:
            return MyAgent(seed=seed)

Run with pytest. The agent is played on the environment with a known optimum, drafting and refining; no compiler needed.
One that needs real operators says so with `environment`. Agents that own their loop are tested as they come out of
`make`: trained or not, they must act; to be saved and loaded they must have something to save.
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
    """What every agent must do; inherit and say how yours is made."""

    attempts = 40

    @abstractmethod
    def make(self, seed: int) -> Agent:
        """A new agent."""

    def environment(self) -> gym.Env[Any, Any]:
        """What the agent is played on."""
        import kernel_gym  # noqa: F401 - registers the environments

        return gym.make("kernel_gym/KnownOptimum-v0", stages="both", memory="shared", budget=8)

    def test_actions_are_legal(self) -> None:
        """An action is an int that the mask allows."""
        env = self.environment()
        agent, (observation, info) = self.make(0), env.reset(seed=1)
        for _ in range(4 * self.attempts):
            action = agent.act(observation, info)
            assert isinstance(action, int), f"act must answer with an int, not {type(action).__name__}"
            assert observation["action_mask"][action] == 1.0, f"action {action} is masked"
            observation, _, terminated, truncated, info = env.step(action)
            if "attempt" in info:
                agent.learn(info["attempt"])
            if terminated or truncated:
                observation, info = env.reset()

    def test_same_seed_same_actions(self) -> None:
        """Everything random in an agent comes from its seed."""
        assert list(self._steps(self.make(3))) == list(self._steps(self.make(3)))

    def test_leaves_what_it_is_shown_alone(self) -> None:
        """Observations belong to the environment."""
        env, agent = self.environment(), self.make(0)
        observation, info = env.reset(seed=1)
        before = {key: value.copy() for key, value in observation.items()}
        agent.act(observation, info)
        assert all(np.array_equal(before[key], observation[key]) for key in before)

    def test_values_are_one_number_a_slot_and_looking_at_them_changes_nothing(self) -> None:
        """An agent without values answers None; one with values tells them without acting or drawing."""
        env, agent, other = self.environment(), self.make(4), self.make(4)
        (observation, info), (again, told) = env.reset(seed=1), self.environment().reset(seed=1)
        worth = agent.candidate_values(observation, info)
        assert worth is None or len(worth) == len(info["candidates"])
        assert worth is None or all(isfinite(value) for value in worth)
        assert agent.act(observation, info) == other.act(again, told)

    def test_metrics_are_finite_numbers(self) -> None:
        """What `learn` gives back can be logged."""
        agent = self.make(0)
        for _, attempt in self._steps(agent):
            metrics = agent.learn(attempt) if attempt is not None else {}
            assert all(isinstance(name, str) and isfinite(value) for name, value in metrics.items())

    def test_saved_and_loaded_it_goes_on_alike(self, tmp_path: Path) -> None:
        """With the same random numbers, a loaded agent acts as the saved one does."""
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
