"""The trusted process: owns the GPU's memory, stream and clock while a kernel is judged. Started by the device.

    python -m kernel_gym.hardware.cuda.worker SOCKET TRUSTED_CUBIN LOCK

No host code of a kernel runs here, and the process holds nothing of use to a kernel's device code: no expected values,
no seeds, no verdict. It answers requests until the socket closes; after a fault it is replaced.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from kernel_gym.hardware.cuda.driver import Gpu, GpuError, device_facts
from kernel_gym.hardware.cuda.timed_calls import Calls, Trusted
from kernel_gym.hardware.host.calls import Hang
from kernel_gym.hardware.host.device_process import receive_request, send_reply

#: Contexts have as many queues to the GPU as this allows; the driver makes them one by one, for all processes in turn.
ONE_QUEUE = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}


class Turn:
    """A lock on the GPU: shared for checking, exclusive for timing. A waiting exclusive lock blocks new shared ones."""

    def __init__(self, path: Path) -> None:
        names = ("gate", "lock", "context")
        self._gate, self._lock, self._context = (
            os.open(f"{path}.{name}", os.O_RDWR | os.O_CREAT, 0o666) for name in names
        )

    @contextmanager
    def taken(self, alone: bool) -> Iterator[None]:
        """Hold the lock."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    @contextmanager
    def making_a_context(self) -> Iterator[None]:
        """Hold the lock for creating a context. Several at once are not faster, and timing would wait for all."""
        fcntl.flock(self._context, fcntl.LOCK_EX)
        try:
            with self.taken(alone=False):
                yield
        finally:
            fcntl.flock(self._context, fcntl.LOCK_UN)


class Worker:
    """Serves one kernel after another, each in its own context."""

    def __init__(self, trusted: Path, lock: Path) -> None:
        self._turn, self._path = Turn(lock), trusted
        device_facts()  # starts the driver, which takes a while and needs no lock
        with self._turn.making_a_context():
            self._gpu = Gpu()
            self._trusted = Trusted(self._gpu, self._gpu.load(trusted))
            self._spaces = self._gpu.reserve(), self._gpu.reserve()
        self._module: Any = None
        self._cubin = ""

    def renew(self) -> None:
        """Make a new context for another kernel."""
        with self._turn.making_a_context():
            self._gpu.renew()
            self._trusted = Trusted(self._gpu, self._gpu.load(self._path))
        self._module, self._cubin = None, ""

    def answer(self, request: dict[str, Any], inputs: int, room: int) -> dict[str, Any]:
        """Make the calls of a request and return the reply."""
        request["input_space"], request["output_space"] = self._spaces
        try:
            calls = Calls(self._gpu, self._trusted, lambda: self._functions(request), request)
            outcome = calls.run(inputs, room, self._turn.taken(alone=bool(request["timed"])))
            return {**outcome.reply(), "kernels": self._kernels(calls.functions, request)}
        except Hang:
            return {"status": "timeout"}
        except GpuError as error:
            return {"status": "fault", "error": error.name}

    def _functions(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._cubin not in ("", request["cubin"]):
            raise RuntimeError("a context serves one kernel")
        if self._module is None or request["has_variables"]:
            if self._module is not None:
                self._gpu.unload(self._module)
            self._module, self._cubin = self._gpu.load(Path(request["cubin"])), request["cubin"]
        names = {launch["kernel"] for launch in request["launches"]}
        return {name: self._gpu.function(self._module, name) for name in names}

    def _kernels(self, functions: Mapping[str, Any], request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return figures of every launch."""
        figures = []
        for launch in request["launches"]:
            function = functions[launch["kernel"]]
            x, y, z = launch["block"]
            resident = self._gpu.resident_blocks(function, x * y * z, launch["shared"])
            shape = {"kernel": launch["kernel"], "grid": launch["grid"], "block": launch["block"]}
            figures.append({**shape, "dynamic": launch["shared"], "resident": resident, **self._gpu.figures(function)})
        return figures


def _handle(worker: Worker, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    with ExitStack() as stack:
        inputs, room = (stack.enter_context(_mapped(descriptor)) for descriptor in descriptors)
        return worker.answer(request, inputs, room)


@contextmanager
def _mapped(descriptor: int) -> Iterator[int]:
    """Map shared memory with all pages present; yields its address."""
    with mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) as memory:
        os.close(descriptor)
        first = ctypes.c_char.from_buffer(memory)
        try:
            yield ctypes.addressof(first)
        finally:
            del first


def main() -> None:
    """Serve until the client has closed the socket."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what kernels print
    os.environ.update(ONE_QUEUE)
    with suppress(ConnectionError):  # the client is gone
        _serve(socket.socket(fileno=int(sys.argv[1])))


def _serve(connection: socket.socket) -> None:
    try:
        worker = Worker(Path(sys.argv[2]), Path(sys.argv[3]))
    except GpuError as error:
        send_reply(connection, {"status": "error", "message": f"the GPU cannot be used: {error.name}"})
        return
    while (message := receive_request(connection, 2)) is not None:
        if "renew" in message[0]:
            worker.renew()
            continue
        reply = _handle(worker, *message)
        send_reply(connection, reply)
        if reply["status"] != "ok":
            os._exit(0)  # the context is lost: no orderly shutdown is possible


if __name__ == "__main__":
    main()
