"""Runs compilers within limits and maps g++'s messages to the author's lines."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Timer
from types import MappingProxyType
from typing import Literal

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host.runtime import HostPrograms

#: Bytes of a compiler's output that are read.
MOST_OUTPUT = 1 << 20
#: The name of the author's file in diagnostics.
SOURCE = "kernel.cpp"
SECONDS = 60.0
MESSAGE_LIMIT = 400
#: Exit status of `confine` when it could not set up the limits.
NOT_CONFINED = 125

_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d{1,9}):(?:\d+:)? (?P<kind>(?:fatal )?error|sorry, unimplemented): (?P<text>.*)$"
)
_ORIGIN = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d{1,9}):\d+:\s+required from (?:here|.*)$")
_LINKER = re.compile(r"(?:undefined reference to|multiple definition of) .*")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ONE_FILE: Mapping[str, str] = MappingProxyType({SOURCE: ""})


def call_confined(
    runtime: HostPrograms,
    command: Sequence[str],
    folder: Path,
    read: Iterable[Path | str],
    environment: Mapping[str, str] = _NOTHING,
    processes: Literal["many", "alone"] = "many",
    seconds: float = SECONDS,
) -> tuple[int, str]:
    """Return exit status and output of a program that may write `folder` only and read `read` besides.

    Args:
        runtime: The programs that confine it.
        command: The program and its arguments.
        folder: Where it runs.
        read: What it may read.
        environment: Further variables.
        processes: `alone` for a program that reads and writes files and asks the system for nothing else.
        seconds: How long it may take.

    Returns:
        Both.

    Raises:
        InfrastructureError: If the limits could not be set up.
    """
    readable = [str(runtime.confine.parent), *map(str, read)]
    confinement = runtime.confinement
    limits = ["--layers", str(confinement.layers), "--write", str(folder)]
    limits += ["--processes", processes]
    limits += [word for path in readable for word in ("--read", path)]
    whole = confinement.wrapped([str(runtime.confine), *limits, "--", *command], read=readable, write=[folder])
    code, words = call(whole, folder, environment, seconds)
    if code == NOT_CONFINED:
        raise InfrastructureError(f"the compiler could not be confined: {words.strip()[:200]}")
    return code, words


def call(
    command: list[str], folder: Path, environment: Mapping[str, str] = _NOTHING, seconds: float = SECONDS
) -> tuple[int, str]:
    """Return exit status and output of a compiler.

    The output goes to a file, where the limit on file sizes applies. The file has no name, so that a program which may
    write the folder cannot put a link in its place.
    """
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder) | dict(environment), stdin=subprocess.DEVNULL, stdout=words,
            stderr=words, start_new_session=True,
        )  # fmt: skip
        alarm = Timer(seconds, _kill, (process,))
        alarm.daemon = True
        alarm.start()
        code = process.wait()  # subprocess's own timeout would poll and sleep
        alarm.cancel()
        words.seek(0)
        return code, words.read(MOST_OUTPUT).decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the compiler driver and the processes that it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": str(folder), "HOME": str(folder)}


def diagnostics(output: str, parts: Mapping[str, str] = _ONE_FILE) -> tuple[Diagnostic, ...]:
    """Return the errors in g++'s output; an error inside our headers gets the author's line that caused it.

    Args:
        output: What the compiler printed.
        parts: The author's files, each with the name of the part of a bundle that it holds.
    """
    errors: list[Diagnostic] = []
    origin: tuple[int | None, str] = (None, "")
    for line in output.splitlines():
        if (here := _ORIGIN.match(line)) and here["file"] in parts:
            origin = origin if origin[0] else (int(here["line"]), parts[here["file"]])
        elif error := _ERROR.match(line):
            own = error["file"] in parts
            place = (int(error["line"]), parts[error["file"]]) if own else origin
            errors.append(Diagnostic(tidy(error["text"]), *place))
            origin = (None, "")
        elif linker := _LINKER.search(line):
            errors.append(Diagnostic(tidy(linker.group())))
    return tuple(dict.fromkeys(errors))


def tidy(text: str) -> str:
    """Return a compiler's line without paths, cut to a readable length."""
    return re.sub(r"(?:/[\w.+-]+)+/(?=[\w.+-])", "", text[: 10 * MESSAGE_LIMIT]).strip()[:MESSAGE_LIMIT]


def unexplained(code: int, output: str) -> str:
    """Return the message for a compiler that failed without reporting an error."""
    if code < 0 or any(
        sign in output for sign in ("limit exceeded", "out of memory", "memory exhausted", "Killed signal")
    ):
        return "the compiler hit its limits (20 s, 4 GB, 64 MB of output): use fewer or smaller templates and arrays"
    return f"the compiler failed (status {code}) and gave no reason; simplify the kernel until it says more"


@cache
def compiler_roots(compiler: str) -> tuple[str, ...]:
    """Return the folders that the compiler reads: the system's, and its own if it is installed elsewhere."""
    roots = ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.preload"]
    for name in ("cc1plus", "as", "ld", "collect2"):
        answer = subprocess.run([compiler, f"-print-prog-name={name}"], capture_output=True, text=True, check=False)
        program = shutil.which(answer.stdout.strip())
        if program:
            roots.append(str(Path(os.path.realpath(program)).parent.parent))
    roots.append(str(Path(os.path.realpath(compiler)).parent.parent))
    system = tuple(f"{root}/" for root in roots[:6])
    return tuple(dict.fromkeys(root for root in roots if root in roots[:8] or not root.startswith(system)))
