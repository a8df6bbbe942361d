"""Finding tasks by name.

A name is `suite/name` (`level1/relu`), a suite and KernelBench's number (`level1/19`), or a path to a file in
KernelBench's format. A suite is one of ours, a folder of such files, or a folder below `$KERNELBENCH_HOME`.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from kernel_gym.errors import TaskError
from kernel_gym.tasks.task import Task

#: Our suites and the level each of them is.
SUITES: dict[str, int | None] = {"basics": None, "level1": 1, "level2": 2}


def find(name: str) -> Task:
    """The task of a name, a number or a path."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    suite_name, _, rest = name.rpartition("/")
    if not suite_name:
        raise TaskError(f"{name!r} names no task: write suite/name or a path to a .py file{_near(name, _all_names())}")
    if suite_name not in SUITES:
        return _from_folder(_folder(suite_name), rest)
    for task in suite(suite_name):
        if rest == task.name or (rest.isdigit() and int(rest) == task.number):
            return task
    raise TaskError(f"no task {name!r}{_near(name, [task.id for task in suite(suite_name)])}")


def suite(name: str) -> tuple[Task, ...]:
    """All tasks of a suite, by number. Files of a folder that cannot be loaded are left out with a warning each."""
    if name in SUITES:
        return _own(name)
    from kernel_gym.suites.outside import load_folder

    return load_folder(_folder(name))


@lru_cache(maxsize=8)
def _own(name: str) -> tuple[Task, ...]:
    operators = import_module(f"kernel_gym.suites.{name}").OPERATORS
    return tuple(operator.task(name, SUITES[name]) for operator in operators)


def _folder(name: str) -> Path:
    home = os.environ.get("KERNELBENCH_HOME")
    below = [Path(home) / name, Path(home) / "KernelBench" / name] if home else []
    found = next((folder for folder in (Path(name), *below) if folder.is_dir()), None)
    if found is None:
        near = _near(name, list(SUITES))
        raise TaskError(f"no suite {name!r}: it is neither of {', '.join(SUITES)} nor a folder{near}")
    return found


def _from_file(path: Path) -> Task:
    from kernel_gym.suites.outside import load_file

    return load_file(path)


def _from_folder(folder: Path, name: str) -> Task:
    """The file of a folder with this name or number; the others are not read."""
    stems = {path.stem: path for path in sorted(folder.glob("*.py"))}
    for stem, path in stems.items():
        if name == stem or (name.isdigit() and stem.startswith(f"{int(name)}_")):
            return _from_file(path)
    raise TaskError(f"no problem file {name!r} in {str(folder)!r}{_near(name, list(stems))}")


def _all_names() -> list[str]:
    return [task.id for name in SUITES for task in _own(name)]


def _near(name: str, known: list[str]) -> str:
    by_last = {candidate.rpartition("/")[2]: candidate for candidate in known}
    close = [by_last[match] for match in get_close_matches(name.rpartition("/")[2], by_last, n=3, cutoff=0.5)]
    return f"; did you mean {', '.join(close)}?" if close else ""
