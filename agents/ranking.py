"""Agents that take the best of the pool by some score."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.envs.pool import Candidate

#: The worth of a candidate that is not wanted at all: below any score.
NEVER = -1e30
#: More than any difference of similarities: puts code that passed before everything else.
FEASIBLE_FIRST = 10.0


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
        return -(candidate.latency_us or 1e20)

    def act(self, observation: Observation, info: Info) -> int:
        """The best legal slot, or `K` if there is none."""
        worth = self.candidate_values(observation, info)
        wanted = [slot for slot in legal_slots(observation) if worth[slot] > NEVER]
        return max(wanted, key=lambda slot: (worth[slot], -slot)) if wanted else generate(observation)

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """The score of every candidate; below everything for one that is never picked."""
        score = self.score_start if info["start_due"] else self.score
        scores = [score(candidate, info) for candidate in info["candidates"]]
        return [NEVER if value is None else value for value in scores]


def is_feasible_trace(candidate: Candidate) -> bool:
    """True for code that passed every gate."""
    return candidate.kind == "trace" and candidate.item.feasible


def legal_slots(observation: Observation) -> list[int]:
    """The candidates that may be picked now."""
    return [int(slot) for slot in np.flatnonzero(observation["action_mask"][:-1])]


def generate(observation: Observation) -> int:
    """The action that ends the picks."""
    return len(observation["action_mask"]) - 1
