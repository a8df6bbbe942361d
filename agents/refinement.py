"""Show the author earlier attempts at the same task only: the paper's baseline "Refinement".

Rule: the paper's baseline without a shared memory (arXiv 2603.10846): the author sees the feedback on its
own attempts and, once one is feasible, climbs from the fastest kernel. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate


class RefinementAgent(RankingAgent):
    """Pick the task's own items, latest first, and the fastest start point.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the item's id, which grows with time; None for items of other tasks."""
        return float(candidate.id) if candidate.item.task == info["task"] else None
