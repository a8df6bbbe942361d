"""What the published agents share: the tree of attempts at a task, and one rule for what a paper leaves open.

A published agent says from which kernel an attempt begins (`choose_start`) and, where its paper says so, what the
author is shown with it (`pick`). What a paper leaves open is filled by one common rule, that of `similarity-diverse`,
the best heuristic of the study `main`. The common rule also drafts, so that agents are compared by how they refine.
With `drafting="own"` an agent whose paper has a way to draft uses that (`pick_for_draft`).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from kernel_gym.agents.contract import Agent, Info, Metrics, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.support.agent_files import read_agent_file
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Feasible

#: Who drafts: the common rule of all published agents, or the agent's own rule.
Drafting = Literal["heuristic", "own"]
#: Candidates that may be picked now, by slot.
Offered = Mapping[int, Candidate]
#: The file that `save` writes.
FILE = "tree.json"

_COMMON = SimilarityDiverseAgent()


def common_rule(offered: Offered, info: Info) -> int | None:
    """Return the slot that `similarity-diverse` picks; None, to generate now, if nothing is offered."""
    return max(offered, key=lambda slot: (_COMMON.score(offered[slot], info) or 0.0, -slot), default=None)


@dataclass(frozen=True)
class Visit:
    """One attempt at a task.

    Attributes:
        start: Id of the kernel that it began from; 0 for a draft.
        child: Id of its trace; 0 if that did not join the bank.
        latency_us: Latency of its kernel; None if that is infeasible.
        compiled: Whether its kernel compiled.
        bottleneck: What limits its kernel, by the profile.
        traits: What the agent reads in its kernel.
    """

    start: int
    child: int
    latency_us: float | None
    compiled: bool = True
    bottleneck: str = ""
    traits: tuple[float, ...] = ()


class Tree:
    """The attempts at one task: the kernel that each began from, and the kernel that it led to.

    A kernel is a node under the kernel that it was first reached from. Reaching it again adds a try and no node.

    Attributes:
        visits: All attempts, oldest first.
        latency: Latencies of the feasible kernels by id, in the order in which they were found.
        parent: The kernel that each was first reached from; 0 for drafts.
        found_by: The visit that found a kernel; kernels that were known before have none.
        number: For a kernel that was found by refining, the number of that attempt among all that refined, from 0.
        tries: Attempts that began from a kernel.
        tries_below: Attempts that began from it or from any of its descendants.
        best_result: The greatest speedup that an attempt from a kernel reached; 0 if all failed.
    """

    def __init__(self, visits: Sequence[Visit] = ()) -> None:
        self.visits: list[Visit] = []
        self.latency: dict[int, float] = {}
        self.parent: dict[int, int] = {}
        self.found_by: dict[int, Visit] = {}
        self.number: dict[int, int] = {}
        self.tries: Counter[int] = Counter()
        self.tries_below: Counter[int] = Counter()
        self.best_result: dict[int, float] = {}
        self.refinements = 0
        for visit in visits:
            self.add(visit)

    def add(self, visit: Visit) -> None:
        """Add an attempt."""
        self.visits.append(visit)
        new = visit.child not in self.latency and visit.child > 0 and visit.latency_us is not None
        if new and visit.latency_us is not None:
            self.latency[visit.child], self.parent[visit.child] = visit.latency_us, 0
            self.found_by[visit.child] = visit
        if visit.start not in self.latency:
            return
        if new:
            self.parent[visit.child], self.number[visit.child] = visit.start, self.refinements
        self.refinements += 1
        self.tries[visit.start] += 1
        for kernel in self.lineage(visit.start):
            self.tries_below[kernel] += 1
        speedup = 0.0 if visit.latency_us is None else self.first_us / visit.latency_us
        self.best_result[visit.start] = max(self.best_result.get(visit.start, 0.0), speedup)

    def know(self, kernel: int, latency_us: float) -> None:
        """Add a kernel that no attempt of this tree found, such as one of an earlier run, as a root."""
        if kernel not in self.latency:
            self.latency[kernel], self.parent[kernel] = latency_us, 0

    @property
    def first_us(self) -> float:
        """Latency of the first feasible kernel."""
        return next(iter(self.latency.values()))

    @property
    def fastest(self) -> int:
        """Id of the fastest kernel."""
        return min(self.latency, key=self.latency.__getitem__)

    def speedup(self, kernel: int) -> float:
        """Return the latency of the first feasible kernel / that of a kernel."""
        return self.first_us / self.latency[kernel]

    def lineage(self, kernel: int) -> list[int]:
        """Return a kernel and its ancestors, the root last."""
        line = [kernel]
        while parent := self.parent[line[-1]]:
            line.append(parent)
        return line

    def children(self) -> dict[int, list[int]]:
        """Return the kernels first reached from each kernel, in the order in which they were found; drafts under 0."""
        children: dict[int, list[int]] = {}
        for kernel, parent in self.parent.items():
            children.setdefault(parent, []).append(kernel)
        return children

    @property
    def stale(self) -> int:
        """Attempts since the last one that made the fastest kernel faster."""
        best, stale = float("inf"), 0
        for visit in self.visits:
            gained = visit.latency_us is not None and visit.latency_us < best
            best, stale = (visit.latency_us, 0) if gained and visit.latency_us else (best, stale + 1)
        return stale


class TreeAgent(Agent):
    """Base class of the published agents that choose where to start from the tree of attempts.

    Args:
        seed: Seed of the random choices.
        drafting: Who drafts: `heuristic`, the rule that all published agents share, or `own`.

    Raises:
        ConfigError: If `drafting` is neither.

    Attributes:
        trees: The tree of each task that was worked on.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic") -> None:
        super().__init__(seed)
        if drafting not in get_args(Drafting):
            raise ConfigError(f"drafting is heuristic or own, not {drafting!r}")
        self.drafting = drafting
        self.trees: dict[str, Tree] = {}
        self._fresh = False

    @abstractmethod
    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the id of the kernel to refine.

        Args:
            tree: The attempts at the task so far; it has all the kernels.
            kernels: Ids of the kernels that are offered, fastest first.
        """

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Return the slot of the next memory to show in refining; None to generate. The default is the common rule."""
        return common_rule(offered, info)

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Return the slot of the next memory to show in drafting, by the agent's own rule; None to generate."""
        return common_rule(offered, info)

    def mends(self, tree: Tree) -> bool:
        """Return whether the last draft, which failed, is mended where the environment offers it (`repair`)."""
        return False

    def choose_draft(self, tree: Tree, offered: Offered, info: Info) -> int:
        """Return the slot of the draft to verify where the environment has several written (`drafts`)."""
        return min(offered)

    def traits(self, attempt: Attempt) -> tuple[float, ...]:
        """Return what the agent reads in the kernel of an attempt."""
        return ()

    def act(self, observation: Observation, info: Info) -> int:
        """Return the start point, the next pick or "generate now" that the agent's rule chooses."""
        tree = self.trees.setdefault(info["task"], Tree())
        candidates = info["candidates"]
        offered = {slot: candidates[slot] for slot in legal_slots(observation)}
        if not offered:
            return generate(observation)
        if info.get("draft_due"):
            return self.choose_draft(tree, offered, info)
        drafting = info["stage"] is Stage.DRAFT
        if info["start_due"] and drafting:
            mends = self.drafting == "own" and self.mends(tree)
            return min(offered) if mends else generate(observation)
        if info["start_due"]:
            return self._start(tree, offered)
        if not drafting:
            slot = self.pick(tree, offered, info)
        elif self.drafting == "own":
            slot = self.pick_for_draft(tree, offered, info)
        else:
            slot = common_rule(offered, info)
        return generate(observation) if slot is None else slot

    def _start(self, tree: Tree, offered: Offered) -> int:
        slots = {candidate.id: slot for slot, candidate in offered.items()}
        for candidate in offered.values():
            tree.know(candidate.id, candidate.latency_us or 0.0)
        return slots[self.choose_start(tree, list(slots))]

    def draw(self, kernels: Sequence[int], weights: Sequence[float] | None = None) -> int:
        """Return one of the kernels at random, by weight; uniformly if there are no weights or all are 0."""
        total = sum(weights or ())
        shares = None if weights is None or total <= 0.0 else [weight / total for weight in weights]
        return int(self.rng.choice(kernels, p=shares))

    def learn(self, attempt: Attempt) -> Metrics:
        """Add the attempt to the tree of its task."""
        if self._fresh and attempt.index == 0:
            self.trees.pop(attempt.task, None)
        tree = self.trees.setdefault(attempt.task, Tree())
        verdict = attempt.verdict
        tree.add(
            Visit(
                attempt.start or 0,
                attempt.produced[0] if attempt.produced else 0,
                verdict.latency_us,
                bool(verdict.compiled),
                verdict.profile.bottleneck if isinstance(verdict, Feasible) else "",
                self.traits(attempt),
            )
        )
        return {"kernels": float(len(tree.latency)), "stale": float(tree.stale)}

    def use_fresh_memory(self, lasting: int) -> None:
        """Begin a new tree with every episode: its ids mean other kernels."""
        self._fresh = True

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Change the ids of the trees; attempts whose kernels are not in the bank are dropped."""
        for task, tree in self.trees.items():
            kept = (visit for visit in tree.visits if visit.child in ids)
            self.trees[task] = Tree([replace(v, start=ids.get(v.start, 0), child=ids[v.child]) for v in kept])

    def state(self) -> dict[str, Any]:
        """Return what the agent has learned besides its trees, as JSON data."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` returned."""

    def save(self, path: Path) -> None:
        """Write the trees, what else was learned, and the random state."""
        path.mkdir(parents=True, exist_ok=True)
        trees = {task: [asdict(visit) for visit in tree.visits] for task, tree in self.trees.items()}
        data = {"trees": trees, "state": self.state(), "rng": self.rng.bit_generator.state}
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote.

        Raises:
            ConfigError: If the folder has no trees.
        """
        data = read_agent_file(path, FILE)
        self.trees = {
            task: Tree([Visit(**row | {"traits": tuple(row["traits"])}) for row in rows])
            for task, rows in data["trees"].items()
        }
        self.restore(data["state"])
        self.rng.bit_generator.state = data["rng"]
