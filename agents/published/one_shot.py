"""Show one verified example of the task's category: MultiKernelBench (arXiv 2507.17773).

The prompt has one example, a correct kernel of the same category; every attempt is otherwise independent.

Deviations from the paper:
1. The example is the most similar verified kernel of another task of the category that the pool has; theirs was written
   by hand. While the pool has none, nothing is shown.
2. The paper has no refining. Here an attempt that has to refine begins from the fastest kernel, with the same example.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Offered, Tree, TreeAgent
from kernel_gym.agents.ranking import is_feasible_trace


class OneShotAgent(TreeAgent):
    """Show one verified kernel of the task's category; refine the fastest kernel.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: With `own`, drafts are shown the one example.
    """

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the fastest kernel."""
        return kernels[0]

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the most similar example; nothing else."""
        if info["picked"]:
            return None
        examples = [
            slot
            for slot, candidate in offered.items()
            if is_feasible_trace(candidate)
            and candidate.item.category == info["category"]
            and candidate.item.task != info["task"]
        ]
        return max(examples, key=lambda slot: (offered[slot].similarity, -slot), default=None)

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the most similar example; nothing else."""
        return self.pick(tree, offered, info)
