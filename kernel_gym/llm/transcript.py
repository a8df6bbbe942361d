"""A file of all exchanges with a model, so that a paid run can be resumed, replayed and shared at no cost.

Each exchange is one JSON line, found by the content of its request. API keys and addresses are not in it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_gym.errors import KernelGymError

#: One line of the file: `key`, `request` and `reply`.
Exchange = dict[str, Any]


def key_of(request: dict[str, Any]) -> str:
    """Return the content address of a request."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


class Transcript:
    """Looks up and appends exchanges. It may be used from several threads.

    Args:
        path: The file; it is created with the first exchange. One that ends in `.xz` is compressed and can only be
            replayed.
        read_only: Replay an existing file: a request that it does not have is an error.

    Raises:
        KernelGymError: If the file is no transcript, or is missing and `read_only`.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self._lock = threading.Lock()
        self._exchanges: dict[str, Exchange] = {}
        if self._compressed and not read_only:
            raise KernelGymError(f"{path} is compressed: it can be replayed, not continued")
        if read_only and not path.exists():
            raise KernelGymError(f"there is no transcript at {path} to replay")
        if path.exists():
            self._read()

    @property
    def _compressed(self) -> bool:
        return self.path.suffix == ".xz"

    def __len__(self) -> int:
        return len(self._exchanges)

    def __iter__(self) -> Iterator[Exchange]:
        """Return an iterator over all exchanges, in the order of their replies."""
        return iter(list(self._exchanges.values()))

    def __contains__(self, request: dict[str, Any]) -> bool:
        return key_of(request) in self._exchanges

    def find(self, request: dict[str, Any]) -> Exchange | None:
        """Find the exchange of a request.

        Args:
            request: The request.

        Returns:
            The exchange; None if there is none.

        Raises:
            KernelGymError: If there is none and the transcript is read-only.
        """
        with self._lock:
            exchange = self._exchanges.get(key_of(request))
        if exchange is None and self.read_only:
            raise KernelGymError(
                f"{self.path} has no answer to this request: the recorded run ended here, or code or settings differ"
            )
        return exchange

    def append(self, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Write an exchange to the file before its reply is used, because it was paid for.

        Args:
            request: The request.
            reply: The reply as JSON data.
        """
        exchange: Exchange = {"key": key_of(request), "request": request, "reply": reply}
        with self._lock:
            self._exchanges[exchange["key"]] = exchange
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(exchange) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def _read(self) -> None:
        """Read all complete lines; an incomplete last line is cut off, or ignored in a read-only file."""
        data = self.path.read_bytes()
        if self._compressed:
            try:
                data = lzma.decompress(data)
            except lzma.LZMAError as error:
                raise KernelGymError(f"{self.path} is not a compressed transcript: {error}") from error
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data) and not self.read_only:
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            exchanges = [json.loads(line) for line in whole.decode().splitlines()]
            self._exchanges = {exchange["key"]: exchange for exchange in exchanges}
        except (ValueError, KeyError, TypeError) as error:
            raise KernelGymError(f"{self.path} is not a transcript: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the lock; a copy appends to the same file."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
