"""Compiles a kernel within limits and says what the compiler said, in the author's lines."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from types import MappingProxyType

from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim.launches import rewrite
from kernel_gym.hardware.ascend_sim.runtime import Runtime, kernel_flags
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.sandbox import Confinement

SOURCE, OBJECT = "kernel.cpp", "kernel.so"
SECONDS = 60.0
MESSAGE_LIMIT = 400
#: Exit status of `confine` when it could not set up the limits.
NOT_CONFINED = 125

_WATCHED = ",".join(f"--wrap={name}" for name in ("memcpy", "memmove", "memset", "memcmp"))
_LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now", f"-Wl,{_WATCHED}")
_DIAGNOSTIC_FLAGS = ("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-pipe")
_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?P<kind>(?:fatal )?error|sorry, unimplemented): (?P<text>.*)$"
)
_ORIGIN = re.compile(rf"^{re.escape(SOURCE)}:(?P<line>\d+):\d+:\s+required from (?:here|.*)$")
_MATHEMATICS = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|exp[2m1]*|log(10|2|1p)?|pow|sqrt|cbrt|erfc?|[tl]gamma|floor|ceil|round|fmod|hypot)[fl]?"
)
_LINKER = re.compile(r"(?:undefined reference to|multiple definition of) .*")


def compile_kernel(runtime: Runtime, confinement: Confinement, source: str, folder: Path) -> tuple[Diagnostic, ...]:
    """Compile into `folder` (which must exist and is all that the compiler may write); no diagnostics means success."""
    (folder / SOURCE).write_text(rewrite(source), encoding="utf-8", errors="surrogateescape")
    code, output = call(_command(runtime, confinement, folder), folder)
    if code == NOT_CONFINED:
        raise InfrastructureError(f"the compiler could not be confined: {output.strip()[:200]}")
    if code or not (folder / OBJECT).is_file():
        return diagnostics(output) or (Diagnostic(unexplained(code, output)),)
    return _unusable(folder / OBJECT)


def call(
    command: list[str], folder: Path, environment: Mapping[str, str] = MappingProxyType({}), words_name: str = "words"
) -> tuple[int, str]:
    """Exit status and words of a compiler. The words go to a file: there the limit on file sizes holds."""
    words = folder / words_name
    with words.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder) | dict(environment), stdin=subprocess.DEVNULL, stdout=file,
            stderr=file, start_new_session=True,
        )  # fmt: skip
    alarm = Timer(SECONDS, _kill, (process,))
    alarm.daemon = True
    alarm.start()
    code = process.wait()  # without a limit of its own, which would look for the end now and then and sleep meanwhile
    alarm.cancel()
    with words.open("rb") as file:
        return code, file.read(1 << 20).decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the driver and what it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def diagnostics(output: str) -> tuple[Diagnostic, ...]:
    """The errors in g++'s output; one inside our headers counts at the author's line that led there."""
    found: list[Diagnostic] = []
    origin: int | None = None
    for line in output.splitlines():
        if here := _ORIGIN.match(line):
            origin = origin or int(here["line"])
        elif error := _ERROR.match(line):
            own = error["file"] == SOURCE
            found.append(Diagnostic(tidy(error["text"]), int(error["line"]) if own else origin))
            origin = None
        elif linker := _LINKER.search(line):
            found.append(Diagnostic(tidy(linker.group())))
    return tuple(dict.fromkeys(found))


def tidy(text: str) -> str:
    """A compiler's line without paths, cut to a readable length."""
    return re.sub(r"(?:/[\w.+-]+)+/(?=[\w.+-])", "", text).strip()[:MESSAGE_LIMIT]


def unexplained(code: int, output: str) -> str:
    """What to say of a compiler that failed without an error of its own."""
    if code < 0 or any(
        sign in output for sign in ("limit exceeded", "out of memory", "memory exhausted", "Killed signal")
    ):
        return "the compiler hit its limits (20 s, 4 GB, 64 MB of output): use fewer or smaller templates and arrays"
    return f"the compiler failed (status {code}) and gave no reason; simplify the kernel until it says more"


def _unusable(path: Path) -> tuple[Diagnostic, ...]:
    """What the device's own linker would refuse: no entry, or the C library's mathematics."""
    with path.open("rb") as file:
        known = list(symbols.of(ELFFile(file)))
    undefined = {symbol.name for symbol in known if symbol.undefined}
    found = [
        Diagnostic(
            f"{name} does not exist in device code: use the vector functions (Exp, Ln, Sqrt, ...) on a LocalTensor"
        )
        for name in sorted(undefined)
        if _MATHEMATICS.fullmatch(name)
    ]
    if all(symbol.name != "kernel_launch" or symbol.name in undefined for symbol in known):
        found.append(Diagnostic('no entry: define extern "C" int kernel_launch(const KernelArgs *args, void *stream)'))
    return tuple(found)


def _command(runtime: Runtime, confinement: Confinement, folder: Path) -> list[str]:
    read = (str(runtime.folder), *compiler_roots(runtime.compiler))
    reads = [word for path in read for word in ("--read", path)]
    limits = ["--layers", str(confinement.layers), "--write", str(folder), *reads, "--"]
    headers = ["-include", str(runtime.prelude), "-I", str(runtime.prelude.parent)]
    flags = [*kernel_flags(runtime.compiler), *_DIAGNOSTIC_FLAGS, *_LINK_FLAGS, *headers]
    command = [str(runtime.confine), *limits, runtime.compiler, *flags, SOURCE, "-o", OBJECT]
    return confinement.wrapped(command, read=read, write=[folder])


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": str(folder), "HOME": str(folder)}


@cache
def compiler_roots(compiler: str) -> tuple[str, ...]:
    """Folders that the compiler reads: the system's, and its own if it lives elsewhere."""
    roots = ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.preload"]
    for program in ("cc1plus", "as", "ld", "collect2"):
        path = subprocess.run([compiler, f"-print-prog-name={program}"], capture_output=True, text=True, check=False)
        found = shutil.which(path.stdout.strip())
        if found:
            roots.append(str(Path(os.path.realpath(found)).parent.parent))
    roots.append(str(Path(os.path.realpath(compiler)).parent.parent))
    system = tuple(f"{root}/" for root in roots[:6])
    return tuple(dict.fromkeys(root for root in roots if root in roots[:8] or not root.startswith(system)))
