"""Measure the latencies of the fastest and the slowest kernel that the apprentice can write for a task.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. If that takes longer than
a device allows, it is the fastest one on a single core. On a GPU the module under torch stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context

from kernel_gym import plugins
from kernel_gym.authors.apprentice import Unsupported, fluent, lower, naive, oracle
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.errors import TaskError
from kernel_gym.experiments.runs.reference_latency import floor_us
from kernel_gym.kernel import Kernel
from kernel_gym.suites.headroom import LAUNCHES, SPREAD, exceptions
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Policy, Verdict
from kernel_gym.verifier import Verifier

#: The device whose tasks have to have headroom.
SIMULATOR = "ascend-sim"


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
    device: str = SIMULATOR
    #: The module under torch on the same GPU, as torch comes: convolutions may use TF32.
    torch_us: float | None = None
    #: The same without TF32, at the precision that kernels are compared at.
    torch_float32_us: float | None = None
    #: The best kernel that the apprentice writes, whose launches `launch_us` are; None if it was not judged.
    own_us: float | None = None

    @property
    def over_floor(self) -> float | None:
        """The oracle's latency / the physical floor."""
        return self.fast_us / self.floor_us if self.fast_us and self.floor_us else None

    @property
    def over_torch(self) -> float | None:
        """The oracle's latency / torch's."""
        return self.fast_us / self.torch_us if self.fast_us and self.torch_us else None

    @property
    def over_torch_float32(self) -> float | None:
        """The oracle's latency / torch's without TF32."""
        return self.fast_us / self.torch_float32_us if self.fast_us and self.torch_float32_us else None

    @property
    def spread(self) -> float | None:
        """The slowest kernel's latency / the fastest one's."""
        return self.slow_us / self.fast_us if self.slow_us and self.fast_us else None

    @property
    def launches(self) -> float | None:
        """The latency of the apprentice's best kernel / the cost of one of its launches."""
        return self.own_us / self.launch_us if self.own_us and self.launch_us else None

    def lacking(self) -> dict[str, str]:
        """Return what this task falls short of, by the name of the requirement."""
        missing = {} if self.oracle == "feasible" else {"oracle": f"no oracle: {self.feedback}"}
        if self.device != SIMULATOR:
            return missing
        if self.spread is not None and self.spread < SPREAD:
            missing["spread"] = f"the slowest kernel takes only {self.spread:.2f} times as long"
        if self.over_floor is not None and self.over_floor < 1:
            missing["floor"] = f"the floor is no bound: the oracle takes only {self.over_floor:.2f} times as long"
        if self.launches is not None and self.launches < LAUNCHES:
            missing["launch"] = f"the apprentice's best kernel takes only {self.launches:.1f} times what a launch costs"
        return missing

    def shortfalls(self) -> list[str]:
        """Return what this task falls short of, listed exceptions aside."""
        return [text for requirement, text in self.lacking().items() if requirement not in exceptions(self.task)]


def measure(task: Task, verifier: Verifier, *, quick: bool = False) -> Margin:
    """Verify the kernels of a task and return their latencies; `quick` has the oracle's alone."""
    device = verifier.device
    margin = Margin(task.id, task.suite, task.category, "feasible", device=device.name)
    try:
        kernel = oracle(task, device.language)
        fast = verifier.verify(kernel, task)
    except Unsupported as error:
        return replace(margin, oracle="unsupported", feedback=str(error))
    if not isinstance(fast, Feasible):
        return replace(margin, oracle=_end(fast), feedback=fast.feedback)
    margin = replace(margin, fast_us=fast.latency_us, floor_us=floor_us(task, device))
    if device.language == "cuda":
        margin = _beside_torch(margin, task)
    best = fluent(task, device.language)
    own = fast if best == kernel else None if quick else verifier.verify(best, task)
    if isinstance(own, Feasible):
        margin = replace(margin, own_us=own.latency_us, launch_us=_launch_us(own))
    if quick:
        return margin
    name, slow = _slowest(task, verifier)
    return replace(margin, naive=name, slow_us=slow.latency_us)


def measure_all(
    tasks: Sequence[Task], policy: Policy, *, quick: bool = False, workers: int = 1, device: str = SIMULATOR
) -> Iterator[Margin]:
    """Yield the measurements of tasks as they are done; several `workers` are processes with a device each.

    An error of the author's does not end the others: it is the `feedback` of its task.
    """
    if workers == 1:
        with _verifier(device, policy) as verifier:
            yield from (measure(task, verifier, quick=quick) for task in tasks)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _one_thread) as pool:
        by_task = {pool.submit(_measure_apart, task, policy, quick, device): task for task in tasks}
        for result in as_completed(by_task):
            task, error = by_task[result], result.exception()
            if error is None:
                yield result.result()
            else:
                words = f"{type(error).__name__}: {error}"
                yield Margin(task.id, task.suite, task.category, "error", feedback=words, device=device)


def _verifier(device: str, policy: Policy) -> Verifier:
    return Verifier(plugins.load("kernel_gym.devices", device)(), policy=policy)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _measure_apart(task: Task, policy: Policy, quick: bool, device: str) -> Margin:
    with _verifier(device, policy) as verifier:
        return measure(task, verifier, quick=quick)


def _launch_us(verdict: Feasible) -> float | None:
    """Return what one launch costs, where the device says so."""
    profile = verdict.profile
    return profile.waits["launch"] / profile.counts["launches"] if "launch" in profile.waits else None


def _beside_torch(margin: Margin, task: Task) -> Margin:
    from kernel_gym.experiments.analysis.torch_latency import torch_latencies_us

    try:
        usual, exact = torch_latencies_us(task) or (None, None)
    except TaskError as error:
        return replace(margin, feedback=str(error))
    return replace(margin, torch_us=usual, torch_float32_us=exact)


def _slowest(task: Task, verifier: Verifier) -> tuple[str, Verdict]:
    slow = verifier.verify(naive(task, verifier.device.language), task)
    if slow.feasible:
        return "naive", slow
    if verifier.device.language != "ascendc":
        return _end(slow), slow
    alone = write_kernel(lower(task), replace(BEST, cores=1), always_right(idioms()))
    slow = verifier.verify(Kernel(alone, trusted=True), task)
    return ("one core" if slow.feasible else _end(slow)), slow


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
