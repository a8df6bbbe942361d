"""The bank: every memory, what came of showing it, and the search for the next ones to show.

One SQLite file (or one in memory) is the truth; vectors and a few columns are mirrored in memory for the search.
Several processes of one machine may use one file: transactions are short, and each process sees the others' items at
its next call. Items are never changed and never removed one by one; only `restore` shortens the bank.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from kernel_gym.memory import pages
from kernel_gym.memory.embedding import Embedder, Vectors
from kernel_gym.memory.index import Entry, Filter, Index
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Retrieved, Stage
from kernel_gym.memory.schema import BankError, readable_errors
from kernel_gym.memory.store import PREVIOUS, RECENT_WEIGHT, Snapshot, Store

__all__ = ["PREVIOUS", "RECENT_WEIGHT", "BankError", "MemoryBank", "Snapshot"]

#: Share of an item's vector that its headline (title, task, operators, names) has; the text has the rest.
HEADLINE_SHARE = 0.5


class MemoryBank:
    """Memory items in a file (`path`) or in memory (`path=None`), found by similarity.

    `read_only` opens an existing file and raises on any change. `frozen` may be set at any time: then `add` and
    `record` quietly do nothing. A bank in memory pickles and copies with its content; one in a file is
    opened again by path.
    """

    def __init__(self, path: Path | None, embedder: Embedder, read_only: bool = False) -> None:
        self.embedder = embedder
        self.frozen = False
        self._attach(Store(Path(path).absolute() if path is not None else None, read_only))

    @property
    def path(self) -> Path | None:
        """The file, None for a bank in memory."""
        return self._store.path

    @property
    def read_only(self) -> bool:
        """Whether changes are errors."""
        return self._store.read_only

    # Writing

    def add(self, items: Sequence[MemoryItem], attempt: bool = True) -> tuple[int, ...]:
        """Add items in one transaction and return their ids; one with known content gets the id it already has.

        `attempt` advances the attempt counter first; `born` is the counter then. `source` and `parent` name stored
        items or, with `PREVIOUS`, the item just before in `items`. A frozen bank adds nothing and returns ().
        """
        if self.frozen:
            return ()
        vectors = self.embed_items(items)
        with self._store.writing():
            if attempt:
                self._store.attempts += 1
            born, ids = self._store.attempts, list[int]()
            for item, vector in zip(items, vectors, strict=True):
                ids.append(self._append(replace(item, born=born), vector, ids[-1] if ids else None))
        self._stale = True
        return tuple(ids)

    def record(self, stage: Stage, ids: Iterable[int], reward: float) -> None:
        """Note that an attempt in `stage` that was shown these items got `reward`; a frozen bank notes nothing."""
        if self.frozen:
            return
        with self._store.writing():
            self._store.record(stage, ids, reward)

    # Reading

    @property
    def attempts(self) -> int:
        """How many attempts the bank has seen."""
        with readable_errors(self.path):
            return self._store.attempts

    def __len__(self) -> int:
        with readable_errors(self.path):
            return self._store.tip()[0]

    def get(self, id: int) -> MemoryItem:
        """The item with this id."""
        with self._store.reading():
            return self._store.fetch([id])[0]

    def items(self, kind: Kind | None = None, task: str | None = None) -> tuple[MemoryItem, ...]:
        """All items, or those of a kind or a task, oldest first."""
        return self._store.select(
            "WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR task = ?2) ORDER BY id", kind and kind.value, task
        )

    def tasks(self) -> tuple[str, ...]:
        """The tasks that items come from, sorted."""
        with readable_errors(self.path):
            return self._store.tasks()

    def start_points(self, task: str) -> tuple[MemoryItem, ...]:
        """Feasible traces of a task, fastest first."""
        return self._store.select("WHERE task = ? AND kind = 'trace' AND feasible ORDER BY latency, id", task)

    def children(self, id: int) -> tuple[MemoryItem, ...]:
        """What refining the start point `id` came to, oldest first; also kernels first reached another way."""
        return self.children_of([id])[id]

    def children_of(self, ids: Collection[int]) -> dict[int, tuple[MemoryItem, ...]]:
        """The children of several start points, by start point."""
        with self._store.reading():
            edges = self._store.edges(ids)
            items = {item.id: item for item in self._store.fetch([child for _, child in edges])}
        return {id: tuple(items[child] for start, child in edges if start == id) for id in ids}

    def lineage(self, id: int) -> tuple[MemoryItem, ...]:
        """Where an item comes from, oldest first, itself last: the trace of an experience, start points of a trace."""
        with self._store.reading():
            path = self._store.fetch([id])
            while (before := path[-1].source or path[-1].parent) is not None:
                path += self._store.fetch([before])
        return tuple(reversed(path))

    def origin(self, id: int) -> str:
        """`bank#id` of the bank an item was imported from; empty for its own."""
        with readable_errors(self.path):
            return self._store.origin(id)

    def outcomes(self, ids: Collection[int]) -> dict[int, dict[Stage, Outcomes]]:
        """What came of showing items, by stage; every stage is present."""
        with readable_errors(self.path):
            return self._store.outcomes(ids)

    # Searching

    def retrieve(
        self,
        query: str,
        k: int,
        kinds: Collection[Kind] | None = None,
        exclude: Collection[int] = (),
        *,
        task: str | None = None,
        category: str | None = None,
        language: str | None = None,
        feasible: bool | None = None,
        where: Callable[[MemoryItem], bool] | None = None,
    ) -> tuple[Retrieved, ...]:
        """The `k` items most similar to `query` that pass the filters, most similar first, equal ones by id.

        `where` looks at items themselves: it is asked about one after the other, nearest first, until `k` have passed.
        """
        filters = Filter(kinds, task, category, language, feasible, exclude)
        with self._current():
            near = self._index.top(self._vector(query), k if where is None else self._index.size, filters)
            return self._shown(near if where is None else self._first(near, k, where))

    def look_up(self, ids: Sequence[int], query: str) -> tuple[Retrieved, ...]:
        """Given items as `retrieve` would show them for `query`, in the order given."""
        with self._current():
            similarities: Vectors = np.asarray(np.vecdot(self.vectors(ids), self._vector(query))).round(6)
            return self._shown(list(zip(ids, similarities.tolist(), strict=True)))

    def vectors(self, ids: Sequence[int]) -> Vectors:
        """The vectors items are found by, one unit row each; they tell how much items overlap."""
        with self._current():
            self._store.fetch(ids)  # an unknown id is an error with words
            return self._index.vectors(ids)

    def embed_items(self, items: Sequence[MemoryItem]) -> Vectors:
        """The vectors that items would be found by, one unit row each; they need not be in the bank."""
        if not items:
            return np.zeros((0, self.embedder.dimension), np.float32)
        mixed: Vectors = HEADLINE_SHARE * self.embedder.embed([_headline(item) for item in items])
        mixed += (1 - HEADLINE_SHARE) * self.embedder.embed([item.text for item in items])
        norms = np.linalg.norm(mixed, axis=1, keepdims=True)
        return (mixed / np.where(norms > 0, norms, 1)).astype(np.float32)

    def api_pages(self, query: str, code: str, language: str = "ascendc") -> tuple[MemoryItem, ...]:
        """API pages for an attempt: the language's basics, pages on names that occur in `code`, pages close to `query`.

        At most `pages.BASICS`, `pages.NAMED` and `pages.SIMILAR` of each; no page twice.
        """
        ranked = self.retrieve(query, len(self), (Kind.API,), language=language)
        return pages.select_pages([found.item for found in ranked], code)

    # States

    def snapshot(self) -> Snapshot:
        """Name the present state, so that `restore` can come back to it."""
        return self._store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Bring items, statistics and counter back to exactly what they were, also in a frozen bank."""
        self._store.restore(snapshot)
        self._stale = True

    def export(
        self, path: Path, exclude_tasks: Collection[str] = (), provenance: Mapping[str, Any] = MappingProxyType({})
    ) -> int:
        """Write items and statistics to a portable file; returns how many items.

        With `exclude_tasks` their items stay behind, and so do all statistics: they may have been earned at them.
        `provenance` is what the caller knows of where the memories come from.
        """
        from kernel_gym.memory.exchange import export

        return export(self._store, path, exclude_tasks, provenance)

    def import_(self, path: Path) -> int:
        """Add what `export` wrote; returns how many items were new."""
        from kernel_gym.memory.exchange import import_

        self._stale = True
        return import_(self._store, path)

    def local_ids(self, path: Path) -> dict[int, int]:
        """The ids that the items of an exported file have here, by their ids in the bank that it was written from."""
        from kernel_gym.memory.exchange import local_ids

        return local_ids(self._store, path)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the bank's content, a line each; opening it checks the file alone."""
        from kernel_gym.memory.integrity import problems

        return tuple(problems(self._store))

    def close(self) -> None:
        """Close the file; a bank in memory is gone."""
        self._store.close()

    def __enter__(self) -> MemoryBank:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        content = self._store.serialize() if self.path is None else None
        store = {"path": self.path, "read_only": self.read_only, "content": content}
        return {"embedder": self.embedder, "frozen": self.frozen, "store": store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.embedder, self.frozen = state["embedder"], state["frozen"]
        self._attach(Store(**state["store"]))

    def _attach(self, store: Store) -> None:
        self._store = store
        self._index = Index(self.embedder.dimension)
        self._generation = self._data_version = -1
        self._stale = True

    def _append(self, item: MemoryItem, vector: Vectors, previous: int | None) -> int:
        id, new = self._store.insert(item, previous)
        if new:
            self._store.keep_vectors(self._embedding, [(*self._store.tip(), vector.tobytes())])
        return id

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Read one state of the bank that the index agrees with, even while another process restores an older one."""
        with readable_errors(self.path):
            if self._store.connection.in_transaction:
                yield
                return
            while True:
                self._synchronise()
                with self._store.reading():
                    if self._store.generation == self._generation:
                        yield
                        return

    def _synchronise(self) -> None:
        """Bring the index up to what this and other processes have written."""
        version = self._store.data_version()
        if not self._stale and version == self._data_version:
            return
        with self._store.reading():
            generation = self._store.generation
            if generation != self._generation:
                self._index = Index(self.embedder.dimension)
            entries = self._store.entries(self._embedding, self._index.size)
            missing = {entry[0]: entry[1] for entry in entries if entry[-1] is None}
            embedded = dict(zip(missing, self.embed_items(self._store.fetch(list(missing))), strict=True))
        for id, _, kind, task, category, language, feasible, data in entries:
            vector = np.frombuffer(data, np.float32) if data is not None else embedded[id]
            self._index.append(Entry(kind, task, category, language, bool(feasible)), vector)
        if missing and not self.read_only:
            with self._store.writing():
                self._store.keep_vectors(
                    self._embedding, ((id, chain, embedded[id].tobytes()) for id, chain in missing.items())
                )
        self._generation, self._data_version, self._stale = generation, version, False

    @cached_property
    def _embedding(self) -> str:
        # Asked for with every item; an embedder may read files to answer.
        return f"{self.embedder.identity()}/headline-{HEADLINE_SHARE}"

    def _vector(self, query: str) -> Vectors:
        vector: Vectors = self.embedder.embed([query])[0]
        return vector

    def _first(
        self, near: list[tuple[int, float]], k: int, where: Callable[[MemoryItem], bool]
    ) -> list[tuple[int, float]]:
        passed: list[tuple[int, float]] = []
        for begin in range(0, len(near), 256):
            if len(passed) >= k:
                break
            some = near[begin : begin + 256]
            items = self._store.fetch([id for id, _ in some])
            passed += [found for found, item in zip(some, items, strict=True) if where(item)]
        return passed[:k]

    def _shown(self, near: Sequence[tuple[int, float]]) -> tuple[Retrieved, ...]:
        ids = [id for id, _ in near]
        outcomes = self._store.outcomes(ids)
        items = self._store.fetch(ids)
        return tuple(Retrieved(item, near[i][1], outcomes[item.id]) for i, item in enumerate(items))


def _headline(item: MemoryItem) -> str:
    """What an item is about, without the body that is much the same in every kernel."""
    parts = (item.title, item.task, item.category, *item.operators, *item.names, *item.bottlenecks)
    return " ".join(part for part in parts if part)
