"""Descend the refinement tree by UCT: OptiML (arXiv 2602.12305), KernelEvolve (arXiv 2512.23236).

Selection begins at a root above all drafts. It moves to the child with the greatest

    W / N + c sqrt(ln N_parent / N)

until it meets a kernel that is not tried often enough, or that has no child to move to; that kernel is refined. N
counts the attempt that found a kernel and all attempts from it and its descendants, W sums their rewards. A kernel is
tried often enough with `width` sqrt(N) tries (progressive widening), so it is tried again as its N grows. The reward of
an attempt is the share of the runtime that it saved, 1 - latency / latency of its start point. It is guarded against
regression: a failed or slower kernel gets 0, and a slower kernel is never moved to.

Deviations from the papers:
1. c = sqrt 2 is the usual constant, as theirs is not published; so are progressive widening and `width` = 1.5.
2. OptiML's reward also has terms for hardware counters and for code quality as a model judges it; ours is runtime.
3. KernelEvolve's search also chooses between operators of a prompt library. The papers leave drafting open, and the
   common rule fills the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt

from kernel_gym.agents.published.tree_agent import Drafting, Tree, TreeAgent

#: Weight of exploration, and factor of progressive widening; both are ours.
C, WIDTH = sqrt(2.0), 1.5


class UCTAgent(TreeAgent):
    """Refine the kernel that UCT arrives at.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: The papers have no rule for drafting: both values mean the common rule.
        c: Weight of exploration.
        width: Factor of progressive widening: a kernel has at least `width` sqrt(N) tries.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic", c: float = C, width: float = WIDTH) -> None:
        super().__init__(seed, drafting)
        self.c, self.width = c, width

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the kernel at which the descent ends."""
        children, offered, gains = tree.children(), set(kernels), self.gains(tree)
        here = 0
        while True:
            below = [
                kernel
                for kernel in children.get(here, [])
                if kernel in offered and (here == 0 or tree.latency[kernel] < tree.latency[here])
            ]
            if not below:
                return here or kernels[0]
            if here and tree.tries[here] < self.width * sqrt(1 + tree.tries_below[here]):
                return here
            here = self._best(tree, here, below, gains)

    def _best(self, tree: Tree, parent: int, siblings: Sequence[int], gains: Mapping[int, float]) -> int:
        counts = {kernel: 1 + tree.tries_below[kernel] for kernel in siblings}
        total = log(1 + tree.tries_below[parent] if parent else sum(counts.values()))
        return max(siblings, key=lambda id: gains[id] / counts[id] + self.c * sqrt(total / counts[id]))

    @staticmethod
    def gains(tree: Tree) -> dict[int, float]:
        """Return W of every kernel: the rewards of the attempt that found it and of all attempts below it."""
        gains = dict.fromkeys(tree.latency, 0.0)
        for visit in tree.visits:
            if visit.start in tree.latency:
                gained = reward(tree, visit.start, visit.latency_us)
                found = tree.found_by.get(visit.child) is visit
                for kernel in [*([visit.child] if found else []), *tree.lineage(visit.start)]:
                    gains[kernel] += gained
        return gains


def reward(tree: Tree, start: int, latency_us: float | None) -> float:
    """Return the share of the start point's runtime that an attempt saved; 0 if it failed or is slower."""
    return 0.0 if latency_us is None else max(0.0, 1.0 - latency_us / tree.latency[start])
