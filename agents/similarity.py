"""Show the author the items most similar to the task: plain dense retrieval.

Rule: ours, the usual baseline. The start point is the fastest one. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate


class SimilarityAgent(RankingAgent):
    """Pick the most similar items and the fastest start point.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the cosine similarity of the item and the query."""
        return candidate.similarity
