"""The memories of an earlier run that a forecast run begins with, besides the seed knowledge."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_gym.errors import ConfigError
from kernel_gym.memory import rows
from kernel_gym.memory.export_import import read_items
from kernel_gym.memory.item import Kind, MemoryItem


@dataclass(frozen=True)
class InitialMemory:
    """Items of other tasks, and the attempts that their bank had counted.

    `new_ids` has the ids that they and the seed knowledge get here, by their ids in the file; `records` has what is
    known of their use, by new id.
    """

    items: tuple[MemoryItem, ...] = ()
    records: dict[int, tuple[rows.Record, ...]] = field(default_factory=dict)
    attempts: int = 0
    new_ids: dict[int, int] = field(default_factory=dict)


NOTHING = InitialMemory()


def load_initial_memory(path: Path, seeds: Sequence[MemoryItem], tasks: Collection[str]) -> InitialMemory:
    """Read a file that an export of a bank wrote.

    Args:
        path: The file.
        seeds: The seed knowledge, which the file may have, too.
        tasks: Ids of the tasks of the run.

    Returns:
        The items that are not seed knowledge, numbered after it.

    Raises:
        BankError: The file is no export.
        ConfigError: It has kernels of a task of the run, which a run on forecasts cannot refine.
    """
    known = {rows.digest(item): number for number, item in enumerate(seeds, 1)}
    attempts, lines = read_items(path)
    new_ids, items = dict[int, int](), list[MemoryItem]()
    for item, _ in lines:
        if item.task in tasks:
            raise ConfigError(f"{path} has memories of {item.task}: export it without the tasks of the run")
        digest = rows.digest(item)
        if digest in known:
            new_ids[item.id] = known[digest]
        elif item.kind in (Kind.TRACE, Kind.EXPERIENCE) and item.language == "ascendc":
            new_ids[item.id] = len(seeds) + len(items) + 1
            parent, source = (None if id is None else new_ids.get(id) for id in (item.parent, item.source))
            items.append(replace(item, id=new_ids[item.id], parent=parent, source=source))
    records = {new_ids[item.id]: record for item, record in lines if item.id in new_ids}
    return InitialMemory(tuple(items), records, attempts, new_ids)
