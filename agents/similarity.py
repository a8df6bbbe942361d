"""The most similar items: retrieval as it usually is."""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate


class SimilarityAgent(RankingAgent):
    """The most similar items; the fastest start point."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Cosine of the item and the query."""
        return candidate.similarity
