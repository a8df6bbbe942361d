"""The attempts of runs as data for the report's episode browser: contexts, kernels and verdicts, each text once.

The data is JSON, compressed and in base64, so that it is small and cannot contain markup. The page decompresses it with
`DecompressionStream` and writes texts as text, never as HTML: kernels are untrusted.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_gym.experiments.reports.task_matrix import run_name
from kernel_gym.experiments.runs.finished_run import FinishedRun, steps
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import MemoryItem

#: With more attempts than this, a report has those of the run in detail alone.
MOST_ATTEMPTS = 5_000


def shown_runs(runs: Sequence[FinishedRun], detailed: FinishedRun, choice: str) -> list[FinishedRun]:
    """Return the runs whose attempts are in the report.

    Args:
        runs: All runs.
        detailed: The run that is shown in detail.
        choice: `all`, `one` (the detailed run), `none`, or `auto`: all unless they have too many attempts.

    Returns:
        The runs.
    """
    if choice == "none":
        return []
    few = sum(len(run.records) for run in runs) <= MOST_ATTEMPTS
    return list(runs) if choice == "all" or (choice == "auto" and few) else [detailed]


def packed(runs: Sequence[FinishedRun]) -> str:
    """Return the attempts of runs, compressed, in base64."""
    data = json.dumps(_Collection().of(runs), separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(data.encode(errors="replace"), mtime=0)).decode()


class _Collection:
    """Collects attempts; equal texts and equal memories of different runs are kept once."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._memories: dict[tuple[Any, ...], int] = {}

    def of(self, runs: Sequence[FinishedRun]) -> dict[str, Any]:
        """Return the data: distinct texts and memories, and the attempts, which refer to them by index."""
        episodes: dict[str, dict[str, Any]] = {run_name(run): {} for run in runs}
        for run in runs:
            memory = _RunMemory(run)
            for task, history in run.histories().items():
                graded = zip(history, steps(history), strict=True)
                episodes[run_name(run)][task] = [self._attempt(record, grade, memory) for record, grade in graded]
        return {"texts": list(self._texts), "memories": list(self._memories), "runs": episodes}

    def _attempt(self, record: Record, grade: int, memory: _RunMemory) -> dict[str, Any]:
        verdict = record["verdict"]
        source = memory.source(record["kernel"])
        return {
            "stage": record["stage"],
            "grade": grade,
            "reward": round(record["reward"], 4),
            "outcome": verdict["outcome"],
            "latency": verdict["latency_us"],
            "feedback": self._text(verdict.get("feedback", "")),
            "context": [self._memory(memory.item(id)) for id in record["context"]],
            "pages": [self._memory(memory.item(id)) for id in record["api_pages"]],
            "start": None if record["start"] is None else self._memory(memory.item(record["start"])),
            "kernel": None if source is None else self._text(source),
        }

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _memory(self, item: MemoryItem | None) -> int | None:
        """Return the index of a memory: its kind, title, text and code. A trace's text ends with its code."""
        if item is None:
            return None
        head = item.text.removesuffix(item.code) if item.code else item.text
        code = self._text(item.code) if item.code else None
        parts = [self._text(head)] + ([code] if code is not None and head != item.text else [])
        return self._memories.setdefault((item.kind.value, item.title, tuple(parts), code), len(self._memories))


class _RunMemory:
    """The memories and kernels that a run kept."""

    def __init__(self, run: FinishedRun) -> None:
        self._folder = run.folder
        self._items: Mapping[int, MemoryItem] = {}
        if run.folder.bank.exists():
            with run.folder.open_bank() as bank:
                self._items = {item.id: item for item in bank.items()}
        traces = (item for item in self._items.values() if item.code)
        self._sources = {Kernel(item.code, item.language).digest: item.code for item in traces}
        if run.config.env.memory == "fresh":  # ids above those of the seed knowledge mean another item in each episode
            self._items = {id: item for id, item in self._items.items() if item.born == 0}

    def item(self, id: int) -> MemoryItem | None:
        """Return a memory; None if the run did not keep it."""
        return self._items.get(id)

    def source(self, digest: str) -> str | None:
        """Return the text of a kernel; None if the run did not keep it."""
        if digest not in self._sources and (file := self._folder.kernel(digest)).exists():
            self._sources[digest] = file.read_text(errors="replace")
        return self._sources.get(digest)
