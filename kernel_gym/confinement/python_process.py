"""A confined process that runs one module of this package on Python code of somebody else.

It has limits on time, memory, files and network. The two processes exchange bytes over pipes, nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from kernel_gym.confinement.programs import programs
from kernel_gym.errors import InfrastructureError, TaskError

#: Seconds that Python and torch may take to start.
START_SECONDS = 120.0
#: Limits of a confined process: half of the machine's memory, and hours for a long run.
MEMORY_BYTES = max(8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
CPU_SECONDS = 24 * 3600
#: Tiers of the sandbox that keep a process away from files and network.
TRUSTWORTHY = ("A", "B")
#: What the confined process writes when it is ready.
READY = b"\n"


class PythonProcess:
    """A confined process, started and ready.

    Args:
        module: The module that it runs with two arguments, the descriptors that it reads and writes.
        code: What it runs, as error messages name it.
        threads: How many threads torch may use there.
        readable: Further paths that it may read.
    """

    def __init__(self, module: str, code: str, threads: int, readable: Sequence[str] = ()) -> None:
        self._late = False
        self._folder = tempfile.TemporaryDirectory(prefix="kernel_gym-")
        folder = Path(self._folder.name)
        incoming, outgoing = os.pipe(), os.pipe()
        server = [sys.executable, "-m", module, str(incoming[0]), str(outgoing[1])]
        command = _confined(server, folder, code, [*_readable(), *readable])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=folder, env=_environment(folder, threads), stdout=errors, stderr=errors,
                stdin=subprocess.DEVNULL, pass_fds=(incoming[0], outgoing[1]), start_new_session=True,
            )  # fmt: skip
        os.close(incoming[0])
        os.close(outgoing[1])
        self._requests: BinaryIO = os.fdopen(incoming[1], "wb")
        self._responses: BinaryIO = os.fdopen(outgoing[0], "rb")
        with self._alarm(START_SECONDS):
            if self._responses.read(1) != READY:
                raise self._not_started(code)

    @property
    def _errors(self) -> Path:
        return Path(self._folder.name) / "errors"

    @property
    def alive(self) -> bool:
        """Whether the process can be called."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._responses):
            with suppress(OSError):  # what was not yet written cannot be
                stream.close()
        self._folder.cleanup()

    @contextmanager
    def _alarm(self, seconds: float) -> Iterator[None]:
        """End the process if the block takes longer; a pending read or write then fails."""
        alarm = Timer(seconds, self._kill)
        alarm.daemon = True
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()

    def _kill(self) -> None:
        self._late = True
        self._process.kill()

    def _wait(self) -> tuple[int | None, str]:
        """Return the exit status of a process that has closed its pipe, and its last words; then remove its files."""
        with suppress(subprocess.TimeoutExpired):  # it has closed its pipe and is about to end, or it is to be ended
            self._process.wait(5)
        status, words = self._process.poll(), self._errors.read_text(errors="replace").strip()[-300:]
        self.close()
        return status, words

    def _not_started(self, code: str) -> InfrastructureError:
        self._process.kill()
        self._process.wait()
        words = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
        self.close()
        why = f"it took longer than {START_SECONDS:.0f} s" if self._late else " ".join(words) or "it gave no reason"
        return InfrastructureError(f"the confined process for {code}s did not start: {why[-300:]}")


def _confined(server: list[str], folder: Path, code: str, readable: list[str]) -> list[str]:
    tools = programs()
    confinement = tools.confinement
    if confinement.tier not in TRUSTWORTHY:
        raise TaskError(
            f"{code}s of others run at sandbox tier A or B only, this machine offers {confinement.tier}: "
            "use --trust for a file that you trust"
        )
    readable = [str(tools.folder), *readable]
    limits = ["--layers", str(confinement.layers), "--memory", str(MEMORY_BYTES), "--cpu-seconds", str(CPU_SECONDS)]
    limits += ["--processes", "one", "--write", str(folder)]
    limits += [word for path in readable for word in ("--read", path)]
    return confinement.wrapped([str(tools.confine), *limits, "--", *server], read=readable, write=[folder])


@lru_cache(maxsize=1)
def _readable() -> tuple[str, ...]:
    """Return what Python and torch read: the interpreter, installed packages, this package, the machine's figures."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    package = str(Path(__file__).resolve().parent.parent)
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
    figures = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system")
    return tuple(dict.fromkeys([sys.prefix, sys.base_prefix, *installed, package, *system, *figures]))


def _environment(folder: Path, threads: int) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    own = {
        "USER": "nobody",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return kept | own | {"OMP_NUM_THREADS": str(threads)}
