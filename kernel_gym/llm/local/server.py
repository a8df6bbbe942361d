"""A llama.cpp server as a process of its own, which ends with the process that started it.

    server = LlamaServer(file, context=8192)
    server.start()                      # returns the address once the model is loaded
    server.stop()

The server is that of the package `xllamacpp`.
"""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from kernel_gym.errors import ConfigError, InfrastructureError

#: How to get the server.
INSTALL = "pip install 'kernel_gym[local]'"
#: The commands that serve a model: llama.cpp, and batches on a GPU.
LLAMA = (sys.executable, "-m", "kernel_gym.llm.local.server")
BATCHED = (sys.executable, "-m", "kernel_gym.llm.local.batch_server")
#: Seconds that loading a model may take.
PATIENCE = 600.0


def check_installed() -> None:
    """Raise a ConfigError if llama.cpp is not installed."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"--author local needs llama.cpp: {INSTALL}")


class LlamaServer:
    """A server for one model file; it answers on localhost alone.

    Args:
        file: The model file.
        context: Tokens of a prompt and its answer together.
        slots: Answers at the same time.
        threads: Threads; 0 for one a core.
        gpu_layers: Layers on the GPU, if llama.cpp was built for one; -1 for all.
        command: The command that serves the model; the arguments are added.
    """

    def __init__(
        self,
        file: Path,
        context: int,
        slots: int = 1,
        threads: int = 0,
        gpu_layers: int = -1,
        command: tuple[str, ...] = LLAMA,
    ) -> None:
        self.file, self.context, self.slots = file, context, slots
        self.threads, self.gpu_layers = threads or len(os.sched_getaffinity(0)), gpu_layers
        self.command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self.url = ""

    def start(self) -> str:
        """Start the server and wait until it answers.

        Returns:
            The address for clients.

        Raises:
            InfrastructureError: The server ended, or did not answer in time.
        """
        port = _free_port()
        log = tempfile.NamedTemporaryFile(prefix="llama-", suffix=".log", delete=False)  # noqa: SIM115
        self._log = Path(log.name)
        sizes = (self.context * self.slots, self.slots, self.threads, self.gpu_layers)
        arguments = [str(self.file), str(port), *map(str, sizes)]
        with log:
            self._process = subprocess.Popen(
                [*self.command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        atexit.register(self.stop)
        deadline = time.monotonic() + PATIENCE
        while not _answers(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                ending = self._ending()
                self.stop()
                raise InfrastructureError(f"the server of {self.file.name} did not start: {ending}")
            time.sleep(0.2)
        self.url = f"http://127.0.0.1:{port}/v1"
        return self.url

    def _ending(self) -> str:
        """Return the last line that the server printed."""
        text = self._log.read_text(errors="replace") if self._log else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it printed nothing"

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the server; does nothing if it does not run."""
        atexit.unregister(self.stop)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._log is not None:
            self._log.unlink(missing_ok=True)
            self._log = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def end_with_parent(parent: int, interval: float = 1.0) -> None:
    """End this process once its parent has ended, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve a model until killed, or until the parent has ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    for name in ("port", "context", "slots", "threads", "gpu_layers"):
        parser.add_argument(name, type=int)
    arguments = parser.parse_args()
    end_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the server after Ctrl-C
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = arguments.file
    settings.model_alias = {Path(arguments.file).stem}  # as requests name it
    settings.n_ctx, settings.n_parallel = arguments.context, arguments.slots
    settings.n_gpu_layers = arguments.gpu_layers
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = arguments.threads
    settings.hostnames, settings.port = ["127.0.0.1"], arguments.port
    server = xllamacpp.Server(settings)
    print("listening", server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
