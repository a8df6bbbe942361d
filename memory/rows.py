"""Memory items as JSON and as rows of the bank."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any

from kernel_gym import verdict as verdicts
from kernel_gym.memory.item import Kind, MemoryItem, Stage

#: What the bank keeps in columns of its own.
_COLUMNS = ("id", "born", "parent", "source")
_TUPLES = ("operators", "names", "bottlenecks")


def to_json(item: MemoryItem) -> dict[str, Any]:
    """An item as plain data; `from_json` reads it back."""
    data = {field.name: getattr(item, field.name) for field in fields(item)}
    data["verdict"] = item.verdict.to_json() if item.verdict is not None else None
    return data | {name: list(data[name]) for name in _TUPLES}


def from_json(data: dict[str, Any]) -> MemoryItem:
    """Read back what `to_json` wrote; unknown fields are errors."""
    stage, verdict = data.get("stage"), data.get("verdict")
    typed = {
        "kind": Kind(data["kind"]),
        "stage": Stage(stage) if stage else None,
        "verdict": verdicts.from_json(verdict) if verdict else None,
    }
    return MemoryItem(**{**data, **typed, **{name: tuple(data.get(name, ())) for name in _TUPLES}})


def digest(item: MemoryItem) -> str:
    """Content address: two items of a kind with the same code (or text) for the same task are the same item."""
    content = item.code or item.text
    return hashlib.sha256(
        "\0".join((item.kind, item.task, item.language, content)).encode(errors="surrogatepass")
    ).hexdigest()


def chain(before: str, own: str, born: int) -> str:
    """Address of an item together with all items before it."""
    return hashlib.sha256(f"{before}\0{own}\0{born}".encode()).hexdigest()


def pack(item: MemoryItem) -> str:
    """What of an item is not in columns of its own."""
    return json.dumps({name: value for name, value in to_json(item).items() if name not in _COLUMNS})


def unpack(id: int, born: int, parent: int | None, source: int | None, data: str) -> MemoryItem:
    """The item of a row."""
    row = json.loads(data)
    # A search decodes dozens of rows: enums and tuples are made in place, without a dictionary in between.
    row["kind"], row["stage"] = _KINDS[row["kind"]], _STAGES[row["stage"]]
    for name in _TUPLES:
        row[name] = tuple(row[name])
    if row["verdict"] is not None:
        row["verdict"] = verdicts.from_json(row["verdict"])
    return MemoryItem(**row, id=id, born=born, parent=parent, source=source)


_KINDS = {kind.value: kind for kind in Kind}
_STAGES: dict[str | None, Stage | None] = {None: None, **{stage.value: stage for stage in Stage}}
