"""The memory of a tabular run: which items are in it, and the rewards of the attempts that were shown them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kernel_gym.envs.pool import Candidate, Child
from kernel_gym.envs.tabular.item_arrays import ID_BITS, ItemArrays, Numbers, Places
from kernel_gym.memory.bank import RECENT_WEIGHT
from kernel_gym.memory.item import MemoryItem, Outcomes, Stage

STAGES = tuple(Stage)
_NOWHERE = np.int64(1) << 62


class TabularBank:
    """A memory bank over the items of one table, with arrays in place of SQLite.

    Items are named by their places in the table and get ids when they are added.
    """

    def __init__(self, arrays: ItemArrays) -> None:
        self.arrays = arrays
        self._offered = arrays.kind != 3
        self._against = {
            name: np.array(
                [i for i, item in enumerate(arrays.items) if name in item.bottlenecks and item.kind == "practice"]
            )
            for name in {name for item in arrays.items for name in item.bottlenecks}
        }
        self.clear()

    def clear(self) -> None:
        """Remove everything but the seed knowledge."""
        count, tasks = len(self.arrays.items), len(self.arrays.tasks)
        self.ids = np.zeros(count, np.int64)
        self.ids[: self.arrays.seed_size] = np.arange(1, self.arrays.seed_size + 1)
        self.size, self.attempts = self.arrays.seed_size, 0
        self.stage = np.full(count, -1)
        #: Uses, total and moving average of rewards, by stage each; then when it joined. One array: gathered in one go.
        self.record_of = np.zeros((count, 7))
        self.fastest = np.full(tasks, np.inf)
        self.starts: list[list[int]] = [[] for _ in range(tasks)]
        #: The children of a start point and the schedules that were tried from it, by the start point's place.
        self.children: dict[int, tuple[Child, ...]] = {}
        self._edges: set[tuple[int, int]] = set()
        self.tried: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return self.size

    def add(self, places: Sequence[int], stage: Stage, start: int = -1) -> tuple[int, ...]:
        """Add the items of an attempt, its trace first, and return their ids; items that are there keep theirs."""
        self.attempts += 1
        places = [self.arrays.same[place] for place in places]
        for place in places:
            if not self.ids[place]:
                self._join(place, stage)
        if start >= 0:
            self._remember_child(start, places[0])
        return tuple(int(self.ids[place]) for place in places)

    def _remember_child(self, start: int, place: int) -> None:
        row = self.arrays.row(place)
        tried, schedule = self.tried.get(start, ()), self.arrays.index.schedule_of[row]
        if schedule not in tried:
            self.tried[start] = (*tried, schedule)
        if place != start and (start, place) not in self._edges:
            self._edges.add((start, place))
            verdict = self.arrays.rows[row][1].verdict
            child = Child(int(self.ids[place]), verdict.outcome, verdict.latency_us)
            self.children[start] = (*self.children.get(start, ()), child)

    def _join(self, place: int, stage: Stage) -> None:
        self.size += 1
        self.ids[place], self.record_of[place, 6] = self.size, self.attempts
        self.stage[place] = STAGES.index(stage)
        if self.arrays.feasible[place] and self.arrays.kind[place] == 1:
            task = int(self.arrays.of_task[place])
            self.fastest[task] = min(self.fastest[task], self.arrays.latency[place])
            self.starts[task].append(place)
            self.starts[task].sort(key=lambda start: (self.arrays.latency[start], self.ids[start]))

    def joined(self) -> list[MemoryItem]:
        """Return the items in the order of their ids, each with the stage that it comes from."""
        places = np.argsort(self.ids, kind="stable")[len(self.ids) - self.size :].tolist()
        stages = [STAGES[self.stage[place]] if self.stage[place] >= 0 else None for place in places]
        return [replace(self.arrays.items[place], stage=stage) for place, stage in zip(places, stages, strict=True)]

    def record(self, stage: Stage, places: Iterable[int], reward: float) -> None:
        """Record the reward of an attempt in `stage` that was shown these items."""
        code, where = STAGES.index(stage), list(places)
        records = self.record_of[where]
        records[:, code] += 1
        records[:, 2 + code] += reward
        records[:, 4 + code] += RECENT_WEIGHT * (reward - records[:, 4 + code])
        self.record_of[where] = records

    def pools(self, queries: Places, size: int, excluded: Places, bottlenecks: Sequence[str], limit: int) -> Places:
        """Return the items nearest to each query, at most `size`, padded with -1, without ids above `limit`.

        `excluded` is the start point of each; practices against a bottleneck get up to a quarter of the places.
        """
        there = self._offered & (self.ids > 0) & (self.ids <= limit)
        keys = np.where(there, self.arrays.keys[queries] + self.ids, _NOWHERE)
        barred = np.flatnonzero(excluded >= 0)
        keys[barred, excluded[barred]] = _NOWHERE
        first = keys.copy()
        for i, name in enumerate(bottlenecks):
            if name in self._against:
                self._prefer(first[i], self._against[name], size // 4)
        nearest = min(size, keys.shape[1])
        chosen = np.argpartition(first, nearest - 1, axis=1)[:, :nearest]
        nearest_keys = np.take_along_axis(keys, chosen, axis=1)
        order = np.argsort(nearest_keys, axis=1)
        chosen = np.take_along_axis(chosen, order, axis=1)
        nearest_keys = np.take_along_axis(nearest_keys, order, axis=1)
        places = np.full((len(queries), size), -1)
        places[:, :nearest] = np.where(nearest_keys < _NOWHERE, chosen, -1)
        return places

    @staticmethod
    def _prefer(keys: Places, preferred: Places, count: int) -> None:
        """Put the nearest of the preferred items before all others."""
        near = preferred[np.argsort(keys[preferred])[:count]]
        keys[near[keys[near] < _NOWHERE]] -= 1 << (ID_BITS + 32)


@dataclass(frozen=True)
class Pool:
    """One attempt's candidates as they were when it opened; a `Candidate` is made when it is accessed."""

    arrays: ItemArrays
    places: tuple[int, ...]
    ids: tuple[int, ...]
    stage: Places
    similarity: NDArray[np.float32]
    #: Columns as in `TabularBank.record_of`.
    record_of: Numbers
    start: bool = False
    #: Of start points, slot by slot.
    children: tuple[tuple[Child, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, slot: int) -> Candidate: ...
    @overload
    def __getitem__(self, slot: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, slot: int | slice) -> Candidate | tuple[Candidate, ...]:
        if isinstance(slot, slice):
            return tuple(self._candidate(i) for i in range(*slot.indices(len(self))))
        if not -len(self) <= slot < len(self):
            raise IndexError(f"there are {len(self)} candidates")
        return self._candidate(slot % len(self))

    @cached_property
    def _all(self) -> tuple[Candidate, ...]:
        # An agent looks at the same pool before each of its picks.
        return self[:]

    def _candidate(self, slot: int) -> Candidate:
        item = self.arrays.items[self.places[slot]]
        joined = int(self.stage[slot])
        stage = STAGES[joined] if joined >= 0 else None
        own = replace(item, id=self.ids[slot], born=int(self.record_of[slot, 6]), stage=stage)
        outcomes = {stage: self._outcomes(i, slot) for i, stage in enumerate(STAGES)}
        children = self.children[slot] if self.start else ()
        return Candidate(own, float(self.similarity[slot]), outcomes, self.start, children)

    def _outcomes(self, stage: int, slot: int) -> Outcomes:
        uses, total, recent = self.record_of[slot, stage:6:2].tolist()
        return Outcomes(int(uses), total / uses if uses else 0.0, recent)

    def __iter__(self) -> Any:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.places)
