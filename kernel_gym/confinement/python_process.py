"""A confined process that runs one module of this package on Python code of somebody else.

It has limits on time, memory, files and network. The two processes exchange bytes over pipes, nothing else. The
processes are forked from one that has imported the libraries; where bubblewrap confines them, each starts by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from kernel_gym.confinement import building
from kernel_gym.confinement.forked_process import ForkedProcess, ForkServer, NotForked
from kernel_gym.confinement.programs import Programs, programs
from kernel_gym.errors import InfrastructureError, TaskError

#: Seconds that Python and torch may take to start.
START_SECONDS = 120.0
#: Limits of a confined process: half of the machine's memory, and hours for a long run.
MEMORY_BYTES = max(8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
CPU_SECONDS = 24 * 3600
#: Tiers of the sandbox that keep a process away from files and network.
TRUSTWORTHY = ("A", "B")
#: The home of the fork server, which writes no file.
NOWHERE = Path("/nonexistent")
#: What the confined process writes when it is ready.
READY = b"\n"

_fork_servers: dict[int, ForkServer] = {}


class PythonProcess:
    """A confined process, started and ready.

    Args:
        module: The module that it runs with two arguments, the descriptors that it reads and writes.
        code: What it runs, as error messages name it.
        threads: How many threads torch may use there.
        readable: Further paths that it may read.
    """

    def __init__(self, module: str, code: str, threads: int, readable: Sequence[str] = ()) -> None:
        tools = _trustworthy_programs(code)
        self._late = False
        self._folder = Path(tempfile.mkdtemp(prefix="kernel_gym-"))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # without a name: no link can take its place
        weakref.finalize(self, building.remove, self._folder)
        start = _Start(module, self._folder, threads, (str(tools.folder), *_readable(), *readable))
        incoming, outgoing = os.pipe(), os.pipe()
        self._requests: BinaryIO = os.fdopen(incoming[1], "wb")
        self._responses: BinaryIO = os.fdopen(outgoing[0], "rb")
        try:
            descriptors = (incoming[0], outgoing[1], self._errors.fileno())
            self._process = _starter(os.getpid()).submit(start, tools, descriptors).result()
        except NotForked as error:
            raise _not_started(code, str(error)) from error
        finally:
            os.close(incoming[0])
            os.close(outgoing[1])
        with self._alarm(START_SECONDS):
            if self._responses.read(1) != READY:
                raise self._not_started(code)

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
        self._errors.close()
        building.remove(self._folder)

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

    def _wait(self, seconds: float = 5.0) -> tuple[int | None, str]:
        """Return the exit status of a process that has closed its pipe, and its last words; then remove its files."""
        with suppress(subprocess.TimeoutExpired):  # it has closed its pipe and is about to end, or it is to be ended
            self._process.wait(seconds)
        status, words = self._process.poll(), self._last_words()
        self.close()
        return status, words

    def _last_words(self) -> str:
        end = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), 1200, max(0, end - 1200)).decode(errors="replace").strip()[-300:]

    def _not_started(self, code: str) -> InfrastructureError:
        self._process.kill()
        self._process.wait()
        words = self._last_words().splitlines()[-1:]
        self.close()
        why = f"it took longer than {START_SECONDS:.0f} s" if self._late else " ".join(words) or "it gave no reason"
        return _not_started(code, why)


def _not_started(code: str, why: str) -> InfrastructureError:
    return InfrastructureError(f"the confined process for {code}s did not start: {why[-300:]}")


def _trustworthy_programs(code: str) -> Programs:
    tools = programs()
    if tools.confinement.tier not in TRUSTWORTHY:
        raise TaskError(
            f"{code}s of others run at sandbox tier A or B only, this machine offers {tools.confinement.tier}: "
            "use --trust for a file that you trust"
        )
    return tools


@dataclass(frozen=True)
class _Start:
    """What a confined process is started with; its three descriptors are requests, responses and errors."""

    module: str
    folder: Path
    threads: int
    readable: tuple[str, ...]

    def __call__(self, tools: Programs, descriptors: tuple[int, int, int]) -> ForkedProcess | subprocess.Popen[bytes]:
        start = self._execute if tools.confinement.bubblewrap else self._fork
        return start(tools, descriptors)

    def _fork(self, tools: Programs, descriptors: tuple[int, int, int]) -> ForkedProcess:
        request = {
            "module": self.module,
            "folder": str(self.folder),
            "environment": _environment(self.folder, self.threads),
            "threads": self.threads,
            "confinement": [*self._words(tools), "--", self.module],
        }
        return _fork_server(os.getpid(), tools).fork(request, descriptors)

    def _execute(self, tools: Programs, descriptors: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        *pipes, errors = descriptors
        server = [sys.executable, "-m", self.module, *map(str, pipes)]
        command = [str(tools.confine), *self._words(tools), "--", *server]
        return subprocess.Popen(
            tools.confinement.wrapped(command, read=self.readable, write=[self.folder]),
            cwd=self.folder, env=_environment(self.folder, self.threads), stdin=subprocess.DEVNULL, stdout=errors,
            stderr=errors, pass_fds=pipes, start_new_session=True,
        )  # fmt: skip

    def _words(self, tools: Programs) -> list[str]:
        """Return the options of the confinement, see `src/confine.h`."""
        limits = ["--memory", str(MEMORY_BYTES), "--cpu-seconds", str(CPU_SECONDS), "--processes", "one"]
        reads = [word for path in self.readable for word in ("--read", path)]
        return ["--layers", str(tools.confinement.layers), *limits, "--write", str(self.folder), *reads]


@lru_cache(maxsize=1)
def _starter(process_id: int) -> ThreadPoolExecutor:
    """Return the thread that starts processes: the kernel ends them with it, and it lives as long as the program."""
    return ThreadPoolExecutor(1, thread_name_prefix="confined-processes")


def _fork_server(process_id: int, tools: Programs) -> ForkServer:
    """Return the running fork server of this process; a forked process starts its own."""
    if process_id not in _fork_servers or not _fork_servers[process_id].alive:
        _fork_servers.clear()
        _fork_servers[process_id] = ForkServer(tools.library, _environment(NOWHERE, 1), START_SECONDS)
    return _fork_servers[process_id]


@lru_cache(maxsize=1)
def _readable() -> tuple[str, ...]:
    """Return what Python and torch read: the interpreter, installed packages, this package, the machine's figures."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    package = str(Path(__file__).resolve().parent.parent)
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
    figures = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system")
    linked = [path for folder in installed for path in linked_from(Path(folder))]
    return tuple(dict.fromkeys([sys.prefix, sys.base_prefix, *installed, *linked, package, *system, *figures]))


def linked_from(folder: Path) -> list[str]:
    """Return where the links in a folder lead: a process that may read the folder may not read these."""
    links = [entry.resolve() for entry in sorted(folder.glob("*")) if entry.is_symlink()]
    return [str(path) for path in links if path.exists() and not path.is_relative_to(folder.resolve())]


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
