"""Refine the kernel with the greatest PUCT score: TTT-Discover (arXiv 2601.16175).

Every kernel of the buffer has the score

    Q + c (Rmax - Rmin) P sqrt(1 + T) / (1 + n)

Q is the reward of its best child, or its own while nothing was tried from it. P is a prior by rank: N - rank, divided
by the sum over the buffer, with rank 0 for the best. n are the attempts that began from the kernel or a descendant,
failures included, and T are all attempts. The buffer keeps the two best children of every kernel and 1,000 kernels.

Deviations from the paper:
1. The model is not trained at test time: only the choice of the state is taken over.
2. The reward R is the speedup over the task's first feasible kernel, which is inverse in runtime as theirs. A failure
   has the reward 0.
3. One attempt at a time; theirs opens a batch of states and blocks their lineages within it.
4. The first states are our drafts. The paper has no rule for the context of a refinement: the common rule fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from kernel_gym.agents.published.tree_agent import Drafting, Tree, TreeAgent

#: The paper's constants: weight of exploration, children kept of a kernel, kernels kept.
C, CHILDREN, BUFFER = 1.0, 2, 1000


class PUCTAgent(TreeAgent):
    """Refine the kernel with the greatest PUCT score.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: The paper has no rule for drafting: both values mean the common rule.
        c: Weight of exploration.
        children: Children of a kernel that stay in the buffer.
        buffer: Kernels in the buffer.
    """

    def __init__(
        self,
        seed: int = 0,
        drafting: Drafting = "heuristic",
        c: float = C,
        children: int = CHILDREN,
        buffer: int = BUFFER,
    ) -> None:
        super().__init__(seed, drafting)
        self.c, self.kept_children, self.buffer = c, children, buffer

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the kernel with the greatest score."""
        scores = self.scores(tree, kernels)
        return max(scores, key=scores.__getitem__)

    def scores(self, tree: Tree, kernels: Sequence[int]) -> dict[int, float]:
        """Return the score of every kernel in the buffer, best reward first."""
        ranked = sorted(self._buffer(tree, kernels), key=tree.speedup, reverse=True)[: self.buffer]
        count, spread = len(ranked), tree.speedup(ranked[0]) - tree.speedup(ranked[-1])
        total = count * (count + 1) / 2
        scores = {}
        for rank, kernel in enumerate(ranked):
            tries = tree.tries_below[kernel]
            value = tree.best_result.get(kernel, 0.0) if tries else tree.speedup(kernel)
            prior = (count - rank) / total
            scores[kernel] = value + self.c * spread * prior * sqrt(1 + tree.refinements) / (1 + tries)
        return scores

    def _buffer(self, tree: Tree, kernels: Sequence[int]) -> list[int]:
        """Return the kernels that are offered: drafts, and the best children of every kernel."""
        children, offered = tree.children(), set(kernels)
        kept = children.pop(0, [])
        for siblings in children.values():
            kept = kept + sorted(siblings, key=tree.speedup, reverse=True)[: self.kept_children]
        return [kernel for kernel in kept if kernel in offered] or list(kernels)
