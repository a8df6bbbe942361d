"""Verdicts that a journal holds already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernel_gym.experiments.runs.journal import Record
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict, from_json


class RecordedVerdicts:
    """Answers with the verdicts that a journal holds and asks the verifier about the rest: resuming costs little."""

    def __init__(self, records: list[Record], device_name: str, make: Callable[[], Any]) -> None:
        self.device_name = device_name
        self._known: dict[tuple[str, str], Verdict] = {
            (row["task"], row["kernel"]): from_json(row["verdict"]) for row in records
        }
        self._make = make
        self._verifier: Any = None

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """One verdict."""
        return self.verify_all([(kernel, task)])[0]

    def verify_all(self, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
        """Verdicts in order; what is not on record is judged side by side."""
        keys = [(task.id, kernel.digest) for kernel, task in pairs]
        unknown = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._known}
        fresh = dict(zip(unknown, self._judge(list(unknown.values())), strict=True))
        return [fresh[key] if key in fresh else self._known[key] for key in keys]

    @property
    def device(self) -> Any:
        """The verifier's device."""
        return self._real.device

    @property
    def _real(self) -> Any:
        """The verifier, made when it is first needed: a run that is only replayed needs none."""
        if self._verifier is None:
            self._verifier = self._make()
        return self._verifier

    def _judge(self, pairs: list[tuple[Kernel, Task]]) -> list[Verdict]:
        return list(self._real.verify_all(pairs)) if pairs else []

    def close(self) -> None:
        """Close the verifier if there is one."""
        if self._verifier is not None:
            self._verifier.close()
