"""A small language model behind a real server (llama.cpp), as a process that can be killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


class LocalModel:
    """The server; `start` returns once it answers."""

    def __init__(self, weights: Path, log: Path) -> None:
        self.weights, self.log, self.port = weights, log, _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = [sys.executable, __file__, str(self.weights), str(self.port)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"the local model ended: {self.log.read_text()[-2000:]}")
            time.sleep(0.5)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def serve(weights: str, port: int) -> None:
    """Serve until killed."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.n_ctx, settings.n_parallel, settings.n_gpu_layers = 8192, 1, 0
    # One thread: several spin while they wait for one another, which on a busy machine takes forever.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.hostnames, settings.port = ["127.0.0.1"], port
    server = xllamacpp.Server(settings)
    print("listening", server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
