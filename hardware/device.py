"""The Device contract: a device builds and runs kernels of one language.

A device never judges. It reports the compiler's diagnostics, the outputs, the broken rule of the hardware and the
latency; the verifier makes the verdict. No kernel code runs in the process that calls a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Profile

Array = NDArray[Any]


@dataclass(frozen=True)
class Diagnostic:
    """One compiler error, with the line number in the author's source; `part` names the text of a bundle."""

    message: str
    line: int | None = None
    part: str = ""


@dataclass(frozen=True)
class Build:
    """The result of compiling a kernel: something to run, or diagnostics.

    Args:
        kernel: The kernel that was compiled.
        artifact: The file that the device runs; None if the build failed.
        binary: The file that the binary screen reads, if there is one.
        preprocessed: The output of the compiler's preprocessor; empty if it reads the kernel as it is written.
        assembly: The assembly that the compiler made of the device code; empty if there is none to screen.
        diagnostics: The errors of the compiler; empty if and only if the build succeeded.
        seconds: How long the build took.
    """

    kernel: Kernel
    artifact: Path | None = None
    binary: Path | None = None
    preprocessed: str = ""
    assembly: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if the build succeeded."""
        return not self.diagnostics


@dataclass(frozen=True)
class PackedBuild:
    """A build with the content of its files, which a device of the same identity on another machine can run.

    Args:
        build: The build, without its files.
        identity: The identity of the device that made it.
        files: The content of each file of its folder, by name.
        artifact: The name of the file that the device runs; empty if the build failed.
        binary: The name of the file that the binary screen reads; empty if there is none.
    """

    build: Build
    identity: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    artifact: str = ""
    binary: str = ""

    @classmethod
    def of(cls, build: Build, identity: str) -> PackedBuild:
        """Pack a build whose files are in one folder."""
        bare = replace(build, artifact=None, binary=None)
        if build.artifact is None:
            return cls(bare, identity)
        files = {path.name: path.read_bytes() for path in build.artifact.parent.iterdir() if path.is_file()}
        return cls(bare, identity, files, build.artifact.name, build.binary.name if build.binary else "")

    def unpack(self, folder: Path) -> Build:
        """Write the files into an empty folder and return the build."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return replace(
            self.build,
            artifact=folder / self.artifact if self.artifact else None,
            binary=folder / self.binary if self.binary else None,
        )


@dataclass(frozen=True)
class Inputs:
    """The arguments of one call of `kernel_launch`.

    Args:
        signature: Shapes, dtypes and attributes.
        values: The inputs. With them the kernel computes and the outputs are returned; without, it is only timed.
        poison: The byte that outputs and workspace are filled with before the call.
        seed: Decides what data-dependent reads return in a run without values; a bundle's model is built from it.
        effort: How many times the device's usual limits of instructions and elements the call may take.
        case: The sizes, at which a bundle's model is built.
        workspace: The bytes of the workspace; None for enough for any kernel.
        outputs: What the outputs hold before the call; empty to fill them with `poison`.
        numbers: For a launch of a bundle: numbers of the inputs and outputs, the same for the same tensor in all
            launches of a call.
        continues: Whether the call goes on where the call before it ended: tensors with the same numbers may still be
            in the device's cache.
        scratch: For a launch of a bundle: the outputs, by index, that may keep uninitialised bytes, because the task
            has no such output.
        key: 128 bits that determine the contents of uninitialised variables. No author knows the key of a verdict.
        launch: For a launch of a bundle: how many launches of the call came before it.
    """

    signature: Signature
    values: tuple[Array, ...] | None = None
    poison: int = 0xA5
    seed: int = 0
    effort: int = 1
    case: Case | None = None
    workspace: int | None = None
    outputs: tuple[Array, ...] = ()
    numbers: tuple[int, ...] = ()
    continues: bool = False
    scratch: tuple[int, ...] = ()
    key: int = 0
    launch: int = 0


@dataclass(frozen=True)
class Fault:
    """A broken rule of the hardware or of the process.

    Args:
        rule: A stable id in capitals (`UB_OVERFLOW`, `MISSING_SYNC`, `CRASH`, ...).
        message: One line that tells the author what happened and what to do.
        line: The author's line, if known.
        core: The core, if known.
        place: The place in words, for a bundle: the text and its line.
    """

    rule: str
    message: str
    line: int | None = None
    core: int | None = None
    place: str = ""


