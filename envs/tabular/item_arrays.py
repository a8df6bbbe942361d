"""Everything that can be known in a tabular run, as arrays: the items that can ever be in memory and what they show.

The seed knowledge is there from the beginning; each kernel of the table leaves a trace and an experience when it is
written first. Whatever depends on texts alone (what an author reads in an item, its words, its similarity to queries)
is computed here once, with the functions that the live environment uses.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym import plugins, suites
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.moves import Move
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.envs.observation import Vector, project
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.prompt_context import describe, profile
from kernel_gym.envs.tabular.item_readings import Flags, readings
from kernel_gym.envs.tabular.table import Row, Table, load
from kernel_gym.kernel import Kernel
from kernel_gym.memory import pages, rows
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import Embedder
from kernel_gym.memory.experience import experience, trace
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

#: Room that ids have below the similarity in a sorting key.
ID_BITS = 24
__all__ = ["ID_BITS", "Flags", "Lore", "Numbers", "Places", "lore"]


class Lore:
    """The items of a table and their arrays. Items are named by their place; rows of the table by a running number."""

    def __init__(self, table: Table, embedder: Embedder) -> None:
        self.table, self.embedder = table, embedder
        self.origin: tuple[Any, ...] = (Lore, (table, embedder))
        self.tasks: list[Task] = [suites.find_task(task.id) for task in self.table.tasks]
        self.seed = len(seed_items(self.table.language))
        self.rows: list[tuple[int, Row]] = [(t, row) for t, some in enumerate(self.table.tasks) for row in some.rows]
        self.schedules = list(dict.fromkeys(row.schedule for _, row in self.rows))
        self.schedule_of = [self.schedules.index(row.schedule) for _, row in self.rows]
        self.items: list[MemoryItem] = [*seed_items(self.table.language), *self._left_behind()]
        self.known: list[Idiom] = self._needed()
        #: Items with the same content are one item to a bank: the first of them.
        first: dict[str, int] = {}
        self.same = [first.setdefault(rows.digest(item), place) for place, item in enumerate(self.items)]
        self._describe_items()
        self.readings = readings(self.items, self.known, self.moves, table.language)
        self._search()

    def __deepcopy__(self, memo: dict[int, Any]) -> Lore:
        return self  # never changed once made

    def __reduce__(self) -> tuple[Any, ...]:
        return self.origin

    def trace(self, row: Any) -> Any:
        """Place of the trace that a row leaves, of one or of an array of them; its experience comes next."""
        return self.seed + 2 * row

    def row(self, place: Any) -> Any:
        """The row that left a trace; of one place or of an array of them."""
        return (place - self.seed) // 2

    def queries(self, tasks: Places, starts: Places) -> Places:
        """Which query fills a pool: the task's, or the one of the start point that is refined (-1 for none)."""
        found: Places = np.where(starts >= 0, self.refining[np.maximum(self.row(starts), 0)], tasks)
        return found

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The kernel of each row."""
        return [Kernel(row.source, self.table.language, trusted=True) for _, row in self.rows]

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the language."""
        return backend(self.table.language).schedules.moves()

    def _left_behind(self) -> list[MemoryItem]:
        made = []
        for t, row in self.rows:
            kernel = Kernel(row.source, self.table.language, trusted=True)
            operators = tuple(sorted(self.table.tasks[t].operators))
            one = trace(self.tasks[t], kernel, row.verdict, Stage.DRAFT, operators=operators)
            made += [one, experience(one)]
        return made

    def _needed(self) -> list[Idiom]:
        idioms = backend(self.table.language).idioms
        wanted = {name for task in self.table.tasks for some in task.needed.values() for name in some}
        return [idiom for idiom in idioms.values() if idiom.id in wanted]

    def _describe_items(self) -> None:
        """Columns that the observation and the search need."""
        items, count = self.items, len(self.items)
        names = {task.id: t for t, task in enumerate(self.tasks)}
        self.kind = np.array([("experience", "trace", "practice", "api").index(item.kind.value) for item in items])
        self.of_task = np.array([names.get(item.task, -1) for item in items])
        self.categories = sorted({item.category for item in items if item.task})
        self.category = np.array([self.categories.index(item.category) if item.task else -1 for item in items])
        self.task_category = np.array([self.categories.index(task.category) for task in self.tasks])
        self.feasible = np.array([item.feasible for item in items])
        self.latency = np.array([(item.verdict and item.verdict.latency_us) or np.nan for item in items], np.float64)
        known = sorted({name for task in self.table.tasks for name in task.operators})
        bits = {name: 1 << i for i, name in enumerate(known)}
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
        """Similarities of all items to all queries: one for each task, one for each row that can be refined."""
        with MemoryBank(None, self.embedder) as bank:
            vectors = np.concatenate(
                [bank.embed_items(self.items[i : i + 256]) for i in range(0, len(self.items), 256)]
            )
        texts = [describe(task) for task in self.tasks]
        self.refining = np.full(len(self.rows), -1)
        for number, (t, row) in enumerate(self.rows):
            if row.verdict.feasible:
                found = profile(self.items[self.trace(number)])
                self.refining[number] = len(texts)
                texts.append(f"{describe(self.tasks[t])}\n{found.bottleneck} {found.diagnosis}".strip())
        queries = self.embedder.embed(texts)
        # Row by row and to six places, as the bank's index does it.
        self.similarity = np.stack([np.round(np.vecdot(vectors, query), 6) for query in queries])
        self.keys = -np.round(self.similarity.astype(np.float64) * 1e6).astype(np.int64) << ID_BITS
        self.embeddings: list[Vector] = [project(query) for query in queries[: len(self.tasks)]]
        self._order_pages()

    def _order_pages(self) -> None:
        """API pages: the basics, and for each task the others by similarity; which items' code names them."""
        api = [place for place, item in enumerate(self.items) if item.kind is Kind.API]
        basics = [place for place in api if self.items[place].category == pages.LANGUAGE]
        others = np.array([place for place in api if self.items[place].category != pages.LANGUAGE])
        self.basics = np.array(basics[: pages.BASICS])
        self._others = others
        self._ranked = np.stack([np.lexsort((others, self.keys[t][others])) for t in range(len(self.tasks))])
        self._named = np.zeros((len(self.items) + 1, len(others)), np.bool_)
        for place, item in enumerate(self.items):
            if item.code:
                present = set(re.findall(r"[A-Za-z_]\w*", item.code))
                self._named[place] = [not present.isdisjoint(self.items[page].names) for page in others]

    def api_pages(self, tasks: Places, shown: Places) -> Places:
        """The pages that go with what is shown, one row each, padded with -1: `bank.api_pages`, from the arrays."""
        ranked = self._ranked[tasks]
        named = np.take_along_axis(self._named[shown].any(axis=1), ranked, axis=1)
        # What is named and does not fit is among the rest again.
        named &= named.cumsum(axis=1) <= pages.NAMED
        similar = ~named & ((~named).cumsum(axis=1) <= pages.SIMILAR)
        found = np.full((len(tasks), pages.BASICS + pages.NAMED + pages.SIMILAR), -1)
        found[:, : len(self.basics)] = self.basics
        for chosen, begin in ((named, pages.BASICS), (similar, pages.BASICS + pages.NAMED)):
            rows, columns = np.nonzero(chosen)
            found[rows, begin + chosen.cumsum(axis=1)[rows, columns] - 1] = self._others[ranked[rows, columns]]
        return found


@lru_cache(maxsize=4)
def _made(name: str | Path, embedder: str) -> Lore:
    made = Lore(load(name), plugins.load("kernel_gym.embedders", embedder)())
    made.origin = (lore, (name, embedder))
    return made


def lore(name: str | Path, embedder: str | Embedder = "static") -> Lore:
    """The lore of a table; made once a process for an embedder that is given by name."""
    if isinstance(embedder, str):
        return _made(name, embedder)
    return Lore(load(name), embedder)
