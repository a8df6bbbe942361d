"""Compiles a kernel for the simulator within limits and returns the compiler's errors with the author's lines."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim import operations
from kernel_gym.hardware.ascend_sim.runtime import SimulatorBuild, kernel_flags
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host import runtime as host
from kernel_gym.hardware.host.ascend_launches import rewrite
from kernel_gym.hardware.host.compiler import SOURCE, call_confined, compiler_roots, diagnostics, unexplained

OBJECT, PREPROCESSED = "kernel.so", "kernel.ii"

_WATCHED = ",".join(f"--wrap={name}" for name in ("memcpy", "memmove", "memset", "memcmp"))
_LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now", f"-Wl,{_WATCHED}")
_DIAGNOSTIC_FLAGS = ("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-pipe")
_MATHEMATICS = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|exp[2m1]*|log(10|2|1p)?|pow|sqrt|cbrt|erfc?|[tl]gamma|floor|ceil|round|fmod|hypot)[fl]?"
)


def compile_kernel(runtime: SimulatorBuild, source: str, folder: Path) -> tuple[Diagnostic, ...]:
    """Compile into `folder`, which must exist and is the only writable folder; no diagnostics means success."""
    (folder / SOURCE).write_text(rewrite(source), encoding="utf-8", errors="surrogateescape")
    read = (str(runtime.folder), *compiler_roots(runtime.compiler))
    code, output = call_confined(host.runtime(), _command(runtime), folder, read)
    if code or not (folder / OBJECT).is_file():
        return diagnostics(output) or (Diagnostic(unexplained(code, output)),)
    with (folder / OBJECT).open("rb") as file:
        elf = ELFFile(file)
        return (*_unusable(elf), *_beyond_arrays(folder)) or _count(folder, source, elf)


def preprocess(runtime: SimulatorBuild, folder: Path) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return the preprocessed text of the source that was compiled in `folder`, or diagnostics."""
    command = [*_front(runtime), "-E", "-fpch-preprocess", "-include", str(runtime.unexpanded), SOURCE]
    read = (str(runtime.folder), *compiler_roots(runtime.compiler))
    code, output = call_confined(host.runtime(), [*command, "-o", PREPROCESSED], folder, read)
    if code:
        return "", diagnostics(output) or (Diagnostic(unexplained(code, output)),)
    return (folder / PREPROCESSED).read_text(encoding="utf-8", errors="surrogateescape"), ()


def _command(runtime: SimulatorBuild) -> list[str]:
    return [*_front(runtime), *_DIAGNOSTIC_FLAGS, *_LINK_FLAGS, *operations.FLAGS, SOURCE, "-o", OBJECT]


def _front(runtime: SimulatorBuild) -> list[str]:
    """Return the part of the command that determines which files the compiler reads."""
    headers = ["-include", str(runtime.prelude), "-I", str(runtime.prelude.parent)]
    return [runtime.compiler, *kernel_flags(runtime.compiler), *headers]


def _count(folder: Path, source: str, elf: ELFFile) -> tuple[Diagnostic, ...]:
    """Count the operations of the kernel; return what keeps the dump from fitting the object file."""
    try:
        operations.count(folder / OBJECT, source, elf)
    except InfrastructureError:
        errors = _beyond_arrays(folder, counted=True)
        if not errors:
            raise
        return errors
    return ()


def _beyond_arrays(folder: Path, counted: bool = False) -> tuple[Diagnostic, ...]:
    indices = dict.fromkeys(operations.beyond_arrays(folder / OBJECT, counted))
    return tuple(Diagnostic(f"index {index} is beyond the end of its array") for index in indices)


def _unusable(elf: ELFFile) -> tuple[Diagnostic, ...]:
    """Return the errors that the device's linker would report: no entry point, or the C library's mathematics."""
    table = list(symbols.of(elf))
    undefined = {symbol.name for symbol in table if symbol.undefined}
    errors = [
        Diagnostic(
            f"{name} does not exist in device code: use the vector functions (Exp, Ln, Sqrt, ...) on a LocalTensor"
        )
        for name in sorted(undefined)
        if _MATHEMATICS.fullmatch(name)
    ]
    if all(symbol.name != "kernel_launch" or symbol.name in undefined for symbol in table):
        errors.append(Diagnostic('no entry: define extern "C" int kernel_launch(const KernelArgs *args, void *stream)'))
    return tuple(errors)
