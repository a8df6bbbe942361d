"""Agents that take the best of the pool by some score."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.envs.pool import Candidate


class RankingAgent(Agent):
    """Fills the context with the legal candidates that `score` likes best, first come first on ties.

    A candidate that scores None is never picked; the kernel is generated once only such ones are left. The start point
    is the fastest one.
    """

    @abstractmethod
    def score(self, candidate: Candidate, info: Info) -> float | None:
        """How much the agent wants the candidate in the context; None: not at all."""

    def score_start(self, candidate: Candidate, info: Info) -> float:
        """How much the agent wants to refine from the candidate."""
        return -(candidate.latency_us or float("inf"))

    def act(self, observation: Observation, info: Info) -> int:
        """The best legal slot, or `K` if there is none."""
        score = self.score_start if info["start_due"] else self.score
        scored = [(slot, score(info["candidates"][slot], info)) for slot in legal_slots(observation)]
        wanted = [(slot, value) for slot, value in scored if value is not None]
        return max(wanted, key=lambda pair: (pair[1], -pair[0]))[0] if wanted else generate(observation)


def legal_slots(observation: Observation) -> list[int]:
    """The candidates that may be picked now."""
    return [int(slot) for slot in np.flatnonzero(observation["action_mask"][:-1])]


def generate(observation: Observation) -> int:
    """The action that ends the picks."""
    return len(observation["action_mask"]) - 1
