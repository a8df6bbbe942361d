"""Gate 4: how long does it take, and was that the code that was checked?

The timed run computes nothing, so what it does is held against the checked runs: the same basic blocks and
instructions, all of the outputs written, the inputs read as far as before, no less work for each byte. Sizes bring out
code that small ones never reach, in honest kernels too (a cap on cores, a second tile). So a timed run that looks
different is first computed and compared as near to the timing sizes as is affordable; what remains different after
that was never checked.
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
#: Tensors of at most this many bytes are computed to see what large sizes do.
AFFORDABLE_BYTES = 32 << 20
#: A timed run with less than this share of the checked runs' work for a byte of the tensors is looked at.
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
            seen.work = min(seen.work, _work(signature, run))
            shares = [_share(n, spec.nbytes) for n, spec in zip(run.read, signature.inputs, strict=False)]
            seen.reads = [min(a, b) for a, b in zip(seen.reads, shares, strict=True)] if seen.reads else shares
        return seen

    def unseen(self, run: Run) -> str:
        """What a run did that no checked run did; empty if nothing."""
        names = sorted(set(run.mix) - self.names)
        if names:
            return f"instructions {', '.join(names)}"
        count = len(run.blocks - self.blocks)
        return f"{count} basic blocks" if count else ""


def _share(touched: int, whole: int) -> float:
    return touched / whole if whole else 1.0


def _work(signature: Signature, run: Run) -> float:
    """Bytes that went through the vector unit for each byte of the tensors."""
    tensors = sum(spec.nbytes for spec in (*signature.inputs, *signature.outputs))
    return (run.profile.bytes.get("ub", 0) if run.profile else 0) / max(tensors, 1)


def measure(
    device: Device, build: Build, task: Task, checked: Checked, references: References
) -> Timed | Cheated | Incorrect:
    """Time the kernel at the timing case."""
    signature = task.instance(task.timing).signature
    run = device.run(build, Inputs(signature, seed=1))
    if run.status != "ok" or run.latency_us is None:
        return failed(run, "at the timing sizes", "timing")
    refused = _coverage(signature, run, Seen.of(checked.runs)) or _floor(device, signature, run)
    if refused:
        return refused
    witness = _witness(device, build, task, checked, references, run)
    if isinstance(witness, Cheated | Incorrect):
        return witness
    return _repeat(device, build, signature, run, witness)


def _cheated(rule: str, detail: str) -> Cheated:
    broken = _BOOK.rules[rule]
    return Cheated(f"{broken.reason} ({detail}): {broken.hint}", gate="latency", rule=rule)


def _coverage(signature: Signature, run: Run, seen: Seen) -> Cheated | None:
    for index, (touched, spec) in enumerate(zip(run.written, signature.outputs, strict=False)):
        if touched != spec.nbytes:
            return _cheated("outputs-not-covered", f"output {index}: {touched} of {spec.nbytes} bytes")
    shares = [_share(n, spec.nbytes) for n, spec in zip(run.read, signature.inputs, strict=False)]
    for index, (now, before) in enumerate(zip(shares, seen.reads, strict=False)):
        if now < before - LESS_READ:
            return _cheated("inputs-not-read", f"input {index}: {now:.0%}, before {before:.0%}")
    return None


def _floor(device: Device, signature: Signature, run: Run) -> Cheated | None:
    floor = device.floor_us(signature)
    if run.latency_us is not None and run.latency_us < floor:
        return _cheated("below-floor", f"{run.latency_us:.3g} us, at least {floor:.3g} us")
    return None


def _witness(
    device: Device, build: Build, task: Task, checked: Checked, references: References, timed: Run
) -> tuple[str, ...] | Cheated | Incorrect:
    """Notes, if what the timed run did was checked in the end."""
    signature = task.instance(task.timing).signature
    seen = Seen.of(checked.runs)
    lighter = _work(signature, timed) < LESS_WORK * seen.work
    if not seen.unseen(timed) and not lighter:
        return ()
    case = witness_case(task)
    if case is None:
        return _cheated("unchecked-code", seen.unseen(timed)) if seen.unseen(timed) else _cheated("less-work", "vector")
    values = references.choose(task, case, "normal", "witness", build.kernel.digest)
    run = check_one(device, build, task, values)
    if isinstance(run, Incorrect):
        return _cheated("less-work", run.feedback) if lighter else replace(run, case="timing")
    seen = Seen.of([*checked.runs, (task.instance(case).signature, run)])
    if seen.unseen(timed):
        return _cheated("unchecked-code", seen.unseen(timed))
    where = "at the timing sizes" if case.sizes == task.timing.sizes else "near the timing sizes"
    return (f"also computed and compared {where}",)


def witness_case(task: Task) -> Case | None:
    """The case nearest to the timing case that is affordable to compute."""
    for case in _towards_timing(task):
        try:
            signature = task.instance(case).signature
        except TaskError:  # sizes between two valid ones need not be valid
            continue
        if sum(spec.nbytes for spec in (*signature.inputs, *signature.outputs)) <= AFFORDABLE_BYTES:
            return case
    return None


def _towards_timing(task: Task) -> Iterator[Case]:
    public = dict(task.public.sizes)
    for shift in range(8):
        sizes = tuple((name, max(public.get(name, 1), size >> shift)) for name, size in task.timing.sizes)
        yield Case("witness", "hidden", sizes)


def _repeat(
    device: Device, build: Build, signature: Signature, run: Run, notes: tuple[str, ...]
) -> Timed | Cheated | Incorrect:
    """Time it again: equal for equal work; the slower one where the control flow depends on data."""
    again = device.run(build, Inputs(signature, poison=0x7B, seed=2))
    if again.status != "ok" or again.latency_us is None or run.latency_us is None:
        return failed(again, "at the timing sizes", "timing")
    if not run.data_dependent and again.latency_us != run.latency_us:
        return _cheated("not-repeatable", f"{run.latency_us:.6g} us and {again.latency_us:.6g} us")
    slower = max((run, again), key=lambda one: one.latency_us or 0.0)
    if run.data_dependent:
        agree = "agree" if again.latency_us == run.latency_us else "differ, the slower one counts"
        notes += (f"the kernel reads values that are made up when it is timed; two such runs {agree}",)
    return Timed(slower.latency_us or 0.0, slower.profile or Profile(), notes)
