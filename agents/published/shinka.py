"""Draw the kernel to refine by performance and novelty: ShinkaEvolve (arXiv 2509.19349).

A parent is drawn from the archive of one island with the weight

    sigmoid(lambda (score - median) / MAD) / (1 + children)

with lambda = 10, the median and the median absolute deviation of the scores in the archive. There are 2 islands; the
archive has the 40 best kernels. The author is also shown one kernel of the archive and one of the best.

Deviations from the paper:
1. Islands take turns; theirs are drawn. The first draft is on every island, a child on the island of its attempt.
2. No migration: with 2 islands it would move single kernels within our budgets.
3. The score is the speedup over the task's first feasible kernel.
4. Novelty by embeddings and the bandit over models are left out: there is one author, and the bank drops duplicates.
5. Shown kernels come from the pool of the attempt, so one that the pool lacks is replaced by the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import median

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent

#: The paper's constants: slope of the sigmoid, islands, kernels in the archive.
LAMBDA, ISLANDS, ARCHIVE = 10.0, 2, 40
#: Least deviation of the scores, and the largest exponent.
LEAST_MAD, LARGEST = 1e-6, 500.0


class ShinkaAgent(TreeAgent):
    """Refine a kernel drawn by performance and novelty; show one of the archive and one of the best.

    Args:
        seed: Seed of the draws.
        drafting: The paper has no rule for drafting: both values mean the common rule.
        slope: Slope of the sigmoid.
        islands: Islands.
        archive: Kernels in the archive.
    """

    def __init__(
        self,
        seed: int = 0,
        drafting: Drafting = "heuristic",
        slope: float = LAMBDA,
        islands: int = ISLANDS,
        archive: int = ARCHIVE,
    ) -> None:
        super().__init__(seed, drafting)
        self.slope, self.islands, self.archive = slope, islands, archive

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Draw a kernel of the island whose turn it is."""
        turn = tree.refinements % self.islands
        archive = sorted(kernels, key=tree.speedup, reverse=True)[: self.archive]
        on_island = [kernel for kernel in archive if tree.number.get(kernel, turn) % self.islands == turn]
        members = on_island or archive
        return self.draw(members, self.weights(tree, members))

    def weights(self, tree: Tree, members: Sequence[int]) -> list[float]:
        """Return the weight of each member of an archive."""
        scores = [tree.speedup(kernel) for kernel in members]
        middle = median(scores)
        deviation = max(LEAST_MAD, median(abs(score - middle) for score in scores))
        exponents = [max(-LARGEST, min(LARGEST, self.slope * (score - middle) / deviation)) for score in scores]
        return [
            1.0 / (1.0 + exp(-exponent)) / (1 + tree.tries[kernel])
            for exponent, kernel in zip(exponents, members, strict=True)
        ]

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show one kernel of the archive at random, then the best of the others; nothing else."""
        own = {candidate.id: slot for slot, candidate in offered.items() if candidate.id in tree.latency}
        archive = sorted(own, key=tree.speedup, reverse=True)[: self.archive]
        if not archive or len(info["picked"]) >= 2:
            return None
        return own[archive[0] if info["picked"] else self.draw(archive)]