@dataclass(frozen=True)
class Run:
    """The result of one call of `kernel_launch`.

    Args:
        status: `ok`, `refused` (`kernel_launch` returned a code other than zero), `fault`, or `timeout` (wall clock or
            instruction budget).
        outputs: The outputs; only if values were given and the status is `ok`, or the kernel was stopped at a limit of
            the simulator (`BUDGET`, `WORK_LIMIT`): then as far as it got.
        latency_us: The latency in microseconds; only if there are outputs or could be.
        profile: Where the time went.
        fault: The rule that was broken.
        code: What `kernel_launch` returned.
        warnings: Broken rules that do not end the run.
        printed: What the kernel printed.
        blocks: The basic blocks that ran.
        mix: The number of instructions by name.
        read: Bytes touched of each input.
        written: Bytes touched of each output.
        data_dependent: Whether values decided what the kernel did.
        spent: How much of the instruction budget was used; at least the share of computed elements that was.
        seconds: Wall-clock time of the call.
    """

    status: Literal["ok", "refused", "fault", "timeout"]
    outputs: tuple[Array, ...] = ()
    latency_us: float | None = None
    profile: Profile | None = None
    fault: Fault | None = None
    code: int = 0
    warnings: tuple[str, ...] = ()
    printed: str = ""
    blocks: frozenset[int] = frozenset()
    mix: Mapping[str, int] = field(default_factory=dict)
    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    data_dependent: bool = False
    spent: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Timing:
    """The result of many timed calls, on several sets of values in a random order.

    Args:
        runs: One run for each set, with the outputs of its first call and the latency over all calls; or a single run
            that is not `ok`.
        firsts: Microseconds of the first call on each set.
        repeats: Microseconds of the later calls.
        unstable: Whether a repeated call gave other bits.
        interval: The 95% interval of the median, in microseconds.
        nearby: For each of `firsts`, the median of the calls on known values that were made shortly before and after
            it; empty if the device does not mix them.
        medians: The median of the calls on each set, in microseconds; empty if the device does not tell.
    """

    runs: tuple[Run, ...]
    firsts: tuple[float, ...] = ()
    repeats: tuple[float, ...] = ()
    unstable: bool = False
    interval: tuple[float, float] = (0.0, 0.0)
    nearby: tuple[float, ...] = ()
    medians: tuple[float, ...] = ()


@runtime_checkable
class Clocked(Protocol):
    """A device that measures time instead of simulating it: every timed call computes and is compared."""

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        """Call a kernel many times, each time on one of `sets` and with nothing left of earlier calls.

        Args:
            build: A successful build.
            signature: Shapes, dtypes and attributes of every call.
            sets: Sets of inputs.
            poison: The byte that outputs and workspace are filled with before each call.

        Returns:
            The times, and the outputs for each set.

        Raises:
            InfrastructureError: If the device failed, not the kernel.
        """


@runtime_checkable
class Portable(Protocol):
    """A device that runs what a device of the same identity compiled on another machine."""

    def unpack(self, packed: PackedBuild) -> Build:
        """Return a build with its files on this machine.

        Args:
            packed: A build of a kernel in one file.

        Returns:
            The build, which `run` takes.
        """


@runtime_checkable
class Device(Protocol):
    """Builds and runs kernels of one language.

    A device is used by one thread at a time; `fork` makes one for another worker. `name` is the device's name in
    options and verdicts, `language` that of the kernels that it builds.
    """

    name: str
    language: str

    def unavailable_reason(self) -> str | None:
        """Return why the device cannot be used here.

        Returns:
            None if it can be used, else one line that says what is missing and what to do.
        """

    def identity(self) -> str:
        """Return a string that changes whenever results could.

        Returns:
            The names and versions of device, chip profile, compiler and runtime sources. Cached verdicts depend on it.
        """

    def sandbox_tier(self) -> str:
        """Return how kernel code is confined here.

        Returns:
            `A`, `B`, `C` or `D`; see `kernel_gym.confinement.sandbox`.
        """

    def build(self, kernel: Kernel, task: Task) -> Build:
        """Compile a kernel.

        Args:
            kernel: The source and its language.
            task: The task that the kernel is for.

        Returns:
            The build. If the compiler refused the kernel, it has diagnostics.

        Raises:
            InfrastructureError: If the compiler could not be run.
        """

    def run(self, build: Build, inputs: Inputs) -> Run:
        """Call `kernel_launch` once, in a fresh confined process.

        Args:
            build: A successful build.
            inputs: The arguments of the call.

        Returns:
            What happened.

        Raises:
            InfrastructureError: If the device failed, not the kernel.
        """

    def floor_us(self, signature: Signature) -> float:
        """Return a physical lower bound of the latency.

        Args:
            signature: Shapes and dtypes of the call.

        Returns:
            Microseconds that no correct kernel can be faster than.
        """

    def fork(self) -> Device:
        """Return a second, independent device of the same kind for another worker.

        Returns:
            A device with the same settings.
        """

    def close(self) -> None:
        """End every process and remove every file of this device. May be called twice."""


def empty_outputs(signature: Signature, poison: int) -> tuple[Array, ...]:
    """Return output buffers filled with the poison byte."""
    return tuple(
        np.frombuffer(bytearray([poison]) * spec.nbytes, dtype=numpy_dtype(spec.dtype)).reshape(spec.shape)
        for spec in signature.outputs
    )


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of a name in `specs.DTYPES`, bfloat16 included."""
    if name == "bfloat16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)
