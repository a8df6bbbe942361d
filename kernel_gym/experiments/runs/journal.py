"""The journal of a run: one line per attempt, appended and synced, replayed when the run is resumed.

A run is a pure function of its configuration, so it is resumed by running it again. While the journal has lines, each
new record must equal the recorded one (verdicts come from the journal, so this is fast). After that, lines are
appended. A record that differs means that code or settings have changed; going on would mix two learning curves.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_gym.errors import KernelGymError
from kernel_gym.verdict import from_json

Record = dict[str, Any]

#: Seconds to wait for a process that was just stopped and still holds the journal.
PATIENCE = 10.0


class Drift(KernelGymError):
    """Raised if a replayed attempt differs from the recorded one; `what` says which and how."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path}: {what}. The run is left as it was: resume it with the code that made it (provenance.json), or "
            "choose another --out"
        )
        self.what = what


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Verdict(_Strict):
    """The fields that every verdict in a journal has; each outcome adds its own."""

    outcome: str
    feasible: bool
    compiled: bool | None
    latency_us: float | None


class _Attempt(_Strict):
    """The fields that every record has."""

    task: str
    stage: str
    index: int
    context: list[int]
    start: int | None
    api_pages: list[int]
    kernel: str
    reward: float
    produced: list[int]
    verdict: _Verdict


def first_episodes(records: Sequence[Record]) -> list[Record]:
    """Return the attempts of each task's first episode, for a run with stages=draft.

    An episode ends with a feasible kernel. While budget is left, the task is given out again with its own solution in
    memory, which says nothing about drafting. Episodes of one task may overlap; the attempts of a later episode then
    have lower indices than those of the first.
    """
    attempts, solved, kept = Counter[str](), set[str](), []
    for record in records:
        task = record["task"]
        if task not in solved and record["index"] == attempts[task]:
            kept.append(record)
            attempts[task] += 1
            if record["verdict"]["feasible"]:
                solved.add(task)
    return kept


class Journal:
    """The file `results.jsonl` of a run folder; one process at a time writes it.

    Args:
        path: The file; it is made if necessary.
        synced: Whether each line is synced to disk. If not, a crash of the machine may lose the last lines.

    Attributes:
        records: All records, read and written.

    Raises:
        KernelGymError: Another process holds the journal, or a line of it is no record.
    """

    def __init__(self, path: Path, synced: bool = True) -> None:
        self.path, self._synced = path, synced
        self._file = path.open("a", encoding="utf-8")
        self._written = 0
        try:
            _claim(self._file, path)
            _cut_incomplete_line(path)
            self.records: list[Record] = self.read(path)
            self._secret = next((s for old in self.records if (s := old["verdict"].get("secret"))), "")
        except KernelGymError:
            self._file.close()
            raise

    @staticmethod
    def read(path: Path) -> list[Record]:
        """Return the records of a journal.

        Args:
            path: The journal. Another process may be writing it: an incomplete last line is ignored.

        Returns:
            One record per attempt; empty if there is no journal.

        Raises:
            KernelGymError: A line is no record of an attempt.
        """
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        return [_parsed(line, f"{path} is not a journal: line {number}") for number, line in enumerate(lines, 1)]

    @property
    def replaying(self) -> bool:
        """Whether there are recorded attempts that have not been replayed yet."""
        return self._written < len(self.records)

    def write(self, record: Record) -> None:
        """Append a record or, while replaying, compare it with the recorded one.

        Args:
            record: The attempt as JSON data.

        Raises:
            Drift: The recorded attempt differs.
            KernelGymError: The verdict comes from another secret than those before it.
        """
        plain: Record = json.loads(json.dumps(record))
        if self.replaying:
            self._compare(plain, self.records[self._written])
        else:
            self._check_secret(plain)
            self.records.append(plain)
            self._file.write(json.dumps(plain, sort_keys=True) + "\n")
            self._file.flush()
            if self._synced:
                os.fsync(self._file.fileno())
        self._written += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check_secret(self, record: Record) -> None:
        """Raise if values and sizes were drawn from another secret than before: the run could not be repeated."""
        secret = record["verdict"].get("secret") or ""
        self._secret = self._secret or secret
        if secret and secret != self._secret:
            raise KernelGymError(
                f"{self.path} began with another secret: set KERNEL_GYM_SECRET to the one it began with, or choose "
                "another --out"
            )

    def _compare(self, new: Record, old: Record) -> None:
        differing = [key for key in sorted(new.keys() | old.keys()) if _comparable(key, new) != _comparable(key, old)]
        if differing:
            which = f"attempt {self._written} came out differently than recorded ({', '.join(differing)})"
            raise Drift(self.path, f"{which}: code, compiler or settings changed since")


def _parsed(line: bytes, where: str) -> Record:
    """Return the record in a line after checking its fields and types."""
    try:
        record: Record = json.loads(line)
        _Attempt.model_validate(record)
        from_json(record["verdict"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise KernelGymError(
            f"{where} is no record of an attempt ({_describe(error)}); delete it and all lines after it, and run the "
            "command that made the run again: it makes them again"
        ) from error
    return record


def _describe(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    return f"{type(error).__name__}: {error}"


def _comparable(key: str, record: Record) -> Any:
    """Return a field as it is compared: a verdict without its times, and with the fields that it had not always."""
    return from_json(record[key]) if key == "verdict" else record.get(key)


def _claim(file: IO[str], path: Path) -> None:
    """Lock the journal against other processes; the system releases the lock when this process ends."""
    give_up = monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if monotonic() > give_up:
                raise KernelGymError(f"another process is at work on {path.parent}: stop it or wait for it") from error
            sleep(0.1)


def _cut_incomplete_line(path: Path) -> None:
    """Cut off a last line that a crash left incomplete."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
