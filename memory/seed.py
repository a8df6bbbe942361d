"""Seed knowledge: the items of a bank before the first attempt, read from the data files in `seed/`.

A file `<language>-<family>.yaml` is a list of entries of one kind: API pages (with `names`) or practices. The fields of
an entry are rendered to the text that authors read, always in the same order: title, description, calls, example,
rules, common mistake.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from kernel_gym.data_files import parse_yaml
from kernel_gym.memory.api_pages import LANGUAGE
from kernel_gym.memory.item import Kind, MemoryItem

#: Allowed values of `MemoryItem.bottlenecks`, by language: the bottlenecks that device profiles name.
BOTTLENECKS = {
    "ascendc": frozenset(
        ("mte2", "mte3", "vector", "scalar", "launch", "sync", "balance", "bank_conflict", "l2", "ub_capacity", "cube")
    ),
    "cuda": frozenset(("memory", "compute", "launch", "parallelism", "occupancy", "registers", "tail")),
}


@cache
def seed_items(language: str) -> tuple[MemoryItem, ...]:
    """Return the API pages and best practices for a language.

    Args:
        language: The kernel language, `ascendc` or `cuda`.

    Returns:
        The items in a fixed order; empty for a language without seed files.
    """
    folder = files("kernel_gym.memory") / "seed"
    names = sorted(file.name for file in folder.iterdir() if file.name.startswith(f"{language}-"))
    entries = [entry for name in names for entry in parse_yaml((folder / name).read_text(encoding="utf-8"))]
    return tuple(_item(entry, language) for entry in entries)


def _item(entry: dict[str, Any], language: str) -> MemoryItem:
    return MemoryItem(
        kind=Kind.API if "names" in entry else Kind.PRACTICE,
        title=entry["title"],
        text=_text(entry),
        category=LANGUAGE if entry.get("basics") else "",
        names=tuple(entry.get("names", ())),
        bottlenecks=tuple(entry.get("bottlenecks", ())),
        language=language,
    )


def _text(entry: dict[str, Any]) -> str:
    parts = [entry["title"], entry["about"].strip()]
    if "calls" in entry:
        parts.append(entry["calls"].strip())
    if "example" in entry:
        parts.append(f"Example:\n{entry['example'].rstrip()}")
    if "rules" in entry:
        parts.append("\n".join(f"- {rule}" for rule in entry["rules"]))
    if "mistake" in entry:
        parts.append(f"Common mistake: {entry['mistake'].strip()}")
    return "\n".join(parts)
