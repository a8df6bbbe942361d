"""Compare latencies with two references: the oracle's kernel, and the floor set by the device's rates and launch.

Both are measured when a task is first solved. The oracle's latency is kept in the verdict cache under the task and the
device, so later runs do not even write its kernel. It does not count as an attempt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import Any, Protocol

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.cache import VerdictCache, key_of


class KernelVerifier(Protocol):
    """A verifier with a device."""

    @property
    def device(self) -> Any:
        """The device."""

    def verify(self, kernel: Any, task: Task) -> Any:
        """Return the verdict of a kernel."""


class ReferenceLatencies:
    """Best latencies of a run as fractions of the references. A task without an oracle has the floor alone.

    `measured` has the references of every solved task, in microseconds.
    """

    def __init__(self, verifier: KernelVerifier) -> None:
        self._verifier = verifier
        self.measured: dict[str, dict[str, float]] = {}
        self._categories: dict[str, list[str]] = defaultdict(list)
        self._best: dict[str, float] = {}

    def add(self, task_id: str, category: str, latency_us: float) -> dict[str, float]:
        """Add a latency; return the medians over the solved tasks of the run and of the category."""
        if task_id not in self.measured:
            self.measured[task_id] = self._measure(task_id)
            self._categories[category].append(task_id)
        self._best[task_id] = min(latency_us, self._best.get(task_id, latency_us))
        return self._medians("speedup", self.measured) | self._medians(
            f"category/{category}", self._categories[category]
        )

    def _medians(self, scope: str, task_ids: Iterable[str]) -> dict[str, float]:
        figures = {}
        for name in ("oracle", "floor"):
            shares = [self.measured[task][name] / self._best[task] for task in task_ids if name in self.measured[task]]
            if shares:
                figures[f"{scope}/{name}"] = median(shares)
        return figures

    def _measure(self, task_id: str) -> dict[str, float]:
        try:
            task = suites.find_task(task_id)
        except KernelGymError:  # a task that was passed as an object
            return {}
        latency = oracle_us(task, self._verifier)
        return {"floor": floor_us(task, self._verifier.device)} | ({} if latency is None else {"oracle": latency})


def floor_us(task: Task, device: Any) -> float:
    """Return the microseconds that a kernel of a task needs at least at the timing sizes, for comparison.

    It is the device's roofline where the device has one: a launch, and the tensors or the reference's multiply-adds at
    the rates that the best number of cores reaches. A kernel can be faster only by computing or reading less than the
    reference. The verifier's own floor, below which a latency is cheating, does not depend on either.
    """
    instance = task.instance(task.timing)
    signature, floor = instance.signature, float(device.floor_us(instance.signature))
    if hasattr(device, "roofline_us"):
        ways: dict[str, Any] = {"nonlinear": instance.nonlinear()}
        if any(spec.domain.kind == "index" for spec in signature.inputs):
            ways["whole"] = _read_whole(task)
        return max(floor, float(device.roofline_us(signature, instance.work(), **ways)))
    if hasattr(device, "compute_us"):
        return max(floor, float(device.compute_us(signature, instance.work())))
    return floor


def _read_whole(task: Task) -> frozenset[int]:
    """Return the positions of the inputs that a kernel has to read whole, of a task with indices among its inputs."""
    graph = task.instance(task.public).graph()
    arguments = [item.name for item in graph.inputs if item.is_argument and item.tensor]
    names = {item.label: item.name for item in graph.inputs}
    order = [*arguments, *(names.get(label, "") for label in graph.state)]
    whole = graph.read_whole()
    return frozenset(place for place, name in enumerate(order) if name in whole)


def oracle_us(task: Task, verifier: KernelVerifier, cache: VerdictCache | None = None) -> float | None:
    """Return the latency of the fastest kernel that the apprentice can write; None if it can write none.

    Args:
        task: The task.
        verifier: Judges the kernel, unless the cache knows the latency already.
        cache: Where the latency is kept; None: in the verifier's cache, if it has one.
    """
    from kernel_gym.authors.apprentice import Unsupported, oracle

    cache = cache or getattr(verifier, "cache", None)
    key = _oracle_key(task, verifier) if cache else ""
    verdict = cache.get(key) if cache else None
    if verdict is None:
        try:
            verdict = verifier.verify(oracle(task, verifier.device.language), task)
        except Unsupported:
            return None
        if cache:
            cache.put(key, verdict)
    latency: float | None = verdict.latency_us
    return latency


def _oracle_key(task: Task, verifier: Any) -> str:
    """Return the oracle's key in the verdict cache, which needs no kernel: who writes it, for what, and who judges."""
    from kernel_gym.authors.apprentice import Apprentice

    author = Apprentice("oracle", verifier.device.language).identity()
    return key_of("oracle", author, task.digest, verifier.device.identity(), verifier.policy)
