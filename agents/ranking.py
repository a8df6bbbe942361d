"""Base class of agents that score every candidate and pick the best.

Also what nearly every agent needs to read a mask: `legal_slots` and `generate`.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.envs.pool import Candidate

#: Value of a candidate that is never picked: below any score.
NEVER = -1e30
#: Added to the score of feasible traces: more than any difference in similarity.
FEASIBLE_FIRST = 10.0


class RankingAgent(Agent):
    """Picks the legal candidate with the highest score; on ties the first slot.

    A candidate that scores None is never picked. Once only such candidates are left, the kernel is generated. The
    default start point is the fastest one.

    Args:
        seed: Seed of `self.rng`; the ranking itself is deterministic.
    """

    @abstractmethod
    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the score of a candidate for the context.

        Args:
            candidate: A candidate of the pool.
            info: The structured view of the state.

        Returns:
            The score; None if the candidate must not be picked.
        """

    def score_start(self, candidate: Candidate, info: Info) -> float:
        """Return the score of a candidate as the start point."""
        return -(candidate.latency_us or 1e20)

    def act(self, observation: Observation, info: Info) -> int:
        """Return the legal slot with the highest score, or "generate now" if there is none."""
        values = self.candidate_values(observation, info)
        slots = [slot for slot in legal_slots(observation) if values[slot] > NEVER]
        return max(slots, key=lambda slot: (values[slot], -slot)) if slots else generate(observation)

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return the score of every candidate; `NEVER` for one that is never picked."""
        score = self.score_start if info["start_due"] else self.score
        scores = [score(candidate, info) for candidate in info["candidates"]]
        return [NEVER if value is None else value for value in scores]


def is_feasible_trace(candidate: Candidate) -> bool:
    """Return whether the candidate is code that passed every gate."""
    return candidate.kind == "trace" and candidate.item.feasible


def legal_slots(observation: Observation) -> list[int]:
    """Return the slots of the candidates that may be picked now."""
    return [int(slot) for slot in np.flatnonzero(observation["action_mask"][:-1])]


def generate(observation: Observation) -> int:
    """Return the action that ends the picks and generates the kernel."""
    return len(observation["action_mask"]) - 1
