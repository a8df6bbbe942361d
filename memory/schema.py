"""The bank's file: opening, checking and migrating it.

The file is a SQLite database in WAL mode, so that several processes of one machine can read while one writes. It holds
the program it belongs to (`application_id`) and the version of its tables (`user_version`). `MIGRATIONS` brings any
earlier version up to date, one step per version. An earlier file that is opened read-only is not changed: a copy in
memory is brought up to date.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from kernel_gym.errors import KernelGymError

#: "KGMB" in ASCII: identifies a bank among SQLite files.
APPLICATION_ID = 0x4B474D42

#: Seconds that a process waits for the transaction of another one; ours take milliseconds.
BUSY_TIMEOUT = 30.0


def _address_by_device(connection: sqlite3.Connection) -> None:
    """Add the device to the address of traces, so that a kernel has one trace per device; the chain changes with it.

    Items that did not match their address or chain still do not afterwards, so that checks still report them.
    """
    moved, before, now = list[tuple[str, str, int]](), "", ""
    query = "SELECT id, kind, digest, chain, born, data FROM items ORDER BY id"
    for id, kind, digest, chain, born, data in connection.execute(query):
        device = _device_of(data) if kind == "trace" else ""
        address = _hash(digest, device) if device else digest
        now = _hash(now, address, str(born)) if chain == _hash(before, digest, str(born)) else chain
        before = chain
        moved.append((address, now, id))
    connection.executemany("UPDATE items SET digest = ?, chain = ? WHERE id = ?", moved)


def _device_of(data: str) -> str:
    """Return the device of a stored verdict; empty where there is no readable verdict."""
    try:
        return str(json.loads(data)["verdict"]["device"])
    except (KeyError, TypeError, ValueError):
        return ""


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


#: Step i brings a file from version i to i + 1. Steps are never edited once released.
MIGRATIONS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (
    # Items carry what is searched for as columns and the rest as JSON. `chain` hashes an item with all before it, which
    # lets a snapshot name a state of the bank. Ids are 1, 2, 3, ... without gaps.
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('attempts', 0), ('generation', 0);
    CREATE TABLE items (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, chain TEXT NOT NULL, kind TEXT NOT NULL,
        task TEXT NOT NULL, category TEXT NOT NULL, language TEXT NOT NULL, feasible INTEGER NOT NULL, latency REAL,
        parent INTEGER REFERENCES items(id), source INTEGER REFERENCES items(id), born INTEGER NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX items_by_task ON items(task, kind, feasible);
    CREATE INDEX items_by_parent ON items(parent) WHERE parent IS NOT NULL;
    CREATE TABLE outcomes (
        item INTEGER NOT NULL REFERENCES items(id), stage TEXT NOT NULL,
        uses INTEGER NOT NULL, total REAL NOT NULL, recent REAL NOT NULL, PRIMARY KEY (item, stage)
    ) WITHOUT ROWID;
    """,
    # Vectors are kept, one set an embedder, and the bank an imported item came from is remembered.
    """
    CREATE TABLE vectors (
        embedder TEXT NOT NULL, item INTEGER NOT NULL REFERENCES items(id), data BLOB NOT NULL,
        PRIMARY KEY (embedder, item)
    ) WITHOUT ROWID;
    ALTER TABLE items ADD COLUMN origin TEXT NOT NULL DEFAULT '';
    """,
    # A kernel can be reached from several start points and is a child of each; `parent` alone names the first.
    """
    CREATE TABLE edges (
        number INTEGER PRIMARY KEY, start INTEGER NOT NULL REFERENCES items(id),
        child INTEGER NOT NULL REFERENCES items(id), UNIQUE (start, child)
    );
    INSERT INTO edges (start, child) SELECT parent, id FROM items WHERE parent IS NOT NULL AND kind = 'trace'
        ORDER BY id;
    DROP INDEX items_by_parent;
    """,
    _address_by_device,
)

#: SQLite's error codes for a damaged file.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
#: Error codes for problems outside of the file, with what could not be done; the bank itself is whole.
_OUTSIDE = {
    sqlite3.SQLITE_FULL: "write",
    sqlite3.SQLITE_IOERR: "read or write",
    sqlite3.SQLITE_READONLY: "write",
    sqlite3.SQLITE_PERM: "open",
    sqlite3.SQLITE_AUTH: "open",
    sqlite3.SQLITE_CANTOPEN: "open",
}


