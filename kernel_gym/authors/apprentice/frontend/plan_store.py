"""Caches plans on disk, since exporting a module takes seconds."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from kernel_gym import tasks
from kernel_gym.authors.apprentice.frontend import plan as plans
from kernel_gym.authors.apprentice.frontend.plan import Plan
from kernel_gym.disk_cache import cache_folder


def load(digest: str) -> Plan | str | None:
    """Return the stored plan of a task, or the reason why it has none; None if nothing is stored."""
    file = _file(digest)
    if not file.is_file():
        return None
    stored = _decoded(json.loads(file.read_text()))
    return stored if isinstance(stored, Plan | str) else None


def store(digest: str, plan: Plan | str) -> None:
    """Store a plan, or the reason why there is none; other processes see the whole file or none."""
    file = _file(digest)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(_encoded(plan)))
    draft.replace(file)


def _file(digest: str) -> Path:
    key = hashlib.sha256(f"{digest} {_version()}".encode()).hexdigest()
    return cache_folder() / "plans" / f"{key}.json"


@lru_cache(maxsize=1)
def _version() -> str:
    """Return a hash of the code that exports graphs and makes plans of them, and of the version of torch."""
    total = hashlib.sha256(torch.__version__.encode())
    for folder in (Path(tasks.__file__).parent, Path(__file__).parent):
        for file in sorted(folder.rglob("*.py")):
            total.update(file.read_bytes())
    return total.hexdigest()


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__} | {f.name: _encoded(getattr(value, f.name)) for f in fields(value)}
    return [_encoded(item) for item in value] if isinstance(value, tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        kind = getattr(plans, value["is"])
        return kind(**{name: _decoded(item) for name, item in value.items() if name != "is"})
    return tuple(_decoded(item) for item in value) if isinstance(value, list) else value
