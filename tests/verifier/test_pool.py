"""The pool: order, replacement of what died, hangs, cancelling, nothing left behind."""

import subprocess
import sys
import threading
from typing import ClassVar

import pytest

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.worker_pool import WorkerPool

SERVER = """
import os, sys, time
for line in sys.stdin:
    word = line.strip()
    if word == "crash":
        os.abort()
    if word == "hang":
        time.sleep(1000)
    print(word.upper(), flush=True)
"""


class ServerDevice:
    """A device with a real process behind it; it answers, crashes or hangs as it is told."""

    alive: ClassVar[list["ServerDevice"]] = []

    def __init__(self):
        self.process = None

    def fork(self):
        forked = ServerDevice()
        forked.process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        ServerDevice.alive.append(forked)
        return forked

    def ask(self, word):
        try:
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except (OSError, ValueError) as error:
            raise InfrastructureError("the server is gone") from error
        if not answer:
            raise InfrastructureError("the server died")
        return answer.decode().strip()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    ServerDevice.alive = []
    before = threading.enumerate()  # a verifier of another file may still be open
    yield
    assert all(device.process.poll() is not None for device in ServerDevice.alive)
    for device in ServerDevice.alive:
        device.process.stdin.close()
        device.process.stdout.close()
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in started if thread.name.startswith("kernel-gym-worker") and thread.is_alive()]


@pytest.fixture
def pool():
    pool = WorkerPool(ServerDevice(), lambda device, word: device.ask(word), workers=2)
    yield pool
    pool.close()


def test_results_come_in_the_order_of_the_requests(pool):
    words = [f"word{i}" for i in range(40)]
    assert pool.map(words) == [word.upper() for word in words]
    assert len(ServerDevice.alive) == 2


def test_a_crash_is_reported_and_leaves_the_others_alone(pool):
    results = pool.map(["a", "crash", "b", "c"])
    assert [results[0], results[2], results[3]] == ["A", "B", "C"]
    assert isinstance(results[1], InfrastructureError)
    assert pool.map(["d"] * 4) == ["D"] * 4


def test_a_failed_request_is_judged_once_and_its_device_replaced():
    judged = []

    def judge(device, word):
        judged.append(word)
        return device.ask(word)

    pool = WorkerPool(ServerDevice(), judge, workers=1, give_up=str)
    assert pool.map(["crash", "a"]) == ["the server died", "A"]
    assert judged == ["crash", "a"]
    assert len(ServerDevice.alive) == 2
    pool.close()


def test_a_hang_has_its_device_closed():
    """What hangs is ended; what is only slow because the machine is busy is asked for again until it is done."""
    pool = WorkerPool(ServerDevice(), lambda device, word: device.ask(word), workers=2, patience=0.5)
    assert isinstance(pool.map(["hang"])[0], InfrastructureError)
    for word in ("a", "b"):
        while isinstance(result := pool.map([word])[0], InfrastructureError):
            pass
        assert result == word.upper()
    pool.close()


def test_a_closed_pool_takes_nothing_more(pool):
    assert pool.map(["a"]) == ["A"]
    pool.close()
    with pytest.raises(InfrastructureError, match="closed"):
        pool.submit("b")


def test_an_interrupt_cancels_what_has_not_begun():
    started = threading.Event()

    def judge(device, word):
        started.set()
        if word == "slow":
            return device.ask("hang")
        return device.ask(word)

    pool = WorkerPool(ServerDevice(), judge, workers=1)
    futures = [pool.submit("slow"), pool.submit("b"), pool.submit("c")]
    started.wait()
    cancelled = [future.cancel() for future in futures[1:]]
    pool.close()
    assert cancelled == [True, True]
    assert isinstance(futures[0].exception(), InfrastructureError)


INTERRUPTED = """
import sys, time
sys.path.insert(0, {folder!r})
from test_pool import ServerDevice
from kernel_gym.hardware.worker_pool import WorkerPool
def ask(device, word):
    sys.stdout.write(f"{{word}} {{device.process.pid}}\\n")  # at once: lines of two threads must not mix
    sys.stdout.flush()
    return device.ask(word)
pool = WorkerPool(ServerDevice(), ask, workers=2)
try:
    pool.map(["hang"] * 6)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_every_process(tmp_path):
    import os
    import signal
    from pathlib import Path

    script = INTERRUPTED.format(folder=str(Path(__file__).parent))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    pids = [int(child.stdout.readline().split()[1]) for _ in range(2)]  # both workers have begun
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate()
    assert b"interrupted" in output
    assert child.returncode == 0
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
