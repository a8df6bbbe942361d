"""The ATen operators of a task, cached on disk."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import torch

from kernel_gym import activity
from kernel_gym.disk_cache import cache_folder, write_whole
from kernel_gym.tasks.task import Task


def operators(task: Task) -> tuple[str, ...]:
    """Return the distinct ATen operators of the task (`aten.relu.default`) in the order of its graph."""
    return _operators(task, _cache_file(task))


@lru_cache(maxsize=1024)
def _operators(task: Task, file: Path) -> tuple[str, ...]:
    if file.is_file():
        return tuple(json.loads(file.read_text()))
    activity.prepare(f"exporting {task.id}")
    called = task.instance(task.public).graph().operators()
    names = tuple(name for name in called if name.startswith("aten.") and not name.startswith("aten._assert"))
    write_whole(file, json.dumps(names))
    return names


def _cache_file(task: Task) -> Path:
    key = hashlib.sha256(f"{task.digest} {torch.__version__}".encode()).hexdigest()
    return cache_folder() / "operators" / f"{key}.json"
