"""The OpenEnv environment: a real server, the real client, the verifier's rewards."""

from __future__ import annotations

import shlex
import socket
import threading
import time
from collections.abc import Iterator
from importlib import import_module, resources
from typing import Any

import pytest
import requests
import yaml
from code_blocks import blocks
from python_process import PythonProcess, run_python
from repository import ROOT

from kernel_gym import suites
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.errors import ConfigError

pytest.importorskip("openenv.core", reason="needs the extra openenv")
uvicorn = pytest.importorskip("uvicorn")

from kernel_gym.integrations.openenv import KernelAction, KernelWritingClient, make_app  # noqa: E402

PAGE = ROOT / "docs" / "guides" / "train-models.md"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(make_app(tasks=["relu", "tanh"], budget=3), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def connected(url: str) -> Any:
    """A blocking client: since version 0.3 of the package clients are asynchronous."""
    client = KernelWritingClient(base_url=url)
    return client.sync() if hasattr(client, "sync") else client


def test_an_episode_over_the_network_has_the_verifiers_rewards(url: str) -> None:
    relu = oracle(suites.find_task("level1/relu")).source
    with connected(url) as env:
        first = env.reset(seed=1, task="level1/relu")
        assert "class Model" in first.observation.task
        assert (first.reward, first.done, first.observation.attempts_left) == (None, False, 3)
        wrong = env.step(KernelAction(source="not a kernel"))
        assert (wrong.reward, wrong.observation.stage) == (-1.0, "draft")
        assert "uncompilable" in wrong.observation.feedback
        right = env.step(KernelAction(source=relu))
        assert (right.reward, right.done, right.observation.stage) == (1.0, False, "refine")
        assert right.observation.best_kernel == relu
        assert right.observation.best_us == right.observation.first_us > 0
        last = env.step(KernelAction(source="not a kernel"))
        assert last.done
        state = env.state()
        assert (state.step_count, state.task_id, state.attempts_left) == (3, "level1/relu", 0)


def test_kernels_of_models_have_other_characters_and_any_length(url: str) -> None:
    """They were an error of the server, and the end of the session."""
    relu = oracle(suites.find_task("level1/relu")).source
    with connected(url) as env:
        env.reset(seed=1, task="level1/relu")
        assert env.step(KernelAction(source=f"{relu}\n// 2 \N{MULTIPLICATION SIGN} 3\n")).reward == 1.0
        assert env.step(KernelAction(source="x" * 100_000)).reward == -1.0


def test_sessions_do_not_share_their_episodes(url: str) -> None:
    with connected(url) as one, connected(url) as other:
        one.reset(task="level1/relu")
        other.reset(task="level1/tanh")
        one.step(KernelAction(source=""))
        assert (one.state().task_id, one.state().step_count) == ("level1/relu", 1)
        assert (other.state().task_id, other.state().step_count) == ("level1/tanh", 0)


def test_bad_options_are_an_error_when_the_server_starts() -> None:
    with pytest.raises(ConfigError, match="no option 'colour'"):
        make_app(colour="red")


def test_the_manifest_names_the_application() -> None:
    manifest = yaml.safe_load(resources.files("kernel_gym.integrations").joinpath("openenv.yaml").read_text())
    module, _, name = manifest["app"].partition(":")
    assert import_module(module).__getattr__(name).routes


def test_the_commands_of_the_page_work() -> None:
    """The server's command line, and the client's code with whatever the installed version of the package needs."""
    server, client = (block.code for block in blocks(PAGE) if not block.language and "openenv" in block.code)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = shlex.split(server.splitlines()[-1].replace("8000", port))
    command = words.index("uvicorn")
    settings = dict(word.split("=") for word in words[:command])
    assert set(settings) == {"KERNEL_GYM_SUITE", "KERNEL_GYM_BUDGET"}
    process = PythonProcess("-m", *words[command:], environment=settings)
    try:
        while not answers(f"http://127.0.0.1:{port}/health"):
            assert process.returncode is None, process.communicate()
            time.sleep(0.1)
        connect = ") as env:"
        assert client.count(connect) == 1
        if hasattr(KernelWritingClient, "sync"):
            client = client.replace(connect, ").sync() as env:")
        done = run_python("-c", client.replace("8000", port))
    finally:
        process.kill()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("-1.0 uncompilable")


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False
