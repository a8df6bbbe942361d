"""Show the author similar kernels that passed every gate and that differ from each other.

Rule: ours, maximal marginal relevance. A candidate's score is its similarity to the task minus its greatest overlap in
words with an earlier pick. The start point is the fastest one. Option: `relevance`, the weight of the two.
"""

from __future__ import annotations

from functools import lru_cache

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import FEASIBLE_FIRST, RankingAgent, is_feasible_trace
from kernel_gym.envs.pool import Candidate


class SimilarityDiverseAgent(RankingAgent):
    """Pick feasible traces by maximal marginal relevance, then the other items.

    Args:
        seed: Not used: the rule is deterministic.
        relevance: Weight of similarity in [0, 1]; the rest is the weight of overlap. 1 is `similarity-feasible`.
    """

    def __init__(self, seed: int = 0, relevance: float = 0.7) -> None:
        super().__init__(seed)
        self.relevance = relevance

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the similarity minus the greatest overlap with a pick, raised for feasible traces."""
        picked = set(info["picked"])
        picks = [pick for pick in info["candidates"] if pick.id in picked]
        overlap = max((_overlap(candidate.words, pick.words) for pick in picks), default=0.0)
        value = self.relevance * candidate.similarity - (1.0 - self.relevance) * overlap
        return value + (FEASIBLE_FIRST if is_feasible_trace(candidate) else 0.0)


@lru_cache(maxsize=65536)
def _overlap(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of the words of both that occur in both."""
    union = words | others
    return len(words & others) / len(union) if union else 0.0
