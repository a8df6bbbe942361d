"""Attempts as episodes of their own, so that a library's algorithm gives credit for one attempt only.

The return of a pick is then the reward of its attempt. With an episode over a whole budget, the rewards of all later
attempts would be added, which hides what a pick did.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class AttemptEpisodes(gym.vector.VectorWrapper):
    """A lock-step environment whose episodes end with every attempt.

    Autoreset stays NEXT_STEP: the step after an end ignores the actions and returns the first observation of the next
    attempt. That step moves on the environment only if a task is over. If some tasks are over and others are not,
    which happens with `stages="draft"`, the others take their first pick in it, and this pick earns no credit.

    Args:
        env: The environment.
    """

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self._next: tuple[Any, dict[str, Any]] | None = None

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next tasks."""
        self._next = None
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make one pick in each sub-environment, or begin the next attempts."""
        nothing = np.zeros(self.num_envs, np.bool_)
        if self._next is not None:
            (observations, infos), self._next = self._next, None
            return observations, np.zeros(self.num_envs), nothing, nothing, infos
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = infos.get("_attempt", nothing)
        if ended.any() and not (terminated | truncated).any():
            self._next = observations, {key: infos[key] for key in infos if key not in ("attempt", "_attempt")}
        return observations, rewards, terminated | ended, truncated, infos
