"""How long the code of a bundle may take that is not counted in instructions: its Python and its tiling function."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from kernel_gym.tasks.task import Task

#: Seconds of all calls of one verdict: so many for so many bytes of the task's tensors or operations of its reference,
#: at least once and at most so often.
SECONDS, BYTES, WORK, MOST_LIMITS = 300.0, 256 << 20, 1 << 32, 4


class TimeLeft:
    """The seconds of wall clock that are left to a bundle.

    Args:
        seconds: How many it has.
        what: What has to end within them, as messages name it.
        outer: What these seconds are a part of.
    """

    def __init__(self, seconds: float, what: str, outer: TimeLeft | None = None) -> None:
        self._seconds, self._left, self._what, self._outer = seconds, seconds, what, outer

    @property
    def seconds(self) -> float:
        """How many are left, here and outside."""
        return min(self._left, self._outer.seconds) if self._outer else self._left

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Count the time of a block."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._take(time.monotonic() - began)

    def why(self) -> str:
        """Return which limit was reached."""
        if self._outer and self._outer.seconds < self._left:
            return self._outer.why()
        return f"{self._what} took longer than {self._seconds:.0f} s"

    def _take(self, seconds: float) -> None:
        self._left = max(0.0, self._left - seconds)
        if self._outer:
            self._outer._take(seconds)


def of_verdict(task: Task) -> TimeLeft:
    """Return the time of all calls of a verdict on a task; a larger task has more."""
    timing = task.instance(task.timing)
    limits = ceil(max(timing.signature.nbytes / BYTES, timing.work() / WORK))
    return TimeLeft(SECONDS * max(1, min(limits, MOST_LIMITS)), "the Python and the tiling functions of all calls")
