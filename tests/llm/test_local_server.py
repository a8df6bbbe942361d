"""Tests of the llama.cpp server's process: it starts, answers, stops, and never outlives its parent."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import fake_llama
import pytest

from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.llm.local import server
from kernel_gym.llm.local.server import LlamaServer, check_installed

SUPPORT = Path(fake_llama.__file__).parent
PARENT = """
import fake_llama, sys, time
from pathlib import Path
from kernel_gym.llm.local.server import LlamaServer
server = LlamaServer(Path("model.gguf"), 100, command=fake_llama.COMMAND)
print(server.start(), server._process.pid, flush=True)
{then}
"""


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url.replace("/v1", "/health"), timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def test_a_server_starts_and_stops() -> None:
    local = LlamaServer(Path("model.gguf"), context=100, slots=2, threads=1, command=fake_llama.COMMAND)
    url = local.start()
    assert local.running
    assert answers(url)
    local.stop()
    assert not local.running
    assert not answers(url)
    local.stop()


def test_a_server_that_does_not_start_says_why() -> None:
    with pytest.raises(InfrastructureError, match=r"server of broken.gguf did not start: llama: cannot load the model"):
        LlamaServer(Path("broken.gguf"), 100, command=fake_llama.COMMAND).start()


@pytest.mark.parametrize("then", ["", "raise SystemExit(3)", "time.sleep(60)"])
def test_the_server_ends_with_its_parent(then: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{SUPPORT}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert parent.stdout is not None
    url, pid = parent.stdout.readline().split()
    if then.startswith("time"):
        parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.05)
    assert not answers(url)


def test_a_missing_llama_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs llama.cpp: pip install 'kernel_gym\[local\]'"):
        check_installed()
