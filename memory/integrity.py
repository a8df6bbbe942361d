"""Whether a bank still is what was written: every item is held against its address, its references and its vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_gym.memory import rows
from kernel_gym.memory.store import Store


def problems(store: Store) -> Iterator[str]:
    """What is wrong with a bank, a line each; nothing if it is whole."""
    with store.reading():
        found = [row[0] for row in store.connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        yield from (f"file: {line}" for line in found)
        if not found:
            yield from _items(store)
            yield from _strays(store)


def _items(store: Store) -> Iterator[str]:
    """Ids without a gap, contents that match their address, a chain without a break, references that point back."""
    before = ""
    query = "SELECT id, digest, chain, born, parent, source, data FROM items ORDER BY id"
    for number, (id, digest, chain, born, parent, source, data) in enumerate(store.connection.execute(query), start=1):
        if id != number:
            yield f"item {id}: the item before it is missing"
            return
        try:
            item = rows.unpack(id, born, parent, source, data)
        except (ValueError, KeyError, TypeError) as error:
            yield f"item {id}: cannot be read ({error})"
            return
        if rows.digest(replace(item, id=-1)) != digest:
            yield f"item {id}: its content is not what was stored"
        if rows.chain(before, digest, born) != chain:
            yield f"item {id}: it does not follow from the item before it"
        yield from (f"item {id}: refers to item {other}" for other in (parent, source) if other and not 0 < other < id)
        before = chain


def _strays(store: Store) -> Iterator[str]:
    """Statistics and vectors that belong to no item, and counters that cannot be."""
    for table in ("outcomes", "vectors"):
        lost = store.connection.execute(f"SELECT count(*) FROM {table} WHERE item NOT IN (SELECT id FROM items)")
        if count := lost.fetchone()[0]:
            yield f"{table}: {count} rows belong to no item"
    if (never := store.connection.execute("SELECT count(*) FROM outcomes WHERE uses < 1").fetchone()[0]) > 0:
        yield f"outcomes: {never} rows without a use"
    newest = store.connection.execute("SELECT max(born) FROM items").fetchone()[0] or 0
    if newest > store.attempts:
        yield f"attempts: the counter says {store.attempts}, an item is from attempt {newest}"
