"""Profiles a kernel from the tables that msprof writes.

    msprof op --output=FOLDER --aic-metrics=PipeUtilization,Memory,L2Cache --launch-count=N COMMAND

leaves `OPPROF_*` folders with a table for each metric: OpBasicInfo.csv has the duration of each launch,
PipeUtilization.csv the time that each pipe of each core was busy.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from kernel_gym.errors import InfrastructureError
from kernel_gym.verdict import Profile

#: The tables' columns, and the names of the pipes in a profile.
_DURATION = "Task Duration(us)"
_PIPES = {
    "vector": ("aiv_vec_time(us)",),
    "scalar": ("aiv_scalar_time(us)", "aic_scalar_time(us)"),
    "mte2": ("aiv_mte2_time(us)", "aic_mte2_time(us)"),
    "mte3": ("aiv_mte3_time(us)",),
    "cube": ("aic_cube_time(us)", "aic_mac_time(us)"),
}
#: A pipe that is busy for this share of the time is the bottleneck.
BUSY = 0.5


def command(folder: Path, launches: int, program: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that profiles a program's launches."""
    metrics = "--aic-metrics=PipeUtilization,Memory,L2Cache"
    return ("msprof", "op", f"--output={folder}", metrics, f"--launch-count={launches}", *program)


def durations(folder: Path) -> list[float]:
    """Return the microseconds of every launch, in order."""
    times = [float(row[_DURATION]) for row in _rows(folder, "OpBasicInfo.csv") if row.get(_DURATION)]
    if not times:
        raise InfrastructureError(f"msprof left no durations in {folder}: no launch was seen")
    return times


def pipes(folder: Path) -> dict[str, float]:
    """Return the microseconds that the busiest core spent in each pipe."""
    busy = dict.fromkeys(_PIPES, 0.0)
    for row in _rows(folder, "PipeUtilization.csv"):
        for name, columns in _PIPES.items():
            busy[name] = max([busy[name], *(_number(row.get(column)) for column in columns)])
    return {name: time for name, time in busy.items() if time}


def profile(folder: Path) -> Profile:
    """Return the profile, in figures and in words."""
    times, busy = durations(folder), pipes(folder)
    whole = median(times)
    name, time = max(busy.items(), key=lambda item: item[1], default=("launch", 0.0))
    share = time / whole if whole else 0.0
    if share < BUSY:
        return Profile(pipes=busy, bottleneck="launch", diagnosis=_waiting(whole, name, share))
    words = f"bound by {name}: busy for {time:.1f} of {whole:.1f} us on the busiest core"
    return Profile(pipes=busy, bottleneck=name, diagnosis=words)


def _waiting(whole: float, name: str, share: float) -> str:
    return f"no pipe is busy for half of {whole:.1f} us ({name} for {share:.0%}): starting, waiting or uneven work"


def _rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    tables = sorted(folder.glob(f"**/{name}"))
    if not tables:
        raise InfrastructureError(f"msprof left no {name} under {folder}; is this CANN's msprof?")
    for table in tables:
        with table.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                yield {key.strip(): (value or "").strip() for key, value in row.items() if key}


def _number(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError:  # NA, for a core that the kernel does not use
        return 0.0
