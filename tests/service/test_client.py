"""The verifier that asks a service: the same verdicts, patience with a service that is away or busy."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from service_server import PausedVerifier, serving

import kernel_gym  # noqa: F401
from kernel_gym import suites
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.service.client import TOKEN, RemoteVerifier, _seconds
from kernel_gym.verifier import Verifier

RELU = suites.find_task("level1/relu")
KERNEL = Kernel("a kernel")


def test_verdicts_are_those_of_a_verifier_on_this_machine() -> None:
    pairs = [(Kernel("not a kernel", trusted=True), RELU), (oracle(RELU), RELU)]
    with Verifier(AscendSim()) as verifier:
        here = verifier.verify_all(pairs)
    with serving(Verifier(AscendSim()), trust_clients=True) as url, RemoteVerifier(url) as remote:
        assert remote.verify_all(pairs) == here
    assert [verdict.feasible for verdict in here] == [False, True]


def test_an_environment_is_judged_by_the_service_that_its_option_names() -> None:
    verifier = PausedVerifier(paused=False)
    with serving(verifier) as url:
        env = gym.make("kernel_gym/KernelSynthesis-v0", tasks=["relu"], budget=1, service=url)
        env.reset(seed=1)
        terminated = False
        while not terminated:
            *_, terminated, _, info = env.step(env.action_space.n - 1)
        env.close()
    assert info["attempt"].verdict.line == 3
    assert len(verifier.submitted) == 1


def test_a_service_that_is_restarted_loses_no_verdict() -> None:
    """The first service ends with the job unfinished; the second has never heard of it."""
    port = _free_port()
    first, second = PausedVerifier(), PausedVerifier(paused=False)
    remote = RemoteVerifier(f"http://127.0.0.1:{port}", patience=30)
    with ThreadPoolExecutor(1) as pool:
        with serving(first, port=port):
            verdict = pool.submit(remote.verify, KERNEL, RELU)
            while not first.submitted:
                time.sleep(0.01)
        with serving(second, port=port):
            assert verdict.result(timeout=60).outcome == "uncompilable"
    assert len(second.submitted) == 1


def test_a_busy_service_is_asked_again() -> None:
    verifier = PausedVerifier()
    with serving(verifier, capacity=1) as url, ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(RemoteVerifier(url).verify, Kernel(text), RELU) for text in ("one", "two")]
        done = threading.Event()

        def release() -> None:
            while not done.wait(0.05):
                verifier.release()

        thread = threading.Thread(target=release)
        thread.start()
        assert [future.result(timeout=60).outcome for future in futures] == ["uncompilable"] * 2
        done.set()
        thread.join()


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("", 0.5), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5)])
def test_a_proxy_may_ask_for_a_pause_in_seconds_or_by_a_date(header: str, seconds: float) -> None:
    assert _seconds(header, 0.5) == seconds


def test_a_service_that_stays_away_is_an_infrastructure_error() -> None:
    with pytest.raises(InfrastructureError, match="cannot be reached"):
        RemoteVerifier(f"http://127.0.0.1:{_free_port()}", patience=0.1).verify(KERNEL, RELU)


@pytest.mark.parametrize(
    ("wanted", "words"), [({"device": "cuda"}, "device ascend-sim"), ({"policy": "reference"}, "policy strict")]
)
def test_a_service_with_another_device_or_policy_is_refused(wanted: dict[str, str], words: str) -> None:
    with serving(PausedVerifier()) as url, pytest.raises(ConfigError, match=words):
        RemoteVerifier(url, **wanted).check()


def test_the_token_is_read_from_the_environment_and_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(PausedVerifier(paused=False), tokens=["sesame"]) as url:
        with pytest.raises(ConfigError, match="token"):
            RemoteVerifier(url).verify(KERNEL, RELU)
        monkeypatch.setenv(TOKEN, "sesame")
        remote = RemoteVerifier(url)
        remote.verify(KERNEL, RELU)
        state = pickle.dumps(remote)
        assert b"sesame" not in state
        assert pickle.loads(state).verify(KERNEL, RELU).outcome == "uncompilable"


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="http://HOST:PORT"):
        RemoteVerifier("localhost:8100")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
