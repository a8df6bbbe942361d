"""Learning from one's own attempts alone: the published baseline without a shared memory."""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate


class RefinementAgent(RankingAgent):
    """Shows the task's own attempts only, the latest first, and climbs from the fastest kernel."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """How recent the item is, if it comes from this task."""
        return float(candidate.id) if candidate.item.task == info["task"] else None
