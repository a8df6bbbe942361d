"""Keep a change or revert it: AutoKernel (arXiv 2603.21331), Metal-Sci's loop, CUDA-LLM with N = 1 (arXiv 2506.09092).

A (1 + 1) search: the attempt begins from the incumbent, the fastest kernel; a faster result becomes the incumbent, any
other is reverted. The author is shown the previous attempt, a short history and practices of one tier of a playbook.
The tier goes up with every failure to improve and down again with an improvement. After 10 such failures the search
moves on.

Deviations from the papers:
1. AutoKernel moves on to another task. Here the budget belongs to the task, so the search moves on to the next fastest
   kernel of the same task, for another 10 attempts.
2. The tiers are the bottlenecks that a practice names, in this order: work over the cores and launches; copies; vector,
   scalar and matrix instructions; synchronisation and the rest. AutoKernel's six tiers are for Triton.
3. Own drafting: the task's last attempts, newest first.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Offered, Tree, TreeAgent

#: Failures to improve before the search moves on (AutoKernel), and earlier attempts that are shown; the latter is ours.
PATIENCE, HISTORY = 10, 2
#: Bottlenecks of the practices of each tier; practices that name none are in the last.
TIERS = (("balance", "launch"), ("mte2", "mte3", "l2", "ub_capacity"), ("vector", "scalar", "cube"), ("sync", ""))


class GreedyAgent(TreeAgent):
    """Refine the fastest kernel; show the previous attempts and practices of the present tier.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: With `own`, drafts are shown the task's last attempts, newest first.
    """

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the fastest kernel; after every 10 failures to improve the next fastest."""
        ranked = sorted(kernels, key=lambda kernel: tree.latency[kernel])
        return ranked[tree.stale // PATIENCE % len(ranked)]

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the last attempts first, then practices of the tier by similarity."""
        if len(info["picked"]) < HISTORY and (slot := _newest(tree, offered)) is not None:
            return slot
        tier = TIERS[tree.stale % PATIENCE * len(TIERS) // PATIENCE]
        fitting = [slot for slot, candidate in offered.items() if _in_tier(candidate.item.bottlenecks, tier)]
        practices = [slot for slot in fitting if offered[slot].kind == "practice"]
        return max(practices, key=lambda slot: (offered[slot].similarity, -slot), default=None)

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the last attempts, newest first."""
        return _newest(tree, offered)


def _newest(tree: Tree, offered: Offered) -> int | None:
    """Return the slot of the newest attempt at the task; None if the pool has none."""
    ages = {visit.child: age for age, visit in enumerate(tree.visits)}
    own = {slot: ages[candidate.id] for slot, candidate in offered.items() if candidate.id in ages}
    return max(own, key=own.__getitem__, default=None)


def _in_tier(bottlenecks: Sequence[str], tier: Sequence[str]) -> bool:
    return any(name in tier for name in bottlenecks or ("",))
