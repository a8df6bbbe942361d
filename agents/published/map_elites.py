"""Keep the best kernel of every kind: KernelFoundry (arXiv 2603.12440).

An archive has a cell for every combination of memory use, algorithm and synchronisation, 4 x 4 x 4 cells. Each keeps
the kernel with the greatest fitness. The parent is an elite: with 30% any, with 40% by fitness, with 30% by curiosity.
The fitness is 0 for a kernel that does not compile, 0.1 for one that is wrong, else 0.5 + 0.5 min(1, speedup / 2).

Deviations from the paper:
1. Cells are counted in the source: buffers (memory use), different instructions (algorithm), and queue operations,
   barriers and flags (synchronisation). Theirs are read off by rules for SYCL and CUDA. The measured bottleneck shifts
   the cell of memory use by one where copies limit the kernel.
2. The speedup is over the task's first feasible kernel; theirs is over PyTorch. Of equal fitness the faster kernel is
   kept. `target` is the speedup at which fitness saturates.
3. Curiosity is 1 / (1 + tries of the elite); the paper says only that rarely used cells are preferred.
4. The evolution of prompts and the templates for parameters are left out. The common rule fills the context.
5. Own drafting: the elites among failed kernels are shown, those that compiled first, as the paper evolves from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel_gym.agents.contract import Info
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent, Visit
from kernel_gym.envs.attempt import Attempt
from kernel_gym.verdict import Feasible

#: The paper's constants: chances of a uniform and of a fitness-weighted parent, and the fitness of a wrong kernel.
UNIFORM, BY_FITNESS, WRONG = 0.3, 0.4, 0.1
#: The speedup at which fitness saturates.
TARGET = 2.0
#: Counts from which a kernel is in the second, third and fourth bin of each dimension; ours.
BUFFERS, INSTRUCTIONS, SYNCHRONISATIONS = (3, 5, 8), (4, 8, 14), (5, 9, 17)
#: Bottlenecks of kernels that copies limit.
COPIES = ("mte2", "mte3", "l2")
_BUFFER = re.compile(r"\bInitBuffer\b|__shared__")
_INSTRUCTION = re.compile(r"\bAscendC::(\w+)|\b(__\w+|\w+f)\s*\(")
_SYNCHRONISATION = re.compile(r"\b(?:EnQue|DeQue|PipeBarrier|SetFlag|WaitFlag|SyncAll|__syncthreads|__syncwarp)\b")


class MapElitesAgent(TreeAgent):
    """Refine an elite of the archive.

    Args:
        seed: Seed of the draws.
        drafting: With `own`, drafts are shown the task's failed kernels, those that compiled first.
        target: The speedup at which fitness saturates.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic", target: float = TARGET) -> None:
        super().__init__(seed, drafting)
        self.target = target

    def traits(self, attempt: Attempt) -> tuple[float, ...]:
        """Return the kernel's cell: bins 0 to 3 of memory use, algorithm and synchronisation."""
        verdict = attempt.verdict
        bottleneck = verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""
        return tuple(map(float, cell(attempt.kernel.source, bottleneck)))

    def fitness(self, tree: Tree, visit: Visit) -> float:
        """Return the fitness of an attempt's kernel."""
        if visit.latency_us is None:
            return WRONG if visit.compiled else 0.0
        return 0.5 + 0.5 * min(1.0, tree.first_us / visit.latency_us / self.target)

    def elites(self, tree: Tree, kernels: Sequence[int]) -> dict[tuple[float, ...], int]:
        """Return the kernel of every cell that has one."""
        elites: dict[tuple[float, ...], int] = {}
        for kernel in sorted(kernels, key=lambda kernel: tree.latency[kernel]):
            # The fastest has the greatest fitness.
            elites.setdefault(tree.found_by[kernel].traits if kernel in tree.found_by else (), kernel)
        return elites

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Draw an elite."""
        elites = list(self.elites(tree, kernels).values())
        chance = self.rng.random()
        if chance < UNIFORM:
            return self.draw(elites)
        if chance < UNIFORM + BY_FITNESS:
            return self.draw(elites, [0.5 + 0.5 * min(1.0, tree.speedup(kernel) / self.target) for kernel in elites])
        return self.draw(elites, [1.0 / (1 + tree.tries[kernel]) for kernel in elites])

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the task's failed kernels, by fitness, the newest first."""
        fitness = {visit.child: self.fitness(tree, visit) for visit in tree.visits}
        own = {slot: candidate.id for slot, candidate in offered.items() if candidate.id in fitness}
        return max(own, key=lambda slot: (fitness[own[slot]], own[slot]), default=None)


def cell(source: str, bottleneck: str = "") -> tuple[int, int, int]:
    """Return the bins of a kernel: memory use, algorithm, synchronisation."""
    instructions = {first or second for first, second in _INSTRUCTION.findall(source)}
    memory = _bin(len(_BUFFER.findall(source)), BUFFERS) + (bottleneck in COPIES)
    return (
        min(3, memory),
        _bin(len(instructions), INSTRUCTIONS),
        _bin(len(_SYNCHRONISATION.findall(source)), SYNCHRONISATIONS),
    )


def _bin(count: int, edges: Sequence[int]) -> int:
    return sum(count >= edge for edge in edges)
