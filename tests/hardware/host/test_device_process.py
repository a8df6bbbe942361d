"""Messages between a device and its process."""

import json
import socket
import struct

import pytest

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.host.device_process import DeviceProcess

AT_WORK = bytes(4)


def answer(reply: dict[str, str]) -> bytes:
    data = json.dumps(reply).encode()
    return struct.pack("<I", len(data)) + data


@pytest.fixture
def ask(monkeypatch):
    ours, theirs = socket.socketpair()
    process = DeviceProcess([])
    monkeypatch.setattr(process, "_connection", lambda: ours)

    def ask(messages: bytes):
        theirs.sendall(messages)
        theirs.shutdown(socket.SHUT_WR)
        return process.ask("run", None, 1.0)

    with ours, theirs:
        yield ask


def test_a_device_may_report_activity_before_its_result(ask):
    assert ask(3 * AT_WORK + answer({"status": "ok"})) == {"status": "ok"}


def test_a_device_that_ends_without_an_answer_has_failed(ask):
    with pytest.raises(InfrastructureError, match="without an answer"):
        ask(3 * AT_WORK)
