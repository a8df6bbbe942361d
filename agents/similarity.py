"""Heuristics on similarity: what values have to be compared with."""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate


class SimilarityAgent(RankingAgent):
    """The most similar items; the fastest start point. This is the heuristic retrieval of the paper's ablation."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Cosine of the item and the query."""
        return candidate.similarity


class SimilarityFeasibleAgent(RankingAgent):
    """The most similar feasible traces; the rest, by similarity, only when these run out."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Similarity, with every feasible trace before everything else."""
        return candidate.similarity + (BEFORE_ALL if is_feasible_trace(candidate) else 0.0)


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
        return value + (BEFORE_ALL if is_feasible_trace(candidate) else 0.0)


#: More than any difference of similarities.
BEFORE_ALL = 10.0


def is_feasible_trace(candidate: Candidate) -> bool:
    """True for code that passed every gate."""
    return candidate.kind == "trace" and candidate.item.feasible


def _overlap(one: Candidate, other: Candidate) -> float:
    """Words that both have, as a share of all words of the two."""
    union = one.words | other.words
    return len(one.words & other.words) / len(union) if union else 0.0
