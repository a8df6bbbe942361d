"""Many episodes at once: the attempt logic of `Episode` with arrays. Both follow `kernel_gym.envs.attempt_rules`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from kernel_gym.authors.apprentice.tabular.author import ChosenRow, TabularAuthor, TabularRequest
from kernel_gym.envs import attempt_rules
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.attempt_rules import Progress, refining
from kernel_gym.envs.curriculum import Curriculum
from kernel_gym.envs.observation import HALF_AGE, HALF_USES, VERDICTS, Layout, Vector
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Child
from kernel_gym.envs.rendering import EpisodeState
from kernel_gym.envs.tabular.bank import STAGES, Pool, TabularBank
from kernel_gym.envs.tabular.item_arrays import ItemArrays, Numbers, Places
from kernel_gym.memory.item import Stage
from kernel_gym.suites import task_id
from kernel_gym.suites.definitions import CATEGORIES
from kernel_gym.verdict import Feasible, Verdict

REFINE = STAGES.index(Stage.REFINE)


@dataclass(frozen=True)
class TabularAttempt:
    """A finished attempt and the row of the table that the author's decision led to."""

    attempt: Attempt
    chosen: ChosenRow


class BatchedEpisodes:
    """`count` episodes, each at one task. All share one bank; in fresh memory each has its own."""

    def __init__(self, arrays: ItemArrays, options: Options, author: TabularAuthor, count: int) -> None:
        self.arrays, self.options, self.author, self.count = arrays, options, author, count
        self.layout = Layout(options.slots)
        named = {task.id: t for t, task in enumerate(arrays.tasks)}
        self._place = named
        self.curriculum = Curriculum(_chosen(arrays, options), options.curriculum)
        self._own_banks = [TabularBank(arrays) for _ in range(count if options.memory == "fresh" else 1)]
        self.banks = self._own_banks * (count // len(self._own_banks))
        self.seed, self.attempts = 0, Counter[int]()
        self._columns = self.layout.candidate_columns
        self._globals = self.layout.global_columns
        self._category = np.array(
            [CATEGORIES.index(t.category if t.category in CATEGORIES else "other") for t in arrays.tasks]
        )
        self._embedding = np.stack(arrays.embeddings)
        self._verdicts: list[Verdict] = [row.verdict for _, row in arrays.rows]
        self._outcomes = np.array([VERDICTS.index(verdict.outcome) for verdict in self._verdicts])
        self._empty()

    def _empty(self) -> None:
        count, slots = self.count, self.options.slots
        self.task, self.stage, self.used = (np.zeros(count, np.int64) for _ in range(3))
        self.first_us, self.best_us = np.full(count, np.nan), np.full(count, np.nan)
        self.last = np.full(count, -1)
        self.pool = np.full((count, slots), -1)
        self.picked: list[tuple[int, ...]] = [()] * count
        self.picked_ids: list[tuple[int, ...]] = [()] * count
        self.start = np.full(count, -1)
        self.start_due = np.zeros(count, np.bool_)
        self.picks_left = np.zeros(count, np.int64)
        self.rows = np.zeros((count, slots, self.layout.candidate_width), np.float32)
        self._words = np.zeros((count, self.arrays.words.shape[1]), np.uint64)
        self._open = np.zeros(count, np.uint64)
        self._own_kernels: list[set[int]] = [set() for _ in range(count)]
        self._attempts: list[list[Attempt]] = [[] for _ in range(count)]
        self.shown: list[Pool] = [Pool(self.arrays, (), (), *(np.zeros(0),) * 3)] * count  # type: ignore[arg-type]

    # Tasks

    def restart(self, seed: int) -> None:
        """Restore everything as constructed and set the run seed."""
        self.seed = seed
        self.attempts.clear()
        self.curriculum.restart(seed)
        for bank in self._own_banks:
            bank.clear()

    def begin(self, i: int, name: str | None = None) -> None:
        """Begin the next task, or the one named; in refining if the bank holds a feasible kernel of it."""
        task = self.curriculum.next() if name is None else self.curriculum.named(name)
        self.task[i], self.last[i] = self._place[task.id], -1
        self._set_progress(i, Progress())
        self._own_kernels[i], self._attempts[i] = set(), []
        bank = self.banks[i]
        if self.options.memory == "fresh":
            bank.clear()
        if self.options.stages != "draft" and (kernels := self._kernels(i)):
            oldest, latency = min(kernels, key=lambda place: bank.ids[place]), self.arrays.latency
            self._set_progress(i, refining(float(latency[oldest]), float(latency[kernels[0]])))

    def _kernels(self, i: int) -> list[int]:
        """Return the feasible traces of the task, fastest first; in frozen memory only those of this episode."""
        starts = self.banks[i].starts[int(self.task[i])]
        if self.options.memory != "frozen":
            return starts
        return [place for place in starts if place in self._own_kernels[i]]

    @property
    def over(self) -> Any:
        """Which episodes have spent their budget, or have a feasible kernel if they only draft."""
        return attempt_rules.is_over(self.options, self.used, ~np.isnan(self.best_us))

    @property
    def ready(self) -> Any:
        """Which episodes have made their picks, so that their kernels can be written."""
        return attempt_rules.is_ready(self.picks_left, self.start_due)

    # Picks

    def open_attempts(self, who: Sequence[int]) -> None:
        """Open an attempt in each of these episodes: fix the pool, or offer the start points first."""
        index = np.asarray(who, np.int64)
        over = self.over
        self.start[index] = -1
        self.start_due[index] = attempt_rules.start_is_due(self.stage[index] == REFINE, over[index])
        self.picks_left[index] = self.options.picks
        due = [i for i in who if self.start_due[i]]
        for i in due:
            starts = self._kernels(i)[: self._width(i)]
            self.pool[i] = starts + [-1] * (self.options.slots - len(starts))
        if rest := [i for i in who if not self.start_due[i]]:
            self._fill([i for i in rest if not over[i]])
            self.pool[[i for i in rest if over[i]]] = -1
        self._describe_pools(index)

    def _fill(self, who: Sequence[int]) -> None:
        """Fill pools from the bank; those on one bank and equally wide together."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i in who:
            groups.setdefault((id(self.banks[i]), self._width(i)), []).append(i)
        for (_, width), some in groups.items():
            index, bank = np.array(some), self.banks[some[0]]
            starts = self.start[index]
            queries = self.arrays.queries(self.task[index], starts)
            names = ["" if start < 0 else self._bottleneck(self.arrays.row(start)) for start in starts.tolist()]
            limit = self.arrays.seed_size if self.options.memory == "frozen" else len(self.arrays.items)
            self.pool[index] = -1
            self.pool[index, :width] = bank.pools(queries, width, starts, names, limit)

    def _width(self, i: int) -> int:
        """Return the most candidates that this attempt can have."""
        return self.options.width(int(self.used[i]))

    def _bottleneck(self, row: int) -> str:
        verdict = self.arrays.rows[row][1].verdict
        return verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""

    def _describe_pools(self, index: Places) -> None:
        """Describe new pools before anything is picked; those on one bank together."""
        self._words[index] = 0
        self._open[index] = self.arrays.task_operators[self.task[index]]
        if self.options.memory == "fresh":
            for i in index.tolist():
                self._describe_pools_of(self.banks[i], np.array([i]))
        else:
            self._describe_pools_of(self.banks[0], index)

    def _describe_pools_of(self, bank: TabularBank, index: Places) -> None:
        places, who = self.pool[index], index.tolist()
        queries = self.arrays.queries(self.task[index], self.start[index])
        similarity, record_of = self.arrays.similarity[queries[:, None], places], bank.record_of[places]
        ids, stage, due = bank.ids[places].tolist(), bank.stage[places], self.start_due[index].tolist()
        counts = (places >= 0).sum(axis=1).tolist()
        for n, (i, count) in enumerate(zip(who, counts, strict=True)):
            self.picked[i] = self.picked_ids[i] = ()
            self.shown[i] = Pool(
                self.arrays,
                tuple(places[n, :count].tolist()),
                tuple(ids[n][:count]),
                stage[n],
                similarity[n],
                record_of[n],
                due[n],
                self._children(i, places[n, :count].tolist()) if due[n] else (),
            )
        rows = self._described(index, places)
        rows[..., self._columns["similarity"]] = similarity.clip(-1, 1)
        self._measured(bank, places, stage, record_of, rows)
        rows[places < 0] = 0.0
        self.rows[index] = rows

    def _children(self, i: int, starts: Sequence[int]) -> tuple[tuple[Child, ...], ...]:
        """Return the results of refining each start point; in frozen memory only those of this episode."""
        bank = self.banks[i]
        children = [bank.children.get(start, ()) for start in starts]
        if self.options.memory != "frozen":
            return tuple(children)
        own_ids = {int(bank.ids[place]) for place in self._own_kernels[i]}
        return tuple(tuple(child for child in siblings if child.id in own_ids) for siblings in children)

    def _described(self, index: Places, places: Places) -> Vector:
        """Return the candidates' features that do not depend on the bank, one row each."""
        arrays, columns, task = self.arrays, self._columns, self.task[index][:, None]
        rows = np.zeros((*places.shape, self.layout.candidate_width), np.float32)
        starting, kind = self.start_due[index][:, None], arrays.kind[places]
        for name, code in (("experience", 0), ("trace", 1), ("practice", 2)):
            rows[..., columns[f"kind.{name}"]] = (kind == code) & ~starting
        rows[..., columns["kind.start"]] = starting
        rows[..., columns["same_task"]] = arrays.of_task[places] == task
        rows[..., columns["same_category"]] = arrays.category[places] == arrays.task_category[task]
        rows[..., columns["feasible"]] = arrays.feasible[places]
        share = _share(arrays.task_operators[task], arrays.operators[places])
        rows[..., columns["operators"]] = rows[..., columns["uncovered"]] = share
        return rows

    def _measured(self, bank: TabularBank, places: Places, stage: Places, record_of: Numbers, rows: Vector) -> None:
        """Fill in the features that come from the bank."""
        columns, arrays = self._columns, self.arrays
        relative = np.minimum(1.0, bank.fastest[arrays.of_task[places]] / arrays.latency[places])
        rows[..., columns["relative_latency"]] = np.where(np.isnan(relative), 0.0, relative)
        age = np.maximum(0, bank.attempts - record_of[..., 6])
        rows[..., columns["age"]] = age / (age + HALF_AGE)
        for code, name in enumerate(STAGES):
            uses, total, recent = (record_of[..., column] for column in range(code, 6, 2))
            rows[..., columns[f"origin.{name}"]] = stage == code
            rows[..., columns[f"uses.{name}"]] = uses / (uses + HALF_USES)
            rows[..., columns[f"mean.{name}"]] = (total / np.maximum(uses, 1)).clip(-1, 1)
            rows[..., columns[f"recent.{name}"]] = recent.clip(-1, 1)

    def pick(self, who: Places, actions: Places) -> None:
        """Take one action in each of these episodes; a masked one is a no-op that uses up the pick."""
        legal = self.mask()[who, actions] == 1.0
        due = self.start_due[who]
        if due.any():
            starting, slots = who[due], np.where(legal[due], actions[due], 0)
            self.start[starting] = self.pool[starting, slots]
            self.start_due[starting] = False
            self._fill(starting.tolist())
            self._describe_pools(starting)
        generating = who[~due & (actions == self.options.slots)]
        taking = ~due & (actions < self.options.slots)
        self.picks_left[who[taking]] -= 1
        self.picks_left[generating] = 0
        marked = taking & legal
        if marked.any():
            self._mark(who[marked], actions[marked])

    def _mark(self, who: Places, slots: Places) -> None:
        """Bring the features that depend on the picks up to date."""
        arrays, columns, places = self.arrays, self._columns, self.pool[who]
        for i, slot in zip(who.tolist(), slots.tolist(), strict=True):
            self.picked[i] = (*self.picked[i], slot)
            self.picked_ids[i] = (*self.picked_ids[i], self.shown[i].ids[slot])
        taken = self.pool[who, slots]
        self._words[who] |= arrays.words[taken]
        self._open[who] &= ~arrays.operators[taken]
        common = np.bitwise_count(arrays.words[places] & self._words[who][:, None]).sum(axis=2, dtype=np.int64)
        overlap = common / np.maximum(arrays.word_count[places], 1)
        there = places >= 0
        self.rows[who, slots, columns["picked"]] = 1.0
        self.rows[who, :, columns["overlap"]] = np.where(there, overlap, 0.0)
        uncovered = _share(self._open[who][:, None], arrays.operators[places])
        self.rows[who, :, columns["uncovered"]] = np.where(there, uncovered, 0.0)

    # Kernels

    def commit(self) -> list[TabularAttempt]:
        """Write all kernels, then commit in index order, so that every author sees the bank before this step."""
        picks = self.options.picks
        shown = np.full((self.count, picks + 1), -1)
        for i, slots in enumerate(self.picked):
            if slots:
                shown[i, : len(slots)] = self.pool[i, list(slots)]
        shown[:, picks] = self.start
        api = self.arrays.api_pages(self.task, shown)
        context = np.concatenate([shown[:, :picks], api], axis=1)
        rows = self.author.write(self.seed, [self._request(i, context[i]) for i in range(self.count)])
        # The seed knowledge is numbered from 1 on.
        pages = [tuple(page + 1 for page in some if page >= 0) for some in api.tolist()]
        places = [some[: len(slots)] for some, slots in zip(shown.tolist(), self.picked, strict=True)]
        return [self._learn(i, row, places[i], pages[i]) for i, row in enumerate(rows)]

    def _request(self, i: int, shown: Places) -> TabularRequest:
        start, task = int(self.start[i]), int(self.task[i])
        number = self.attempts[task]
        self.attempts[task] += 1
        if start < 0:
            return TabularRequest(task, number, shown)
        return TabularRequest(task, number, shown, self.arrays.row(start), self.banks[i].tried.get(start, ()))

    def _learn(self, i: int, chosen: ChosenRow, places: list[int], pages: tuple[int, ...]) -> TabularAttempt:
        arrays, bank, before = self.arrays, self.banks[i], self._progress(i)
        verdict, start = self._verdicts[chosen.row], int(self.start[i])
        attempt = before.attempt(
            arrays.tasks[self.task[i]],
            arrays.kernels[chosen.row],
            verdict,
            self.picked_ids[i],
            None if start < 0 else int(bank.ids[start]),
            pages,
            self._remember(i, chosen.row, before, places),
        )
        self.last[i] = chosen.row
        self._attempts[i].append(attempt)
        self._set_progress(i, before.after(verdict, self.options))
        return TabularAttempt(attempt, chosen)

    def _remember(self, i: int, row: int, before: Progress, places: list[int]) -> tuple[int, ...]:
        """Record the reward of the shown items and add the new items to the bank; return their ids."""
        bank, verdict, start = self.banks[i], self._verdicts[row], int(self.start[i])
        if self.options.statistics:
            bank.record(before.stage, places if start < 0 else [start, *places], before.reward(verdict))
        trace, count = self.arrays.trace(row), attempt_rules.items_kept(self.options, verdict)
        if verdict.feasible:
            self._own_kernels[i].add(self.arrays.same[trace])
        return bank.add(range(trace, trace + count), before.stage, start) if count else ()

    def _progress(self, i: int) -> Progress:
        first_us, best_us = float(self.first_us[i]), float(self.best_us[i])
        return Progress(
            STAGES[self.stage[i]],
            int(self.used[i]),
            None if isnan(first_us) else first_us,
            None if isnan(best_us) else best_us,
        )

    def _set_progress(self, i: int, progress: Progress) -> None:
        self.stage[i], self.used[i] = STAGES.index(progress.stage), progress.used
        self.first_us[i] = nan if progress.first_us is None else progress.first_us
        self.best_us[i] = nan if progress.best_us is None else progress.best_us

    def state(self, i: int) -> EpisodeState:
        """Return what is shown of an episode."""
        return EpisodeState(
            self.arrays.tasks[self.task[i]],
            self._progress(i),
            self.options.budget,
            bool(self.over[i]),
            bool(self.start_due[i]),
            int(self.picks_left[i]),
            self.shown[i],
            self.picked[i],
            self._attempts[i],
        )

    # What the agent sees

    def mask(self) -> Vector:
        """Return 1 for every legal action, one row for each episode."""
        picked = self.rows[..., self._columns["picked"]] != 0.0
        return attempt_rules.action_mask(self.pool >= 0, picked, self.ready, self.start_due)

    def observations(self) -> dict[str, Vector]:
        """Return what policies see, one row for each episode; always new arrays."""
        flat = self.rows.reshape(self.count, -1)
        return {"observations": np.concatenate([flat, self._situation()], axis=1), "action_mask": self.mask()}

    def _situation(self) -> Vector:
        options, columns, each = self.options, self._globals, np.arange(self.count)
        rows = np.zeros((self.count, self.layout.global_width), np.float32)
        rows[each, _first(columns["stage"]) + self.stage] = 1.0
        rows[:, columns["attempts_left"]] = (options.budget - self.used) / options.budget
        rows[:, columns["picks_left"]] = (self.picks_left + self.start_due) / (options.picks + 1)
        rows[:, columns["best_speedup"]] = np.nan_to_num(np.tanh(np.log(self.first_us / self.best_us))).clip(0)
        rows[each, _first(columns["last_verdict"]) + np.where(self.last >= 0, self._outcomes[self.last], 0)] = 1.0
        rows[each, _first(columns["category"]) + self._category[self.task]] = 1.0
        rows[:, columns["embedding"]] = self._embedding[self.task]
        return rows

    def infos(self) -> dict[str, list[Any]]:
        """Return the `info` of the present states: for each key a list with one place for each episode."""
        tasks = [self.arrays.tasks[t] for t in self.task.tolist()]
        places = zip(self.banks, self.start.tolist(), strict=True)
        return {
            "task": [task.id for task in tasks],
            "category": [task.category for task in tasks],
            "stage": [STAGES[stage] for stage in self.stage.tolist()],
            "attempts_left": (self.options.budget - self.used).tolist(),
            "picks_left": self.picks_left.tolist(),
            "start_due": self.start_due.tolist(),
            "candidates": list(self.shown),
            "picked": list(self.picked_ids),
            "start": [0 if start < 0 else int(bank.ids[start]) for bank, start in places],
            "first_us": np.nan_to_num(self.first_us).tolist(),
            "best_us": np.nan_to_num(self.best_us).tolist(),
            "last_verdict": [None if row < 0 else self._verdicts[row] for row in self.last.tolist()],
        }


def _chosen(arrays: ItemArrays, options: Options) -> list[Any]:
    """Return the tasks to work on: those named, or all of the table."""
    if options.tasks is None:
        return arrays.tasks
    table = Curriculum(arrays.tasks)
    names = [options.tasks] if isinstance(options.tasks, str) else options.tasks
    return [table.named(task_id(name, options.suite) if isinstance(name, str) else name.id) for name in names]


def _share(whole: Any, part: Any) -> Numbers:
    """Return the share of `whole` that is in `part`, both as bits; 0 if `whole` is empty."""
    count = np.bitwise_count(whole)
    share: Numbers = np.bitwise_count(whole & part) / np.maximum(count, 1).astype(np.float64)
    return share


def _first(columns: int | slice) -> int:
    return columns if isinstance(columns, int) else columns.start
