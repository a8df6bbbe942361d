"""The Device contract: something that builds kernels and runs them.

A device never judges. It says what the compiler said, what the kernel computed, which rule of the hardware it broke and
how long it took; the verifier makes the verdict. No candidate code runs in the process that calls a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Profile

Array = NDArray[Any]


@dataclass(frozen=True)
class Diagnostic:
    """One error of the compiler, in the author's coordinates."""

    message: str
    line: int | None = None


@dataclass(frozen=True)
class Build:
    """A kernel made ready to run, or the reason why it could not be.

    `diagnostics` is empty if and only if the build succeeded. `artifact` is what the device runs; `binary` is the file
    that the binary screen reads, if there is one.
    """

    kernel: Kernel
    artifact: Path | None = None
    binary: Path | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if there is something to run."""
        return not self.diagnostics


@dataclass(frozen=True)
class Inputs:
    """What one call of `kernel_launch` is handed.

    With `values` the kernel computes and the outputs come back; without, only its instructions are timed. Outputs and
    workspace are filled with `poison` before the call. `seed` drives what data-dependent reads answer in a timed run.
    """

    signature: Signature
    values: tuple[Array, ...] | None = None
    poison: int = 0xA5
    seed: int = 0


@dataclass(frozen=True)
class Fault:
    """A broken rule of the hardware or of the process: which, where, and one line that tells the author what to do.

    `rule` is a stable id in capitals (`UB_OVERFLOW`, `MISSING_SYNC`, `CRASH`, ...).
    """

    rule: str
    message: str
    line: int | None = None
    core: int | None = None


@dataclass(frozen=True)
class Run:
    """What happened in one call.

    `status`: `ok`; `refused` (`kernel_launch` returned `code`, not zero); `fault`; `timeout` (wall clock or instruction
    budget). Outputs are there only if values were given and the call is `ok`. `blocks` is the set of basic blocks that
    ran, `mix` the number of instructions by name, `read` and `written` the bytes touched of each input and output:
    the latency gate holds a timed run against the checked ones with them. `spent` is what of the budget was used.
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
    """What many timed calls came to, on several sets of values in an order that nobody foresees.

    `runs` holds one run for each set, with the outputs of its first call and the latency over all calls; or a single
    one that is not `ok`. `firsts` and `repeats` are the microseconds of calls on sets that the kernel had not met and
    had met before. `unstable`: a set met again gave other bits. `interval` is the 95% interval of the median.
    """

    runs: tuple[Run, ...]
    firsts: tuple[float, ...] = ()
    repeats: tuple[float, ...] = ()
    unstable: bool = False
    interval: tuple[float, float] = (0.0, 0.0)


@runtime_checkable
class Clocked(Protocol):
    """A device that measures time instead of computing it: every timed call computes and is compared."""

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        """Call a kernel many times at one signature, each time on one of `sets` with nothing left of earlier calls."""


@runtime_checkable
class Device(Protocol):
    """Builds and runs kernels of one language.

    A device object is used by one thread at a time; `fork()` gives another worker a device of its own. `identity` names
    everything that a cached verdict depends on: device, profile, compiler, runtime sources.
    """

    name: str
    language: str

    def unavailable_reason(self) -> str | None:
        """None if the device can be used here, else one line that says what is missing and what to do."""

    def identity(self) -> str:
        """A string that changes whenever results could."""

    def sandbox_tier(self) -> str:
        """`A`, `B`, `C` or `D`: how candidate code is confined here."""

    def build(self, kernel: Kernel, task: Task) -> Build:
        """Compile; the compiler's refusal is a Build with diagnostics, not an exception."""

    def run(self, build: Build, inputs: Inputs) -> Run:
        """Call `kernel_launch` once, in a fresh confined process. Raises InfrastructureError if the device failed."""

    def floor_us(self, signature: Signature) -> float:
        """A physical lower bound of the latency: no correct kernel can be faster."""

    def fork(self) -> Device:
        """A second, independent device of the same kind for another worker."""

    def close(self) -> None:
        """End every process and remove every file of this device."""


def empty_outputs(signature: Signature, poison: int) -> tuple[Array, ...]:
    """Output buffers filled with the poison byte."""
    return tuple(
        np.frombuffer(bytearray([poison]) * spec.nbytes, dtype=numpy_dtype(spec.dtype)).reshape(spec.shape)
        for spec in signature.outputs
    )


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of a name in `task.DTYPES`, bfloat16 included."""
    if name == "bfloat16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)
