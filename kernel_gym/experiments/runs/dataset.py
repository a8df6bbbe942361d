"""Export a run as a dataset: one self-contained row per attempt, for offline learning and fine-tuning.

A row has what the author was shown (context, API pages, start point and, for a model, the exact prompt), the kernel
that it wrote, the verdict and the reward. Rows need neither the bank nor this package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym import suites
from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.authors.model.author import nonce_of
from kernel_gym.config import RunConfig
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import KernelGymError, TaskError
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.replay_backup import ReplayBackup
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.kernel import Kernel
from kernel_gym.llm.transcript import Exchange, Transcript
from kernel_gym.memory.item import MemoryItem

#: The version of the row format.
FORMAT = 1

Row = dict[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """The content of a run folder, opened for reading."""

    name: str
    config: RunConfig
    records: list[Record]
    items: Mapping[int, MemoryItem]
    exchanges: Mapping[int, Exchange]

    @classmethod
    def open(cls, path: Path, name: str = "") -> RecordedRun:
        """Read a run, complete or not; it needs attempts and shared memory. The folder's name is the default name."""
        folder, config = RunFolder(path), load_config(path)
        records = Journal.read(folder.journal)
        if not records:
            raise KernelGymError(f"{path}: no attempt is on record")
        if config.env.memory == "fresh":
            raise KernelGymError(f"{path}: with memory=fresh the run kept no memories, so its contexts can't be shown")
        with folder.open_bank() as bank:
            items = {item.id: item for item in bank.items()}
        return cls(name or path.name, config, records, items, _exchanges(folder, config))

    def rows(self) -> Iterator[Row]:
        """Yield one row per attempt, in the order of the journal."""
        attempts: Counter[str] = Counter()
        for record in self.records:
            nonce = nonce_of(generator(self.config.seed, record["task"], attempts[record["task"]]))
            attempts[record["task"]] += 1
            yield self._row(record, self.exchanges.get(nonce))

    def _row(self, record: Record, exchange: Exchange | None) -> Row:
        start = None if record["start"] is None else self._item(record["start"])
        return {
            "format": FORMAT,
            "run": self.name,
            "agent": self.config.agent,
            "author": self.config.env.author,
            "seed": self.config.seed,
            "task": record["task"],
            "operator": _task_source(record["task"]),
            "stage": record["stage"],
            "attempt": record["index"],
            "context": [_shown(self._item(id)) for id in record["context"]],
            "api_pages": [_shown(self._item(id)) for id in record["api_pages"]],
            "start": None if start is None else _shown(start),
            "kernel": self._kernel(record, start, exchange),
            "verdict": {name: value for name, value in record["verdict"].items() if name != "seconds"},
            "reward": record["reward"],
            "prompt": exchange and exchange["request"]["messages"],
            "answer": exchange and exchange["reply"]["text"],
            "tokens_in": exchange and exchange["reply"]["tokens_in"],
            "tokens_out": exchange and exchange["reply"]["tokens_out"],
        }

    def _item(self, id: int) -> MemoryItem:
        try:
            return self.items[id]
        except KeyError:
            raise KernelGymError(
                f"{self.name}: its bank has no item {id}: the run is in progress or was changed"
            ) from None

    def _kernel(self, record: Record, start: MemoryItem | None, exchange: Exchange | None) -> str | None:
        """Return the source, from the bank or from the model's answer; None if the run kept neither."""
        candidates = [Kernel(item.code, item.language) for id in record["produced"] if (item := self.items.get(id))]
        candidates.append(Kernel(""))
        if exchange is not None:
            candidates.append(Kernel(kernel_source(exchange["reply"]["text"], start.code if start else "")))
        return next((kernel.source for kernel in candidates if kernel.digest == record["kernel"]), None)


def open_runs(folder: Path) -> list[RecordedRun]:
    """Read the run of a folder or, if it holds a comparison or a study, all runs below it that have begun.

    Args:
        folder: A run folder, or a folder with run folders below it.

    Returns:
        The runs; those below the folder are named by their path in it, for example `value/seed-0`.

    Raises:
        KernelGymError: There is no run, or a run has no attempts or kept no memories.
    """
    if not (folder / "config.yaml").exists():
        paths = sorted(file.parent for file in folder.rglob("config.yaml") if not ReplayBackup.has(file))
        runs = [RecordedRun.open(path, str(path.relative_to(folder))) for path in paths if RunFolder(path).begun]
        if runs:
            return runs
    return [RecordedRun.open(folder)]


def _exchanges(folder: RunFolder, config: RunConfig) -> dict[int, Exchange]:
    """Return the exchanges with the author by nonce; a replayed run names the transcript that it replayed."""
    path = Path(config.env.author_options.get("transcript", folder.transcript))
    if not path.exists():
        return {}
    return {exchange["request"]["nonce"]: exchange for exchange in Transcript(path, read_only=True)}


def _shown(item: MemoryItem) -> Row:
    """Return a memory as a row shows it."""
    verdict = None if item.verdict is None else {"outcome": item.verdict.outcome, "latency_us": item.verdict.latency_us}
    return {
        "id": item.id,
        "kind": item.kind.value,
        "title": item.title,
        "text": item.text,
        "code": item.code,
        "task": item.task,
        "verdict": verdict,
    }


@cache
def _task_source(task_id: str) -> str | None:
    """Return the source of a task's module; None if its file no longer exists."""
    try:
        return suites.find_task(task_id).source
    except TaskError:
        return None
