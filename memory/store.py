"""The bank's tables in SQLite: items, statistics, edges and vectors. `index.py` has the search by similarity."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from kernel_gym.memory import rows
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Stage
from kernel_gym.memory.lru import Lru
from kernel_gym.memory.schema import BankError, connect, readable_errors, transaction

#: Weight of the newest reward in `Outcomes.recent`, which starts at 0: so it is the value agent's Q with its defaults.
RECENT_WEIGHT = 0.2

#: `source` or `parent` of an item that refers to the item added just before it.
PREVIOUS = -1

#: Decoded items kept in memory.
_REMEMBERED_ITEMS = 32_768


@dataclass(frozen=True)
class Snapshot:
    """A state of a bank that `restore` can bring back.

    Args:
        size: Number of items.
        chain: Address of the last item with all before it, which identifies the items exactly.
        attempts: The attempt counter.
        edges: Number of the last edge.
        outcomes: Rows of statistics: item, stage, uses, sum of rewards, recent reward.
    """

    size: int
    chain: str
    attempts: int
    edges: int
    outcomes: tuple[tuple[int, str, int, float, float], ...]


class Store:
    """The SQLite tables of one bank, in a file or in memory; `content` is what `serialize` returned."""

    def __init__(self, path: Path | None, read_only: bool = False, content: bytes | None = None) -> None:
        self.path = path
        self.read_only = read_only
        self.name = str(path) if path is not None else "the bank in memory"
        self._connection = connect(path, read_only)
        self._process = os.getpid()
        self._items: Lru[int, MemoryItem] = Lru(_REMEMBERED_ITEMS)
        self._items_generation = 0
        if content is not None:
            self._connection.deserialize(content)

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the bank, unaffected by other processes."""
        with readable_errors(self.path):
            if self.connection.in_transaction:
                yield
                return
            with transaction(self.connection, "DEFERRED"):
                yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change the bank in one transaction; a change within another one is part of it."""
        if self.read_only:
            raise BankError(f"{self.name} was opened read-only")
        with readable_errors(self.path):
            within = self.connection.in_transaction
        if within:
            yield
            return
        try:
            with readable_errors(self.path), transaction(self.connection):
                yield
        except BaseException:
            self._items.clear()  # it may hold items that were rolled back
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of this process: SQLite does not allow to use one across a fork."""
        if self._process != os.getpid() and self.path is not None:
            self._inherited = self._connection  # must not be closed here: that would drop the parent's locks
            self._connection, self._process = connect(self.path, self.read_only), os.getpid()
        return self._connection

    def serialize(self) -> bytes:
        """Return all content as bytes."""
        return self.connection.serialize()

    def close(self) -> None:
        """Close the file; the content of a store in memory is lost."""
        self.connection.close()

    # Items

    @property
    def attempts(self) -> int:
        """The attempt counter."""
        return self._meta("attempts")

    @attempts.setter
    def attempts(self, value: int) -> None:
        self.connection.execute("UPDATE meta SET value = ? WHERE key = 'attempts'", (value,))

    @property
    def generation(self) -> int:
        """A counter that changes whenever ids may mean other items than before."""
        return self._meta("generation")

    def tip(self) -> tuple[int, str]:
        """Return the number of items and the chain of the last one."""
        row = self.connection.execute("SELECT id, chain FROM items ORDER BY id DESC LIMIT 1").fetchone()
        return (row[0], row[1]) if row else (0, "")

    def insert(
        self, item: MemoryItem, previous: int | None = None, origin: str = "", join: bool = True
    ) -> tuple[int, bool]:
        """Append an item unless its content is there already.

        Args:
            item: The item.
            previous: The id that `PREVIOUS` refers to.
            origin: `bank#id` of an imported item.
            join: Whether a trace becomes a child of its parent.

        Returns:
            The item's id, and whether it is new.
        """
        parent, source = self._reference(item.parent, previous), self._reference(item.source, previous)
        item = replace(item, parent=parent, source=source)
        existing = self.find(rows.digest(item))
        id = self._append(item, origin) if existing is None else existing
        if join and parent is not None and item.kind is Kind.TRACE:
            self.join(parent, id)
        return id, existing is None

    def _append(self, item: MemoryItem, origin: str) -> int:
        digest, (size, chain) = rows.digest(item), self.tip()
        latency = item.verdict.latency_us if item.verdict is not None else None
        self.connection.execute(
            "INSERT INTO items (id, digest, chain, kind, task, category, language, feasible, latency, parent, source,"
            " born, data, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(size + 1, digest, rows.chain(chain, digest, item.born)),
                *(item.kind.value, item.task, item.category, item.language, item.feasible, latency),
                *(item.parent, item.source, item.born, rows.pack(item), origin),
            ),
        )
        self._remember(replace(item, id=size + 1))
        return size + 1

    def join(self, start: int, child: int) -> None:
        """Add an edge from a start point to a kernel refined from it; a kernel is never its own child."""
        if start != child:
            self.connection.execute("INSERT OR IGNORE INTO edges (start, child) VALUES (?, ?)", (start, child))

    def edges(self, starts: Collection[int] | None = None) -> list[tuple[int, int]]:
        """Return start points, all or `starts`, with the kernels refined from them, oldest first."""
        clause, values = ("", ()) if starts is None else (f"WHERE start IN {_AMONG}", (_listed(starts),))
        return self.connection.execute(f"SELECT start, child FROM edges {clause} ORDER BY number", values).fetchall()

    def find(self, digest: str) -> int | None:
        """Return the id of the item with this content; None if there is none."""
        row = self.connection.execute("SELECT id FROM items WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else int(row[0])

    def _remember(self, item: MemoryItem) -> None:
        if self._items_generation == self.generation:
            self._items.put(item.id, item)

    def select(self, clause: str, **parameters: object) -> tuple[MemoryItem, ...]:
        """Return the items that an SQL clause on the table `items` selects."""
        with self.reading():
            return tuple(
                self.fetch([row[0] for row in self.connection.execute(f"SELECT id FROM items {clause}", parameters)])
            )

    def fetch(self, ids: Sequence[int]) -> list[MemoryItem]:
        """Return the items with these ids, in order; an unknown id is an error."""
        if self._items_generation != (generation := self.generation):
            self._items.clear()
            self._items_generation = generation
        items = {id: item for id in ids if (item := self._items.get(id)) is not None}
        query = f"SELECT id, born, parent, source, data FROM items WHERE id IN {_AMONG}"
        for row in self.connection.execute(query, (_listed(id for id in ids if id not in items),)):
            try:
                items[row[0]] = rows.unpack(*row)
            except (KeyError, TypeError, ValueError) as error:
                raise BankError(
                    f"{self.name}: item {row[0]} cannot be read; `kernel-gym memory check` says why"
                ) from error
            self._items.put(row[0], items[row[0]])
        if unknown := [id for id in ids if id not in items]:
            raise BankError(f"{self.name} has no item {unknown[0]}; ids go from 1 to {self.tip()[0]}")
        return [items[id] for id in ids]

    def tasks(self) -> tuple[str, ...]:
        """Return the tasks that items come from, sorted."""
        cursor = self.connection.execute("SELECT DISTINCT task FROM items WHERE task <> '' ORDER BY task")
        return tuple(row[0] for row in cursor)

    def origin(self, id: int) -> str:
        """Return `bank#id` of an imported item; empty if it was not imported."""
        self._require(id)
        return str(self.connection.execute("SELECT origin FROM items WHERE id = ?", (id,)).fetchone()[0])

    # Outcomes

    def record(self, stage: Stage, ids: Iterable[int], reward: float) -> None:
        """Add one use to the statistics of each item."""
        if not isfinite(reward):
            raise BankError(f"a reward must be a finite number, not {reward}")
        for id in dict.fromkeys(ids):
            self._require(id)
            self.connection.execute(
                "INSERT INTO outcomes VALUES (:id, :stage, 1, :reward, :weight * :reward) ON CONFLICT DO UPDATE SET"
                " uses = uses + 1, total = total + :reward, recent = recent + :weight * (:reward - recent)",
                {"id": id, "stage": stage.value, "reward": float(reward), "weight": RECENT_WEIGHT},
            )

    def outcomes(self, ids: Collection[int]) -> dict[int, dict[Stage, Outcomes]]:
        """Return the statistics of items by id and stage; every stage is present."""
        outcomes = {id: dict(_UNUSED) for id in ids}
        query = f"SELECT item, stage, uses, total, recent FROM outcomes WHERE item IN {_AMONG}"
        for id, stage, uses, total, recent in self.connection.execute(query, (_listed(ids),)):
            try:
                outcomes[id][Stage(stage)] = Outcomes(uses, total / uses, recent)
            except (ArithmeticError, TypeError, ValueError) as error:
                raise BankError(
                    f"{self.name}: the outcomes of item {id} cannot be read; `kernel-gym memory check` says why"
                ) from error
        return outcomes

    def used(self, id: int) -> bool:
        """Return whether an item was ever shown."""
        return self.connection.execute("SELECT 1 FROM outcomes WHERE item = ?", (id,)).fetchone() is not None

    def set_outcomes(self, records: Iterable[tuple[int, str, int, float, float]]) -> None:
        """Write the statistics of a snapshot or an export."""
        self.connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", records)

    # Receipts: the last change of each writer that may repeat a call. Only shared banks have the table.

    def receipt(self, writer: str) -> tuple[int, str] | None:
        """Return number and answer of a writer's last change; None if it has made none."""
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS receipts (writer TEXT PRIMARY KEY, number INTEGER, answer TEXT) WITHOUT ROWID"
        )
        row = self.connection.execute("SELECT number, answer FROM receipts WHERE writer = ?", (writer,)).fetchone()
        return None if row is None else (row[0], row[1])

    def keep_receipt(self, writer: str, number: int, answer: str) -> None:
        """Store number and answer of a writer's last change."""
        self.connection.execute("INSERT OR REPLACE INTO receipts VALUES (?, ?, ?)", (writer, number, answer))

    # States

    def snapshot(self) -> Snapshot:
        """Return the present state."""
        with self.reading():
            outcomes = self.connection.execute("SELECT item, stage, uses, total, recent FROM outcomes").fetchall()
            edges = self.connection.execute("SELECT coalesce(max(number), 0) FROM edges").fetchone()[0]
            return Snapshot(*self.tip(), self.attempts, edges, tuple(tuple(row) for row in outcomes))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier state, whose items must be the first ones of the present state."""
        with self.writing():
            run = self.connection.execute
            row = run("SELECT chain FROM items WHERE id = ?", (snapshot.size,)).fetchone()
            if (row[0] if row else "") != snapshot.chain:
                raise BankError(f"{self.name} no longer holds the {snapshot.size} items of the snapshot to restore")
            run("DELETE FROM outcomes")
            run("DELETE FROM vectors WHERE item > ?", (snapshot.size,))
            run("DELETE FROM edges WHERE number > ?", (snapshot.edges,))
            run("DELETE FROM items WHERE id > ?", (snapshot.size,))
            self.set_outcomes(snapshot.outcomes)
            self.attempts = snapshot.attempts
            run("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    # Vectors

    def entries(self, embedder: str, after: int) -> list[tuple[Any, ...]]:
        """Return id, chain, filter columns and vector (None if missing) of the items after an id."""
        return self.connection.execute(
            "SELECT id, chain, kind, task, category, language, feasible, vectors.data FROM items"
            " LEFT JOIN vectors ON vectors.item = id AND embedder = ? WHERE id > ? ORDER BY id",
            (embedder, after),
        ).fetchall()

    def keep_vectors(self, embedder: str, vectors: Iterable[tuple[int, str, bytes]]) -> None:
        """Store vectors of items, given by id and chain; an item that was replaced meanwhile is skipped."""
        self.connection.executemany(
            "INSERT OR IGNORE INTO vectors SELECT ?, id, ? FROM items WHERE id = ? AND chain = ?",
            ((embedder, data, id, chain) for id, chain, data in vectors),
        )

    def data_version(self) -> int:
        """Return a number that changes whenever another process has changed the file."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def _reference(self, id: int | None, previous: int | None) -> int | None:
        if id == PREVIOUS:
            id = previous
            if id is None:
                raise BankError("the first of the items to add refers to an item before it")
        if id is not None:
            self._require(id)
        return id

    def _require(self, id: int) -> None:
        if not 1 <= id <= self.tip()[0]:
            raise BankError(f"{self.name} has no item {id}; ids go from 1 to {self.tip()[0]}")

    def _meta(self, key: str) -> int:
        return int(self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])


_UNUSED = {stage: Outcomes() for stage in Stage}

# One parameter for any number of ids.
_AMONG = "(SELECT value FROM json_each(?))"


def _listed(ids: Iterable[int]) -> str:
    return json.dumps(list(ids))
