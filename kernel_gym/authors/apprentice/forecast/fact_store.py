"""Facts about texts on disk: writing and reading a kernel takes 20 ms, and every process needs the same ones."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any


class FactStore:
    """Facts by name, in one file that processes share.

    A file that cannot be read or written costs time alone: the facts are worked out again.

    Args:
        file: The file. Its name has to change with the code that the facts come from.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        #: By process: a connection does not survive a fork.
        self._connections: dict[int, sqlite3.Connection] = {}

    def load(self, name: str) -> dict[str, Any] | None:
        """Return the facts of a text; None if they are not there."""
        rows = self._execute("SELECT facts FROM facts WHERE name = ?", (name,))
        facts: dict[str, Any] | None = json.loads(zlib.decompress(rows[0][0])) if rows else None
        return facts

    def keep(self, name: str, facts: dict[str, Any]) -> None:
        """Add the facts of a text."""
        packed = zlib.compress(json.dumps(facts).encode(), 1)
        self._execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, packed))

    def _execute(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            return self._connection().execute(statement, values).fetchall()
        except (OSError, sqlite3.Error):
            return []

    def _connection(self) -> sqlite3.Connection:
        process = os.getpid()
        if process not in self._connections:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._file, timeout=20, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, facts BLOB) WITHOUT ROWID")
            self._connections[process] = connection
        return self._connections[process]
