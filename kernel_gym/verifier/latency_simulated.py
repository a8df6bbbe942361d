"""The latency gate of simulated devices: how long does the kernel take, and did the timed run do the checked work?

The timed run computes nothing. It is held against the checked runs, which computed and whose outputs were compared: it
must execute the same basic blocks and instructions, write all of the outputs, read as much of the inputs and do as much
work for each byte. One checked run is always near the timing sizes, because large sizes reach code that small sizes
never reach, in honest kernels too (a cap on cores, a second tile). At the sizes of that run, a timed run must be the
same as the computed one, because a kernel could find out that it is only timed. If a difference is left, the kernel is
computed at the timing sizes themselves, and the latency of that run counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from kernel_gym.errors import TaskError
from kernel_gym.hardware.device import Build, Device, Inputs, Run
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Incorrect, Profile
from kernel_gym.verifier import growth, rules
from kernel_gym.verifier.correctness import Checked, check_one, failed
from kernel_gym.verifier.reference import References

_BOOK = rules.load("latency")
#: Largest tensors, in bytes, that are computed: always at the timing sizes; else always at smaller sizes; and at the
#: timing sizes if a difference is left.
WHOLE_BYTES, NEAR_BYTES, FULL_BYTES = 16 << 20, 4 << 20, 128 << 20
#: Most instructions, and reads of values (each waits for the device), of a run that is computed. Counts, not seconds,
#: so that a verdict does not depend on how busy the machine is.
NEAR_INSTRUCTIONS, NEAR_READS = 500_000, 20_000
FULL_FACTOR = 4
#: A computed run and a timed one at the same sizes differ if their latencies do by more than this share.
DIFFERENT = 0.02
#: A timed run with less than this share of the work for a byte is suspicious: of the run near the timing sizes, and of
#: the least in any checked run (small sizes need more, for padding and set-up).
LESS_WORK_NEAR, LESS_WORK = 0.9, 0.5
#: A timed run that takes less than this share of the time extrapolated from smaller sizes is suspicious.
FASTER = 0.8
#: Size ratio from which growth is extrapolated, and the share of the expected progress that a slow kernel must have
#: made before it was stopped.
SMALLER, LESS_PROGRESS = 0.5, 0.5
#: Share of an input that may be read less than in the checked runs.
LESS_READ = 0.02


@dataclass(frozen=True)
class Timed:
    """An accepted latency, and how it was obtained."""

    latency_us: float
    profile: Profile
    notes: tuple[str, ...] = ()


#: How the gate ends: with a latency, or with a verdict that refuses the kernel.
Outcome: TypeAlias = Timed | Cheated | Incorrect


@dataclass
class CheckedWork:
    """What the checked runs did: basic blocks, instructions, shares of inputs read, work for each byte."""

    blocks: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    reads: list[float] = field(default_factory=list)
    work: float = float("inf")

    @classmethod
    def of(cls, runs: list[tuple[Signature, Run]]) -> CheckedWork:
        """Return the work of these runs taken together."""
        total = cls()
        for signature, run in runs:
            total.blocks |= run.blocks
            total.names |= set(run.mix)
            total.work = min(total.work, work(signature, run))
            shares = _shares(signature, run)
            total.reads = [min(a, b) for a, b in zip(total.reads, shares, strict=True)] if total.reads else shares
        return total

    def unchecked_code(self, run: Run) -> str:
        """Return what a run did that no checked run did; empty if nothing."""
        names = sorted(set(run.mix) - self.names)
        if names:
            return f"instructions {', '.join(names)}"
        count = len(run.blocks - self.blocks)
        return f"{count} basic blocks" if count else ""

    def omission(self, signature: Signature, run: Run) -> Cheated | None:
        """Return the verdict on a run that leaves out a part of an output or an input; None if it does not."""
        for index, (touched, spec) in enumerate(zip(run.written, signature.outputs, strict=False)):
            if touched != spec.nbytes:
                return cheated("outputs-not-covered", f"output {index}: {touched} of {spec.nbytes} bytes")
        for index, (now, before) in enumerate(zip(_shares(signature, run), self.reads, strict=False)):
            if now < before - LESS_READ:
                return cheated("inputs-not-read", f"input {index}: {now:.0%}, before {before:.0%}")
        return None


def _shares(signature: Signature, run: Run) -> list[float]:
    pairs = zip(run.read, signature.inputs, strict=False)
    return [touched / spec.nbytes if spec.nbytes else 1.0 for touched, spec in pairs]


def work(signature: Signature, run: Run) -> float:
    """Return the bytes that went through the vector unit for each byte of the tensors."""
    return (run.profile.bytes.get("ub", 0) if run.profile else 0) / max(signature.nbytes, 1)


def cheated(rule: str, detail: str) -> Cheated:
    """Return the verdict on a broken rule of this gate."""
    broken = _BOOK.rules[rule]
    return Cheated(f"{broken.reason} ({detail}): {broken.hint}", gate="latency", rule=rule)


def measure(device: Device, build: Build, task: Task, checked: Checked, references: References) -> Outcome:
    """Run the latency gate on a simulated device."""
    return _Measurement(device, build, task, checked, references).result()


class _Measurement:
    """The measurement of one kernel: first the decisions in their order, then what they depend on, then the runs."""

    def __init__(self, device: Device, build: Build, task: Task, checked: Checked, references: References) -> None:
        self.device, self.build, self.task, self.references = device, build, task, references
        self.runs = list(checked.runs)
        self.signature = task.instance(task.timing).signature

    def result(self) -> Outcome:
        timed = self._time(self.signature, seed=1)
        if timed.status == "timeout" and timed.fault is not None and timed.fault.rule == "BUDGET":
            return self._extrapolate(timed)
        if timed.status != "ok" or timed.latency_us is None:
            return failed(timed, "at the timing sizes", "timing")
        floor = self.device.floor_us(self.signature)
        if timed.latency_us < floor:
            return cheated("below-floor", f"{timed.latency_us:.3g} us, at least {floor:.3g} us")
        omission = CheckedWork.of(self.runs).omission(self.signature, timed)
        if omission and not timed.data_dependent:
            return omission
        return self._confirm(timed, omission)

    def _confirm(self, timed: Run, omission: Cheated | None) -> Outcome:
        """Compute near the timing sizes, and at the timing sizes if a difference to the timed run is left."""
        rehearsal = self._rehearse()
        if rehearsal is None:
            return self._accept_unconfirmed(timed, omission, 1.0)
        case, rehearsed = rehearsal
        near = self._compute(case)
        if isinstance(near, Incorrect):
            if near.cause == "timeout":
                return self._accept_unconfirmed(timed, omission, 1.0)
            return self._wrong(near, timed)
        less_work = work(self.signature, timed) < LESS_WORK_NEAR * work(self.task.instance(case).signature, near)
        differs = _differ(near, rehearsed)
        ratio = max(_ratio(near, rehearsed) if differs else 1.0, self._speedup_over_prediction(timed, case, rehearsed))
        if omission or less_work or differs or ratio > 1.0 or self._is_lighter(timed) or self._unchecked_code(timed):
            return self._compute_at_timing_sizes(timed, omission, ratio)
        return self._time_again(timed)

    def _rehearse(self) -> tuple[Case, Run] | None:
        """Return the case nearest to the timing case that is affordable to compute, and a timed run at it."""
        for case, signature in self._smaller_cases():
            if signature.nbytes <= (WHOLE_BYTES if signature == self.signature else NEAR_BYTES):
                rehearsed = self._time(signature, seed=1)
                if rehearsed.status == "ok" and _is_affordable(rehearsed):
                    return case, rehearsed
        return None

    def _compute_at_timing_sizes(self, timed: Run, omission: Cheated | None, ratio: float) -> Outcome:
        """Return the latency of a run that computes at the timing sizes."""
        if self.signature.nbytes > FULL_BYTES or not _is_affordable(timed, FULL_FACTOR):
            return self._accept_unconfirmed(timed, omission, ratio)
        run = self._compute(self.task.timing)
        if isinstance(run, Incorrect):
            timeout = run.cause == "timeout"
            return self._accept_unconfirmed(timed, omission, ratio) if timeout else self._wrong(run, timed)
        unchecked = self._unchecked_code(timed)
        if unchecked:
            return cheated("unchecked-code", unchecked)
        if _differ(run, timed) and not timed.data_dependent:
            return cheated("timed-apart", f"{timed.latency_us:.6g} us, {run.latency_us:.6g} us when it computes")
        return Timed(run.latency_us or 0.0, run.profile or Profile(), ("timed while it computed, at the timing sizes",))

    def _accept_unconfirmed(self, timed: Run, omission: Cheated | None, ratio: float) -> Outcome:
        """Accept a run that cannot be computed only if it did what checked runs did."""
        unchecked = self._unchecked_code(timed)
        if omission or unchecked:
            return omission or cheated("unchecked-code", unchecked)
        if self._is_lighter(timed) and not self._is_gradual(timed):
            return cheated("less-work", "and the timing sizes are too large to compute")
        if ratio > 1.0:
            return self._time_again(timed, ratio, f"scaled by {ratio:.3g}: it is so much slower near the timing sizes")
        return self._time_again(timed, note="too large to compute: timed only")

    def _wrong(self, verdict: Incorrect, timed: Run) -> Cheated | Incorrect:
        """Return the verdict on a kernel that is wrong at large sizes only: cheating if it does less work there."""
        if self._is_lighter(timed):
            return cheated("less-work", verdict.feedback)
        return replace(verdict, case="timing")

    def _time_again(self, run: Run, ratio: float = 1.0, note: str = "") -> Outcome:
        """Time the kernel again: the latency must be equal, or the slower run counts if it reads made-up values."""
        again = self._time(self.signature, seed=2, poison=0x7B)
        if again.status != "ok" or again.latency_us is None or run.latency_us is None:
            return failed(again, "at the timing sizes", "timing")
        if not run.data_dependent and again.latency_us != run.latency_us:
            return cheated("not-repeatable", f"{run.latency_us:.6g} us and {again.latency_us:.6g} us")
        slower = max((run, again), key=lambda timed: timed.latency_us or 0.0)
        return Timed((slower.latency_us or 0.0) * ratio, slower.profile or Profile(), (note,) if note else ())

    def _extrapolate(self, stopped: Run) -> Outcome:
        """Return the latency of a kernel that is too slow to run, extrapolated from two sizes at which it is computed.

        A kernel is slow if the extrapolation exceeds the budget and if it had made the expected progress when it was
        stopped. Any other kernel that is stopped does not end, and is incorrect.
        """
        endless = failed(stopped, "at the timing sizes", "timing")
        rehearsal = self._rehearse()
        computed = [self._compute(case) for case in self._growth_cases(rehearsal[0])] if rehearsal else []
        wrong = [run for run in computed if isinstance(run, Incorrect)]
        if wrong or not computed:
            return wrong[0] if wrong and wrong[0].cause != "timeout" else endless
        points = [(signature.nbytes, run) for signature, run in self.runs[-len(computed) :]]
        size = self.signature.nbytes
        spent = growth.predict([growth.Point(n, run.spent) for n, run in points], size)
        latency_us = growth.predict([growth.Point(n, run.latency_us or 0.0) for n, run in points], size)
        expected = _touched(points[-1][1]) / points[-1][0] * stopped.spent / spent
        if spent <= stopped.spent or _touched(stopped) / size < LESS_PROGRESS * expected:
            return endless
        note = f"too slow to be timed: extrapolated from sizes {size / points[-1][0]:.3g} times smaller"
        return Timed(latency_us, points[-1][1].profile or Profile(), (note,))

    def _unchecked_code(self, timed: Run) -> str:
        return CheckedWork.of(self.runs).unchecked_code(timed)

    def _is_lighter(self, timed: Run) -> bool:
        return work(self.signature, timed) < LESS_WORK * CheckedWork.of(self.runs).work

    def _is_gradual(self, timed: Run) -> bool:
        """Return whether the work for a byte decreases gradually with the sizes, not only at the timing sizes."""
        for case in list(_cases_below_timing(self.task))[1:2]:
            try:
                signature = self.task.instance(case).signature
            except TaskError:
                return False
            half = self._time(signature, seed=1)
            return half.status == "ok" and work(self.signature, timed) >= LESS_WORK * work(signature, half)
        return False

    def _speedup_over_prediction(self, timed: Run, case: Case, rehearsed: Run) -> float:
        """Return how many times faster a timed run is than smaller sizes predict; 1 if it is not.

        Work can be replaced by cheaper work of the same kind and amount (one long copy for many short ones) at sizes
        that are not computed. Honest kernels get faster for a byte too, but gradually: no size is much below the line
        through the two before it.
        """
        points = [growth.Point(self.signature.nbytes, timed.latency_us or 0.0)]
        runs = {case.sizes: rehearsed, self.task.timing.sizes: timed}
        ladder = [*self._growth_cases(case)[:1], *self._between(case)]
        sudden = growth.steepest_drop([self._point(smaller, runs) for smaller in self._growth_cases(case)] + points)
        if sudden >= FASTER:
            return 1.0
        gradual = growth.steepest_drop([self._point(smaller, runs) for smaller in ladder] + points)
        # `gradual` is 0 if there are sizes at which the kernel does not run; they are no excuse.
        return max(1.0, FASTER / (gradual or sudden))

    def _point(self, case: Case, runs: dict[tuple[tuple[str, int], ...], Run]) -> growth.Point:
        signature = self.task.instance(case).signature
        if case.sizes not in runs:
            runs[case.sizes] = self._time(signature, seed=1)
        return growth.Point(signature.nbytes, runs[case.sizes].latency_us or 0.0)

    def _between(self, near: Case) -> list[Case]:
        """Return the cases from one up to the timing case, without the timing case."""
        least, size = self.task.instance(near).signature.nbytes, self.signature.nbytes
        return [case for case, signature in self._smaller_cases() if least <= signature.nbytes < size][::-1]

    def _growth_cases(self, near: Case) -> list[Case]:
        """Return two cases to extrapolate from, the smaller one first; only one if there is no smaller one."""
        most = SMALLER * self.task.instance(near).signature.nbytes
        smaller = (case for case, signature in self._smaller_cases() if signature.nbytes <= most)
        return [*islice(smaller, 1), near]

    def _smaller_cases(self) -> Iterator[tuple[Case, Signature]]:
        """Yield valid cases from the timing sizes downwards, with their signatures."""
        for case in _cases_below_timing(self.task):
            try:
                signature = self.task.instance(case).signature
            except TaskError:  # sizes between two valid ones need not be valid
                continue
            yield case, signature

    def _time(self, signature: Signature, seed: int, poison: int = 0xFF) -> Run:
        return self.device.run(self.build, Inputs(signature, poison=poison, seed=seed))

    def _compute(self, case: Case) -> Run | Incorrect:
        """Run and compare the kernel at a case; if it is correct, the run counts as checked from then on."""
        values = self.references.draw(self.task, case, "normal", "witness", self.build.kernel)
        run = check_one(self.device, self.build, self.task, values)
        if isinstance(run, Run):
            self.runs.append((self.task.instance(case).signature, replace(run, outputs=())))
        return run


def _touched(run: Run) -> int:
    return sum(run.read) + sum(run.written)


def _is_affordable(run: Run, factor: int = 1) -> bool:
    """Return whether a run of these instructions can be computed in seconds."""
    reads = sum(count for name, count in run.mix.items() if "GetValue" in name)
    return sum(run.mix.values()) <= factor * NEAR_INSTRUCTIONS and reads <= factor * NEAR_READS


def _differ(computed: Run, timed: Run) -> bool:
    """Return whether a timed run differs from the computed run at the same sizes."""
    slower = (computed.latency_us or 0.0) / (timed.latency_us or 1.0)
    return dict(computed.mix) != dict(timed.mix) or abs(slower - 1.0) > DIFFERENT


def _ratio(computed: Run, timed: Run) -> float:
    return max(1.0, (computed.latency_us or 0.0) / (timed.latency_us or 1.0))


def _cases_below_timing(task: Task) -> Iterator[Case]:
    """Yield cases from the timing sizes downwards, each with half the sizes of the one before."""
    public = dict(task.public.sizes)
    last = None
    for shift in range(12):
        sizes = tuple((name, max(public.get(name, 1), size >> shift)) for name, size in task.timing.sizes)
        if sizes != last:
            yield Case("witness", "hidden", sizes)
        last = sizes
