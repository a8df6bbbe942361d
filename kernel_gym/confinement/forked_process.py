"""Processes that a fork server starts; see `fork_server`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock
from typing import Any


class NotForked(Exception):
    """Raised if the server cannot fork a process; says why."""


class ForkServer:
    """A process that has imported the libraries. It ends with the thread that started it.

    Args:
        library: The shared library of the confinement.
        environment: The variables of the server.
        seconds: How long it may take to import a module.
    """

    def __init__(self, library: Path, environment: Mapping[str, str], seconds: float) -> None:
        self._lock = Lock()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(seconds)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the server
        program = [sys.executable, "-P", "-m", "kernel_gym.confinement.fork_server", str(theirs.fileno()), str(library)]
        with theirs:
            self._process = subprocess.Popen(
                program, cwd="/", env=environment, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
                pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The number of the server's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server can fork."""
        return self._process.poll() is None

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> ForkedProcess:
        """Return a new process; a NotForked if there is none."""
        try:
            return ForkedProcess(self, self._ask(request, descriptors))
        except TimeoutError:
            self._end()
            raise NotForked(f"it took longer than {self._connection.gettimeout():.0f} s") from None
        except (OSError, EOFError):
            self._end()
            self._errors.seek(0)
            words = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise NotForked(" ".join(words) or "it gave no reason") from None

    def status(self, process: int) -> int:
        """Return the exit status of a process that has ended. Processes are killed with their server."""
        try:
            return self._ask({"process": process}, ())
        except (OSError, EOFError):
            return -signal.SIGKILL

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(request).encode()], descriptors)
            answer = self._connection.recv(64)
        if not answer:
            raise EOFError
        return int(answer)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()


class ForkedProcess:
    """A process of a fork server; used like `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._lock = Lock()
        self._descriptor = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._descriptor)

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        with self._lock:
            if self.returncode is None and wait([self._descriptor], 0):
                self.returncode = self._server.status(self.pid)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status when it has ended; a TimeoutExpired if it has not after some seconds."""
        wait([self._descriptor], timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return status

    def kill(self) -> None:
        """End the process."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
