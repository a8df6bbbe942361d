"""The published baselines that have no shared memory."""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import RankingAgent, generate, legal_slots
from kernel_gym.envs.pool import Candidate


class PassAtKAgent(Agent):
    """Shows nothing: every attempt is an independent try. What the environment adds by itself (API pages) stays."""

    def act(self, observation: Observation, info: Info) -> int:
        """Generate at once; where a start point is due, the fastest."""
        return legal_slots(observation)[0] if info["start_due"] else generate(observation)


class RefinementAgent(RankingAgent):
    """Shows the task's own attempts only, the latest first, and climbs from the fastest kernel."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """How recent the item is, if it comes from this task."""
        return float(candidate.id) if candidate.item.task == info["task"] else None
