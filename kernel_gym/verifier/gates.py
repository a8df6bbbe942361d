"""The gates that a kernel passes, in their order: screen, compile, binary, correctness, latency.

`Gates.judge` runs them one after the other on one device and stops at the first that refuses the kernel. The functions
below the class follow the same order. The latency gate is `latency_simulated.py` for simulated devices and
`latency_clocked.py` for devices that measure time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kernel_gym import activity
from kernel_gym.errors import BundleError, InfrastructureError
from kernel_gym.hardware.bundles.call import NO_LAUNCH, NOT_FROM_KERNEL, TORCH_COMPUTES
from kernel_gym.hardware.device import Build, Clocked, Device, Diagnostic, PackedBuild, Portable
from kernel_gym.hardware.host.cpp_syntax import Unparsable
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Feasible, Gate, Incorrect, Policy, Uncompilable, Verdict
from kernel_gym.verifier import correctness, latency_clocked, latency_simulated, reference_policy
from kernel_gym.verifier.diagnostics import explain
from kernel_gym.verifier.inspection import Inspect
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.patterns import without_numbers
from kernel_gym.verifier.rules import Finding
from kernel_gym.verifier.screening import assembly, binary, dialect
from kernel_gym.verifier.screening import screen as source_screen
from kernel_gym.verifier.screening.source import read
from kernel_gym.verifier.secret import fingerprint
from kernel_gym.verifier.submission import Submission, read_submission
from kernel_gym.verifier.value_sets import References

#: Most characters of a kernel's text. The longest that the apprentice writes has 40,000.
MAX_CHARACTERS = 1_000_000


class Gates:
    """Passes kernels through the five gates; the caller gives the device."""

    def __init__(
        self,
        inspect: Inspect | None = None,
        inspection_decides: bool = False,
        secret: bytes | None = None,
        policy: Policy = "strict",
    ) -> None:
        self.references = References(secret=secret)
        self.policy = policy
        self._inspect = inspect
        self._decides = inspection_decides

    @property
    def identity(self) -> str:
        """The inspector's identity, which is part of a cached verdict's key; empty without an inspector."""
        if self._inspect is None:
            return ""
        if hasattr(self._inspect, "identity"):
            return f"{self._inspect.identity()} {self._decides}"
        return (
            f"{getattr(self._inspect, '__module__', '')}.{getattr(self._inspect, '__qualname__', '')} {self._decides}"
        )

    def judge(self, device: Device, kernel: Kernel, task: Task, packed: PackedBuild | None = None) -> Verdict:
        """Pass a kernel through the gates and return the verdict, with the seconds spent at each gate.

        A kernel that was compiled on another machine comes with its packed build.
        """
        clock = _Clock(task.id)
        try:
            verdict = self._run_gates(device, kernel, task, clock, packed)
        except Unparsable as error:
            verdict = Uncompilable(str(error))
        return replace(
            verdict,
            device=device.name,
            sandbox_tier=device.sandbox_tier(),
            seconds=clock.seconds,
            policy=self.policy,
            secret=fingerprint(self.references.seeds(kernel, task).secret),
        )

    def _run_gates(
        self, device: Device, kernel: Kernel, task: Task, clock: _Clock, packed: PackedBuild | None
    ) -> Verdict:
        if len(kernel.source) > MAX_CHARACTERS:
            return Uncompilable(f"The file has more than {MAX_CHARACTERS:,} characters: a kernel is one file of code.")
        try:
            submission = read_submission(kernel)
        except BundleError as error:
            return Uncompilable(str(error), line=error.line)
        with clock.gate("screen"):
            refused = _screen(submission)
        if refused:
            return refused
        with KernelValues(self.references, task, kernel) as sets:
            verdict = self._compile_and_run(device, submission, sets, packed, clock)
        return self._inspected(verdict, kernel, task) if isinstance(verdict, Feasible) else verdict

    def _compile_and_run(
        self, device: Device, submission: Submission, sets: KernelValues, packed: PackedBuild | None, clock: _Clock
    ) -> Verdict:
        task = sets.task
        with clock.gate("compile"):
            build = self._compile(device, submission, sets, packed)
        if isinstance(build, Uncompilable):
            return build
        with clock.gate("binary"):
            refused = _screen_binary(build, submission)
        if refused:
            return refused
        with clock.gate("correctness"):
            checked = self._check(device, build, task, sets)
        if isinstance(checked, Incorrect):
            return _without_kernel(checked) or checked
        if computing := _computed_by_torch(checked.warnings):
            return computing
        with clock.gate("latency"):
            timed = self._measure(device)(device, build, task, checked, sets)
        if isinstance(timed, Incorrect):
            return _without_kernel(timed) or timed
        if not isinstance(timed, latency_simulated.Timed):
            return timed
        if computing := _computed_by_torch(tuple(map(without_numbers, timed.warnings))):
            return computing
        return _feasible(timed, checked, submission.kernel)

    def _compile(
        self, device: Device, submission: Submission, sets: KernelValues, packed: PackedBuild | None
    ) -> Build | Uncompilable:
        """Check the rules of the device's own compiler, then run the compiler of this machine."""
        kernel, source = submission.kernel, submission.device_source
        mistakes = dialect.lint(source, submission.device_part) if source and kernel.language == "ascendc" else ()
        if mistakes:
            return _uncompilable(mistakes, submission)
        if self.policy == "strict":
            sets.start()
        build = device.build(kernel, sets.task) if packed is None else _unpack(device, packed)
        return build if build.ok else _uncompilable(build.diagnostics, submission)

    def _check(self, device: Device, build: Build, task: Task, sets: KernelValues) -> correctness.Checked | Incorrect:
        if self.policy == "reference":  # the runs that are timed are the only ones
            return correctness.Checked()
        return correctness.check(device, build, task, sets)

    def _measure(self, device: Device) -> Callable[..., latency_simulated.Outcome]:
        if self.policy == "reference":
            return reference_policy.measure
        return latency_clocked.measure if isinstance(device, Clocked) else latency_simulated.measure

    def _inspected(self, verdict: Feasible, kernel: Kernel, task: Task) -> Verdict:
        """Note the inspector's opinion in the verdict; refuse the kernel if the inspector decides."""
        if self._inspect is None:
            return verdict
        inspection = self._inspect(kernel, task)
        note = f"inspection: {inspection.opinion}; {inspection.reasons}".rstrip("; ")
        if self._decides and inspection.opinion == "cheating":
            # Inspection is no gate. The kernel passed all five, so the last one is named: `correct` is then True.
            return Cheated(f"Inspection: {inspection.reasons}", gate="latency", rule="inspection", notes=(note,))
        return replace(verdict, notes=(*verdict.notes, note))


