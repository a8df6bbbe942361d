"""The most similar kernels that passed: the heuristic that learned values have to beat."""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import FEASIBLE_FIRST, RankingAgent, is_feasible_trace
from kernel_gym.envs.pool import Candidate


class SimilarityFeasibleAgent(RankingAgent):
    """The most similar feasible traces; the rest, by similarity, only when these run out."""

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Similarity, with every feasible trace before everything else."""
        return candidate.similarity + (FEASIBLE_FIRST if is_feasible_trace(candidate) else 0.0)
