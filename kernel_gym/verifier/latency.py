"""Gate 4: how long does it take, and was that the code that was checked?

The timed run computes nothing, so what it does is held against the checked runs: the same basic blocks and
instructions, all of the outputs written, the inputs read as far as before, no less work for each byte. Sizes bring out
code that small ones never reach, in honest kernels too (a cap on cores, a second tile). So a timed run that looks
different is first computed and compared near the timing sizes, and if it still does less there, at the timing sizes
themselves; what remains different after that was never checked.

A kernel that reads values on the scalar unit meets made-up ones when it is timed, and could tell. Where they make a
difference, the latency that counts is that of a run that computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kernel_gym.errors import TaskError
from kernel_gym.hardware.device import Build, Device, Inputs, Run
from kernel_gym.task import Case, Signature, Task
from kernel_gym.verdict import Cheated, Incorrect, Profile
from kernel_gym.verifier import rules
from kernel_gym.verifier.correctness import Checked, check_one, failed
from kernel_gym.verifier.reference import References

_BOOK = rules.load("latency")
#: Tensors of at most this many bytes are computed to see what large sizes do, and at the timing sizes themselves.
NEAR_BYTES, FULL_BYTES = 16 << 20, 128 << 20
#: And at most this many instructions; fewer if values are read, since each such read waits for the device. Counts, not
#: seconds, so that a verdict does not depend on how busy the machine is.
NEAR_INSTRUCTIONS, NEAR_READING = 500_000, 20_000
FULL_FACTOR = 8
#: Latencies of a computed and a made-up run that differ by more than this share are those of different runs.
STEERED = 0.02
#: A timed run with less than this share of the least work for a byte in a checked run is looked at. Small sizes need
#: more of it, for padding and for setting up.
LESS_WORK = 0.5
#: Share by which an input may be read less than in the checked runs.
LESS_READ = 0.02


@dataclass(frozen=True)
class Timed:
    """A latency that stands, and how it was obtained."""

    latency_us: float
    profile: Profile
    notes: tuple[str, ...] = ()


@dataclass
class Seen:
    """What the checked runs did."""

    blocks: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    reads: list[float] = field(default_factory=list)
    work: float = float("inf")

    @classmethod
    def of(cls, runs: list[tuple[Signature, Run]]) -> Seen:
        """Gathered over runs."""
        seen = cls()
        for signature, run in runs:
            seen.blocks |= run.blocks
            seen.names |= set(run.mix)
            seen.work = min(seen.work, work(signature, run))
            shares = _shares(signature, run)
            seen.reads = [min(a, b) for a, b in zip(seen.reads, shares, strict=True)] if seen.reads else shares
        return seen

    def unseen(self, run: Run) -> str:
        """What a run did that no checked run did; empty if nothing."""
        names = sorted(set(run.mix) - self.names)
        if names:
            return f"instructions {', '.join(names)}"
        count = len(run.blocks - self.blocks)
        return f"{count} basic blocks" if count else ""

    def missed(self, signature: Signature, run: Run) -> Cheated | None:
        """What a run left out: outputs that it does not cover, inputs that it reads less of."""
        for index, (touched, spec) in enumerate(zip(run.written, signature.outputs, strict=False)):
            if touched != spec.nbytes:
                return _cheated("outputs-not-covered", f"output {index}: {touched} of {spec.nbytes} bytes")
        for index, (now, before) in enumerate(zip(_shares(signature, run), self.reads, strict=False)):
            if now < before - LESS_READ:
                return _cheated("inputs-not-read", f"input {index}: {now:.0%}, before {before:.0%}")
        return None


def _shares(signature: Signature, run: Run) -> list[float]:
    pairs = zip(run.read, signature.inputs, strict=False)
    return [touched / spec.nbytes if spec.nbytes else 1.0 for touched, spec in pairs]


def nbytes(signature: Signature) -> int:
    """Size of all tensors."""
    return sum(spec.nbytes for spec in (*signature.inputs, *signature.outputs))


def work(signature: Signature, run: Run) -> float:
    """Bytes that went through the vector unit for each byte of the tensors."""
    return (run.profile.bytes.get("ub", 0) if run.profile else 0) / max(nbytes(signature), 1)


def _cheated(rule: str, detail: str) -> Cheated:
    broken = _BOOK.rules[rule]
    return Cheated(f"{broken.reason} ({detail}): {broken.hint}", gate="latency", rule=rule)


def measure(
    device: Device, build: Build, task: Task, checked: Checked, references: References
) -> Timed | Cheated | Incorrect:
    """Time the kernel at the timing case."""
    return _Measurement(device, build, task, checked, references).result()


class _Measurement:
    """One kernel's way through the gate."""

    def __init__(self, device: Device, build: Build, task: Task, checked: Checked, references: References) -> None:
        self.device, self.build, self.task, self.references = device, build, task, references
        self.runs = list(checked.runs)
        self.signature = task.instance(task.timing).signature

    def result(self) -> Timed | Cheated | Incorrect:
        timed = self._time(self.signature, seed=1)
        if timed.status != "ok" or timed.latency_us is None:
            return failed(timed, "at the timing sizes", "timing")
        floor = self.device.floor_us(self.signature)
        if timed.latency_us < floor:
            return _cheated("below-floor", f"{timed.latency_us:.3g} us, at least {floor:.3g} us")
        seen = Seen.of(self.runs)
        missed = seen.missed(self.signature, timed)
        if missed and not timed.data_dependent:
            return missed
        lighter = self._is_lighter(timed)
        if missed or lighter or seen.unseen(timed) or timed.data_dependent:
            return self._vouch(timed, missed, lighter)
        return self._repeat(timed, ())

    def _is_lighter(self, timed: Run) -> bool:
        return work(self.signature, timed) < LESS_WORK * Seen.of(self.runs).work

    def _time(self, signature: Signature, seed: int, poison: int = 0xFF) -> Run:
        return self.device.run(self.build, Inputs(signature, poison=poison, seed=seed))

    def _compute(self, case: Case) -> Run | Incorrect:
        """A run that is compared, and from then on counts as checked."""
        values = self.references.choose(self.task, case, "normal", "witness", self.build.kernel.digest)
        run = check_one(self.device, self.build, self.task, values)
        if isinstance(run, Run):
            self.runs.append((self.task.instance(case).signature, replace(run, outputs=())))
        return run

    def _vouch(self, timed: Run, missed: Cheated | None, lighter: bool) -> Timed | Cheated | Incorrect:
        """Compute near the timing sizes, and at them if that does not explain the timed run."""
        case, rehearsed = self._near()
        near = self._compute(case) if case else None
        if case is None or near is None or (isinstance(near, Incorrect) and near.cause == "timeout"):
            return self._unvouched(timed, missed, lighter)
        if isinstance(near, Incorrect):
            return _cheated("less-work", near.feedback) if lighter else replace(near, case="timing")
        lighter = self._is_lighter(timed)
        if missed or lighter or (timed.data_dependent and _differ(near, rehearsed)):
            return self._compute_fully(timed, missed, lighter, _ratio(near, rehearsed))
        unseen = Seen.of(self.runs).unseen(timed)
        if unseen:
            return _cheated("unchecked-code", unseen)
        where = "at" if case.sizes == self.task.timing.sizes else "near"
        return self._repeat(timed, (f"also computed and compared {where} the timing sizes",))

    def _near(self) -> tuple[Case | None, Run]:
        """The case nearest to the timing case that is affordable to compute, and a run at it that only is timed."""
        rehearsed = Run("timeout")
        for case in _towards_timing(self.task):
            try:
                signature = self.task.instance(case).signature
            except TaskError:  # sizes between two valid ones need not be valid
                continue
            if nbytes(signature) <= NEAR_BYTES:
                rehearsed = self._time(signature, seed=1)
                if rehearsed.status == "ok" and _is_affordable(rehearsed):
                    return case, rehearsed
        return None, rehearsed

    def _compute_fully(
        self, timed: Run, missed: Cheated | None, lighter: bool, ratio: float
    ) -> Timed | Cheated | Incorrect:
        """The latency of a run that computes at the timing sizes."""
        if nbytes(self.signature) > FULL_BYTES or not _is_affordable(timed, FULL_FACTOR):
            if missed or lighter:
                return missed or _cheated("less-work", "and the timing sizes are too large to compute")
            notes = (f"values steer the kernel: by {ratio:.3g} near the timing sizes, the latency is scaled by that",)
            return Timed((timed.latency_us or 0.0) * ratio, timed.profile or Profile(), notes)
        run = self._compute(self.task.timing)
        if isinstance(run, Incorrect):
            return missed or replace(run, case="timing")
        notes = ("values steer the kernel: timed while it computed, at the timing sizes",)
        return Timed(run.latency_us or 0.0, run.profile or Profile(), notes)

    def _unvouched(self, timed: Run, missed: Cheated | None, lighter: bool) -> Timed | Cheated | Incorrect:
        unseen = Seen.of(self.runs).unseen(timed)
        if missed or lighter or unseen:
            return missed or _cheated("unchecked-code" if unseen else "less-work", unseen or "no size to compute it at")
        return self._repeat(timed, ())

    def _repeat(self, run: Run, notes: tuple[str, ...]) -> Timed | Cheated | Incorrect:
        """Time it again: equal for equal work, the slower one where made-up values are read."""
        again = self._time(self.signature, seed=2, poison=0x7B)
        if again.status != "ok" or again.latency_us is None or run.latency_us is None:
            return failed(again, "at the timing sizes", "timing")
        if not run.data_dependent and again.latency_us != run.latency_us:
            return _cheated("not-repeatable", f"{run.latency_us:.6g} us and {again.latency_us:.6g} us")
        slower = max((run, again), key=lambda one: one.latency_us or 0.0)
        if run.data_dependent:
            notes += ("it reads values, which are made up when it is timed; they make no difference to its latency",)
        return Timed(slower.latency_us or 0.0, slower.profile or Profile(), notes)


def _is_affordable(run: Run, factor: int = 1) -> bool:
    """True if a run of these instructions can be computed in seconds."""
    return sum(run.mix.values()) <= factor * (NEAR_READING if run.data_dependent else NEAR_INSTRUCTIONS)


def _differ(computed: Run, rehearsed: Run) -> bool:
    """True if a run on made-up values is another one than the run that computed, at the same sizes."""
    return dict(computed.mix) != dict(rehearsed.mix) or abs(_ratio(computed, rehearsed, least=0.0) - 1.0) > STEERED


def _ratio(computed: Run, rehearsed: Run, least: float = 1.0) -> float:
    return max(least, (computed.latency_us or 0.0) / (rehearsed.latency_us or 1.0))


def _towards_timing(task: Task) -> Iterator[Case]:
    public = dict(task.public.sizes)
    for shift in range(8):
        sizes = tuple((name, max(public.get(name, 1), size >> shift)) for name, size in task.timing.sizes)
        yield Case("witness", "hidden", sizes)