class BankError(KernelGymError):
    """A bank that cannot be opened, or an operation that it cannot do."""


class DamagedBank(BankError):
    """A file that holds no bank or a damaged one; `what` is the message without the advice."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}; delete it or import an export"


def connect(path: Path | None, read_only: bool = False) -> sqlite3.Connection:
    """Open the bank at `path` (None: in memory), check it and bring it up to date."""
    with readable_errors(path):
        connection = _open(path, read_only)
        try:
            _check(connection, path)
            return _up_to_date(connection, path, read_only)
        except BaseException:
            connection.close()
            raise


@contextmanager
def readable_errors(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into a `BankError` of one line that names the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _in_words(error, str(path or "the bank in memory")) from error


def _in_words(error: sqlite3.DatabaseError, name: str) -> BankError:
    """Return an error with advice; only for a damaged file the advice is to delete it."""
    if isinstance(error, sqlite3.ProgrammingError):  # raised by Python, it has no code
        return BankError(f"{name} cannot be used: {error}")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without SQLite's extended part
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BankError(f"{name} was locked by another process for {BUSY_TIMEOUT:.0f} s; try again")
    if code in _DAMAGED:
        return DamagedBank(f"{name} is not usable as a memory bank: {error}")
    if code in _OUTSIDE:
        return BankError(f"cannot {_OUTSIDE[code]} {name}: {error}; nothing in it is lost: fix that and run again")
    return BankError(f"{name} is not usable as a memory bank: {error}; import an export into a new one")


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run the block in a transaction; `IMMEDIATE` takes the write lock at once, `DEFERRED` reads one state."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def migrate(connection: sqlite3.Connection, version: int = len(MIGRATIONS)) -> None:
    """Bring the tables up to `version`; do nothing if they are there."""
    with transaction(connection):
        done = connection.execute("PRAGMA user_version").fetchone()[0]
        for step in MIGRATIONS[done:version]:
            if callable(step):
                step(connection)
                continue
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {max(done, version)}")


def _open(path: Path | None, read_only: bool) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if read_only and not path.is_file():
        raise BankError(f"no memory bank at {path}")
    if not path.parent.is_dir():
        raise BankError(f"no folder {path.parent} to keep a memory bank in")
    # On a disk that cannot be written there is no write-ahead log either.
    immutable = read_only and not os.access(path.parent, os.W_OK)
    mode = "mode=ro&immutable=1" if immutable else "mode=ro" if read_only else "mode=rwc"
    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)
    if not read_only:
        _log_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # survives any crash of a process; a power cut costs the tail
    return connection


def _log_ahead(connection: sqlite3.Connection) -> None:
    # SQLite doesn't wait here by itself while another process does the same to a new file.
    give_up = monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > give_up:
                raise
            sleep(0.01)


def _check(connection: sqlite3.Connection, path: Path | None) -> None:
    result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise DamagedBank(f"{path} is damaged: {result.splitlines()[0]}")
    with transaction(connection, "DEFERRED"):  # one state of the file: another process may be creating it
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID and not empty:
        raise BankError(f"{path} is a SQLite file but not a memory bank")


def _up_to_date(connection: sqlite3.Connection, path: Path | None, read_only: bool) -> sqlite3.Connection:
    version, newest = connection.execute("PRAGMA user_version").fetchone()[0], len(MIGRATIONS)
    if version > newest:
        raise BankError(f"{path} was written by a newer kernel_gym (tables {version}, known {newest}); update it")
    if version == 0 and read_only:
        raise DamagedBank(f"{path} is empty: there is no memory bank in it")
    if version < newest and read_only:
        return _copy_up_to_date(connection)
    if version < newest:
        migrate(connection)
    return connection


def _copy_up_to_date(old: sqlite3.Connection) -> sqlite3.Connection:
    """Return an up-to-date copy in memory of an older file that may not be changed."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    old.backup(copy)
    old.close()
    migrate(copy)
    copy.execute("PRAGMA query_only = ON")
    return copy
