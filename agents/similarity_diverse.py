"""Similar kernels that passed and are unlike each other: a heuristic whose picks complement each other."""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import FEASIBLE_FIRST, RankingAgent, is_feasible_trace
from kernel_gym.envs.pool import Candidate


class SimilarityDiverseAgent(RankingAgent):
    """Feasible traces by maximal marginal relevance: similar to the task, unlike what is picked already.

    `relevance` in [0, 1] weighs the two: 1 is `similarity-feasible`.
    """

    def __init__(self, seed: int = 0, relevance: float = 0.7) -> None:
        super().__init__(seed)
        self.relevance = relevance

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Similarity minus the greatest overlap with a pick, feasible traces first."""
        chosen = set(info["picked"])
        overlap = max((_overlap(candidate, pick) for pick in info["candidates"] if pick.id in chosen), default=0.0)
        value = self.relevance * candidate.similarity - (1.0 - self.relevance) * overlap
        return value + (FEASIBLE_FIRST if is_feasible_trace(candidate) else 0.0)


def _overlap(one: Candidate, other: Candidate) -> float:
    """Words that both have, as a share of all words of the two."""
    union = one.words | other.words
    return len(one.words & other.words) / len(union) if union else 0.0
