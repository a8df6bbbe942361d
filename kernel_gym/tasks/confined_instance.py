"""A task of a problem file whose code runs in a confined process.

A problem file is third-party code. One process for each file runs it with limits on time, memory, files and
network, as a kernel is run; this process only exchanges messages with it.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock, Timer
from typing import BinaryIO

import torch

from kernel_gym.confinement.programs import programs
from kernel_gym.errors import InfrastructureError, KernelGymError, ProblemFileDied, TaskError
from kernel_gym.tasks import messages
from kernel_gym.tasks.graph import Graph
from kernel_gym.tasks.messages import READY, BrokenMessage, Request, Response
from kernel_gym.tasks.specs import Case, Signature

#: Seconds that Python and torch may take to start, and that one call may take: to load the file and look at it, and to
#: evaluate it at large sizes.
START_SECONDS, LOAD_SECONDS, EVALUATE_SECONDS = 120.0, 45.0, 600.0
#: Confined processes that are kept; each holds some 300 MB.
MOST_PROCESSES = 8
#: Limits of a confined process: half of the machine's memory, and hours for a long run.
MEMORY_BYTES = max(8 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
CPU_SECONDS = 24 * 3600
#: Tiers of the sandbox that keep a process away from files and network.
TRUSTWORTHY = ("A", "B")


class ConfinedInstance:
    """A task at one case, built and run in a confined process.

    Args:
        source: The text of the problem file.
        digest: Content address of the task.
        public: The case that tells the domains of the inputs; None to leave them out.
        case: The sizes.
    """

    def __init__(self, source: str, digest: str, public: Case | None, case: Case) -> None:
        self.case = case
        self._source, self._digest = source, digest
        self._public = public
        response, _ = self._call("signature")
        if response.signature is None:
            raise TaskError("the confined process answered without a signature")
        self.signature: Signature = response.signature

    def evaluate(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[torch.Tensor, ...]:
        """Run the reference on `inputs` (ordered as `signature.inputs`); `dtype` raises or lowers its precision."""
        precision = str(dtype).removeprefix("torch.") if dtype is not None else None
        # In float64 an output may have eight bytes where the signature has one.
        limit = 8 * sum(spec.numel for spec in self.signature.outputs)
        _, outputs = self._call("evaluate", inputs, precision, limit, EVALUATE_SECONDS)
        shapes = [tuple(tensor.shape) for tensor in outputs]
        if shapes != [spec.shape for spec in self.signature.outputs]:
            raise TaskError(f"the reference returns tensors of other shapes than before at case {self.case.name!r}")
        return tuple(outputs)

    def fixed_inputs(self) -> dict[int, torch.Tensor]:
        """Return the inputs whose values the module defines, by position in `signature.inputs`."""
        return {position: tensor.clone() for position, tensor in self._fixed_inputs.items()}

    @cached_property
    def _fixed_inputs(self) -> dict[int, torch.Tensor]:
        limit = 2 * self.signature.nbytes
        response, tensors = self._call("fixed_inputs", limit_bytes=limit, seconds=EVALUATE_SECONDS)
        specs = dict(enumerate(self.signature.inputs))
        pairs = dict(zip(response.positions, tensors, strict=False))
        if any(p not in specs or specs[p].shape != tuple(tensor.shape) for p, tensor in pairs.items()):
            raise TaskError(f"the module's tables have other shapes than before at case {self.case.name!r}")
        return pairs

    def own_inputs(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return inputs as the problem file makes them, drawn from `seed`; see `kernel_gym.tasks.task.Instance`."""
        limit = sum(spec.nbytes for spec in self.signature.inputs)
        _, tensors = self._call("own_inputs", limit_bytes=limit, seconds=EVALUATE_SECONDS, seed=seed)
        drawn = [(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in tensors]
        if drawn != [(spec.shape, spec.dtype) for spec in self.signature.inputs]:
            raise TaskError(f"get_inputs() returns other tensors than before at case {self.case.name!r}")
        return tuple(tensors)

    def work(self) -> int:
        """Return about how many operations a plain kernel needs: multiply-adds of products, and elements."""
        return self._call("work")[0].work

    def graph(self) -> Graph:
        """Return the module's graph of core ATen operators as plain data."""
        response, _ = self._call("graph", seconds=EVALUATE_SECONDS)
        if response.graph is None:
            raise TaskError("the confined process answered without a graph")
        return response.graph

    def run_example(self) -> None:
        """Run the module once on its own example."""
        self._call("run_example")

    def _call(
        self,
        method: messages.Method,
        inputs: Sequence[torch.Tensor] = (),
        precision: str | None = None,
        limit_bytes: int = 0,
        seconds: float | None = None,
        seed: int = 0,
    ) -> tuple[Response, list[torch.Tensor]]:
        request = Request(method, self._digest, self.case, self._public, precision, seed)
        return _processes(os.getpid()).get(self._source).call(request, inputs, limit_bytes, seconds or LOAD_SECONDS)


@lru_cache(maxsize=2048)
def confined_instance(source: str, digest: str, public: Case, case: Case) -> ConfinedInstance:
    """Return the instance of a problem file at one case; cached by content."""
    return ConfinedInstance(source, digest, public, case)


class _ConfinedProcess:
    """The confined process of one problem file. Calls wait for each other."""

    def __init__(self, source: str) -> None:
        text = source.encode()
        self._lock = Lock()
        self._late = False
        self._folder = tempfile.TemporaryDirectory(prefix="kernel_gym-")
        folder = Path(self._folder.name)
        incoming, outgoing = os.pipe(), os.pipe()
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                _command(folder, incoming[0], outgoing[1]), cwd=folder, env=_environment(folder), stdout=errors,
                stderr=errors, stdin=subprocess.DEVNULL, pass_fds=(incoming[0], outgoing[1]), start_new_session=True,
            )  # fmt: skip
        os.close(incoming[0])
        os.close(outgoing[1])
        self._requests: BinaryIO = os.fdopen(incoming[1], "wb")
        self._responses: BinaryIO = os.fdopen(outgoing[0], "rb")
        with self._alarm(START_SECONDS):
            if self._responses.read(1) != READY:
                raise self._not_started()
        self._requests.write(f"{len(text)}\n".encode() + text)

    @property
    def _errors(self) -> Path:
        return Path(self._folder.name) / "errors"

    @property
    def alive(self) -> bool:
        """Whether the process can be called."""
        return self._process.poll() is None

    def call(
        self, request: Request, tensors: Sequence[torch.Tensor], limit_bytes: int, seconds: float
    ) -> tuple[Response, list[torch.Tensor]]:
        """Return the response to a request and its tensors."""
        with self._lock:
            try:
                with self._alarm(seconds):
                    messages.send_request(self._requests, request, tensors)
                    response, outputs = messages.receive_response(self._responses, limit_bytes)
            except (OSError, EOFError, BrokenMessage) as error:
                raise self._end(request.case, seconds, error) from error
        if response.error is not None:
            raise TaskError(response.error)
        return response, outputs

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

    def _not_started(self) -> InfrastructureError:
        self._process.kill()
        self._process.wait()
        words = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
        self.close()
        why = f"it took longer than {START_SECONDS:.0f} s" if self._late else " ".join(words) or "it gave no reason"
        return InfrastructureError(f"the confined process for problem files did not start: {why[-300:]}")

    def _end(self, case: Case, seconds: float, error: Exception) -> KernelGymError:
        """End the process and return the reason why it did not answer."""
        with suppress(subprocess.TimeoutExpired):  # it has closed its pipe and is about to end, or it is to be ended
            self._process.wait(5)
        status, words = self._process.poll(), self._errors.read_text(errors="replace").strip()[-300:]
        self.close()
        if self._late:
            return ProblemFileDied(f"the problem file took longer than {seconds:.0f} s at case {case.name!r}")
        if isinstance(error, BrokenMessage):
            return ProblemFileDied(f"the problem file wrote to a pipe that is not its own at case {case.name!r}")
        if status is not None and status < 0:
            name = signal.Signals(-status).name
            limit = f"it may use {MEMORY_BYTES >> 30} GB of memory"
            return ProblemFileDied(f"the problem file was ended by {name} at case {case.name!r}; {limit}")
        last = f": {words.splitlines()[-1]}" if words else ""
        return ProblemFileDied(f"the problem file ended its process (status {status}) at case {case.name!r}{last}")


