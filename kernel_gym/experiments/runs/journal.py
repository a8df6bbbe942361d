"""The journal of a run: one line an attempt, appended and synced, replayed when the run is started again.

A run is a pure function of its configuration, so resuming is running it again: as long as the journal has lines, each
new record must equal the one that stands there (verdicts come from the journal, so this is fast); from then on lines
are appended. A record that differs means that code or settings changed under the run; going on would mix two curves.
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

#: Seconds to wait for a process that was stopped a moment ago and still holds the journal.
PATIENCE = 10.0


class Drift(KernelGymError):
    """A recorded attempt that came out differently when it was made again; `what` says which and how."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path}: {what}. The run is left as it was: go on with what it was made with (provenance.json), or choose "
            "another --out"
        )
        self.what = what


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Verdict(_Strict):
    """What those who read journals ask of a verdict; the rest is what its outcome has."""

    outcome: str
    feasible: bool
    compiled: bool | None
    latency_us: float | None


class _Attempt(_Strict):
    """What every record has."""

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
    """Of a run that drafts alone, the attempts of each operator's first episode, which ends with a feasible kernel.

    Its operator is dealt out again while there is budget left, with its own solution in memory: that says nothing about
    drafting. Episodes of one operator may overlap; an attempt of a later one is then behind the first one's.
    """
    made, solved, kept = Counter[str](), set[str](), []
    for record in records:
        task = record["task"]
        if task not in solved and record["index"] == made[task]:
            kept.append(record)
            made[task] += 1
            if record["verdict"]["feasible"]:
                solved.add(task)
    return kept


class Journal:
    """`results.jsonl` of a run folder; one process at a time writes it.

    If it is not `synced`, a crash of the machine may cost its last lines.
    """

    def __init__(self, path: Path, synced: bool = True) -> None:
        self.path, self._synced = path, synced
        self._file = path.open("a", encoding="utf-8")
        self._seen = 0
        try:
            _claim(self._file, path)
            _cut_torn_line(path)
            self.records: list[Record] = self.read(path)
        except KernelGymError:
            self._file.close()
            raise

    @staticmethod
    def read(path: Path) -> list[Record]:
        """The records of a journal, as far as its lines are whole; somebody may be writing it."""
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        return [_parsed(line, f"{path} is not a journal: line {number}") for number, line in enumerate(lines, 1)]

    @property
    def replaying(self) -> bool:
        """True while there are recorded lines that have not been met again."""
        return self._seen < len(self.records)

    def write(self, record: Record) -> None:
        """Append a record, or hold it against the line that stands in its place."""
        plain: Record = json.loads(json.dumps(record))
        if self.replaying:
            self._compare(plain, self.records[self._seen])
        else:
            self.records.append(plain)
            self._file.write(json.dumps(plain, sort_keys=True) + "\n")
            self._file.flush()
            if self._synced:
                os.fsync(self._file.fileno())
        self._seen += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _compare(self, new: Record, old: Record) -> None:
        differing = [
            key for key in sorted(new.keys() | old.keys()) if _timeless(new.get(key)) != _timeless(old.get(key))
        ]
        if differing:
            which = f"attempt {self._seen} came out differently than recorded ({', '.join(differing)})"
            raise Drift(self.path, f"{which}: code, compiler or settings changed since")


def _parsed(line: bytes, where: str) -> Record:
    """The record that a line holds, whole and of the right types."""
    try:
        record: Record = json.loads(line)
        _Attempt.model_validate(record)
        from_json(record["verdict"])
    except (ValueError, KeyError, TypeError) as error:
        raise KernelGymError(
            f"{where} is no record of an attempt ({_in_words(error)}); delete it and all lines after it, and run the "
            "command that made the run again: they are made anew"
        ) from error
    return record


def _in_words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    return f"{type(error).__name__}: {error}"


def _timeless(value: Any) -> Any:
    """A value without the wall-clock times in it, which differ from run to run."""
    return {key: part for key, part in value.items() if key != "seconds"} if isinstance(value, dict) else value


def _claim(file: IO[str], path: Path) -> None:
    """Keep other processes from writing the journal; the system lets go of it when this one ends, however it does."""
    give_up = monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if monotonic() > give_up:
                raise KernelGymError(f"another process is at work on {path.parent}: stop it or wait for it") from error
            sleep(0.1)


def _cut_torn_line(path: Path) -> None:
    """Cut off a last line that a crash tore."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
