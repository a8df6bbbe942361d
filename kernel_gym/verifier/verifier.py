"""The verifier: a kernel and a task in, a verdict out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from kernel_gym.errors import ConfigError, DeviceUnavailable, InfrastructureError
from kernel_gym.hardware.device import Build, Clocked, Device, Diagnostic
from kernel_gym.hardware.pool import Pool
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Unjudged, Verdict
from kernel_gym.verifier import correctness, latency, latency_clocked, secret
from kernel_gym.verifier.cache import VerdictCache, key_of
from kernel_gym.verifier.diagnostics import explain
from kernel_gym.verifier.reference import References
from kernel_gym.verifier.rules import Finding
from kernel_gym.verifier.screening import binary, dialect
from kernel_gym.verifier.screening import screen as source_screen
from kernel_gym.verifier.screening.source import Source, read

#: Sandbox tiers at which kernels of others may run.
TRUSTWORTHY = ("A", "B")


@dataclass(frozen=True)
class Inspection:
    """What a second reader, such as a model, thinks of a kernel that passed every gate."""

    opinion: Literal["honest", "cheating", "unsure"]
    reasons: str = ""


Inspect: TypeAlias = Callable[[Kernel, Task], Inspection]
Pair: TypeAlias = tuple[Kernel, Task]


class Verifier:
    """Passes kernels through the gates: source screen, compilation, binary screen, correctness, latency.

    It takes over `device`: closing the verifier closes it. `workers` devices judge side by side. `cache` is True for
    the cache of this machine, False for none, or a folder. `inspect` is asked about every kernel that passed; its
    opinion is noted, and refuses the kernel only if `inspection_decides`. `unsafe` lets kernels of others run on a
    machine whose sandbox is too weak for them.
    """

    def __init__(
        self,
        device: Device,
        cache: bool | Path | VerdictCache = True,
        inspect: Inspect | None = None,
        unsafe: bool = False,
        workers: int = 1,
        inspection_decides: bool = False,
    ) -> None:
        self.device = device
        self.cache = cache if isinstance(cache, VerdictCache) else _cache(cache)
        self.unsafe = unsafe
        self._gates = Gates(inspect, inspection_decides)
        self._pool: Pool[Pair, Verdict] = Pool(device, self._judge, workers, give_up=self._unjudged)

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """The verdict on one kernel; raises only if it may not or cannot be judged here at all."""
        return self.submit(kernel, task).result()

    def verify_all(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Verdicts in the order of the pairs; equal pairs are judged once."""
        futures = {}
        for kernel, task in pairs:
            if (kernel.digest, task.digest) not in futures:
                futures[kernel.digest, task.digest] = self.submit(kernel, task)
        try:
            return [futures[kernel.digest, task.digest].result() for kernel, task in pairs]
        except BaseException:
            for future in futures.values():
                future.cancel()
            raise

    def submit(self, kernel: Kernel, task: Task) -> Future[Verdict]:
        """The verdict to come; at once if it is known."""
        self._admit(kernel)
        known = self.cache.get(self._key(kernel, task)) if self.cache else None
        if known is not None:
            return _done(known)
        return self._pool.submit((kernel, task))

    def close(self) -> None:
        """End every process and remove every file of the device and its copies."""
        self._pool.close()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _admit(self, kernel: Kernel) -> None:
        if kernel.language != self.device.language:
            raise ConfigError(f"{self.device.name} runs {self.device.language}, not {kernel.language}")
        if not kernel.trusted and not self.unsafe and self._tier not in TRUSTWORTHY:
            raise DeviceUnavailable(
                f"kernels of others run at sandbox tier A or B only, this machine offers {self._tier}: "
                "see scripts/doctor.py for what is missing, or allow it with unsafe=True (--unsafe)"
            )

    def _key(self, kernel: Kernel, task: Task) -> str:
        return key_of(kernel.digest, task.digest, self._context, secret.fingerprint(), self._gates.identity)

    @cached_property
    def _context(self) -> str:
        return f"{self.device.identity()} {self._tier}"

    @cached_property
    def _tier(self) -> str:
        return self.device.sandbox_tier()

    def _judge(self, device: Device, pair: Pair) -> Verdict:
        verdict = self._gates.judge(device, pair)
        if self.cache:
            self.cache.put(self._key(*pair), verdict)
        return verdict

    def _unjudged(self, error: InfrastructureError) -> Verdict:
        return Unjudged(f"not judged: {error}", self.device.name, self._tier)


def _cache(given: bool | Path) -> VerdictCache | None:
    if given is False:
        return None
    return VerdictCache(None if given is True else given)


