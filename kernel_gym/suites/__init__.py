"""Tasks by name: `find_task` returns one task, `load_suite` all tasks of a suite.

A task is named by suite and name (`level1/relu`), by suite and KernelBench's number (`level1/19`), or by the path of a
file in KernelBench's format. A suite is one of `SUITES`, a folder of such files, or a folder below `$KERNELBENCH_HOME`.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from kernel_gym import activity
from kernel_gym.errors import TaskError
from kernel_gym.tasks.task import Task

#: The packaged suites and the level of each.
SUITES: dict[str, int | None] = {
    "basics": None,
    "level1": 1,
    "level2": 2,
    "level3": 3,
    "attention": None,
    "attention_parts": None,
    "mhc": None,
}
#: Most characters of a task's name, or of the path of its file.
LONGEST_NAME = 1000


def task_id(name: str, suite: str) -> str:
    """Return a task's name with its suite: a bare name belongs to `suite`, any other stays as it is."""
    return name if "/" in name or name.endswith(".py") else f"{suite}/{name}"


def find_task(name: str, suite: str | None = None, trust: bool = False) -> Task:
    """Return the task with a name.

    Args:
        name: `suite/name`, `suite/number`, or a path to a `.py` file in KernelBench's format.
        suite: The suite of a bare name, such as `relu`. Names with a suite of their own and paths ignore it.
        trust: Run the code of a problem file in this process; by default it runs in a confined one.

    Returns:
        The task.

    Raises:
        TaskError: If there is no such task, or if the file cannot be loaded. The message suggests similar names.
    """
    if len(name) > LONGEST_NAME:
        raise TaskError(f"the name of a task has at most {LONGEST_NAME} characters, not {len(name)}")
    if suite is not None:
        name = task_id(name, suite)
    if name.endswith(".py"):
        return _from_file(Path(name), trust)
    suite_name, _, rest = name.rpartition("/")
    if not suite_name:
        raise TaskError(f"{name!r} names no task: write suite/name or a path to a .py file{_near(name, _all_names())}")
    if suite_name not in SUITES:
        return _from_folder(_folder(suite_name), rest, trust)
    for task in load_suite(suite_name):
        if rest == task.name or (task.number is not None and _number(rest) == task.number):
            return task
    raise TaskError(f"no task {name!r}{_near(name, [task.id for task in load_suite(suite_name)])}")


def load_suite(name: str, trust: bool = False) -> tuple[Task, ...]:
    """Return all tasks of a suite in the order of their numbers.

    Args:
        name: One of `SUITES`, a folder of problem files, or the name of a folder below `$KERNELBENCH_HOME`.
        trust: Run the code of problem files in this process; by default each runs in a confined one.

    Returns:
        The tasks. Files of a folder that cannot be loaded are left out with a `TaskWarning` each.

    Raises:
        TaskError: If there is no such suite, or if no file of the folder can be loaded.
    """
    if name in SUITES:
        return _packaged(name)
    from kernel_gym.suites.problem_files import load_folder

    activity.prepare(f"loading the tasks in {name}")
    return load_folder(_folder(name), trust)


@lru_cache(maxsize=8)
def _packaged(name: str) -> tuple[Task, ...]:
    activity.prepare(f"loading the suite {name}")
    definitions = import_module(f"kernel_gym.suites.{name}").DEFINITIONS
    return tuple(definition.task(name, SUITES[name]) for definition in definitions)


def _folder(name: str) -> Path:
    home = os.environ.get("KERNELBENCH_HOME")
    below = [Path(home) / name, Path(home) / "KernelBench" / name] if home else []
    folder = next((path for path in (Path(name), *below) if path.is_dir()), None)
    if folder is None:
        near = _near(name, list(SUITES))
        raise TaskError(f"no suite {name!r}: it is neither of {', '.join(SUITES)} nor a folder{near}")
    return folder


def _from_file(path: Path, trust: bool) -> Task:
    from kernel_gym.suites.problem_files import load_file

    return load_file(path, trust)


def _from_folder(folder: Path, name: str, trust: bool) -> Task:
    """Load the file of a folder with this name or number; no other file is read."""
    stems = {path.stem: path for path in sorted(folder.glob("*.py"))}
    number = _number(name)
    for stem, path in stems.items():
        if name == stem or (number is not None and stem.startswith(f"{number}_")):
            return _from_file(path, trust)
    raise TaskError(f"no problem file {name!r} in {str(folder)!r}{_near(name, list(stems))}")


def _number(text: str) -> int | None:
    """Return the number that a text is; None if it is none."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _all_names() -> list[str]:
    return [task.id for name in SUITES for task in _packaged(name)]


def _near(name: str, candidates: list[str]) -> str:
    by_last = {candidate.rpartition("/")[2]: candidate for candidate in candidates}
    close = [by_last[match] for match in get_close_matches(name.rpartition("/")[2], by_last, n=3, cutoff=0.5)]
    return f"; did you mean {', '.join(close)}?" if close else ""
