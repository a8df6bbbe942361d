"""The latency gate of simulated devices: the kernel computes at the timing sizes, and every output is compared.

The run that is timed is the run that is compared. It meets values that the author cannot know, normal ones and stress
values mixed by rows, so a kernel that does less or other work at the timing sizes is wrong there. Where an output
depends on several rows, stress values may hide other rows. There a second run meets normal values alone. Where
exponentials overflow in neither run, another one meets values on which they do. The slowest run counts.

Kernels that are too slow to end within the device's budget are compared as far as they got, and in full at smaller
sizes, from which their latency is extrapolated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from kernel_gym.errors import TaskError
from kernel_gym.hardware.device import Build, Device, Inputs, Run
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.verdict import Cheated, Incorrect, Profile
from kernel_gym.verifier import growth, rules
from kernel_gym.verifier.correctness import POISON, STOPPED, Checked, Patience, failed, refuse
from kernel_gym.verifier.expected import wrong_elements
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.patterns import is_poison
from kernel_gym.verifier.reference import ValueSet, rows_are_independent
from kernel_gym.verifier.value_sets import TIMED
from kernel_gym.verifier.values import Array

_BOOK = rules.load("latency")
#: Size ratio from which growth is extrapolated.
SMALLER = 0.5
#: Share of the expected progress that a kernel which was stopped must have made, in what it touched and what it wrote.
LESS_PROGRESS = 0.5
#: What a verdict notes where a kernel could do less work.
FADES = "hardly any output depends on the arguments at the timing sizes: `kernel-gym suite audit` says more"


@dataclass(frozen=True)
class Timed:
    """An accepted latency, how it was obtained, and the warnings of its runs, which a strict verdict looks at."""

    latency_us: float
    profile: Profile
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


#: How the gate ends: with a latency, or with a verdict that refuses the kernel.
Outcome: TypeAlias = Timed | Cheated | Incorrect


def cheated(rule: str, detail: str) -> Cheated:
    """Return the verdict on a broken rule of this gate."""
    broken = _BOOK.rules[rule]
    return Cheated(f"{broken.reason} ({detail}): {broken.hint}", gate="latency", rule=rule)


def measure(device: Device, build: Build, task: Task, checked: Checked, sets: KernelValues) -> Outcome:
    """Run the latency gate on a simulated device."""
    return _Measurement(device, build, task, sets, checked.patience).result()


class _Measurement:
    """The measurement of one kernel."""

    def __init__(self, device: Device, build: Build, task: Task, sets: KernelValues, patience: Patience) -> None:
        self.device, self.build, self.task, self.sets = device, build, task, sets
        self.patience = patience
        self.seeds = sets.references.seeds(build.kernel, task)
        self.signature = task.instance(task.timing).signature

    def result(self) -> Outcome:
        values, run = self._timed_run()
        if _is_stopped(run):
            return self._extrapolate(run, values)
        wrong = refuse(run, self.task, values)
        if wrong is not None:
            return wrong
        sets, runs = [values], [run]
        for other in self._other_sets(values):
            run = self._run(other.case, other.values)
            if (wrong := refuse(run, self.task, other)) is not None:
                return wrong
            sets.append(other)
            runs.append(run)
        run = max(runs, key=_latency)
        latency, floor = _latency(run), self.device.floor_us(self.signature)
        if latency < floor:
            return cheated("below-floor", f"{latency:.3g} us, at least {floor:.3g} us")
        notes = (FADES,) if all(values.fades for values in sets if values.kind != "overflow") else ()
        return Timed(latency, run.profile or Profile(), notes, tuple(each for run in runs for each in run.warnings))

    def _timed_run(self) -> tuple[ValueSet, Run]:
        """Run the kernel beside the reference, and again if that is not defined on the first inputs."""
        inputs = self.sets.timing_inputs()
        run = self._run(self.task.timing, inputs)
        values = self.sets.timing()
        return values, run if values.values is inputs else self._run(values.case, values.values)

    def _other_sets(self, first: ValueSet) -> Iterator[ValueSet]:
        """Yield values without stress, if stress may hide other rows, and such on which further parts show."""
        sets, references, kernel = [first], self.sets.references, self.build.kernel
        if not rows_are_independent(self.task):
            sets.append(references.draw(self.task, self.task.timing, "ordinary", "ordinary", kernel))
            yield sets[-1]
        yield from references.draw_further(self.task, kernel, sets)

    def _extrapolate(self, stopped: Run, values: ValueSet) -> Outcome:
        """Return the latency of a kernel that is too slow to run, extrapolated from two sizes at which it is computed.

        A kernel is slow if the extrapolation exceeds the budget, if it had made the expected progress when it was
        stopped, and if what it had written until then is right. Any other kernel does not end, and is incorrect.
        """
        endless = failed(stopped, "at the timing sizes", "timing")
        points = self._smaller_runs(stopped)
        if isinstance(points, Incorrect):
            return points
        if not points:
            return endless
        (smaller, last), full = points[-1], self.task.instance(self.task.timing)
        size, nbytes = self.signature.nbytes, smaller.signature.nbytes
        spent = growth.predict([growth.Point(each.signature.nbytes, run.spent) for each, run in points], size)
        latency_us = growth.predict([growth.Point(each.signature.nbytes, _latency(run)) for each, run in points], size)
        # The operations of a product grow more than its bytes, and so do those of a network with many parameters.
        latency_us = max(latency_us, _latency(last) * full.work() / max(1, smaller.work()))
        share = LESS_PROGRESS * stopped.spent / spent
        if share >= LESS_PROGRESS or _touched(stopped) / size < share * _touched(last) / nbytes:
            return endless
        if _written_share(stopped, values) < share:
            return endless
        note = f"too slow to be timed: extrapolated from sizes {size / nbytes:.3g} times smaller"
        return Timed(max(latency_us, _latency(stopped)), last.profile or Profile(), (note,))

    def _smaller_runs(self, stopped: Run) -> list[tuple[Instance, Run]] | Incorrect:
        """Return runs at the two largest sizes that end, the smaller one first; fewer if none end."""
        points: list[tuple[Instance, Run]] = []
        most = self.signature.nbytes * min(1.0, _touched(stopped) / self.signature.nbytes)
        for case, instance in self._smaller_cases():
            if instance.signature.nbytes > most:
                continue
            run = self._smaller_run(case)
            if isinstance(run, Incorrect):
                return run
            if _is_stopped(run):
                continue
            points.insert(0, (instance, replace(run, outputs=())))
            if len(points) == 2:
                break
            most = SMALLER * instance.signature.nbytes
        return points

    def _smaller_run(self, case: Case) -> Run | Incorrect:
        """Run the kernel on the kinds of values that it meets at the timing sizes; return the slower run."""
        runs: list[Run] = []
        for kind in TIMED[:1] if rows_are_independent(self.task) else TIMED:
            values = self.sets.references.draw(self.task, case, kind, f"slow {kind}", self.build.kernel)
            run = self._run(case, values.values)
            if _is_stopped(run):
                return run
            if (wrong := refuse(run, self.task, values)) is not None:
                return wrong
            runs.append(run)
        return max(runs, key=_latency)

    def _run(self, case: Case, values: tuple[Array, ...]) -> Run:
        instance = self.task.instance(case)
        inputs = Inputs(instance.signature, values, POISON, case=case, key=self.seeds.variables(values))
        if self.patience.needed:  # a network, of which even small batches take more than the usual limit
            return self.patience.run(self.device, self.build, instance, inputs)
        return self.device.run(self.build, inputs)

    def _smaller_cases(self) -> Iterator[tuple[Case, Instance]]:
        """Yield valid cases below the timing sizes, from large to small, with their instances."""
        for case in _cases_below_timing(self.task):
            try:
                yield case, self.task.instance(case)
            except TaskError:  # sizes between two valid ones need not be valid
                continue


def _latency(run: Run) -> float:
    return run.latency_us or 0.0


def _is_stopped(run: Run) -> bool:
    return run.fault is not None and run.fault.rule in STOPPED


def _touched(run: Run) -> int:
    return sum(run.read) + sum(run.written)


def _written_share(stopped: Run, values: ValueSet) -> float:
    """Return the share of the outputs that a stopped run had written; 0 if any of it is wrong."""
    written = 0
    for actual, expected in zip(stopped.outputs, values.expected, strict=True):
        touched = ~is_poison(actual, POISON)
        if wrong_elements(actual, replace(expected, counts=expected.counts & touched)).any():
            return 0.0
        written += int(touched.sum())
    return written / max(1, sum(expected.truth.size for expected in values.expected))


def _cases_below_timing(task: Task) -> Iterator[Case]:
    """Yield cases below the timing sizes, each with half the sizes of the one before; none is larger in any size."""
    public = dict(task.public.sizes)
    last = task.timing.sizes
    for shift in range(1, 12):
        sizes = tuple((name, min(size, max(public.get(name, 1), size >> shift))) for name, size in task.timing.sizes)
        if sizes != last:
            yield Case("slow", "hidden", sizes)
        last = sizes
