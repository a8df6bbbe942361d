"""Memories as a portable file: JSON lines, one header and one line an item.

The header says what wrote the file and which bank it came from; each item keeps its id there, so that `origin` can name
it. References to items that were left out become null.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.memory import rows
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.schema import BankError
from kernel_gym.memory.store import Store
from kernel_gym.version import __version__

FORMAT = "kernel_gym.memory"
VERSION = 1

#: What a header must say for its file to be read.
_HEADER = {"version": int, "items": int, "attempts": int, "bank": str}


def export(store: Store, path: Path, exclude_tasks: Collection[str] = ()) -> int:
    """Write all items but those of `exclude_tasks`; returns how many."""
    with store.reading():
        kept = [item for item in store.select("ORDER BY id") if not item.task or item.task not in exclude_tasks]
        header = {
            "format": FORMAT,
            "version": VERSION,
            "kernel_gym": __version__,
            "bank": store.tip()[1][:16],
            "attempts": store.attempts,
            "items": len(kept),
            "excluded_tasks": sorted(exclude_tasks),
            "edges": _edges(store, {item.id for item in kept}),
        }
        lines = [json.dumps(header), *(json.dumps(line) for line in _lines(store, kept))]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise BankError(f"cannot write {path}: {error.strerror}") from error
    return len(kept)


def import_(store: Store, path: Path) -> int:
    """Add the items of a file in one transaction; returns how many were new.

    Items that are new or were never shown here bring their statistics; those of others stay as they are. The attempt
    counter becomes at least that of the file, so that no item is younger than the bank.
    """
    header, lines = _read(path)
    ids: dict[int, int] = {}
    with _readable(path), store.writing():
        store.attempts = max(store.attempts, header["attempts"])
        new = sum(_take(store, line, ids, header["bank"]) for line in lines)
        for start, child in _steps(header, lines):
            store.join(ids[start], ids[child])
        return new


def numbers(store: Store, path: Path) -> dict[int, int]:
    """The ids that a file's items have in this bank, by their ids in the file; of those that are in it."""
    _, lines = _read(path)
    with _readable(path), store.reading():
        found = {line["id"]: store.find(rows.digest(_item(line))) for line in lines}
    return {theirs: ours for theirs, ours in found.items() if ours is not None}


def _steps(header: dict[str, Any], lines: Sequence[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Start points and what refining them came to, in the order of the bank they come from."""
    yield from header.get("edges", ())
    # Files from before edges were kept have no more than a parent each; joining what is joined changes nothing.
    yield from ((line["parent"], line["id"]) for line in lines if line["parent"] is not None and _is_trace(line))


def _is_trace(line: dict[str, Any]) -> bool:
    return Kind(line["kind"]) is Kind.TRACE


def _edges(store: Store, kept: Collection[int]) -> list[tuple[int, int]]:
    return [(start, child) for start, child in store.edges() if start in kept and child in kept]


def _lines(store: Store, items: Collection[MemoryItem]) -> Iterator[dict[str, Any]]:
    ids = {item.id for item in items}
    records: dict[int, list[tuple[Any, ...]]] = {id: [] for id in ids}
    for id, *record in store.snapshot().outcomes:
        records.get(id, []).append(tuple(record))
    for item in items:
        line = rows.to_json(item)
        line |= {name: line[name] if line[name] in ids else None for name in ("parent", "source")}
        yield line | {"outcomes": records[item.id], "origin": store.origin(item.id)}


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        header, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise BankError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise BankError(f"{path} is not an export of a memory bank: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BankError(f"{path} is not an export of a memory bank")
    if isinstance(version := header.get("version"), int) and version > VERSION:
        raise BankError(f"{path} was written by a newer kernel_gym (format {version}); update it")
    if missing := [key for key, kind in _HEADER.items() if not isinstance(header.get(key), kind)]:
        raise BankError(f"{path} is not an export of a memory bank: its header says no {missing[0]}")
    if header["items"] != len(lines):
        raise BankError(f"{path} is cut short: {len(lines)} of {header['items']} items")
    return header, lines


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise BankError(f"{path} holds an item that cannot be read: {error!r}") from error


def _take(store: Store, line: dict[str, Any], ids: dict[int, int], bank: str) -> bool:
    known_as = line["id"]
    item = _rebound(line, ids)
    ids[known_as], new = store.insert(item, origin=line["origin"] or f"{bank}#{known_as}", join=False)
    if new or not store.used(ids[known_as]):
        store.set_outcomes((ids[known_as], *record) for record in line["outcomes"])
    return new


def _rebound(line: dict[str, Any], ids: dict[int, int]) -> MemoryItem:
    item = _item(line)
    parent = ids[item.parent] if item.parent is not None else None
    return replace(item, parent=parent, source=ids[item.source] if item.source is not None else None)


def _item(line: dict[str, Any]) -> MemoryItem:
    return rows.from_json({name: value for name, value in line.items() if name not in ("outcomes", "origin")})
