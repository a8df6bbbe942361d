"""Every exchange with a model, in a file: so that a paid run can be resumed, reproduced and shared for nothing.

One JSON line an exchange, keyed by what was asked. Keys and addresses of the endpoint are not in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_gym.errors import KernelGymError

Exchange = dict[str, Any]


def key_of(request: dict[str, Any]) -> str:
    """Content address of a request."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


class Transcript:
    """Looks up and appends exchanges; used from several threads."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self._lock = threading.Lock()
        self._known: dict[str, Exchange] = {}
        if read_only and not path.exists():
            raise KernelGymError(f"there is no transcript at {path} to replay")
        if path.exists():
            self._read()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Exchange]:
        """All exchanges, in the order in which they were answered."""
        return iter(list(self._known.values()))

    def __contains__(self, request: dict[str, Any]) -> bool:
        return key_of(request) in self._known

    def find(self, request: dict[str, Any]) -> Exchange | None:
        """The recorded answer to a request, if there is one. A file that is only read must have one."""
        with self._lock:
            known = self._known.get(key_of(request))
        if known is None and self.read_only:
            raise KernelGymError(
                f"{self.path} has no answer to this request: the recorded run ended here, or code or settings differ"
            )
        return known

    def append(self, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Record an exchange; on disk before anything is done with it, since it was paid for."""
        exchange: Exchange = {"key": key_of(request), "request": request, "reply": reply}
        with self._lock:
            self._known[exchange["key"]] = exchange
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(exchange) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def _read(self) -> None:
        """Read all whole lines; a last one that a crash tore is cut off, or left alone in a file that is only read."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data) and not self.read_only:
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            exchanges = [json.loads(line) for line in whole.decode().splitlines()]
            self._known = {exchange["key"]: exchange for exchange in exchanges}
        except (ValueError, KeyError, TypeError) as error:
            raise KernelGymError(f"{self.path} is not a transcript: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """A copy has a lock of its own; both append to the same file."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
