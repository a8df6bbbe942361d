"""Evolve kernels on islands: OpenEvolve, the open version of AlphaEvolve.

The islands take turns. The parent is, with 20%, any kernel of the island; with 70% one of the archive of the best 100,
from the island if the archive has some there; with 10% one of the island by fitness. The author is also shown 5
inspirations: the island's best, one of its top 10%, neighbours within 2 bins of the parent in a grid of 10 x 10 bins
(length of the source, number of different lines), and random kernels of the island. After every 50 attempts from each
island 10% of its kernels, the best, join both neighbouring islands.

Deviations from the public code:
1. The fitness is the speedup over the task's first feasible kernel; failed kernels are no members.
2. The first draft is on every island; theirs is on one and is copied to islands that are empty.
3. Diversity of a kernel is the number of its different lines, in place of its edit distance to others.
4. Inspirations come from the pool of the attempt, so one that the pool lacks is left out.
5. For small budgets `islands` and `interval` must be scaled: the arena has 2 and 10 for 30 attempts.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent
from kernel_gym.envs.attempt import Attempt

#: The code's constants: islands, attempts from an island between migrations, share that migrates.
ISLANDS, INTERVAL, MIGRATE = 5, 50, 0.1
#: Chances that the parent is any member, or one of the archive; else it is drawn by fitness.
EXPLORE, EXPLOIT = 0.2, 0.7
#: Kernels in the archive, inspirations, bins of each feature, and how far neighbours may be.
ARCHIVE, INSPIRATIONS, BINS, NEAR = 100, 5, 10, 2
#: Share of the island that counts as its top.
TOP = 0.1


class IslandsAgent(TreeAgent):
    """Refine kernels of one island after another; show inspirations from the same island.

    Args:
        seed: Seed of the draws.
        drafting: The code has no rule for drafting: both values mean the common rule.
        islands: Islands.
        interval: Attempts from each island between migrations.
    """

    def __init__(
        self, seed: int = 0, drafting: Drafting = "heuristic", islands: int = ISLANDS, interval: int = INTERVAL
    ) -> None:
        super().__init__(seed, drafting)
        self.islands, self.interval = islands, interval

    def traits(self, attempt: Attempt) -> tuple[float, ...]:
        """Return the length of the source and the number of its different lines."""
        source = attempt.kernel.source
        return float(len(source)), float(len(set(source.splitlines())))

    def members(self, tree: Tree) -> list[list[int]]:
        """Return the kernels of every island, migrants included, in the order in which they came."""
        islands: list[list[int]] = [[] for _ in range(self.islands)]
        every, moves = self.islands * self.interval, 0
        for kernel in tree.latency:
            number = tree.number.get(kernel)
            while number is not None and number // every > moves:
                _migrate(tree, islands)
                moves += 1
            for island in range(self.islands) if number is None else (number % self.islands,):
                islands[island].append(kernel)
        if tree.refinements // every > moves:
            _migrate(tree, islands)
        return islands

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Draw a kernel of the island whose turn it is."""
        offered = set(kernels)
        island = [kernel for kernel in self._island(tree) if kernel in offered] or list(kernels)
        chance = self.rng.random()
        if chance < EXPLORE:
            return self.draw(island)
        if chance < EXPLORE + EXPLOIT:
            archive = sorted(kernels, key=tree.speedup, reverse=True)[:ARCHIVE]
            return self.draw([kernel for kernel in archive if kernel in island] or archive)
        return self.draw(island, [tree.speedup(kernel) for kernel in island])

    def _island(self, tree: Tree) -> list[int]:
        return self.members(tree)[tree.refinements % self.islands]

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the next inspiration that the pool has; nothing else."""
        own = {candidate.id: slot for slot, candidate in offered.items() if candidate.id in tree.latency}
        island = [kernel for kernel in self._island(tree) if kernel in own]
        if not island or len(info["picked"]) >= INSPIRATIONS:
            return None
        ranked = sorted(island, key=tree.speedup, reverse=True)
        if not info["picked"]:
            return own[ranked[0]]
        if len(info["picked"]) == 1:
            return own[self.draw(ranked[: max(1, int(len(ranked) * TOP))])]
        near = [kernel for kernel in island if self._are_near(tree, kernel, info["start"])]
        return own[self.draw(near or island)]

    @staticmethod
    def _are_near(tree: Tree, kernel: int, other: int) -> bool:
        """Return whether two kernels lie within `NEAR` bins of each other in every feature."""
        rows = [visit.traits for visit in tree.found_by.values()]
        if kernel not in tree.found_by or other not in tree.found_by:
            return False
        pair = tree.found_by[kernel].traits, tree.found_by[other].traits
        for column, (one, two) in enumerate(zip(*pair, strict=True)):
            values = [row[column] for row in rows]
            width = (max(values) - min(values)) / BINS or 1.0
            if abs(int((one - min(values)) / width) - int((two - min(values)) / width)) > NEAR:
                return False
        return True


def _migrate(tree: Tree, islands: list[list[int]]) -> None:
    """Copy the best of every island to both of its neighbours."""
    best = [sorted(island, key=tree.speedup, reverse=True)[: max(1, int(len(island) * MIGRATE))] for island in islands]
    for number, migrants in enumerate(best):
        for neighbour in {(number - 1) % len(islands), (number + 1) % len(islands)}:
            islands[neighbour] += [kernel for kernel in migrants if kernel not in islands[neighbour]]
