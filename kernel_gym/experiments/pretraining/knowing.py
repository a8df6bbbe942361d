"""The knowing picker on forecasts: it picks by the author's own chances, for many tasks at once.

It says how much there is to be gained by picking, and what share of that another policy gains. What it reads is inside
the simulated author, so that it is a yardstick: nothing here is used in training.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.behaviour.profile import load_profile
from kernel_gym.authors.apprentice.forecast.chances import KnowingAuthor
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.envs.forecast.descriptions import LANGUAGE
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.forecast.items import Items
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.experiments.pretraining.rollouts import Batch, Policy

Numbers = NDArray[np.float64]


class KnowingPicker:
    """Takes the action with the highest expected reward; the start point is the fastest one.

    Args:
        batch: Whose author is asked.
        envs: The environments that the states are in.
    """

    def __init__(self, batch: Batch, envs: ForecastVectorEnv) -> None:
        self.author, self.envs = _author(batch.author), envs

    def __call__(self, seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
        """Act in the present states, as a policy does."""
        values = self.values(seen, mask)
        actions = np.where(mask.any(axis=1), values.argmax(axis=1), mask.shape[1] - 1)
        return actions, np.zeros(len(actions), np.float32)

    def values(self, seen: Vector, mask: Vector) -> Numbers:
        """Return the expected reward of each action if no pick follows it; -inf for illegal ones."""
        layout = Layout.of_size(mask.shape[1] - 1, seen.shape[1])
        values = np.full(mask.shape, -np.inf)
        starting = seen[:, layout.candidate("kind.start")] > 0.5
        values[:, :-1] = np.where(starting, seen[:, layout.candidate("relative_latency")], -np.inf)
        who, actions, requests = self.envs.possible_requests()
        if requests:
            values[who, actions] = self.author.expected_rewards(requests, self.envs.items)
        values[mask < 0.5] = -np.inf
        return values


class Watched:
    """A policy, and how its picks compare with the knowing picker's in the same states.

    Args:
        policy: The policy.
        picker: Knows the expected rewards.

    Attributes:
        gains: For each pick of a draft: what a random pick earns, this policy's, and the best one.
    """

    def __init__(self, policy: Policy, picker: KnowingPicker) -> None:
        self.policy, self.picker = policy, picker
        self.gains: list[tuple[float, float, float]] = []

    def __call__(self, seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
        """Act as the policy does."""
        values = self.picker.values(seen, mask)
        actions, chances = self.policy(seen, mask, rng)
        layout = Layout.of_size(mask.shape[1] - 1, seen.shape[1])
        drafting = seen[:, layout.globals("stage.draft")] > 0.5
        for i in np.flatnonzero(drafting & (mask.sum(axis=1) > 1.5)).tolist():
            legal = values[i][mask[i] > 0.5]
            self.gains.append((float(legal.mean()), float(values[i, actions[i]]), float(legal.max())))
        return actions, chances

    @property
    def captured(self) -> float:
        """The share of the knowing picker's gain over random picks that the policy's picks have."""
        by_chance, own, best = np.array(self.gains or [(0.0, 0.0, 0.0)]).mean(axis=0)
        return float((own - by_chance) / (best - by_chance)) if best > by_chance else 0.0


@lru_cache(maxsize=64)
def _author(profile: str) -> KnowingAuthor:
    return KnowingAuthor(load_profile(profile), backend(LANGUAGE), Items.page_slots)
