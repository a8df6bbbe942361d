"""Optimise the last kernel against one profiled bottleneck: CudaForge (arXiv 2511.01884).

A judge reads the profile of the last kernel and names one bottleneck and one optimisation; a coder applies it. The next
round begins from the result even if it is slower, without any history. A kernel that fails is corrected first: the
coder is shown it with its error and nothing else.

Deviations from the paper:
1. The judge is the profile: its bottleneck chooses the one practice that is shown, the most similar that names it.
2. In refining, a start point must be feasible. After a failure the attempt begins from the last feasible kernel again,
   and the failed one is shown with its verdict.
3. Own drafting: the last failed draft is mended (`repair`), or shown alone where the environment does not offer that.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Offered, Tree, TreeAgent


class JudgeAgent(TreeAgent):
    """Refine the last feasible kernel; show one practice against its bottleneck, or the attempt that failed.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: With `own`, a failed draft is mended, or shown alone.
    """

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the kernel of the last feasible attempt, even if it is slower than others."""
        offered = set(kernels)
        return next((v.child for v in reversed(tree.visits) if v.latency_us and v.child in offered), kernels[0])

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the last attempt if it failed, else one practice against the bottleneck; nothing else."""
        if info["picked"]:
            return None
        if tree.visits and tree.visits[-1].latency_us is None:
            return _slot_of(offered, tree.visits[-1].child)
        found_by = tree.found_by.get(info["start"])
        bottleneck = found_by.bottleneck if found_by else ""
        against = [slot for slot, candidate in offered.items() if bottleneck in candidate.item.bottlenecks]
        return max(against, key=lambda slot: (offered[slot].similarity, -slot), default=None)

    def mends(self, tree: Tree) -> bool:
        """Return True: a failed draft is corrected."""
        return True

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the last attempt alone; nothing if it is being mended."""
        if info["picked"] or info["start"] or not tree.visits:
            return None
        return _slot_of(offered, tree.visits[-1].child)


def _slot_of(offered: Offered, id: int) -> int | None:
    return next((slot for slot, candidate in offered.items() if candidate.id == id), None)
