"""Measure the latencies of the fastest and the slowest kernel that the apprentice can write for a task.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. If that takes longer than
a device allows, it is the fastest one on a single core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context

from kernel_gym.authors.apprentice import Unsupported, lower, naive, oracle
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.experiments.runs.reference_latency import floor_us
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.suites.headroom import LAUNCHES, SPREAD, exceptions
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Policy, Verdict
from kernel_gym.verifier import Verifier


@dataclass(frozen=True)
class Margin:
    """The measurements of one task: the outcome of each kernel, and latencies in microseconds."""

    task: str
    suite: str
    category: str
    oracle: str
    naive: str = ""
    fast_us: float | None = None
    slow_us: float | None = None
    launch_us: float | None = None
    feedback: str = ""
    #: What the device's highest rates and its launch allow at best.
    floor_us: float | None = None

    @property
    def over_floor(self) -> float | None:
        """The oracle's latency / the physical floor."""
        return self.fast_us / self.floor_us if self.fast_us and self.floor_us else None

    @property
    def spread(self) -> float | None:
        """The slowest kernel's latency / the fastest one's."""
        return self.slow_us / self.fast_us if self.slow_us and self.fast_us else None

    @property
    def launches(self) -> float | None:
        """The oracle's latency / the cost of one launch."""
        return self.fast_us / self.launch_us if self.fast_us and self.launch_us else None

    def lacking(self) -> dict[str, str]:
        """Return what this task falls short of, by the name of the requirement."""
        missing = {} if self.oracle == "feasible" else {"oracle": f"no oracle: {self.feedback}"}
        if self.spread is not None and self.spread < SPREAD:
            missing["spread"] = f"the slowest kernel takes only {self.spread:.2f} times as long"
        if self.launches is not None and self.launches < LAUNCHES:
            missing["launch"] = f"the oracle takes only {self.launches:.1f} times what a launch costs"
        return missing

    def shortfalls(self) -> list[str]:
        """Return what this task falls short of, listed exceptions aside."""
        return [text for requirement, text in self.lacking().items() if requirement not in exceptions(self.task)]


def measure(task: Task, verifier: Verifier, *, quick: bool = False) -> Margin:
    """Verify the kernels of a task and return their latencies; `quick` leaves the slowest out."""
    labels = (task.id, task.suite, task.category)
    try:
        fast = verifier.verify(oracle(task), task)
    except Unsupported as error:
        return Margin(*labels, "unsupported", feedback=str(error))
    if not isinstance(fast, Feasible):
        return Margin(*labels, _end(fast), feedback=fast.feedback)
    launch = fast.profile.waits["launch"] / fast.profile.counts["launches"]
    floor = floor_us(task, verifier.device)
    if quick:
        return Margin(*labels, "feasible", "", fast.latency_us, None, launch, floor_us=floor)
    name, slow = _slowest(task, verifier)
    return Margin(*labels, "feasible", name, fast.latency_us, slow.latency_us, launch, floor_us=floor)


def measure_all(tasks: Sequence[Task], policy: Policy, *, quick: bool = False, workers: int = 1) -> Iterator[Margin]:
    """Yield the measurements of tasks as they are done; several `workers` are processes with a device each.

    An error of the author's does not end the others: it is the `feedback` of its task.
    """
    if workers == 1:
        with Verifier(AscendSim(), policy=policy) as verifier:
            yield from (measure(task, verifier, quick=quick) for task in tasks)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _one_thread) as pool:
        by_task = {pool.submit(_measure_apart, task, policy, quick): task for task in tasks}
        for result in as_completed(by_task):
            task, error = by_task[result], result.exception()
            if error is None:
                yield result.result()
            else:
                yield Margin(task.id, task.suite, task.category, "error", feedback=f"{type(error).__name__}: {error}")


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _measure_apart(task: Task, policy: Policy, quick: bool) -> Margin:
    with Verifier(AscendSim(), policy=policy) as verifier:
        return measure(task, verifier, quick=quick)


def _slowest(task: Task, verifier: Verifier) -> tuple[str, Verdict]:
    slow = verifier.verify(naive(task), task)
    if slow.feasible:
        return "naive", slow
    alone = write_kernel(lower(task), replace(BEST, cores=1), always_right(idioms()))
    slow = verifier.verify(Kernel(alone, trusted=True), task)
    return ("one core" if slow.feasible else _end(slow)), slow


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
