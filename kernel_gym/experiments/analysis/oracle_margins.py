"""The latencies of the best and the slowest kernel that the apprentice knows for a task.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. Where that would run past
what a device executes, it is the best one on a single core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gym.authors.apprentice import Unsupported, lower, naive, oracle
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.kernel import Kernel
from kernel_gym.suites.headroom import LAUNCHES, SPREAD, exceptions
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from kernel_gym.verifier import Verifier


@dataclass(frozen=True)
class Margin:
    """What was measured for one task: how each kernel ended, and microseconds."""

    task: str
    suite: str
    category: str
    oracle: str
    naive: str = ""
    fast_us: float | None = None
    slow_us: float | None = None
    launch_us: float | None = None
    feedback: str = ""

    @property
    def spread(self) -> float | None:
        """How many times as long the slowest kernel takes."""
        return self.slow_us / self.fast_us if self.slow_us and self.fast_us else None

    @property
    def launches(self) -> float | None:
        """The oracle's latency in units of what one launch costs."""
        return self.fast_us / self.launch_us if self.fast_us and self.launch_us else None

    def lacking(self) -> dict[str, str]:
        """What this task falls short of, by the name of the promise."""
        found = {} if self.oracle == "feasible" else {"oracle": f"no oracle: {self.feedback}"}
        if self.spread is not None and self.spread < SPREAD:
            found["spread"] = f"the slowest kernel takes only {self.spread:.2f} times as long"
        if self.launches is not None and self.launches < LAUNCHES:
            found["launch"] = f"the oracle takes only {self.launches:.1f} times what a launch costs"
        return found

    def shortfalls(self) -> list[str]:
        """What this task falls short of and is not listed as an exception for."""
        return [text for promise, text in self.lacking().items() if promise not in exceptions(self.task)]


def measure(task: Task, verifier: Verifier, *, quick: bool = False) -> Margin:
    """Judge the kernels of a task."""
    named = (task.id, task.suite, task.category)
    try:
        fast = verifier.verify(oracle(task), task)
    except Unsupported as error:
        return Margin(*named, "unsupported", feedback=str(error))
    if not isinstance(fast, Feasible):
        return Margin(*named, _end(fast), feedback=fast.feedback)
    launch = fast.profile.waits["launch"] / fast.profile.counts["launches"]
    if quick:
        return Margin(*named, "feasible", "", fast.latency_us, None, launch)
    name, slow = _slowest(task, verifier)
    return Margin(*named, "feasible", name, fast.latency_us, slow.latency_us, launch)


def _slowest(task: Task, verifier: Verifier) -> tuple[str, Verdict]:
    slow = verifier.verify(naive(task), task)
    if slow.feasible:
        return "naive", slow
    alone = write_kernel(lower(task), replace(BEST, cores=1), always_right(idioms()))
    slow = verifier.verify(Kernel(alone, trusted=True), task)
    return ("one core" if slow.feasible else _end(slow)), slow


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
