"""Export and import of a bank as JSON lines: one header and one line per item.

The header says which version wrote the file, when, and from which bank, devices and run. Each item has its id in the
exporting bank, so that `origin` can name it. References to items that were left out become null. A bank does not know
from which tasks its statistics come, so none are written where tasks are left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError

from kernel_gym.memory import rows
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.schema import BankError
from kernel_gym.memory.store import Store
from kernel_gym.version import __version__

FORMAT = "kernel_gym.memory"
VERSION = 1


class _Header(BaseModel):
    """The fields of the header that an import needs."""

    model_config = ConfigDict(strict=True)
    version: int
    items: int
    attempts: int = Field(ge=0, le=rows.MOST)
    bank: str
    #: Missing in files from before edges were stored; there each trace has its parent only.
    edges: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = []


class _Line(BaseModel):
    """The line of an item."""

    model_config = ConfigDict(extra="forbid")
    item: InstanceOf[MemoryItem]
    outcomes: tuple[rows.Record, ...]
    origin: str


def export(store: Store, path: Path, exclude_tasks: Collection[str], provenance: Mapping[str, Any]) -> int:
    """Write all items, or all except those of `exclude_tasks` and no statistics. Returns the number of items."""
    with store.reading():
        items = [item for item in store.select("ORDER BY id") if not item.task or item.task not in exclude_tasks]
        header = {
            "format": FORMAT,
            "version": VERSION,
            "kernel_gym": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "provenance": dict(provenance),
            "devices": sorted({item.verdict.device for item in items if item.verdict is not None} - {""}),
            "bank": store.tip()[1][:16],
            "attempts": store.attempts,
            "items": len(items),
            "excluded_tasks": sorted(exclude_tasks),
            "edges": _edges(store, {item.id for item in items}),
        }
        outcomes = () if exclude_tasks else store.snapshot().outcomes
        lines = [json.dumps(header), *(json.dumps(line) for line in _lines(store, items, outcomes))]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise BankError(f"cannot write {path}: {error.strerror}") from error
    return len(items)


def import_(store: Store, path: Path) -> int:
    """Add the items of a file in one transaction. Returns the number of new items.

    The whole file is read and checked first. Items that are new or were never shown here get their statistics from the
    file; those of other items stay as they are. The attempt counter becomes at least that of the file, so that no item
    is younger than the bank.
    """
    header, lines = _read(path)
    ids: dict[int, int] = {}
    with store.writing():
        store.attempts = max(store.attempts, header.attempts)
        new = sum(_insert(store, line, ids, header.bank) for line in lines)
        for start, child in _imported_edges(header, lines):
            store.join(ids[start], ids[child])
        return new


def read_items(path: Path) -> tuple[int, list[tuple[MemoryItem, tuple[rows.Record, ...]]]]:
    """Return the attempts that the exporting bank had counted, and its items with the statistics of their use."""
    header, lines = _read(path)
    return header.attempts, [(line.item, line.outcomes) for line in lines]


def local_ids(store: Store, path: Path) -> dict[int, int]:
    """Return the ids that a file's items have in this bank, by their ids in the file; others are left out."""
    _, lines = _read(path)
    with store.reading():
        ids = {line.item.id: store.find(rows.digest(line.item)) for line in lines}
    return {theirs: ours for theirs, ours in ids.items() if ours is not None}


def _imported_edges(header: _Header, lines: Sequence[_Line]) -> Iterator[tuple[int, int]]:
    """Yield start points and the kernels refined from them, in the order of the exporting bank."""
    yield from ((start, child) for start, child in header.edges)
    # Adding an edge twice changes nothing.
    yield from ((line.item.parent, line.item.id) for line in lines if line.item.parent is not None)


def _edges(store: Store, ids: Collection[int]) -> list[tuple[int, int]]:
    return [(start, child) for start, child in store.edges() if start in ids and child in ids]


def _lines(
    store: Store, items: Collection[MemoryItem], outcomes: Iterable[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    records: dict[int, list[tuple[Any, ...]]] = {item.id: [] for item in items}
    for id, *record in outcomes:
        records.get(id, []).append(tuple(record))  # a damaged bank has outcomes of no item
    for item in items:
        line = rows.to_json(item)
        line |= {name: line[name] if line[name] in records else None for name in ("parent", "source")}
        yield line | {"outcomes": records[item.id], "origin": store.origin(item.id)}


def _read(path: Path) -> tuple[_Header, list[_Line]]:
    """Read a whole file; a line that an export could not have written is an error."""
    first, *others = _lines_of(path)
    header = _parsed(path, 1, first)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BankError(f"{path} is not an export of a memory bank")
    if isinstance(version := header.get("version"), int) and version > VERSION:
        raise BankError(f"{path} was written by a newer kernel_gym (format {version}); update it")
    with _readable(path, 1):
        head = _Header.model_validate(header)
        head.bank.encode()
    if head.items != len(others):
        raise BankError(f"{path} is cut short: {len(others)} of {head.items} items")
    kinds: dict[int, Kind] = {}
    lines = [_line(path, number, text, head.attempts, kinds) for number, text in enumerate(others, start=2)]
    with _readable(path, 1):
        _require_traces((id for edge in head.edges for id in edge), kinds)
    return head, lines


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines() or [""]
    except OSError as error:
        raise BankError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BankError(f"{path} is not an export of a memory bank: {error}") from error


def _parsed(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BankError(f"{path} is not an export of a memory bank: line {number} is not JSON: {error}") from error


def _line(path: Path, number: int, text: str, attempts: int, kinds: dict[int, Kind]) -> _Line:
    """Parse the line of an item; `kinds` has the kinds of earlier items by id, and gets this one's."""
    data = _parsed(path, number, text)
    with _readable(path, number):
        if not isinstance(data, dict):
            raise ValueError("this is no item")
        outer = {name: data[name] for name in ("outcomes", "origin") if name in data}
        item = {name: value for name, value in data.items() if name not in outer}
        line = _Line(item=rows.from_json(item), **outer)
        _require_new(line.item, attempts, kinds)
        # Text that SQLite could not encode fails here, with the number of its line.
        "".join((line.item.task, line.item.category, line.item.language, line.origin)).encode()
    kinds[line.item.id] = line.item.kind
    return line


def _require_new(item: MemoryItem, attempts: int, kinds: dict[int, Kind]) -> None:
    if item.id in kinds:
        raise ValueError(f"an earlier line is item {item.id} already")
    if not 0 <= item.born <= attempts:
        raise ValueError(f"born is {item.born}, the header counts {attempts} attempts")
    _require_traces((id for id in (item.parent, item.source) if id is not None), kinds)


def _require_traces(ids: Iterable[int], kinds: dict[int, Kind]) -> None:
    for id in ids:
        if kinds.get(id) is not Kind.TRACE:
            raise ValueError(f"there is no trace {id} before it to refer to")


@contextmanager
def _readable(path: Path, line: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        reason = rows.in_words(error) if isinstance(error, ValidationError) else error
        raise BankError(f"{path}, line {line}: {reason}") from error


def _insert(store: Store, line: _Line, ids: dict[int, int], bank: str) -> bool:
    exported_id = line.item.id
    item = replace(line.item, parent=_local_id(line.item.parent, ids), source=_local_id(line.item.source, ids))
    ids[exported_id], new = store.insert(item, origin=line.origin or f"{bank}#{exported_id}", join=False)
    if new or not store.used(ids[exported_id]):
        store.set_outcomes((ids[exported_id], *record) for record in line.outcomes)
    return new


def _local_id(id: int | None, ids: dict[int, int]) -> int | None:
    return None if id is None else ids[id]
