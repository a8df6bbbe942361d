"""A cache of verdicts on disk.

The key covers everything that a verdict depends on: kernel, task, device (with its profile, compiler and runtime
sources), the verifier's own sources and its secret. Many processes may share a folder: entries are written by rename,
whole or not at all. A damaged entry counts as missing and is written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import OrderedDict
from functools import cache
from pathlib import Path
from threading import Lock

from kernel_gym.disk_cache import cache_folder
from kernel_gym.verdict import Unjudged, Verdict, from_json

ENVIRONMENT = "KERNEL_GYM_CACHE"
#: Suffixes of files that decide no verdict.
_NO_SOURCES = (".md", ".pyc")


@cache
def verifier_version() -> str:
    """Return a digest of all sources and rules that decide a verdict: the verifier's, the devices' and the tasks'."""
    import numpy
    import torch

    from kernel_gym import hardware, tasks, verifier

    digest = hashlib.sha256(f"{torch.__version__} {numpy.__version__}".encode())
    for package in (verifier, hardware, tasks):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix not in _NO_SOURCES:
                digest.update(f"{package.__name__} {file.relative_to(folder)}".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def key_of(*parts: str) -> str:
    """Return the key of a verdict."""
    return hashlib.sha256("\0".join((verifier_version(), *parts)).encode()).hexdigest()


class VerdictCache:
    """A folder of verdicts with a layer in memory."""

    def __init__(self, folder: Path | None = None, remembered: int = 100_000) -> None:
        configured = os.environ.get(ENVIRONMENT)
        self.folder = folder or (Path(configured) if configured else cache_folder() / "verdicts")
        self._memory: OrderedDict[str, Verdict] = OrderedDict()
        self._remembered = remembered
        self._lock = Lock()

    def get(self, key: str) -> Verdict | None:
        """Return the verdict under a key; None if there is none or if it is damaged."""
        with self._lock:
            verdict = self._memory.get(key)
        if verdict is None:
            verdict = self._read(key)
            if verdict is not None:
                self._remember(key, verdict)
        return verdict

    def put(self, key: str, verdict: Verdict) -> None:
        """Store a verdict, unless it is `Unjudged`."""
        if isinstance(verdict, Unjudged):
            return
        self._remember(key, verdict)
        self._write(key, verdict)

    def _remember(self, key: str, verdict: Verdict) -> None:
        with self._lock:
            self._memory[key] = verdict
            if len(self._memory) > self._remembered:
                self._memory.popitem(last=False)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def _read(self, key: str) -> Verdict | None:
        try:
            entry = json.loads(self._path(key).read_bytes())
            if entry["digest"] != _digest(key, entry["verdict"]):
                return None
            return from_json(entry["verdict"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, key: str, verdict: Verdict) -> None:
        path, data = self._path(key), verdict.to_json()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
            with os.fdopen(handle, "w") as file:
                json.dump({"digest": _digest(key, data), "verdict": data}, file)
            os.replace(name, path)
        except OSError:  # a full or read-only disk costs time, not the verdict
            Path(name).unlink(missing_ok=True) if "name" in locals() else None


def _digest(key: str, data: object) -> str:
    return hashlib.sha256((key + json.dumps(data, sort_keys=True)).encode()).hexdigest()
