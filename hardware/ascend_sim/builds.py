"""Keeps the cache of simulator builds small: the newest few, those used within a day, and those in use.

A process that uses a build holds a shared lock on a file in its folder until it ends. A build is removed only under an
exclusive lock on that file, and is renamed first, so that other processes find all of it or nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

#: Numbers of builds and compiled files that are kept regardless of age.
KEPT, KEPT_OBJECTS = 4, 400
#: Seconds after its last use during which a build is kept.
RECENT = 24 * 3600.0
USED, PREFIX = "in-use", "ascend_sim-"

_held: dict[Path, IO[bytes]] = {}


def hold(folder: Path) -> bool:
    """Use a build as long as this process lives; return False if it does not exist."""
    if folder in _held:
        return folder.is_dir()
    try:
        file = (folder / USED).open("ab")
    except FileNotFoundError:
        return False
    fcntl.flock(file, fcntl.LOCK_SH)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), (folder / USED).stat()):
            os.utime(folder / USED)
            _held[folder] = file
            return True
    file.close()
    return False


def prune(cache: Path, now: float | None = None) -> list[Path]:
    """Remove old builds, remains of interrupted ones and old compiled files; return the removed builds."""
    old = (time.time() if now is None else now) - RECENT
    builds = sorted((path for path in cache.glob(f"{PREFIX}*") if (path / USED).is_file()), key=_last_use)
    removed = [path for path in builds[: max(0, len(builds) - KEPT)] if _last_use(path) < old and _remove(path)]
    for path in cache.glob(f"{PREFIX}*"):
        if path.is_dir() and not (path / USED).is_file() and path.stat().st_mtime < old:
            shutil.rmtree(path, ignore_errors=True)
    objects = sorted(cache.glob("objects/*"), key=_mtime)
    for path in objects[: max(0, len(objects) - KEPT_OBJECTS)]:
        if _mtime(path) < old:
            path.unlink(missing_ok=True)
    return removed


def _last_use(build: Path) -> float:
    return _mtime(build / USED)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # removed by another process meanwhile
        return 0.0


def _remove(build: Path) -> bool:
    """Remove a build unless it is in use; return whether it was removed."""
    try:
        with (build / USED).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            doomed = build.with_name(f"{build.name}-{os.getpid()}")
            build.rename(doomed)
    except (BlockingIOError, FileNotFoundError):
        return False
    shutil.rmtree(doomed, ignore_errors=True)
    return True
