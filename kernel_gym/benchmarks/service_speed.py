"""What a verification service costs: requests a second, and verdicts through it beside verdicts without it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.service.app import make_app
from kernel_gym.service.client import RemoteVerifier
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Verdict
from kernel_gym.verifier import Verifier

#: Clients that ask at the same time, and requests of the measurement without verdicts.
CLIENTS, REQUESTS = 16, 1000
VERDICTS = 24


class _Immediate:
    """A verifier that answers at once."""

    policy = "strict"

    def __init__(self) -> None:
        self.device = AscendSim()

    def submit(self, kernel: Kernel, task: Task) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        future.set_result(Uncompilable("nothing was judged"))
        return future

    def close(self) -> None:
        self.device.close()


def benchmark(workers: int) -> dict[str, float]:
    """Return requests a second with their 50th and 99th percentile, and verdicts a second with and without service."""
    task = suites.find_task("level1/relu")
    with _serving(_Immediate(), workers) as url:
        seconds, latencies = _load(url, [(Kernel(f"// {i}"), task) for i in range(REQUESTS)])
    figures = {
        "service_requests_per_second": REQUESTS / seconds,
        "service_request_p50_ms": 1e3 * latencies[len(latencies) // 2],
        "service_request_p99_ms": 1e3 * latencies[int(0.99 * len(latencies))],
    }
    relu = oracle(task)
    # A comment makes another kernel of it: every verdict is made anew.
    kernels = [(Kernel(f"{relu.source}\n// {i}", trusted=True), task) for i in range(2 * VERDICTS)]
    with TemporaryDirectory() as folder, Verifier(AscendSim(), cache=Path(folder), workers=workers) as verifier:
        verifier.verify(relu, task)
        started = time.perf_counter()
        verifier.verify_all(kernels[:VERDICTS])
        figures["verdicts_per_second_without_service"] = VERDICTS / (time.perf_counter() - started)
        with _serving(verifier, workers) as url:
            seconds, _ = _load(url, kernels[VERDICTS:])
    return figures | {"verdicts_per_second_through_service": VERDICTS / seconds}


def _load(url: str, pairs: list[tuple[Kernel, Task]]) -> tuple[float, list[float]]:
    """Return the seconds that all requests took, and those of each, sorted."""
    remote = RemoteVerifier(url)
    remote.check()

    def ask(pair: tuple[Kernel, Task]) -> float:
        started = time.perf_counter()
        remote.verify(*pair)
        return time.perf_counter() - started

    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        latencies = sorted(pool.map(ask, pairs))
    return time.perf_counter() - started, latencies


@contextmanager
def _serving(verifier: Any, workers: int) -> Iterator[str]:
    app = make_app(verifier, workers, trust_clients=True)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
