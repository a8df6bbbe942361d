"""What agents see of many episodes, with arrays: the features of `observation.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from kernel_gym.envs.forecast.bank import ForecastBank, Pool
from kernel_gym.envs.forecast.batched_history import BatchedHistory, bit_count, repeated
from kernel_gym.envs.forecast.items import SCALE, WORDS, Bits, Items, Numbers, Places
from kernel_gym.envs.observation import HALF_AGE, VERDICTS, Layout, Vector, shares
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Child
from kernel_gym.suites.definitions import CATEGORIES
from kernel_gym.verdict import Verdict

#: Rows of an episode's sets: words that the picks show; what they lack of the task's operators and of the words of its
#: failures; words of its kernels.
_SHOWN, _OPEN, _UNNAMED, _KERNEL = range(4)


class Episodes(Protocol):
    """What observations read of the episodes; `BatchedEpisodes` says what each is."""

    items: Items
    options: Options
    count: int
    task: Places
    stage: Places
    used: Places
    query: Places
    pool: Places
    picks_left: Places
    first_us: Numbers
    best_us: Numbers
    start_due: Any
    last: list[Verdict | None]
    histories: list[BatchedHistory]
    outcomes: Counter[str]

    def every(self, who: Places) -> Any: ...

    def children(self, i: int, starts: Sequence[int]) -> tuple[tuple[Child, ...], ...]: ...


class BatchedObservations:
    """The observations of all episodes, kept up to date when attempts begin and candidates are picked."""

    def __init__(self, episodes: Episodes) -> None:
        items, options, count = episodes.items, episodes.options, episodes.count
        self._episodes, self._items = episodes, items
        self.layout = Layout(options.slots, version=options.layout)
        self._columns, self._globals = self.layout.candidate_columns, self.layout.global_columns
        self._first_measured = _first(self._columns["origin"])
        names = (task.category if task.category in CATEGORIES else "other" for task in items.tasks)
        self._category = np.array([CATEGORIES.index(name) for name in names])
        self.all = np.zeros((count, self.layout.size), np.float32)
        self._divide()
        #: The candidates' places in `Items`, -1 where there is none.
        self.places = np.full((count, options.slots), -1)
        #: Sets of operators and words, as `Items.bits` has them; rows as named above.
        self._sets = np.zeros((count, 4, 0), np.uint64)

    def _divide(self) -> None:
        slots, width = self.layout.slots, self.layout.candidate_width
        #: The candidates' part, by episode and slot, and the global part; views.
        self.rows = self.all[:, : slots * width].reshape(len(self.all), slots, width)
        self.situations = self.all[:, slots * width :]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._divide()  # a copy of a view is no view of the copy

    # Candidates

    def describe_pools(self, bank: ForecastBank, index: Places) -> list[Pool]:
        """Describe the pools of these episodes, which are on one bank, before anything is picked; return them."""
        episodes, items, every = self._episodes, self._items, self._episodes.every(index)
        ids = episodes.pool[every]
        self.places[every] = places = bank.places(ids)
        similarity = -items.distance[episodes.query[every][:, None], places] / SCALE
        records, stage = bank.record_of[ids - 1], bank.stage(ids)
        rows = self._described(every, places)
        rows[..., self._columns["similarity"]] = _clipped(similarity)
        self._measured(bank, places, ids, records, rows)
        self._compare(index, places, rows)
        rows[places < 0] = 0.0
        self.rows[every] = rows
        return self._pools(bank, index, places, ids, stage, similarity, records)

    def _pools(
        self,
        bank: ForecastBank,
        index: Places,
        places: Places,
        ids: Places,
        stage: Places,
        similarity: Numbers,
        records: Numbers,
    ) -> list[Pool]:
        items, due = self._items, self._episodes.start_due[index].tolist()
        kinds, objects, plain, counts = items.kind[places], items.objects[places], ids.tolist(), (ids > 0).sum(axis=1)
        pools = []
        for n, (i, count) in enumerate(zip(index.tolist(), counts.tolist(), strict=True)):
            some = plain[n][:count]
            children = self._episodes.children(i, some) if due[n] else ()
            about = (items.descriptions, kinds[n], objects[n], tuple(some), stage[n], similarity[n], records[n])
            pools.append(Pool(*about, due[n], children, bank.offered))
        return pools

    def _described(self, every: Any, places: Places) -> Vector:
        """Return the candidates' features that do not depend on the bank, one row each."""
        items, columns, task = self._items, self._columns, self._episodes.task[every][:, None]
        rows: Vector = items.features[places][..., : self.layout.candidate_width]
        starting = self._episodes.start_due[every]
        if starting.any():
            rows[starting, :, columns["kind"]] = 0.0
            rows[starting, :, columns["kind.start"]] = 1.0
        rows[..., columns["same_task"]] = items.of_task[places] == task
        rows[..., columns["same_category"]] = items.category[places] == items.task_category[task]
        return rows

    def _measured(self, bank: ForecastBank, places: Places, ids: Places, records: Numbers, rows: Vector) -> None:
        """Fill in the features that come from the bank."""
        columns, items = self._columns, self._items
        relative = np.minimum(1.0, bank.fastest[items.of_task[places]] / items.latency[places])
        rows[..., columns["relative_latency"]] = np.where(np.isnan(relative), 0.0, relative)
        rows[..., self._first_measured : self._first_measured + 9] = bank.observed[ids - 1]
        age = np.maximum(0, bank.attempts - records[..., 6])
        rows[..., columns["age"]] = age / (age + HALF_AGE)

    def _compare(self, index: Places, places: Places, rows: Vector) -> None:
        """Fill in the features that compare candidates with the task and with its attempts."""
        columns, items, histories = self._columns, self._items, [self._episodes.histories[i] for i in index.tolist()]
        near = items.known_bits[places]
        sets = np.zeros((len(index), 4, near.shape[-1]), np.uint64)
        sets[:, _OPEN, :WORDS] = items.task_operators[self._episodes.task[index]]
        for some, history in zip(sets, histories, strict=True):
            some[_UNNAMED, WORDS : WORDS + len(history.failure_words)] = history.failure_words
            some[_KERNEL, WORDS : WORDS + len(history.kernel_words)] = history.kernel_words
        self._keep(self._episodes.every(index), sets)
        of_task, named, covered = np.moveaxis(_shares(sets[:, _OPEN:], near), 1, 0)
        rows[..., columns["operators"]] = rows[..., columns["uncovered"]] = of_task
        if self.layout.version > 1:
            rows[..., columns["covered"]] = covered
            rows[..., columns["named"]] = rows[..., columns["unnamed"]] = named
            rows[..., columns["repeated"]] = repeated(histories, items.failure[places])

    def _keep(self, every: Any, sets: Bits) -> None:
        """Keep the sets of some episodes; words that became known since make all of them wider."""
        if sets.shape[-1] != self._sets.shape[-1]:
            before, self._sets = self._sets, np.zeros((*self._sets.shape[:2], sets.shape[-1]), np.uint64)
            self._sets[..., : before.shape[-1]] = before
        self._sets[every] = sets

    def mark(self, who: Places, slots: Places) -> None:
        """Bring the features that depend on the picks up to date. Those of empty slots are 0, as for an empty item."""
        every = self._episodes.every(who)
        items, columns, places, rows = self._items, self._columns, self.places[every], self.rows
        near = items.bits[:, : self._sets.shape[-1]][places]
        taken = near[np.arange(len(who)), slots]
        sets = self._sets[every]
        sets[:, _SHOWN, WORDS:] |= taken[:, WORDS:]
        sets[:, _OPEN : _UNNAMED + 1] &= ~taken[:, None]
        self._sets[every] = sets
        common = bit_count(near[:, None] & sets[:, : _UNNAMED + 1, None])
        lacking = common[:, _OPEN:] / np.maximum(bit_count(sets[:, _OPEN : _UNNAMED + 1]), 1)[..., None]
        rows[who, slots, columns["picked"]] = 1.0
        rows[every, :, columns["overlap"]] = common[:, _SHOWN] / np.maximum(items.word_count[places], 1)
        rows[every, :, columns["uncovered"]] = lacking[:, 0]
        if self.layout.version > 1:
            rows[every, :, columns["unnamed"]] = lacking[:, 1]

    def show_drafts(self, i: int, count: int) -> None:
        """Describe so many drafts of an episode, in place of its candidates."""
        self.rows[i] = self.layout.drafts(count)

    @property
    def picked(self) -> Any:
        """Which candidates are picked."""
        return self.rows[..., self._columns["picked"]] != 0.0

    # Situations

    def describe_situations(self, index: Places) -> None:
        """Describe the situation in which attempts begin."""
        episodes, columns, each = self._episodes, self._globals, np.arange(len(index))
        every, budget = episodes.every(index), episodes.options.budget
        task, used = episodes.task[every], episodes.used[every]
        rows = np.zeros((len(index), self.layout.global_width), np.float32)
        last = [episodes.last[i] for i in index.tolist()]
        outcomes = [0 if verdict is None else VERDICTS.index(verdict.outcome) for verdict in last]
        speedup = np.tanh(np.log(episodes.first_us[every] / episodes.best_us[every]))
        rows[each, _first(columns["stage"]) + episodes.stage[every]] = 1.0
        rows[:, columns["attempts_left"]] = (budget - used) / budget
        rows[:, columns["picks_left"]] = self._share_of_picks(every)
        rows[:, columns["best_speedup"]] = np.where(speedup > 0, speedup, 0.0)
        rows[each, _first(columns["last_verdict"]) + np.array(outcomes)] = 1.0
        rows[each, _first(columns["category"]) + self._category[task]] = 1.0
        rows[:, columns["embedding"]] = self._items.embedding[task]
        if self.layout.version > 1:
            rows[:, columns["outcomes"]] = [shares(episodes.histories[i].outcomes) for i in index.tolist()]
            rows[:, columns["author"]] = shares(episodes.outcomes)
        self.situations[every] = rows

    def count_picks(self, index: Any) -> None:
        """Bring the number of picks that are left up to date."""
        self.situations[index, self._globals["picks_left"]] = self._share_of_picks(index)

    def _share_of_picks(self, index: Any) -> Numbers:
        episodes = self._episodes
        share: Numbers = (episodes.picks_left[index] + episodes.start_due[index]) / (episodes.options.picks + 1)
        return share


def _shares(wholes: Bits, parts: Bits) -> Numbers:
    """Return the share of each episode's sets that is in each of its candidates: episodes, sets, candidates."""
    share: Numbers = bit_count(parts[:, None] & wholes[:, :, None]) / np.maximum(bit_count(wholes), 1)[..., None]
    return share


def _clipped(numbers: Numbers) -> Numbers:
    """Return the numbers, at least -1 and at most 1; quicker than `clip` for few of them."""
    clipped: Numbers = np.minimum(np.maximum(numbers, -1.0), 1.0)
    return clipped


def _first(columns: int | slice) -> int:
    return columns if isinstance(columns, int) else columns.start
