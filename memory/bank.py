"""The memory bank: items with their statistics, and the search by similarity.

A bank is one SQLite file, or a database in memory; vectors and a few columns are mirrored in memory for the search.
Several processes of one machine may use one file: transactions are short, and each process sees the others' items at
its next call. Items are never changed and never removed one by one; only `restore` shortens the bank.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from kernel_gym.memory import api_pages
from kernel_gym.memory.embedding import Embedder, Vectors
from kernel_gym.memory.index import Entry, Filter, Index
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Retrieved, Stage
from kernel_gym.memory.schema import BankError, readable_errors
from kernel_gym.memory.store import PREVIOUS, RECENT_WEIGHT, Snapshot, Store

__all__ = ["PREVIOUS", "RECENT_WEIGHT", "BankError", "MemoryBank", "Snapshot"]

#: Weight of the headline (title, task, operators, names) in an item's vector; the text has the rest.
HEADLINE_SHARE = 0.5

Answer = TypeVar("Answer")


class MemoryBank:
    """Stores memory items and finds them by similarity.

    Ids are 1, 2, 3, ... in the order of adding. A bank in memory is pickled and copied with its content; a bank in a
    file is opened again by its path.

    Args:
        path: The bank's file, created if it does not exist; None for a bank in memory.
        embedder: Turns texts into vectors.
        read_only: Open an existing file and raise on any change.

    Raises:
        BankError: If the file cannot be opened, or is no memory bank.

    Attributes:
        embedder: The embedder.
        frozen: If set to True, `add` and `record` do nothing.
        shared: Whether other runs write to the bank, so that none may restore it.

    Examples:
        >>> from kernel_gym.memory.embedding import StaticEmbedder
        >>> from kernel_gym.memory.item import Kind, MemoryItem
        >>> with MemoryBank(None, StaticEmbedder()) as bank:
        ...     ids = bank.add([MemoryItem(Kind.PRACTICE, "Double buffering", "Use two buffers per queue.")])
        ...     bank.retrieve("how to overlap copies: two buffers", k=1)[0].item.title
        'Double buffering'
    """

    shared = False

    def __init__(self, path: Path | None, embedder: Embedder, read_only: bool = False) -> None:
        self.embedder = embedder
        self.frozen = False
        self._attach(Store(Path(path).absolute() if path is not None else None, read_only))

    @property
    def path(self) -> Path | None:
        """The bank's file; None for a bank in memory."""
        return self._store.path

    @property
    def read_only(self) -> bool:
        """Whether changes raise an error."""
        return self._store.read_only

    # Writing

    def add(self, items: Sequence[MemoryItem], attempt: bool = True) -> tuple[int, ...]:
        """Add items in one transaction.

        Args:
            items: The items to add. Their `source` and `parent` are ids of stored items or `PREVIOUS`, for the item
                just before in `items`. Their `id` and `born` are set by the bank.
            attempt: Whether to increase the attempt counter first. The items' `born` is the counter then.

        Returns:
            The ids, in order. An item whose content is in the bank already gets the id of that one. Empty for a frozen
            bank, which adds nothing.

        Raises:
            BankError: If the bank is read-only, or an item refers to one that is not there.
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
        """Update the statistics of items that an attempt was shown. A frozen bank does nothing.

        Args:
            stage: The stage of the attempt.
            ids: The items that were shown.
            reward: The reward of the attempt.

        Raises:
            BankError: If the bank is read-only, an id is unknown or the reward is not finite.
        """
        if self.frozen:
            return
        with self._store.writing():
            self._store.record(stage, ids, reward)

    def change_once(self, writer: str, number: int, change: Callable[[], Answer]) -> Answer:
        """Make a change that a writer may ask for again because it did not get the answer.

        Args:
            writer: Name of the writer.
            number: Number of the change; each of a writer's changes has a larger one.
            change: Calls methods of this bank. Its result is JSON data.

        Returns:
            What `change` returned. If it was made before, its result then, and nothing is changed.
        """
        with self._store.writing():
            receipt = self._store.receipt(writer)
            if receipt is not None and receipt[0] == number:
                answer: Answer = json.loads(receipt[1])
                return answer
            answer = change()
            self._store.keep_receipt(writer, number, json.dumps(answer))
        return answer

    # Reading

    @property
    def attempts(self) -> int:
        """The attempt counter."""
        with readable_errors(self.path):
            return self._store.attempts

    def __len__(self) -> int:
        with readable_errors(self.path):
            return self._store.tip()[0]

    def get(self, id: int) -> MemoryItem:
        """Return an item.

        Args:
            id: The item's id.

        Returns:
            The item.

        Raises:
            BankError: If there is no item with this id.
        """
        with self._store.reading():
            return self._store.fetch([id])[0]

    def items(self, kind: Kind | None = None, task: str | None = None) -> tuple[MemoryItem, ...]:
        """Return items, oldest first.

        Args:
            kind: Return items of this kind only.
            task: Return items of this task only.

        Returns:
            The items.
        """
        return self._store.select(
            "WHERE (:kind IS NULL OR kind = :kind) AND (:task IS NULL OR task = :task) ORDER BY id",
            kind=kind and kind.value,
            task=task,
        )

    def tasks(self) -> tuple[str, ...]:
        """Return the ids of the tasks that items come from, sorted."""
        with readable_errors(self.path):
            return self._store.tasks()

    def start_points(self, task: str) -> tuple[MemoryItem, ...]:
        """Return the feasible traces of a task, fastest first.

        Args:
            task: Id of the task.
        """
        return self._store.select("WHERE task = :task AND kind = 'trace' AND feasible ORDER BY latency, id", task=task)

    def children(self, id: int) -> tuple[MemoryItem, ...]:
        """Return the traces refined from the start point `id`, oldest first, also those with another first parent.

        Args:
            id: Id of the start point.
        """
        return self.children_of([id])[id]

    def children_of(self, ids: Collection[int]) -> dict[int, tuple[MemoryItem, ...]]:
        """Return the children of several start points, by start point.

        Args:
            ids: Ids of the start points.
        """
        with self._store.reading():
            edges = self._store.edges(ids)
            items = {item.id: item for item in self._store.fetch([child for _, child in edges])}
        return {id: tuple(items[child] for start, child in edges if start == id) for id in ids}

    def lineage(self, id: int) -> tuple[MemoryItem, ...]:
        """Return the items that an item comes from, oldest first, itself last.

        An experience comes from its trace, a trace from its start point.

        Args:
            id: Id of the item.
        """
        with self._store.reading():
            items = self._store.fetch([id])
            while (before := items[-1].source or items[-1].parent) is not None:
                items += self._store.fetch([before])
        return tuple(reversed(items))

    def origin(self, id: int) -> str:
        """Return `bank#id` of the bank that an item was imported from; empty if it was not imported.

        Args:
            id: Id of the item.
        """
        with readable_errors(self.path):
            return self._store.origin(id)

    def outcomes(self, ids: Collection[int]) -> dict[int, dict[Stage, Outcomes]]:
        """Return the statistics of items by id and stage; every stage is present.

        Args:
            ids: Ids of the items.
        """
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
        """Find the items most similar to a text.

        Args:
            query: The text.
            k: The most items to return.
            kinds: Return items of these kinds only.
            exclude: Ids that are not returned.
            task: Return items of this task only.
            category: Return items of this category only.
            language: Return items of this language only.
            feasible: Return feasible (True) or infeasible (False) items only.
            where: Return items only for which it is true. It is called with one item after the other, most similar
                first, until `k` have passed.

        Returns:
            The items with similarity and statistics, most similar first; ties are ordered by id.
        """
        filters = Filter(kinds, task, category, language, feasible, exclude)
        with self._current():
            near = self._index.top(self._vector(query), k if where is None else self._index.size, filters)
            return self._retrieved(near if where is None else self._first(near, k, where))

    def look_up(self, ids: Sequence[int], query: str) -> tuple[Retrieved, ...]:
        """Return items as `retrieve` would for `query`.

        Args:
            ids: The items' ids.
            query: The text to compare with.

        Returns:
            The items with similarity and statistics, in the order of `ids`.

        Raises:
            BankError: If an id is unknown.
        """
        with self._current():
            similarities: Vectors = np.asarray(np.vecdot(self.vectors(ids), self._vector(query))).round(6)
            return self._retrieved(list(zip(ids, similarities.tolist(), strict=True)))

    def vectors(self, ids: Sequence[int]) -> Vectors:
        """Return the vectors of items, one unit row each.

        Args:
            ids: Ids of the items.
        """
        with self._current():
            self._store.fetch(ids)  # raises a readable error for an unknown id
            return self._index.vectors(ids)

    def embed_items(self, items: Sequence[MemoryItem]) -> Vectors:
        """Return the vectors that items have in a search, one unit row each; they need not be in the bank.

        Args:
            items: The items.
        """
        if not items:
            return np.zeros((0, self.embedder.dimension), np.float32)
        mixed: Vectors = HEADLINE_SHARE * self.embedder.embed([headline(item) for item in items])
        mixed += (1 - HEADLINE_SHARE) * self.embedder.embed([item.text for item in items])
        norms = np.linalg.norm(mixed, axis=1, keepdims=True)
        return (mixed / np.where(norms > 0, norms, 1)).astype(np.float32)

    def api_pages(self, query: str, code: str, language: str = "ascendc") -> tuple[MemoryItem, ...]:
        """Return the API pages for an attempt; `kernel_gym.memory.api_pages` has the rules.

        Args:
            query: The description of the task.
            code: The code in the context: pages on names that occur in it are included.
            language: The kernel language.

        Returns:
            The pages, no page twice.
        """
        ranked = self.retrieve(query, len(self), (Kind.API,), language=language)
        return api_pages.select_pages([page.item for page in ranked], code)

    # States

    def serialize(self) -> bytes:
        """Return the content of the bank as the bytes of its file."""
        with readable_errors(self.path):
            return self._store.serialize()

    def snapshot(self) -> Snapshot:
        """Return the present state, for `restore`."""
        return self._store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Bring items, statistics and counter back to an earlier state, also in a frozen bank.

        Args:
            snapshot: What `snapshot` returned.

        Raises:
            BankError: If the bank no longer has the items of the snapshot, or is read-only.
        """
        self._store.restore(snapshot)
        self._stale = True

    def export(
        self, path: Path, exclude_tasks: Collection[str] = (), provenance: Mapping[str, Any] = MappingProxyType({})
    ) -> int:
        """Write items and statistics to a portable file.

        Args:
            path: The file to write.
            exclude_tasks: Tasks whose items are left out. All statistics are left out then, too, because they may come
                from attempts at these tasks.
            provenance: Where the memories come from; written to the header as given.

        Returns:
            The number of items written.

        Raises:
            BankError: If the file cannot be written.
        """
        from kernel_gym.memory.export_import import export

        return export(self._store, path, exclude_tasks, provenance)

    def import_(self, path: Path) -> int:
        """Add the items of a file that `export` wrote.

        Args:
            path: The file.

        Returns:
            The number of items that were new.

        Raises:
            BankError: If the file is no export, or the bank is read-only.
        """
        from kernel_gym.memory.export_import import import_

        self._stale = True
        return import_(self._store, path)

    def local_ids(self, path: Path) -> dict[int, int]:
        """Return the ids that the items of an exported file have in this bank.

        Args:
            path: A file that `export` wrote.

        Returns:
            Ids in this bank by ids in the exporting bank; items that are not here are left out.

        Raises:
            BankError: If the file is no export.
        """
        from kernel_gym.memory.export_import import local_ids

        return local_ids(self._store, path)

    def problems(self) -> tuple[str, ...]:
        """Check the bank's content. Returns one line per problem; opening a bank only checks its file."""
        from kernel_gym.memory.integrity import problems

        return tuple(problems(self._store))

    def close(self) -> None:
        """Close the file; the content of a bank in memory is lost."""
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
        """Read one state of the bank that matches the index, even while another process restores an older state."""
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
        """Add to the index what this and other processes have written."""
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
        # Cached: it is needed for every item, and an embedder may read files for its identity.
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
            batch = near[begin : begin + 256]
            items = self._store.fetch([id for id, _ in batch])
            passed += [pair for pair, item in zip(batch, items, strict=True) if where(item)]
        return passed[:k]

    def _retrieved(self, near: Sequence[tuple[int, float]]) -> tuple[Retrieved, ...]:
        ids = [id for id, _ in near]
        outcomes = self._store.outcomes(ids)
        items = self._store.fetch(ids)
        return tuple(Retrieved(item, near[i][1], outcomes[item.id]) for i, item in enumerate(items))


def headline(item: MemoryItem) -> str:
    """Return what an item is about, without its text, which is much the same in every kernel.

    Args:
        item: The item.

    Returns:
        Its title, task, category, operators, names and bottlenecks.
    """
    parts = (item.title, item.task, item.category, *item.operators, *item.names, *item.bottlenecks)
    return " ".join(part for part in parts if part)
