"""The items of a forecast memory as arrays that grow. An item is named by its place."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.demonstration import demonstration
from kernel_gym.envs.forecast.descriptions import LANGUAGE, SIGHTS, Description, Descriptions
from kernel_gym.envs.forecast.initial_memory import NOTHING, InitialMemory
from kernel_gym.envs.forecast.variants import Variant
from kernel_gym.envs.observation import EMBEDDING, HALF_LENGTH, Layout, Vector, failure_kind, project, project_items
from kernel_gym.envs.options import Pages
from kernel_gym.envs.prompt_context import describe, refining_query
from kernel_gym.memory import api_pages
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Profile, Verdict

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Bits = NDArray[np.uint64]

#: Kinds in the order of the observation; API pages are never candidates.
KINDS = ("experience", "trace", "practice", "api")
#: Places and queries that there is room for at first; the last place stays empty.
ROOM, QUERIES = 1024, 64
#: Memories of an earlier run that are described together.
TOGETHER = 512
#: Bits for the ATen operators of all tasks.
OPERATORS = 512
#: The column at which words begin.
WORDS = OPERATORS // 64
#: Similarities are kept as whole numbers of this size, as the bank's index rounds them.
SCALE = 1e6
#: The version of the observation that has all features; columns of version 1 have the same numbers.
_LAYOUT = Layout(1)


class Items:
    """All items that are in memory, with what the author, the search and the observation need of them.

    The seed knowledge comes first. Rows of items that no bank holds any more are used again.
    """

    #: Places that a context has for API pages, after those for picks.
    page_slots = api_pages.BASICS + api_pages.NAMED + api_pages.SIMILAR

    def __init__(
        self,
        tasks: Sequence[Task],
        descriptions: Descriptions,
        pages: Pages = "all",
        initial: InitialMemory = NOTHING,
    ) -> None:
        self.tasks, self.descriptions, self._pages, self.initial = list(tasks), descriptions, pages, initial
        self.seed_size = len(descriptions.seeds)
        #: The number of items that every bank begins with.
        self.initial_size = self.seed_size + len(initial.items)
        #: Numbers of the tasks of the run, then of those that the initial memory comes from.
        self._numbers = {task.id: number for number, task in enumerate(self.tasks)}
        for item in initial.items:
            self._numbers.setdefault(item.task, len(self._numbers))
        self.task_count = len(self._numbers)
        self._operator_bits: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._allocate()
        seeds = self._take(self.seed_size)
        self.kind[seeds] = [KINDS.index(item.kind) for item in descriptions.seeds]
        self._add_rows(seeds, descriptions.seeds, descriptions.seed_description)
        self.task_category = np.array([self._category(task.category) for task in self.tasks])
        self._add_initial(initial.items)
        #: Items that no bank lists: the demonstration, if contexts have it.
        self._demonstration = self._add_demonstration() if pages == "demonstration" else []
        self._fixed = self.size
        self._item_category = np.where([bool(task.category) for task in self.tasks], self.task_category, -1)
        #: By task; -1 until the task is first worked on.
        self.task_query = np.full(len(self.tasks), -1)
        self.task_operators = np.zeros((len(self.tasks), WORDS), np.uint64)
        self.embedding = np.zeros((len(self.tasks), EMBEDDING), np.float32)
        self._ranked = np.zeros((len(self.tasks), len(descriptions.others)), np.int64)

    def _allocate(self) -> None:
        reader, seeds = self.descriptions.reader, self.seed_size
        room = max(ROOM, 2 * seeds)
        idioms, moves, pages = len(reader.idioms), len(reader.moves), len(self.descriptions.others)
        self.size, self._free = 0, list[int]()
        self.objects = np.full(room, None, object)
        self.kind = np.zeros(room, np.int64)
        self.of_task, self.category = np.full(room, -1), np.full(room, -1)
        self.latency = np.full(room, np.nan)
        self.length = np.zeros(room, np.int64)
        self.feasible, self.compiled, self.judged, self.mismatch, self.coded = (
            np.zeros(room, np.bool_) for _ in range(5)
        )
        self.right, self.wrong, self.pointed, self.taught, self.commented = (
            np.zeros((room, idioms), np.bool_) for _ in SIGHTS
        )
        self.shows, self.pages = np.zeros((room, moves), np.bool_), np.zeros((room, pages), np.bool_)
        #: The operators of each item's task and, after `WORDS` columns, its words.
        self.bits, self.word_count = np.zeros((room, WORDS + 16), np.uint64), np.zeros(room, np.int64)
        # In double precision, so that products do not depend on how many are computed together.
        self.vectors = np.zeros((room, self.descriptions.embedder.dimension))
        #: Rows of the observation as far as they depend on the item alone.
        self.features = np.zeros((room, _LAYOUT.candidate_width), np.float32)
        #: Kinds of failure as numbers; -1 for what did not fail.
        self.failure = np.full(room, -1)
        self._failure_numbers: dict[str, int] = {}
        self._message_words: dict[str, Bits] = {}
        self._queries = np.zeros((QUERIES, self.vectors.shape[1]))
        self._query_numbers: dict[tuple[int, str], int] = {}
        #: Similarity of each query to each item, negative and times `SCALE`, so that the nearest has the least.
        self.distance = np.zeros((QUERIES, room), np.int32)

    def _add_initial(self, items: Sequence[MemoryItem]) -> None:
        """Add the memories of an earlier run, some at a time, because their words are counted in one large array."""
        for begin in range(0, len(items), TOGETHER):
            some = items[begin : begin + TOGETHER]
            rows = self._take(len(some))
            self.kind[rows] = [KINDS.index(item.kind) for item in some]
            self.of_task[rows] = [self._numbers[item.task] for item in some]
            self.category[rows] = [self._category(item.category) if item.category else -1 for item in some]
            self.bits[rows, :WORDS] = [self._bits(item.operators) for item in some]
            self._judge(rows, [item.verdict for item in some if item.verdict is not None])
            self._add_rows(rows, some, self.descriptions.describe_memories(some))

    def _add_demonstration(self) -> list[int]:
        """Add the kernel that is shown in place of API pages."""
        shown = demonstration(LANGUAGE)
        item = MemoryItem(Kind.TRACE, "demonstration", shown.text, shown.code, shown.verdict)
        rows = self._take(1)
        self.kind[rows] = KINDS.index(item.kind)
        if shown.verdict is not None:
            self._judge(rows, [shown.verdict])
        return self._add_rows(rows, [item], self.descriptions.describe([item]))

    def clear(self) -> None:
        """Forget everything but the seed knowledge."""
        self.release(range(self._fixed, self.size))
        self.size, self._free = self._fixed, []

    def release(self, places: Sequence[int]) -> None:
        """Let rows be used again."""
        self.objects[list(places)] = None
        self._free += places

    # Rows

    def add(self, items: Sequence[tuple[Kind, Variant]]) -> list[int]:
        """Add traces and experiences of kernels; return their places."""
        rows, variants = self._take(len(items)), [variant for _, variant in items]
        tasks = [self._numbers[variant.texts.task.id] for variant in variants]
        self.kind[rows] = [KINDS.index(kind) for kind, _ in items]
        self.of_task[rows] = tasks
        self.category[rows], self.bits[rows, :WORDS] = self._item_category[tasks], self.task_operators[tasks]
        self._judge(rows, [variant.verdict for variant in variants])
        return self._add_rows(rows, variants, self.descriptions.describe_variants(items))

    def item(self, place: int) -> MemoryItem:
        """Return the item at a place."""
        return self.descriptions.item(int(self.kind[place]), self.objects[place])

    def _take(self, count: int) -> list[int]:
        """Return the places of `count` new rows."""
        taken = self._free[len(self._free) - min(count, len(self._free)) :]
        del self._free[len(self._free) - len(taken) :]
        new = count - len(taken)
        while self.size + new >= len(self.objects):
            self._grow()
        taken += range(self.size, self.size + new)
        self.size += new
        return taken

    def _grow(self) -> None:
        for name in _COLUMNS:
            setattr(self, name, _longer(getattr(self, name)))
        self.distance = np.concatenate([self.distance, np.zeros_like(self.distance)], axis=1)

    def _add_rows(self, rows: list[int], objects: Sequence[MemoryItem | Variant], about: Description) -> list[int]:
        self.objects[rows] = _objects(objects)
        for name in SIGHTS:
            getattr(self, name)[rows] = about.sights[name]
        self.shows[rows], self.pages[rows], self.length[rows] = about.shows, about.pages, about.length
        self._set_words(rows, about.words)
        self.vectors[rows] = about.vectors
        self._set_features(rows)
        count = len(self._query_numbers)
        self.distance[:count, rows] = _distance(self._queries[:count] @ self.vectors[rows].T)
        return rows

    def _set_features(self, rows: list[int]) -> None:
        columns, features = _LAYOUT.candidate_columns, np.zeros((len(rows), _LAYOUT.candidate_width), np.float32)
        for code, name in enumerate(KINDS[:-1]):
            features[:, columns[f"kind.{name}"]] = self.kind[rows] == code
        features[:, columns["feasible"]], features[:, columns["compiled"]] = self.feasible[rows], self.compiled[rows]
        features[:, columns["length"]] = self.length[rows] / (self.length[rows] + HALF_LENGTH)
        features[:, columns["text"]] = project_items(self.vectors[rows])
        self.features[rows] = features

    def _judge(self, rows: list[int], verdicts: Sequence[Verdict]) -> None:
        """Fill the columns that come from verdicts."""
        self.latency[rows] = [nan if verdict.latency_us is None else verdict.latency_us for verdict in verdicts]
        self.judged[rows] = True
        self.compiled[rows] = [bool(verdict.compiled) for verdict in verdicts]
        self.feasible[rows] = [verdict.feasible for verdict in verdicts]
        self.mismatch[rows] = [isinstance(v, Incorrect) and v.cause == "mismatch" for v in verdicts]
        self.failure[rows] = [-1 if v.feasible else self.failure_number(v) for v in verdicts]
        self.coded[rows] = self.kind[rows] == KINDS.index("trace")

    def failure_number(self, verdict: Verdict) -> int:
        """Return the kind of a failure as a number."""
        return self._failure_numbers.setdefault(failure_kind(verdict), len(self._failure_numbers))

    def message_words(self, message: str) -> Bits:
        """Return the words of a message as bits, as far as they carry meaning."""
        if message not in self._message_words:
            counts = self.descriptions.reader.count_words(message)
            flags = np.zeros(64 * -(-len(counts) // 64), np.bool_)
            flags[: len(counts)] = (counts > 0) & self.descriptions.telling[: len(counts)]
            self._message_words[message] = np.packbits(flags).view(np.uint64)
        return self._message_words[message]

    def _set_words(self, rows: list[int], counts: NDArray[np.int16]) -> None:
        width = WORDS - (-counts.shape[1] // 64)
        if width > self.bits.shape[1]:
            wider = np.zeros((len(self.bits), 2 * width), np.uint64)
            wider[:, : self.bits.shape[1]] = self.bits
            self.bits = wider
        flags = np.zeros((len(rows), 64 * (self.bits.shape[1] - WORDS)), np.bool_)
        flags[:, : counts.shape[1]] = (counts > 0) & self.descriptions.telling[: counts.shape[1]]
        self.bits[rows, WORDS:] = np.packbits(flags, axis=1).view(np.uint64)
        self.word_count[rows] = flags.sum(axis=1)

    @property
    def known_bits(self) -> Bits:
        """The operators and words of each item as bits, as far as there are words; a view."""
        return self.bits[:, : WORDS - (-len(self.descriptions.reader.vocabulary) // 64)]

    @property
    def known_words(self) -> Bits:
        """The words of each item as bits, as far as there are words; a view."""
        return self.known_bits[:, WORDS:]

    def _bits(self, operators: Sequence[str]) -> Bits:
        flags = np.zeros(OPERATORS, np.bool_)
        flags[[self._operator_bits.setdefault(name, len(self._operator_bits)) for name in operators]] = True
        return np.packbits(flags).view(np.uint64)

    def _category(self, name: str) -> int:
        return self._categories.setdefault(name, len(self._categories))

    # Tasks and queries

    def know_task(self, number: int) -> None:
        """Work out what the search and the observation need of a task, when it is first worked on."""
        if self.task_query[number] >= 0:
            return
        task = self.tasks[number]
        vector = self.descriptions.embedder.embed([describe(task)])[0]
        self.task_operators[number] = self._bits(self.descriptions.operators(task))
        self.embedding[number] = project(vector)
        query = self.task_query[number] = self._add_query((number, ""), vector)
        others = self.descriptions.others
        self._ranked[number] = np.lexsort((others, self.distance[query][others]))

    def refining_query(self, number: int, place: int) -> int:
        """Return the number of the query for memories that help to refine the start point at a place."""
        start: Variant = self.objects[place]
        measured = start.verdict.profile if isinstance(start.verdict, Feasible) else Profile()
        key = (number, f"{measured.bottleneck} {measured.diagnosis}")
        if key not in self._query_numbers:
            text = refining_query(self.tasks[number], self.item(place))
            self._add_query(key, self.descriptions.embedder.embed([text])[0])
        return self._query_numbers[key]

    def _add_query(self, key: tuple[int, str], vector: Vector) -> int:
        query = self._query_numbers[key] = len(self._query_numbers)
        if query == len(self._queries):
            self._queries, self.distance = _longer(self._queries), _longer(self.distance)
        self._queries[query] = vector
        self.distance[query, : self.size] = _distance(self.vectors[: self.size] @ self._queries[query])
        return query

    def api_pages(self, tasks: Places, shown: Places) -> Places:
        """Return the pages that go with what is shown, one row each, padded with -1, as `generation_request` does."""
        places = np.full((len(tasks), self.page_slots), -1)
        if self._pages in ("all", "basics"):
            places[:, : len(self.descriptions.basics)] = self.descriptions.basics
        if self._pages == "demonstration":
            places[:, : len(self._demonstration)] = self._demonstration
        if self._pages != "all":
            return places
        ranked = self._ranked[tasks]
        named: Any = self.pages[shown].any(axis=1)
        named = named[np.arange(len(tasks))[:, None], ranked]
        # What is named and does not fit is among the rest again.
        named &= named.cumsum(axis=1) <= api_pages.NAMED
        similar = ~named & ((~named).cumsum(axis=1) <= api_pages.SIMILAR)
        for chosen, begin in ((named, api_pages.BASICS), (similar, api_pages.BASICS + api_pages.NAMED)):
            rows, columns = chosen.nonzero()
            at = begin + chosen.cumsum(axis=1)[rows, columns] - 1
            places[rows, at] = self.descriptions.others[ranked[rows, columns]]
        return places


#: The arrays with one row for each place.
_COLUMNS = (
    *("objects", "kind", "of_task", "category", "latency", "length", "feasible", "compiled", "judged", *SIGHTS),
    *("mismatch", "coded"),
    *("shows", "pages", "bits", "word_count", "vectors", "features", "failure"),
)


def _objects(objects: Sequence[Any]) -> NDArray[np.object_]:
    array = np.empty(len(objects), object)
    array[:] = list(objects)
    return array


def _longer(column: NDArray[Any]) -> NDArray[Any]:
    """Return an array with twice the rows; new ones are like the last, which is empty."""
    return np.concatenate([column, np.repeat(column[-1:], len(column), axis=0)])


def _distance(similarity: NDArray[Any]) -> NDArray[np.int32]:
    return -np.round(similarity * SCALE).astype(np.int32)
