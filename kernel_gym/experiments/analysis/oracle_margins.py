"""Measure the latencies of the fastest and the slowest kernel that the apprentice can write for a task.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. If that takes longer than
a device allows, it is the fastest one on a single core.
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
    if quick:
        return Margin(*labels, "feasible", "", fast.latency_us, None, launch)
    name, slow = _slowest(task, verifier)
    return Margin(*labels, "feasible", name, fast.latency_us, slow.latency_us, launch)


def _slowest(task: Task, verifier: Verifier) -> tuple[str, Verdict]:
    slow = verifier.verify(naive(task), task)
    if slow.feasible:
        return "naive", slow
    alone = write_kernel(lower(task), replace(BEST, cores=1), always_right(idioms()))
    slow = verifier.verify(Kernel(alone, trusted=True), task)
    return ("one core" if slow.feasible else _end(slow)), slow


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
