"""Conversion of memory items to JSON and to rows of the bank's tables."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from kernel_gym import verdict as verdicts
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Verdict

#: The largest integer of SQLite.
MOST = 2**63 - 1

#: Statistics of an item in one stage as they are stored: stage, uses, sum of rewards, recent reward.
Record: TypeAlias = tuple[Stage, Annotated[int, Field(ge=1, le=MOST)], FiniteFloat, FiniteFloat]

#: Fields that the table has as columns.
_COLUMNS = ("id", "born", "parent", "source")
_TUPLES = ("operators", "names", "bottlenecks")

_ITEM = TypeAdapter(MemoryItem)
_VERDICTS: dict[str, TypeAdapter[Verdict]] = {kind.outcome: TypeAdapter(kind) for kind in get_args(Verdict)}


def to_json(item: MemoryItem) -> dict[str, Any]:
    """Return an item as JSON data, to be read by `from_json`."""
    data = {field.name: getattr(item, field.name) for field in fields(item)}
    data["verdict"] = item.verdict.to_json() if item.verdict is not None else None
    return data | {name: list(data[name]) for name in _TUPLES}


def from_json(data: dict[str, Any]) -> MemoryItem:
    """Read back what `to_json` wrote. Data that it could not have written raises a ValueError of one line."""
    try:
        item = _ITEM.validate_python({**data, "verdict": _verdict(data.get("verdict"))})
    except ValidationError as error:
        raise ValueError(in_words(error)) from error
    # Unknown fields and fields that were converted are errors. Fields that an older version lacked may be missing.
    written = json.loads(json.dumps(to_json(item), allow_nan=False))
    for name, value in data.items():
        if name not in written or written[name] != value:
            raise ValueError(f"{name} cannot be {json.dumps(value):.80}")
    return item


def _verdict(data: Any) -> Verdict | None:
    if data is None:
        return None
    if not isinstance(data, dict) or (kind := _VERDICTS.get(str(data.get("outcome")))) is None:
        raise ValueError(f"verdict cannot be {json.dumps(data):.80}")
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        raise ValueError(f"verdict.{in_words(error)}") from error


def in_words(error: ValidationError) -> str:
    """Return the first problem of a validation error in one line."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    words = ": ".join(part for part in (".".join(map(str, first["loc"])), message) if part)
    return " ".join(words.split())


def digest(item: MemoryItem) -> str:
    """Return the content address of an item.

    Two items of a kind with the same code (or text) for the same task are the same item. A kernel that several devices
    judged has one trace per device.
    """
    content = item.code or item.text
    own = _hash(item.kind, item.task, item.language, content)
    device = item.verdict.device if item.kind is Kind.TRACE and item.verdict is not None else ""
    return _hash(own, device) if device else own


def chain(before: str, own: str, born: int) -> str:
    """Return the address of an item together with all items before it."""
    return _hash(before, own, str(born))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def pack(item: MemoryItem) -> str:
    """Return the fields of an item that are not columns, as JSON."""
    return json.dumps({name: value for name, value in to_json(item).items() if name not in _COLUMNS})


def unpack_checked(id: int, born: int, parent: int | None, source: int | None, data: str) -> MemoryItem:
    """Return the item of a row after checking all fields; raises ValueError if it is no item."""
    return from_json(dict(json.loads(data), id=id, born=born, parent=parent, source=source))


def unpack(id: int, born: int, parent: int | None, source: int | None, data: str) -> MemoryItem:
    """Return the item of a row that the bank wrote."""
    row = json.loads(data)
    # For speed, enums and tuples are made in place: a search decodes dozens of rows.
    row["kind"], row["stage"] = _KINDS[row["kind"]], _STAGES[row["stage"]]
    for name in _TUPLES:
        row[name] = tuple(row[name])
    if row["verdict"] is not None:
        row["verdict"] = verdicts.from_json(row["verdict"])
    return MemoryItem(**row, id=id, born=born, parent=parent, source=source)


_KINDS = {kind.value: kind for kind in Kind}
_STAGES: dict[str | None, Stage | None] = {None: None, **{stage.value: stage for stage in Stage}}
