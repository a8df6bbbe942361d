"""Messages between a device and its trusted process: start the process, send requests, and replace it when it died.

A message is a length of four bytes and JSON; descriptors of shared memory travel with requests. Messages of length 0
come before an answer that takes long: they say that the device is at work.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kernel_gym.errors import InfrastructureError

#: Seconds that a device may take beyond the kernel's own time limit.
GRACE_SECONDS = 20.0


class DeviceProcess:
    """One device process. The first request starts it, and so does the first request after it died."""

    def __init__(self, command: Sequence[str]) -> None:
        """Prepare a server.

        Args:
            command: Starts the device process; `{socket}` in it becomes the number of its socket.
        """
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0

    def ask(self, request: str, memory: int | Sequence[int] | None, seconds: float) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Args:
            request: The text of the request.
            memory: Descriptors of shared memory that go with it.
            seconds: How long the kernel may take without a sign of work; the device gets GRACE_SECONDS more.

        Returns:
            The answer.

        Raises:
            InfrastructureError: If the process died, did not answer in time, or reported an error of its own.
        """
        connection = self._connection()
        connection.settimeout(seconds + GRACE_SECONDS)
        try:
            _send(connection, request.encode(), memory)
            reply: dict[str, Any] = json.loads(_receive(connection))
        except (OSError, EOFError, ValueError) as error:
            self.close()
            raise InfrastructureError(f"the device process failed: {error or 'no answer in time'}") from error
        if reply["status"] == "error":
            self.close()
            raise InfrastructureError(f"the device process failed: {reply['message']}")
        return reply

    def start(self) -> None:
        """Start the process ahead of the first request."""
        self._connection()

    def tell(self, message: str) -> None:
        """Send a message that has no answer. A process that does not accept it is ended."""
        try:
            _send(self._connection(), message.encode(), None)
        except OSError:
            self.close()

    def close(self) -> None:
        """End the process; the next request starts another."""
        if self._owner != os.getpid():
            return
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._socket = None

    def finish(self, seconds: float = GRACE_SECONDS) -> None:
        """Close the socket and wait for the process to end by itself, at most so many seconds."""
        if self._socket is not None and self._process is not None and self._owner == os.getpid():
            self._socket.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self.close()

    def _connection(self) -> socket.socket:
        if self._owner != os.getpid():  # after a fork the process belongs to the parent: leave it alone
            self._process = self._socket = None
            self._owner = os.getpid()
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._socket is None:
            ours, theirs = socket.socketpair()
            with theirs:
                descriptor = theirs.fileno()
                command = [word.replace("{socket}", str(descriptor)) for word in self._command]
                try:
                    self._process = subprocess.Popen(command, pass_fds=(descriptor,), stdin=subprocess.DEVNULL)
                except OSError as error:
                    ours.close()
                    raise InfrastructureError(f"cannot start the device process: {error}") from error
            self._socket = ours
        return self._socket


def _send(connection: socket.socket, text: bytes, memory: int | Sequence[int] | None) -> None:
    descriptors = [memory] if isinstance(memory, int) else list(memory or ())
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    connection.sendmsg([struct.pack("<I", len(text))], rights)
    connection.sendall(text)


def _receive(connection: socket.socket) -> bytes:
    length = 0
    while length == 0:
        (length,) = struct.unpack("<I", _read(connection, 4))
    return _read(connection, length)


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError("it ended without an answer")
        data += part
    return bytes(data)


def receive_request(connection: socket.socket, descriptors: int) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next request and its descriptors in the trusted process; None if the client is gone."""
    head, received, _, _ = socket.recv_fds(connection, 4, descriptors)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("<I", head)
    try:
        return json.loads(_read(connection, length)), received
    except EOFError:
        return None


def send_reply(connection: socket.socket, reply: Mapping[str, Any]) -> None:
    """Answer a request in the trusted process."""
    data = json.dumps(reply).encode()
    connection.sendall(struct.pack("<I", len(data)) + data)