@dataclass
class _Clock:
    """Seconds spent at each gate of a kernel for a task."""

    task: str
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def gate(self, name: Gate) -> Iterator[None]:
        activity.gate(self.task, name)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - begin, 6)


def _cheated(gate: Gate, finding: Finding, part: str = "") -> Cheated:
    return Cheated(f"{part} {finding.describe()}".strip(), gate=gate, rule=finding.rule.id)


def _screen(submission: Submission) -> Cheated | None:
    """Screen the device code, and the host code of a bundle."""
    source = submission.device_source
    finding = source_screen.screen(source, language=submission.kernel.language) if source else None
    if finding:
        return _cheated("screen", finding, submission.device_part)
    for part, text in submission.host_texts.items():
        if finding := source_screen.screen_host(read(text)):
            return _cheated("screen", finding, part)
    return None


def _unpack(device: Device, packed: PackedBuild) -> Build:
    if not isinstance(device, Portable) or packed.identity != device.identity():
        raise InfrastructureError(f"{device.name} cannot run what {packed.identity} compiled")
    return device.unpack(packed)


def _uncompilable(diagnostics: tuple[Diagnostic, ...], submission: Submission) -> Uncompilable:
    feedback, error = explain(diagnostics, submission.texts)
    return Uncompilable(feedback, line=submission.line_of(error))


def _without_kernel(verdict: Incorrect) -> Cheated | None:
    """Return the verdict on a bundle whose results do not come from its kernel; None for other mistakes."""
    if verdict.rule not in (NO_LAUNCH, NOT_FROM_KERNEL):
        return None
    return Cheated(verdict.feedback, gate="correctness", rule=verdict.rule.lower().replace("_", "-"))


def _computed_by_torch(warnings: tuple[str, ...]) -> Cheated | None:
    """Return the strict verdict on a bundle whose model computes with torch; None if it only moves values."""
    text = next((text for text in warnings if text.startswith(TORCH_COMPUTES)), None)
    if text is None:
        return None
    return Cheated(f"{text.partition(';')[0]}: the kernel has to", gate="correctness", rule="torch-computes")


def _screen_binary(build: Build, submission: Submission) -> Verdict | None:
    """Screen what the compiler read (a tree that only it could parse, its preprocessed text) and the binary."""
    language, source = build.kernel.language, submission.device_source
    hidden = None
    if source and build.preprocessed:
        hidden = source_screen.screen_preprocessed(build.preprocessed, language)
    # All of a kernel for the simulator is preprocessed, of one for a GPU its host half is.
    if source and not (language == "ascendc" and build.preprocessed):
        hidden = hidden or source_screen.screen(source, compiled=True, language=language)
    if source and language == "ascendc":
        hidden = hidden or source_screen.screen_known_names(source)
    if hidden:
        return _cheated("screen", hidden, submission.device_part)
    if build.binary is None:
        return None
    finding, mistakes = binary.screen(build.binary, language if language in binary.BOOKS else "ascendc")
    if language == "cuda" and build.artifact is not None:
        finding = finding or binary.screen_device_code(build.artifact) or assembly.screen(build.assembly)
    if finding:
        return _cheated("binary", finding)
    return _uncompilable(mistakes, submission) if mistakes else None


def _feasible(timed: latency_simulated.Timed, checked: correctness.Checked, kernel: Kernel) -> Feasible:
    words = f"Correct. {timed.latency_us:.3f} us at the timing sizes"
    if timed.profile.diagnosis or timed.profile.bottleneck:
        words += f"; {timed.profile.diagnosis or 'bound by ' + timed.profile.bottleneck}"
    notes = (*timed.notes, *(f"warning: {text}" for text in checked.warnings))
    if kernel.language not in source_screen.BOOKS:
        notes += (f"no source screen for {kernel.language}",)
    return Feasible(words, latency=timed.latency_us, profile=timed.profile, plain=checked.plain, notes=notes)
