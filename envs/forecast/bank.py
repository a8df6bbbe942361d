"""The memory of a forecast run: which items are in it, and the rewards of the attempts that were shown them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.envs.forecast.descriptions import Descriptions
from kernel_gym.envs.forecast.items import KINDS, Items, Numbers, Places
from kernel_gym.envs.forecast.variants import ForecastItem, Variant
from kernel_gym.envs.observation import HALF_USES
from kernel_gym.envs.pool import STRATA, Candidate, Child, Composition
from kernel_gym.memory.bank import RECENT_WEIGHT
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Stage

STAGES = tuple(Stage)
TRACE, PRACTICE = KINDS.index("trace"), KINDS.index("practice")
#: Room that ids have below the distance in a sorting key.
ID_BITS = 24
_NOWHERE = np.int64(1) << 62
#: Taken from the key of a preferred id, which is then below all others.
_PREFERRED = np.int64(1) << (ID_BITS + 32)


class ForecastBank:
    """A memory bank with arrays in place of SQLite. Ids are 1, 2, 3, ... in the order of adding."""

    def __init__(self, items: Items) -> None:
        self.items = items
        seeds = items.descriptions.seeds
        self._against = {
            name: np.array([i + 1 for i, item in enumerate(seeds) if name in item.bottlenecks])
            for name in {name for item in seeds for name in item.bottlenecks if item.kind == "practice"}
        }
        self._place_of = np.arange(2 * items.initial_size)
        self.clear()

    def clear(self) -> None:
        """Remove everything but what the run began with: the seed knowledge, and memories of an earlier run."""
        self.size, self.attempts = self.items.initial_size, self.items.initial.attempts
        self._in_order = True
        self._stage = np.full(len(self._place_of), -1)
        #: By id: uses, total and moving average of rewards, by stage each; then when the item joined.
        self.record_of = np.zeros((len(self._place_of), 7))
        #: By id: origin, age (left out), uses, mean and recent, as the observation has them.
        self.observed = np.zeros((len(self._place_of), 9), np.float32)
        self.fastest = np.full(self.items.task_count, np.inf)
        self._remember_initial()
        self._ids: dict[Hashable, int] = {}
        self._variants: dict[int, Variant] = {}
        self._starts: dict[int, list[int]] = {}
        self._children: dict[int, dict[int, Child]] = {}
        #: The items that pools have offered, by id: the same ones are offered in many attempts.
        self.offered: dict[int, MemoryItem] = {}

    def _remember_initial(self) -> None:
        """Fill in the stages, latencies and records of the memories of an earlier run."""
        initial = self.items.initial
        for id, records in initial.records.items():
            for stage, uses, total, recent in records:
                self._set_record(id - 1, STAGES.index(stage), uses, total, recent)
        for row, item in enumerate(initial.items, self.items.seed_size):
            if item.stage is not None:
                self._stage[row] = STAGES.index(item.stage)
                self.observed[row, self._stage[row]] = 1.0
            self.record_of[row, 6] = item.born
            if item.kind is Kind.TRACE and item.verdict is not None and item.verdict.latency_us is not None:
                task = self.items.of_task[row]
                self.fastest[task] = min(self.fastest[task], item.verdict.latency_us)

    def __len__(self) -> int:
        return self.size

    def places(self, ids: Any) -> Any:
        """Return the places of ids; 0 and less have none, which is -1."""
        return np.where(np.asarray(ids) > 0, self._place_of[np.asarray(ids) - 1], -1)

    def place(self, id: int) -> int:
        """Return the place of an id."""
        return int(self._place_of[id - 1])

    def own_places(self) -> list[int]:
        """Return the places of all items that have joined since the beginning."""
        own: list[int] = self._place_of[self.items.initial_size : self.size].tolist()
        return own

    def id_of(self, key: Hashable) -> int:
        """Return the id of the item with this content; 0 if it is not there."""
        return self._ids.get(key, 0)

    def stage(self, ids: Places) -> Places:
        """Return the stages that items were produced in, as numbers; -1 for seed knowledge."""
        stages: Places = self._stage[ids - 1]
        return stages

    # Writing

    def join(self, key: Hashable, place: int, stage: Stage, variant: Variant | None = None) -> int:
        """Add an item that is not there yet, at this place; return its id. `variant` is the kernel of a trace."""
        if self.size == len(self._place_of):
            self._place_of, self._stage = _longer(self._place_of), _longer(self._stage)
            self.record_of, self.observed = _longer(self.record_of), _longer(self.observed)
        id = self.size + 1
        self._in_order &= place == self.size
        code = STAGES.index(stage)
        self._place_of[self.size], self._stage[self.size] = place, code
        self.record_of[self.size] = self.observed[self.size] = 0.0
        self.record_of[self.size, 6] = self.attempts
        self.observed[self.size, code] = 1.0
        self.size, self._ids[key] = id, id
        if variant is not None:
            self._variants[id] = variant
            if variant.verdict.feasible:
                self._add_start(int(self.items.of_task[place]), id)
        return id

    def _add_start(self, task: int, id: int) -> None:
        starts = self._starts.setdefault(task, [])
        starts.append(id)
        starts.sort(key=lambda start: (self._variants[start].verdict.latency_us, start))
        self.fastest[task] = self._variants[starts[0]].verdict.latency_us

    def add_child(self, start: int, child: int) -> None:
        """Note that an attempt from a start point led to a trace."""
        if child != start:
            verdict = self._variants[child].verdict
            siblings = self._children.setdefault(start, {})
            siblings.setdefault(child, Child(child, verdict.outcome, verdict.latency_us))

    def record(self, stage: Stage, ids: Iterable[int], reward: float) -> None:
        """Record the reward of an attempt in `stage` that was shown these items."""
        code = STAGES.index(stage)
        for id in dict.fromkeys(ids):
            uses, total, recent = self.record_of[id - 1, code:6:2].tolist()
            self._set_record(id - 1, code, uses + 1, total + reward, recent + RECENT_WEIGHT * (reward - recent))

    def _set_record(self, row: int, code: int, uses: float, total: float, recent: float) -> None:
        self.record_of[row, code:6:2] = uses, total, recent
        mean = total / max(uses, 1)
        self.observed[row, 3 + code :: 2] = uses / (uses + HALF_USES), _clipped(mean), _clipped(recent)

    # Reading

    def variant(self, id: int) -> Variant:
        """Return the kernel of a trace."""
        return self._variants[id]

    def starts(self, task: int) -> list[int]:
        """Return the ids of a task's feasible traces, fastest first."""
        return self._starts.get(task, [])

    def children(self, start: int) -> tuple[Child, ...]:
        """Return the results of refining a start point, oldest first."""
        return tuple(self._children.get(start, {}).values())

    def tried(self, children: Iterable[Child]) -> tuple[Schedule, ...]:
        """Return the schedules of a start point's children."""
        return tuple(dict.fromkeys(self._variants[child.id].schedule for child in children))

    def joined(self) -> list[MemoryItem]:
        """Return the items in the order of their ids, with their texts and the stage that each comes from."""
        return [_plain(self.item(id)) for id in range(1, self.size + 1)]

    def item(self, id: int) -> MemoryItem:
        """Return an item as the bank holds it."""
        item, stage = self.items.item(int(self._place_of[id - 1])), int(self._stage[id - 1])
        return placed(item, id, int(self.record_of[id - 1, 6]), stage)

    def pools(
        self,
        queries: Places,
        size: int,
        excluded: Sequence[int],
        bottlenecks: Sequence[str],
        limit: int,
        composition: Composition = "similarity",
        drafted: Sequence[int] = (),
    ) -> Places:
        """Return the ids nearest to each query, at most `size`, padded with 0, without ids above `limit`.

        `excluded` is the start point of each, 0 for none; practices against a bottleneck get up to a quarter of the
        places. The others are the nearest of all, or `stratified` the nearest of each kind and outcome in turn.
        `drafted`, if there is any, has the task of each pool that takes no practices and no traces of its task; -1 for
        a pool that takes everything.
        """
        count = min(self.size, limit)
        where: Any = slice(0, count) if self._in_order else self._place_of[:count]
        keys = self.items.distance[queries][:, where].astype(np.int64)
        keys <<= ID_BITS
        keys += np.arange(1, count + 1)
        keys[:, self._api(count)] = _NOWHERE
        for row, id in enumerate(excluded):
            if 0 < id <= count:
                keys[row, id - 1] = _NOWHERE
        kinds, tasks = self.items.kind[where], self.items.of_task[where]
        for row, task in enumerate(drafted):
            if task >= 0:
                keys[row, (kinds == PRACTICE) | ((kinds == TRACE) & (tasks == task))] = _NOWHERE
        first = keys.copy() if any(bottlenecks) else keys
        for row, name in enumerate(bottlenecks):
            if name in self._against:
                _prefer(first[row], self._against[name], size // 4)
        if composition == "stratified":
            first = self._in_turn(first)
        nearest = min(size, count)
        chosen = first.argpartition(nearest - 1, axis=1)[:, :nearest]
        each = np.arange(len(queries))[:, None]
        nearest_keys = keys[each, chosen]
        order = nearest_keys.argsort(axis=1)
        ids = np.zeros((len(queries), size), np.int64)
        near = nearest_keys[each, order] < _NOWHERE
        ids[:, :nearest] = np.where(near, chosen[each, order] + 1, 0)
        return ids

    def _in_turn(self, keys: Places) -> Places:
        """Return keys by which the nearest of each stratum come in turn; preferred ids stay first."""
        places = self._place_of[: keys.shape[1]]
        kind, feasible = self.items.kind[places], self.items.feasible[places]
        preferred = keys < -_PREFERRED // 2
        turns = np.where(preferred, keys, _NOWHERE)
        for number, (name, outcome) in enumerate(STRATA):
            members = np.flatnonzero((kind == KINDS.index(name)) & ((outcome is None) | (feasible == bool(outcome))))
            near = np.where(preferred[:, members], _NOWHERE, keys[:, members])
            rank = near.argsort(axis=1).argsort(axis=1)
            offered = near < _NOWHERE
            turns[:, members] = np.where(offered, rank * len(STRATA) + number, turns[:, members])
        return turns

    def _api(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first items are API pages; all of them are seed knowledge."""
        flags = np.zeros(count, np.bool_)
        flags[: self.items.seed_size] = self.items.kind[: self.items.seed_size] == 3
        return flags


def _clipped(number: float) -> float:
    return min(max(number, -1.0), 1.0)


def _prefer(keys: Places, preferred: Places, count: int) -> None:
    """Put the nearest of the preferred ids before all others."""
    near = preferred[np.argsort(keys[preferred - 1])[:count]] - 1
    keys[near[keys[near] < _NOWHERE]] -= _PREFERRED


def placed(item: MemoryItem, id: int, born: int, stage: int) -> MemoryItem:
    """Return an item with the values that its bank gives it."""
    origin = STAGES[stage] if stage >= 0 else None
    if isinstance(item, ForecastItem):
        return item.placed(id=id, born=born, stage=origin)
    return replace(item, id=id, born=born, stage=origin)


def _plain(item: MemoryItem) -> MemoryItem:
    return item.plain() if isinstance(item, ForecastItem) else item


def _longer(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([column, np.zeros_like(column)])


#: The statistics of an item that no attempt of a stage was shown.
_UNUSED = Outcomes()


@dataclass(frozen=True)
class Pool:
    """One attempt's candidates as they were when it opened; a `Candidate` is made when it is accessed."""

    #: None in a copy from another process, whose objects are items.
    descriptions: Descriptions | None
    kinds: Places
    objects: NDArray[np.object_]
    ids: tuple[int, ...]
    stage: Places
    similarity: NDArray[np.float64]
    #: Columns as in `ForecastBank.record_of`.
    record_of: Numbers
    start: bool = False
    #: Of start points, slot by slot.
    children: tuple[tuple[Child, ...], ...] = ()
    #: Items as their bank has them, by id; those that are accessed here join them.
    known: dict[int, MemoryItem] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

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
    def _candidates(self) -> list[Candidate | None]:
        # An agent looks at the same pool before each of its picks.
        return [None] * len(self)

    @cached_property
    def _records(self) -> list[list[float]]:
        records: list[list[float]] = self.record_of[: len(self)].tolist()
        return records

    @cached_property
    def _similarities(self) -> list[float]:
        similarities: list[float] = self.similarity[: len(self)].tolist()
        return similarities

    def _candidate(self, slot: int) -> Candidate:
        candidate = self._candidates[slot]
        if candidate is None:
            children = self.children[slot] if self.start else ()
            outcomes = {stage: self._outcomes(i, slot) for i, stage in enumerate(STAGES)}
            candidate = Candidate(self._placed(slot), self._similarities[slot], outcomes, self.start, children)
            self._candidates[slot] = candidate
        return candidate

    def _placed(self, slot: int) -> MemoryItem:
        id = self.ids[slot]
        if id not in self.known:
            self.known[id] = placed(self._item(slot), id, int(self._records[slot][6]), int(self.stage[slot]))
        return self.known[id]

    def _item(self, slot: int) -> MemoryItem:
        item: MemoryItem = self.objects[slot]
        return item if self.descriptions is None else self.descriptions.item(int(self.kinds[slot]), item)

    def __reduce__(self) -> tuple[Any, ...]:
        items = np.full(len(self.objects), None, object)
        items[: len(self)] = [_plain(self._item(slot)) for slot in range(len(self))]
        own = (self.kinds, items, self.ids, self.stage, self.similarity, self.record_of, self.start, self.children)
        return Pool, (None, *own)

    def _outcomes(self, stage: int, slot: int) -> Outcomes:
        uses, total, recent = self._records[slot][stage:6:2]
        return Outcomes(int(uses), total / uses, recent) if uses else _UNUSED

    def __iter__(self) -> Any:
        return iter(self._whole)

    @cached_property
    def _whole(self) -> tuple[Candidate, ...]:
        # An agent reads all candidates before each of its picks.
        return self[:]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.ids)
