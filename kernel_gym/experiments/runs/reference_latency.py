"""Compare latencies with two references: the oracle's kernel, and the floor set by the device's memory and launch.

Both are measured when a task is first solved. The oracle's verdict is cached like any other and counts as no attempt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any, Protocol

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.tasks.task import Task


class KernelVerifier(Protocol):
    """A verifier with a device."""

    @property
    def device(self) -> Any:
        """The device."""

    def verify(self, kernel: Any, task: Task) -> Any:
        """Return the verdict of a kernel."""


class ReferenceLatencies:
    """Best latencies of a run as fractions of the references. A task without an oracle has the floor alone."""

    def __init__(self, verifier: KernelVerifier) -> None:
        self._verifier = verifier
        self._references: dict[str, dict[str, float]] = {}
        self._categories: dict[str, list[str]] = defaultdict(list)
        self._best: dict[str, float] = {}

    def add(self, task_id: str, category: str, latency_us: float) -> dict[str, float]:
        """Add a latency; return the medians over the solved tasks of the run and of the category."""
        if task_id not in self._references:
            self._references[task_id] = self._measure(task_id)
            self._categories[category].append(task_id)
        self._best[task_id] = min(latency_us, self._best.get(task_id, latency_us))
        return self._medians("speedup", self._references) | self._medians(
            f"category/{category}", self._categories[category]
        )

    def _medians(self, scope: str, task_ids: Iterable[str]) -> dict[str, float]:
        figures = {}
        for name in ("oracle", "floor"):
            shares = [
                self._references[task][name] / self._best[task] for task in task_ids if name in self._references[task]
            ]
            if shares:
                figures[f"{scope}/{name}"] = median(shares)
        return figures

    def _measure(self, task_id: str) -> dict[str, float]:
        try:
            task = suites.find_task(task_id)
        except KernelGymError:  # a task that was passed as an object
            return {}
        references = {"floor": self._verifier.device.floor_us(task.instance(task.timing).signature)}
        latency = self._oracle(task)
        return references if latency is None else references | {"oracle": latency}

    def _oracle(self, task: Task) -> float | None:
        from kernel_gym.authors.apprentice import Unsupported, oracle

        try:
            kernel = oracle(task, self._verifier.device.language)
        except Unsupported:
            return None
        latency: float | None = self._verifier.verify(kernel, task).latency_us
        return latency