def _done(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future


class Gates:
    """The gates in their order. Holds no device: workers bring their own."""

    def __init__(self, inspect: Inspect | None = None, inspection_decides: bool = False) -> None:
        self.references = References()
        self._inspect = inspect
        self._decides = inspection_decides

    @property
    def identity(self) -> str:
        """Names what a verdict depends on beside kernel, task and device."""
        if self._inspect is None:
            return ""
        if hasattr(self._inspect, "identity"):
            return f"{self._inspect.identity()} {self._decides}"
        return (
            f"{getattr(self._inspect, '__module__', '')}.{getattr(self._inspect, '__qualname__', '')} {self._decides}"
        )

    def judge(self, device: Device, pair: Pair) -> Verdict:
        """Pass a kernel through the gates."""
        kernel, task = pair
        clock = _Clock()
        verdict = self._pass(device, kernel, task, clock)
        return replace(verdict, device=device.name, sandbox_tier=device.sandbox_tier(), seconds=clock.seconds)

    def _pass(self, device: Device, kernel: Kernel, task: Task, clock: _Clock) -> Verdict:
        source = read(kernel.source) if kernel.language in source_screen.BOOKS else None
        with clock.gate("screen"):
            found = source_screen.screen(source, language=kernel.language) if source else None
        if found:
            return _cheated("screen", found)
        with clock.gate("compile"):
            build = _compile(device, kernel, task, source)
        if isinstance(build, Uncompilable):
            return build
        with clock.gate("binary"):
            refused = _screen_binary(build, source)
        if refused:
            return refused
        with clock.gate("correctness"):
            checked = correctness.check(device, build, task, self.references)
        if isinstance(checked, Incorrect):
            return checked
        with clock.gate("latency"):
            gate = latency_clocked.measure if isinstance(device, Clocked) else latency.measure
            timed = gate(device, build, task, checked, self.references)
        if not isinstance(timed, latency.Timed):
            return timed
        return self._inspected(_feasible(timed, checked, kernel), kernel, task)

    def _inspected(self, verdict: Feasible, kernel: Kernel, task: Task) -> Verdict:
        if self._inspect is None:
            return verdict
        inspection = self._inspect(kernel, task)
        note = f"inspection: {inspection.opinion}; {inspection.reasons}".rstrip("; ")
        if self._decides and inspection.opinion == "cheating":
            return Cheated(f"Inspection: {inspection.reasons}", gate="latency", rule="inspection", notes=(note,))
        return replace(verdict, notes=(*verdict.notes, note))


@dataclass
class _Clock:
    """Seconds spent at each gate."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def gate(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - begin, 6)


def _cheated(gate: Literal["screen", "binary"], found: Finding) -> Cheated:
    return Cheated(found.describe(), gate=gate, rule=found.rule.id)


def _compile(device: Device, kernel: Kernel, task: Task, source: Source | None) -> Build | Uncompilable:
    """What the device's own compiler would refuse, then the compiler that we have."""
    mistakes = dialect.lint(source) if source and kernel.language == "ascendc" else ()
    if mistakes:
        return _uncompilable(mistakes, kernel)
    build = device.build(kernel, task)
    return build if build.ok else _uncompilable(build.diagnostics, kernel)


def _uncompilable(diagnostics: tuple[Diagnostic, ...], kernel: Kernel) -> Uncompilable:
    feedback, line = explain(diagnostics, kernel.source)
    return Uncompilable(feedback, line=line)


def _screen_binary(build: Build, source: Source | None) -> Verdict | None:
    if source and source.tree.has_error:  # the compiler understood more than we did
        hidden = source_screen.screen(source, compiled=True, language=build.kernel.language)
        if hidden:
            return _cheated("screen", hidden)
    if build.binary is None:
        return None
    language = build.kernel.language
    found, mistakes = binary.screen(build.binary, language if language in binary.BOOKS else "ascendc")
    if language == "cuda" and build.artifact is not None:
        found = found or binary.screen_device_code(build.artifact)
    if found:
        return _cheated("binary", found)
    return _uncompilable(mistakes, build.kernel) if mistakes else None


def _feasible(timed: latency.Timed, checked: correctness.Checked, kernel: Kernel) -> Feasible:
    words = f"Correct. {timed.latency_us:.3f} us at the timing sizes"
    if timed.profile.diagnosis or timed.profile.bottleneck:
        words += f"; {timed.profile.diagnosis or 'bound by ' + timed.profile.bottleneck}"
    notes = (*timed.notes, *(f"warning: {text}" for text in checked.warnings))
    if kernel.language not in source_screen.BOOKS:
        notes += (f"no source screen for {kernel.language}",)
    return Feasible(words, latency=timed.latency_us, profile=timed.profile, plain=checked.plain, notes=notes)
