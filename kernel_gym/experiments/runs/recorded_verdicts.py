"""Repeat the verdicts of a journal when a run is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernel_gym.experiments.runs.journal import Record
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict, from_json


class RecordedVerdicts:
    """A verifier that returns the verdicts of a journal and verifies only other kernels, so that resuming is fast."""

    def __init__(self, records: list[Record], device_name: str, make: Callable[[], Any]) -> None:
        self.device_name = device_name
        self._recorded: dict[tuple[str, str], Verdict] = {
            (row["task"], row["kernel"]): from_json(row["verdict"]) for row in records
        }
        self._make = make
        self._verifier: Any = None

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Return the verdict of a kernel."""
        return self.verify_all([(kernel, task)])[0]

    def verify_all(self, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
        """Return verdicts in order; kernels that are not in the journal are verified in parallel."""
        keys = [(task.id, kernel.digest) for kernel, task in pairs]
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._recorded}
        fresh = dict(zip(new, self._verify_new(list(new.values())), strict=True))
        return [fresh[key] if key in fresh else self._recorded[key] for key in keys]

    @property
    def device(self) -> Any:
        """The verifier's device."""
        return self._real.device

    @property
    def _real(self) -> Any:
        """The real verifier, made when it is first needed: a run that is only replayed needs none."""
        if self._verifier is None:
            self._verifier = self._make()
        return self._verifier

    def _verify_new(self, pairs: list[tuple[Kernel, Task]]) -> list[Verdict]:
        return list(self._real.verify_all(pairs)) if pairs else []

    def close(self) -> None:
        """Close the real verifier if it was made."""
        if self._verifier is not None:
            self._verifier.close()
