"""The table: kernels of a few tasks with their verdicts and their provenance.

A file is xz-compressed JSON. It holds texts and verdicts only; what the environment computes from them is computed when
the file is read.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.errors import ConfigError
from kernel_gym.verdict import Verdict, from_json

VERSION = 1
#: The table that comes with the package.
PACKAGED = "small"


@dataclass(frozen=True)
class Row:
    """One kernel: its schedule, the idioms that are wrong in it (with the spelling), its text and its verdict."""

    schedule: Schedule
    wrong: dict[str, str]
    source: str
    verdict: Verdict


@dataclass
class TaskTable:
    """One task: its operators, the moves that matter to it, its kernels, the idioms that each schedule needs."""

    id: str
    operators: tuple[str, ...]
    moves: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    needed: dict[Schedule, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Table:
    """Tasks with their kernels; `provenance` says commit, device, author and how the kernels were chosen."""

    language: str
    provenance: dict[str, Any]
    tasks: list[TaskTable]

    def save(self, path: Path) -> None:
        """Write the file; the same table gives the same bytes."""
        data = {"version": VERSION, "language": self.language, "provenance": self.provenance}
        text = json.dumps(data | {"tasks": [_task_data(task) for task in self.tasks]}, indent=0)
        path.write_bytes(lzma.compress(text.encode(), preset=9))


def load(name: str | Path) -> Table:
    """Load a table from a file, or the packaged one by its name."""
    place = Path(str(name)) if Path(str(name)).suffix else resources.files(__package__) / "tables" / f"{name}.json.xz"
    if not place.is_file():
        raise ConfigError(f"there is no table {name}; name a file that `kernel-gym tabular` wrote, or {PACKAGED!r}")
    try:
        data = json.loads(lzma.decompress(place.read_bytes()))
        if data["version"] != VERSION:
            raise ConfigError(f"the table {name} has version {data['version']}, not {VERSION}: make it anew")
        return Table(data["language"], data["provenance"], [_task(task) for task in data["tasks"]])
    except (lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{name} is not a table ({type(error).__name__}): make it with `kernel-gym tabular`"
        ) from error


def _task_data(task: TaskTable) -> dict[str, Any]:
    schedules = list(task.needed)
    return {
        "id": task.id,
        "operators": task.operators,
        "moves": task.moves,
        "schedules": [asdict(schedule) | {"needed": task.needed[schedule]} for schedule in schedules],
        "rows": [
            {
                "schedule": schedules.index(row.schedule),
                "wrong": row.wrong,
                "source": row.source,
                # How long judging took says nothing about the kernel, and differs from run to run.
                "verdict": row.verdict.to_json() | {"seconds": {}},
            }
            for row in task.rows
        ],
    }


def _task(data: dict[str, Any]) -> TaskTable:
    needed: dict[Schedule, tuple[str, ...]] = {}
    for fields in data["schedules"]:
        idioms = tuple(fields.pop("needed"))
        needed[Schedule(**fields)] = idioms
    schedules = list(needed)
    rows = [
        Row(schedules[row["schedule"]], row["wrong"], row["source"], from_json(row["verdict"])) for row in data["rows"]
    ]
    return TaskTable(data["id"], tuple(data["operators"]), tuple(data["moves"]), rows, needed)
