"""How fast an operator could be: the oracle's latency, and the floor that the device's memory and launch set.

Both are obtained when an operator is first solved; the oracle's verdict is cached like any other and counts for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any, Protocol

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.tasks.task import Task


class Judge(Protocol):
    """Who judges, and on what."""

    @property
    def device(self) -> Any:
        """The device."""

    def verify(self, kernel: Any, task: Task) -> Any:
        """A verdict."""


class Yardsticks:
    """Best latencies of a run held against what is possible. Operators without an oracle are left out of its figure."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._possible: dict[str, dict[str, float]] = {}
        self._categories: dict[str, list[str]] = defaultdict(list)
        self._best: dict[str, float] = {}

    def take(self, task: str, category: str, latency_us: float) -> dict[str, float]:
        """Note a latency; the figures of the run and of a category, medians over their solved operators."""
        if task not in self._possible:
            self._possible[task] = self._measure(task)
            self._categories[category].append(task)
        self._best[task] = min(latency_us, self._best.get(task, latency_us))
        return self._medians("speedup", self._possible) | self._medians(
            f"category/{category}", self._categories[category]
        )

    def _medians(self, scope: str, tasks: Iterable[str]) -> dict[str, float]:
        figures = {}
        for name in ("oracle", "floor"):
            shares = [self._possible[task][name] / self._best[task] for task in tasks if name in self._possible[task]]
            if shares:
                figures[f"{scope}/{name}"] = median(shares)
        return figures

    def _measure(self, name: str) -> dict[str, float]:
        try:
            task = suites.find_task(name)
        except KernelGymError:  # a task that was given as an object
            return {}
        found = {"floor": self._judge.device.floor_us(task.instance(task.timing).signature)}
        latency = self._oracle(task)
        return found if latency is None else found | {"oracle": latency}

    def _oracle(self, task: Task) -> float | None:
        from kernel_gym.authors.apprentice import Unsupported, oracle

        try:
            kernel = oracle(task, self._judge.device.language)
        except Unsupported:
            return None
        latency: float | None = self._judge.verify(kernel, task).latency_us
        return latency