class _Processes:
    """The confined processes of this process by problem file; the least recently used one is ended first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = os.getpid()
        self._processes: OrderedDict[str, _ConfinedProcess] = OrderedDict()
        # The kernel ends a confined process with the thread that started it: this one lives as long as the program.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="confined-processes")

    def get(self, source: str) -> _ConfinedProcess:
        """Return the running process of a problem file; the first call starts it."""
        with self._lock:
            process = self._processes.get(source)
            if process is None or not process.alive:
                process = self._starter.submit(_ConfinedProcess, source).result()
                self._processes[source] = process
            self._processes.move_to_end(source)
            if len(self._processes) > MOST_PROCESSES:
                self._processes.popitem(last=False)[1].close()
            return process

    def close(self) -> None:
        """End all processes."""
        while self._owner == os.getpid() and self._processes:
            self._processes.popitem()[1].close()


@lru_cache(maxsize=1)
def _processes(process_id: int) -> _Processes:
    """Return the confined processes of a process; a forked one starts its own."""
    processes = _Processes()
    atexit.register(processes.close)
    return processes


def _command(folder: Path, requests: int, responses: int) -> list[str]:
    tools = programs()
    confinement = tools.confinement
    if confinement.tier not in TRUSTWORTHY:
        raise TaskError(
            f"problem files of others run at sandbox tier A or B only, this machine offers {confinement.tier}: "
            "use --trust for a file that you trust"
        )
    readable = [str(tools.folder), *_readable()]
    limits = ["--layers", str(confinement.layers), "--memory", str(MEMORY_BYTES), "--cpu-seconds", str(CPU_SECONDS)]
    limits += ["--processes", "one", "--write", str(folder)]
    limits += [word for path in readable for word in ("--read", path)]
    server = [sys.executable, "-m", "kernel_gym.tasks.confined_server", str(requests), str(responses)]
    return confinement.wrapped([str(tools.confine), *limits, "--", *server], read=readable, write=[folder])


@lru_cache(maxsize=1)
def _readable() -> tuple[str, ...]:
    """Return what Python and torch read: the interpreter, installed packages, this package, the machine's figures."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    package = str(Path(__file__).resolve().parent.parent)
    system = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
    figures = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system")
    return tuple(dict.fromkeys([sys.prefix, sys.base_prefix, *installed, package, *system, *figures]))


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    own = {
        "USER": "nobody",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return kept | own | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
