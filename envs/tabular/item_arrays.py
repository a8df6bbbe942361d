"""All items that can be in the memory of a tabular run, as arrays.

The seed knowledge is there from the beginning; each kernel of the table leaves a trace and an experience when it is
first written. What depends on texts alone (what an author reads in an item, its words, its similarity to queries) is
computed here once, with the functions that the live environment uses.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym import plugins, suites
from kernel_gym.authors.apprentice.tabular.item_readings import read_items
from kernel_gym.authors.apprentice.tabular.table import Table, load
from kernel_gym.authors.apprentice.tabular.table_index import TableIndex
from kernel_gym.envs.observation import Vector, project
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.prompt_context import describe, note, refining_query
from kernel_gym.kernel import Kernel
from kernel_gym.memory import api_pages, rows
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import Embedder
from kernel_gym.memory.experience import experience, trace
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task

_NO_TASK = Task("", "", "", ())

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

#: Room that ids have below the similarity in a sorting key.
ID_BITS = 24


class ItemArrays:
    """The items of a table and their arrays. An item is named by its place, a row of the table by its number."""

    #: Places that a context has for API pages, after those for picks.
    page_slots = api_pages.BASICS + api_pages.NAMED + api_pages.SIMILAR

    def __init__(self, table: Table, embedder: Embedder) -> None:
        self.table, self.embedder = table, embedder
        self.origin: tuple[Any, ...] = (ItemArrays, (table, embedder))
        self.tasks: list[Task] = [suites.find_task(task.id) for task in self.table.tasks]
        self.index = TableIndex(table)
        self.rows = self.index.rows
        self.seed_size = len(seed_items(self.table.language))
        self.traces: Places = self.trace(np.arange(len(self.rows)))
        self.items: list[MemoryItem] = [*seed_items(self.table.language), *self._left_behind()]
        #: Items with the same content are one item to a bank: the first of them.
        first: dict[str, int] = {}
        self.same = [first.setdefault(rows.digest(item), place) for place, item in enumerate(self.items)]
        self._describe_items()
        self.readings = read_items([note(item, _NO_TASK) for item in self.items], self.index)
        self._search()

    def __deepcopy__(self, memo: dict[int, Any]) -> ItemArrays:
        return self  # never changed once made

    def __reduce__(self) -> tuple[Any, ...]:
        return self.origin

    def trace(self, row: Any) -> Any:
        """Return the place of a row's trace, or of an array of rows; the experience is at the next place."""
        return self.seed_size + 2 * row

    def row(self, place: Any) -> Any:
        """Return the row of a trace's place, or of an array of places."""
        return (place - self.seed_size) // 2

    def queries(self, tasks: Places, starts: Places) -> Places:
        """Return the query that fills each pool: the task's, or that of the start point (-1 for none) to refine."""
        queries: Places = np.where(starts >= 0, self.refining[np.maximum(self.row(starts), 0)], tasks)
        return queries

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The kernel of each row."""
        return [Kernel(row.source, self.table.language, trusted=True) for _, row in self.rows]

    def _left_behind(self) -> list[MemoryItem]:
        items = []
        for t, row in self.rows:
            kernel = Kernel(row.source, self.table.language, trusted=True)
            operators = tuple(sorted(self.table.tasks[t].operators))
            drafted = trace(self.tasks[t], kernel, row.verdict, Stage.DRAFT, operators=operators)
            items += [drafted, experience(drafted)]
        return items

    def _describe_items(self) -> None:
        """Compute the columns that the observation and the search need."""
        items, count = self.items, len(self.items)
        names = {task.id: t for t, task in enumerate(self.tasks)}
        self.kind = np.array([("experience", "trace", "practice", "api").index(item.kind.value) for item in items])
        self.of_task = np.array([names.get(item.task, -1) for item in items])
        self.categories = sorted({item.category for item in items if item.task})
        self.category = np.array([self.categories.index(item.category) if item.task else -1 for item in items])
        self.task_category = np.array([self.categories.index(task.category) for task in self.tasks])
        self.feasible = np.array([item.feasible for item in items])
        self.latency = np.array([(item.verdict and item.verdict.latency_us) or np.nan for item in items], np.float64)
        operators = sorted({name for task in self.table.tasks for name in task.operators})
        bits = {name: 1 << i for i, name in enumerate(operators)}
        self.operators = np.array([sum(bits[name] for name in set(item.operators)) for item in items], np.uint64)
        self.task_operators = np.array([sum(bits[n] for n in set(t.operators)) for t in self.table.tasks], np.uint64)
        # API pages are never candidates.
        words = [frozenset[str]() if item.kind is Kind.API else Candidate(item, 0.0).words for item in items]
        order = {word: i for i, word in enumerate(sorted(frozenset().union(*words)))}
        flags = np.zeros((count, -(-len(order) // 64) * 64), np.bool_)
        for place, some in enumerate(words):
            flags[place, [order[word] for word in some]] = True
        self.words = np.packbits(flags, axis=1).view(np.uint64)
        self.word_count = flags.sum(axis=1)

    def _search(self) -> None:
        """Compute the similarities of all items to all queries: one per task and one per row that can be refined."""
        with MemoryBank(None, self.embedder) as bank:
            vectors = np.concatenate(
                [bank.embed_items(self.items[i : i + 256]) for i in range(0, len(self.items), 256)]
            )
        texts = [describe(task) for task in self.tasks]
        self.refining = np.full(len(self.rows), -1)
        for number, (t, row) in enumerate(self.rows):
            if row.verdict.feasible:
                self.refining[number] = len(texts)
                texts.append(refining_query(self.tasks[t], self.items[self.trace(number)]))
        queries = self.embedder.embed(texts)
        # Row by row and to six places, as the bank's index does it.
        self.similarity = np.stack([np.round(np.vecdot(vectors, query), 6) for query in queries])
        self.keys = -np.round(self.similarity.astype(np.float64) * 1e6).astype(np.int64) << ID_BITS
        self.embeddings: list[Vector] = [project(query) for query in queries[: len(self.tasks)]]
        self._order_pages()

    def _order_pages(self) -> None:
        """API pages: the basics, and for each task the others by similarity; which items' code names them."""
        api = [place for place, item in enumerate(self.items) if item.kind is Kind.API]
        basics = [place for place in api if self.items[place].category == api_pages.LANGUAGE]
        others = np.array([place for place in api if self.items[place].category != api_pages.LANGUAGE])
        self.basics = np.array(basics[: api_pages.BASICS])
        self._others = others
        self._ranked = np.stack([np.lexsort((others, self.keys[t][others])) for t in range(len(self.tasks))])
        self._named = np.zeros((len(self.items) + 1, len(others)), np.bool_)
        for place, item in enumerate(self.items):
            if item.code:
                present = set(re.findall(r"[A-Za-z_]\w*", item.code))
                self._named[place] = [not present.isdisjoint(self.items[page].names) for page in others]

    def api_pages(self, tasks: Places, shown: Places) -> Places:
        """Return the pages that go with what is shown, one row each, padded with -1, as `MemoryBank.api_pages` does."""
        ranked = self._ranked[tasks]
        named = np.take_along_axis(self._named[shown].any(axis=1), ranked, axis=1)
        # What is named and does not fit is among the rest again.
        named &= named.cumsum(axis=1) <= api_pages.NAMED
        similar = ~named & ((~named).cumsum(axis=1) <= api_pages.SIMILAR)
        places = np.full((len(tasks), self.page_slots), -1)
        places[:, : len(self.basics)] = self.basics
        for chosen, begin in ((named, api_pages.BASICS), (similar, api_pages.BASICS + api_pages.NAMED)):
            rows, columns = np.nonzero(chosen)
            places[rows, begin + chosen.cumsum(axis=1)[rows, columns] - 1] = self._others[ranked[rows, columns]]
        return places


@lru_cache(maxsize=4)
def _cached(name: str | Path, embedder: str) -> ItemArrays:
    arrays = ItemArrays(load(name), plugins.load("kernel_gym.embedders", embedder)())
    arrays.origin = (item_arrays, (name, embedder))
    return arrays


def item_arrays(name: str | Path, embedder: str | Embedder = "static") -> ItemArrays:
    """Return the arrays of a table; made once a process for an embedder that is given by name."""
    if isinstance(embedder, str):
        return _cached(name, embedder)
    return ItemArrays(load(name), embedder)
