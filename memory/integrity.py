"""Checks of a bank's content: addresses, references, columns, statistics and vectors of all items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from kernel_gym.memory import rows
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.store import Store

#: Columns that repeat fields of an item for searches.
_COLUMNS = ("kind", "task", "category", "language", "feasible", "latency")
_RECORD = TypeAdapter(rows.Record)


def problems(store: Store) -> Iterator[str]:
    """Yield the problems of a bank, a line each; nothing if the bank is whole."""
    with store.reading():
        damage = [row[0] for row in store.connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        yield from (f"file: {line}" for line in damage)
        if not damage:
            yield from _items(store)
            yield from _strays(store)


def _items(store: Store) -> Iterator[str]:
    """Check that ids have no gap, contents match address and columns, chains match, and references are earlier traces.

    Only the device of a verdict is part of a trace's address. A change in the rest of it is noticed only where a column
    repeats the field.
    """
    before, traces = "", set[int]()
    query = f"SELECT id, digest, chain, born, parent, source, data, {', '.join(_COLUMNS)} FROM items ORDER BY id"
    for number, row in enumerate(store.connection.execute(query), start=1):
        id, digest, chain, born, parent, source, data, *columns = row
        if id != number:
            yield f"item {id}: the item before it is missing"
            return
        try:
            item = rows.unpack_checked(id, born, parent, source, data)
        except (ValueError, TypeError) as error:
            yield f"item {id}: cannot be read ({error})"
            before = chain
            continue
        if rows.digest(replace(item, id=-1)) != digest:
            yield f"item {id}: its content is not what was stored"
        yield from (f"item {id}: its {name} is not what is searched for" for name in _differing(item, columns))
        if rows.chain(before, digest, born) != chain:
            yield f"item {id}: it does not follow from the item before it"
        yield from (f"item {id}: refers to item {other}" for other in (parent, source) if other and other not in traces)
        before = chain
        if item.kind is Kind.TRACE:
            traces.add(id)


def _differing(item: MemoryItem, columns: Sequence[object]) -> Iterator[str]:
    """Yield the columns that differ from the item."""
    latency = item.verdict.latency_us if item.verdict is not None else None
    own = (item.kind.value, item.task, item.category, item.language, int(item.feasible), latency)
    return (name for name, here, there in zip(_COLUMNS, own, columns, strict=True) if here != there)


def _strays(store: Store) -> Iterator[str]:
    """Check that statistics, vectors and edges belong to items, and that counters are possible."""
    for table, column in (("outcomes", "item"), ("vectors", "item"), ("edges", "start"), ("edges", "child")):
        lost = store.connection.execute(f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM items)")
        if count := lost.fetchone()[0]:
            yield f"{table}: {count} rows belong to no item"
    others = "SELECT count(*) FROM edges JOIN items ON id IN (start, child) WHERE kind <> 'trace'"
    if count := store.connection.execute(others).fetchone()[0]:
        yield f"edges: {count} ends are no traces"
    orphans = (
        "SELECT id FROM items WHERE kind = 'trace' AND parent IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM edges WHERE start = items.parent AND child = items.id) ORDER BY id"
    )
    for (id,) in store.connection.execute(orphans):
        yield f"item {id}: it is no child of its own parent"
    for id, *record in store.connection.execute("SELECT item, stage, uses, total, recent FROM outcomes"):
        try:
            _RECORD.validate_python(tuple(record))
        except ValidationError as error:
            yield f"outcomes: those of item {id} cannot be read ({rows.in_words(error)})"
    uneven = "SELECT embedder FROM vectors GROUP BY embedder HAVING min(length(data)) <> max(length(data))"
    for (embedder,) in store.connection.execute(uneven):
        yield f"vectors: those of {embedder} have different lengths"
    newest = store.connection.execute("SELECT max(born) FROM items WHERE typeof(born) = 'integer'").fetchone()[0] or 0
    if newest > store.attempts:
        yield f"attempts: the counter says {store.attempts}, an item is from attempt {newest}"
