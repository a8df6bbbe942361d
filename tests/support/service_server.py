"""A verification service in a thread, on a real socket, with a verifier whose verdicts the test decides."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import uvicorn

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.service.app import make_app
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Verdict


class PausedVerifier:
    """Judges when the test says so: `release` gives all kernels that wait a verdict."""

    policy = "strict"

    def __init__(self, paused: bool = True) -> None:
        self.device = AscendSim()
        self.paused = paused
        self.submitted: list[tuple[Kernel, Task]] = []
        self._waiting: list[Future[Verdict]] = []

    def submit(self, kernel: Kernel, task: Task) -> Future[Verdict]:
        self.submitted.append((kernel, task))
        future: Future[Verdict] = Future()
        self._waiting.append(future)
        if not self.paused:
            self.release()
        return future

    def release(self, verdict: Verdict = Uncompilable("no such name", line=3)) -> None:  # noqa: B008
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(verdict)

    def close(self) -> None:
        for future in self._waiting:
            future.cancel()


@contextmanager
def serving(verifier: Any, port: int = 0, **options: Any) -> Iterator[str]:
    """Serve at a free port, or at `port`, and return the address."""
    app = make_app(verifier, workers=1, **options)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
