"""The value sets of one kernel, drawn on threads of their own while the compiler and the device work.

What a set holds depends on the secret, the task and the kernel's text alone, so it is the same whenever it is drawn.
The sets of the checks are drawn from the moment that the compiler starts. That of the timing sizes, which takes longer,
is drawn once the kernel is right at the public sizes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.hidden_sizes import aligned_case, edge_cases, hidden_cases
from kernel_gym.verifier.reference import ValueSet
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.value_sets import References
from kernel_gym.verifier.values import Array, Kind

SMOKE: tuple[Kind, ...] = ("normal",)
PUBLIC: tuple[Kind, ...] = ("normal", "stress")
HIDDEN: tuple[Kind, ...] = ("normal", "quiet", "integers", "stress", "structured")
#: Most sets that wait for the device, and most bytes of their tensors together.
AHEAD, AHEAD_BYTES = 32, 32 << 20


class KernelValues:
    """The value sets that one kernel meets for one task. Use it as a context manager: leaving it ends the drawing.

    Args:
        references: Draws the sets.
        task: The task.
        kernel: The kernel.
    """

    def __init__(self, references: References, task: Task, kernel: Kernel) -> None:
        self.references, self.task, self._kernel = references, task, kernel
        self._sets = schedule(references, task, kernel)
        self._checks, self._timing = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._coming: deque[Future[ValueSet | None]] = deque()
        self._timed: Future[ValueSet] | None = None
        self._inputs: Future[tuple[Array, ...]] = Future()

    def start(self) -> None:
        """Draw sets of the checks ahead, as many as may wait."""
        nbytes = self.task.instance(self.task.public).signature.nbytes
        while len(self._coming) < max(1, min(AHEAD, AHEAD_BYTES // max(1, nbytes))):
            self._coming.append(self._checks.submit(next, self._sets, None))

    def checks(self) -> Iterator[ValueSet]:
        """Yield the sets that the kernel is checked on, in order."""
        self.start()
        while (values := self._coming.popleft().result()) is not None:
            self._coming.append(self._checks.submit(next, self._sets, None))
            yield values

    def start_timing(self) -> Future[ValueSet]:
        """Draw the set of the timing sizes ahead, and return the future set."""
        if self._timed is None:
            draw, task = self.references.draw, self.task
            self._timed = self._timing.submit(draw, task, task.timing, "mixed", "timed", self._kernel, self._announce)
        return self._timed

    def timing_inputs(self) -> tuple[Array, ...]:
        """Return the inputs of the timing sizes as soon as they are drawn; rarely the set has milder ones."""
        drawn = self.start_timing()
        either: tuple[Future[Any], ...] = (drawn, self._inputs)
        wait(either, return_when=FIRST_COMPLETED)
        return drawn.result().values if drawn.done() else self._inputs.result()

    def timing(self) -> ValueSet:
        """Return the set of the timing sizes."""
        return self.start_timing().result()

    def _announce(self, inputs: tuple[Array, ...]) -> None:
        if not self._inputs.done():
            self._inputs.set_result(inputs)

    def close(self) -> None:
        """Draw nothing more; what is being drawn is not waited for."""
        for pool in (self._checks, self._timing):
            pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> KernelValues:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def schedule(references: References, task: Task, kernel: Kernel) -> Iterator[ValueSet]:
    """Yield the value sets that a kernel is checked on, in order."""
    for case, kind, slot in _slots(task, references.seeds(kernel, task)):
        yield references.draw(task, case, kind, slot, kernel)


def _slots(task: Task, seeds: Seeds) -> Iterator[tuple[Case, Kind, str]]:
    """Yield case, kind and name of each set. Hidden sizes are drawn when they are needed: many kernels fail before."""
    yield from ((task.public, kind, f"smoke{i}") for i, kind in enumerate(SMOKE))
    yield from ((task.public, kind, f"public{i}") for i, kind in enumerate(PUBLIC))
    for case in hidden_cases(task, seeds):
        yield from ((case, kind, f"hidden{i}") for i, kind in enumerate(HIDDEN))
    aligned = aligned_case(task, seeds)
    if aligned is not None:
        yield from ((aligned, kind, f"aligned{i}") for i, kind in enumerate(SMOKE))
    for case in edge_cases(task, seeds):
        yield from ((case, kind, f"edge{i}") for i, kind in enumerate(SMOKE))
