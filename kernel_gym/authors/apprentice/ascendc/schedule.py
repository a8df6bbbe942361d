"""The schedule of an Ascend C kernel: how it uses cores, tiles and buffers.

A kernel records its schedule in a comment, so that a later attempt can refine it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

#: Bytes of the unified buffer that a kernel plans with; the rest is the framework's.
BUDGET = 176 * 1024
#: Vector cores of the chip that authors write for.
CORES = 48


@dataclass(frozen=True)
class Schedule:
    """One schedule.

    `tile` is the largest number of elements that are on chip per tensor at a time (0: as many as fit); `buffers` = 2
    overlaps copies with computation; `batch` is the number of rows copied together (0: as many as fit); `resident`
    keeps a row on chip between its passes; `vector` uses vector instructions where a beginner writes scalar loops;
    `cube` multiplies matrices on the cube unit; `fused` computes in one launch what needs no second one, where a
    beginner launches operator by operator; `bursts` copies several rows, or elements that lie near each other, by one
    instruction; `immediate` hands numbers to instructions as they are instead of filling a tensor with them.
    """

    cores: int = CORES
    tile: int = 0
    buffers: int = 2
    batch: int = 0
    resident: bool = True
    vector: bool = True
    cube: bool = True
    fused: bool = True
    bursts: bool = True
    immediate: bool = True

    def __hash__(self) -> int:
        # Kept, because every look-up asks for it; a cached property would take a lock.
        kept: dict[str, int] = self.__dict__
        if "_hash" not in kept:
            kept["_hash"] = hash(tuple(getattr(self, name) for name in _FIELDS))
        return kept["_hash"]

    def comment(self) -> str:
        """Return the line that records the schedule in a kernel."""
        parts = (f"{item.name}={int(getattr(self, item.name))}" for item in fields(self))
        return f"// schedule: {' '.join(parts)}"


_FIELDS = tuple(item.name for item in fields(Schedule))

#: What a careful beginner writes, and the best known.
NAIVE = Schedule(
    cores=1,
    tile=256,
    buffers=1,
    batch=1,
    resident=False,
    vector=True,
    cube=False,
    fused=False,
    bursts=False,
    immediate=False,
)
BEST = Schedule()


def recorded(source: str) -> Schedule | None:
    """Return the schedule that a kernel's comment records; None if it has no such comment."""
    comment = re.search(r"^// schedule: (.*)$", source, re.MULTILINE)
    if not comment:
        return None
    stated = dict(re.findall(r"(\w+)=(\d+)", comment[1]))
    types = {item.name: item.type for item in fields(Schedule)}
    values: dict[str, Any] = {
        name: int(text) if types[name] == "int" else text != "0" for name, text in stated.items() if name in types
    }
    return replace(Schedule(), **values)


def recognised(source: str) -> Schedule:
    """Return the schedule of a kernel by another author, as far as its text shows it."""

    def number(pattern: str, default: int) -> int:
        match = re.search(pattern, source)
        return int(match[1]) if match else default

    scalar_loop = re.search(r"for\s*\([^)]*\)\s*\{?[^}]*SetValue\s*\([^}]*GetValue", source) is not None
    return Schedule(
        cores=number(r"<<<\s*(\d+)", number(r"(?:cores|blockDim|BLOCK_DIM|blocks)\w*\s*=\s*(\d+)", 8)),
        tile=number(r"(?i)tile\w*\s*=\s*(\d+)", 1024),
        buffers=number(r"InitBuffer\(\s*\w*[qQ]\w*\s*,\s*(\d)\s*,", 1),
        batch=1,
        resident=True,
        vector=not scalar_loop,
        fused=source.count("<<<") <= 1,
        cube="REGIST_MATMUL_OBJ" in source,
    )
