"""Show the author the most similar kernels that passed every gate.

Rule: ours, a strong heuristic that learned values have to beat. Other items fill the context, by similarity, only when
no such kernel is left in the pool. The start point is the fastest one. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import FEASIBLE_FIRST, RankingAgent, is_feasible_trace
from kernel_gym.envs.pool import Candidate


class SimilarityFeasibleAgent(RankingAgent):
    """Pick feasible traces by similarity, then the other items by similarity.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the similarity, raised for feasible traces so that they come before all other items."""
        return candidate.similarity + (FEASIBLE_FIRST if is_feasible_trace(candidate) else 0.0)
