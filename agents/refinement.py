"""Show the author earlier attempts at the same task only: the paper's baseline "Refinement".

Rule: the paper's baseline without a shared memory (arXiv 2603.10846): the author sees the feedback on its
own attempts and, once one is feasible, climbs from the fastest kernel. Where the environment offers repair
(`env.repair`), it mends the last attempt and shows nothing else while drafting. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Info
from kernel_gym.agents.ranking import RankingAgent
from kernel_gym.envs.pool import Candidate
from kernel_gym.memory.item import Stage


class RefinementAgent(RankingAgent):
    """Pick the task's own items, latest first, and the fastest start point; mend the last attempt where it is offered.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def score(self, candidate: Candidate, info: Info) -> float | None:
        """Return the item's id, which grows with time; None for items of other tasks, and for all beside a repair."""
        if info["stage"] == Stage.DRAFT and info.get("start"):
            return None
        return float(candidate.id) if candidate.item.task == info["task"] else None
