"""Verdicts from the nodes of a Ray cluster: those of one machine, also when a node is lost."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from code_blocks import blocks
from python_process import run_python
from repository import ROOT

from kernel_gym import suites
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_recorder import Progress, no_progress
from kernel_gym.experiments.runs.training import train
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster import ClusterVerifier
from kernel_gym.service.local_cluster import local_cluster
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "guides" / "ray.md"
RELU = suites.find_task("level1/relu")


BROKEN_DEVICES = """
import time
from kernel_gym.hardware.ascend_sim.device import AscendSim

class Unavailable(AscendSim):
    def unavailable_reason(self):
        return "no such hardware"

class Differing(AscendSim):
    def identity(self):
        return f"another one/{time.time_ns()}"
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Two nodes with a core each, for a test that loses one; nodes and driver have a cache of verdicts each."""
    pytest.importorskip("ray", reason="needs Ray")
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-of-nodes"))
    with local_cluster(2) as cluster:
        monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-of-driver"))
        yield cluster


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two nodes with a core each for the tests that leave them whole, which come last; they know broken devices."""
    pytest.importorskip("ray", reason="needs Ray")
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "broken_devices.py").write_text(BROKEN_DEVICES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv("KERNEL_GYM_CACHE", str(folder / "verdicts"))
        with local_cluster(2) as cluster:
            cluster.verdicts = folder / "verdicts"
            patch.undo()
            yield cluster


@pytest.fixture(autouse=True)
def own_verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The driver of each test begins with an empty cache of verdicts."""
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-of-driver"))


def kernels(count: int) -> list[tuple[Kernel, Any]]:
    source = oracle(RELU).source
    return [(Kernel("not a kernel"), RELU)] + [(Kernel(f"{source}\n// {i}", trusted=True), RELU) for i in range(count)]


def test_an_address_without_a_cluster_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"cannot reach a Ray cluster at '127.0.0.1:1'"):
        ClusterVerifier("127.0.0.1:1", "ascend-sim", {})


@pytest.mark.timeout(300)
def test_a_lost_node_loses_no_verdict(cluster: Any) -> None:
    pairs = kernels(7)
    with ClusterVerifier(cluster.address, "ascend-sim", {}) as verifier:
        assert verifier.workers == 2
        futures = [verifier.submit(*pair) for pair in pairs]
        futures[1].result(timeout=120)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        verdicts = [future.result(timeout=120) for future in futures]
        with pytest.raises(ConfigError, match="runs ascendc, not cuda"):
            verifier.verify(Kernel("", "cuda"), RELU)
    with Verifier(AscendSim(), cache=False) as here:
        assert verdicts == here.verify_all(pairs)


@pytest.mark.timeout(300)
def test_kernels_are_compiled_beside_the_actors(cluster: Any) -> None:
    pairs = kernels(4)
    with ClusterVerifier(cluster.address, "ascend-sim", {}, workers=1) as verifier:
        verdicts = verifier.verify_all([*pairs, *pairs])
        assert sum(verifier.compiled_on.values()) == len(pairs), "equal kernels are compiled once"
        verifier.verify(pairs[1][0], suites.find_task("level1/tanh"))
        assert sum(verifier.compiled_on.values()) == len(pairs), "a build is found by its content, for any task"
        # Whichever of the two had the actor: the core that is left judges and compiles.
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        again = [(Kernel(f"{kernel.source}\n// again", trusted=True), task) for kernel, task in pairs]
        after = verifier.verify_all(again)
    with Verifier(AscendSim(), cache=False) as here:
        assert verdicts == here.verify_all([*pairs, *pairs])
        assert after == here.verify_all(again)


def journal(folder: Path, env: dict[str, str], progress: Progress = no_progress) -> str:
    """The journal of a small run, without the time that verdicts took."""
    config = resolve(overrides={"agent": "random", "tasks": ["relu", "tanh"], "budget": 3, "env": env})
    train(config, RunFolder.open(folder, config), progress)
    rows = Journal.read(RunFolder(folder).journal)
    for row in rows:
        row["verdict"].pop("seconds")
    return json.dumps(rows)


@pytest.mark.timeout(300)
def test_a_run_on_a_cluster_is_the_run_of_one_machine_also_when_a_node_is_lost(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_a_node(done: int, total: int, solved: int) -> None:
        if done >= 2 and cluster.worker_nodes:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    on_cluster = journal(tmp_path / "cluster", {"cluster": cluster.address}, lose_a_node)
    assert not cluster.worker_nodes
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-here"))
    assert on_cluster == journal(tmp_path / "here", {})


@pytest.mark.timeout(300)
def test_a_verdict_that_the_driver_knows_is_not_made_again(nodes: Any) -> None:
    pairs = kernels(1)
    for judged in (1, 0):
        with ClusterVerifier(nodes.address, "ascend-sim", {}, workers=1) as verifier:
            verdicts = verifier.verify_all(pairs)
            assert sum(verifier.compiled_on.values()) == judged * len(pairs)
    assert [verdict.feasible for verdict in verdicts] == [False, True]


@pytest.mark.timeout(300)
def test_runs_whose_actors_hold_all_cores_do_not_wait_for_each_other(nodes: Any) -> None:
    """Each run sees a core that is not its own; the other's actor holds it."""
    pairs = kernels(3)
    runs = [ClusterVerifier(nodes.address, "ascend-sim", {}, workers=1) for _ in range(2)]
    futures = [verifier.submit(*pair) for pair in pairs for verifier in runs]
    verdicts = [future.result(timeout=200) for future in futures]
    for verifier in runs:
        verifier.close()
    assert verdicts[::2] == verdicts[1::2]


def judged_until_refused(verifier: ClusterVerifier) -> None:
    """Judge kernels as long as there are verdicts: the first actor may judge before the second one is there."""
    with suppress(InfrastructureError):
        for number in count():
            verifier.verify(Kernel(f"// {number}"), RELU)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("device", "reason"),
    [("Unavailable", "cannot be used on the cluster: no such hardware"), ("Differing", "the nodes differ")],
)
def test_a_device_that_cannot_be_used_is_one_line_for_every_kernel(nodes: Any, device: str, reason: str) -> None:
    with ClusterVerifier(nodes.address, f"broken_devices:{device}", {}) as verifier:
        judged_until_refused(verifier)
        with pytest.raises(InfrastructureError, match=reason):
            verifier.verify(Kernel("later"), RELU)


@pytest.mark.timeout(300)
def test_an_agent_that_uses_ray_trains_on_the_cluster_that_judges(nodes: Any, tmp_path: Path) -> None:
    import ray

    env = {"cluster": nodes.address}
    config = resolve(overrides={"agent": "ppo", "tasks": ["relu", "tanh"], "budget": 2, "env": env})
    train(config, RunFolder.open(tmp_path / "run", config))
    assert ray.get_runtime_context().gcs_address == nodes.address
    assert list(nodes.verdicts.rglob("*.json")), "the nodes judged, not a Ray that the agent started"


COMPARE = (
    *("compare", "--agents", "random,ppo", "--suite", "level1", "--tasks", "relu,tanh"),
    *("--budget", "3", "--seeds", "1"),
)


@pytest.mark.timeout(900)
def test_a_comparison_on_a_cluster_prints_the_table_of_one_machine(nodes: Any, tmp_path: Path) -> None:
    """The demo in small: `make demo-cluster` is the demo itself. PPO starts a Ray of its own without a cluster."""
    tables = []
    for name, words in (("here", ()), ("cluster", ("--cluster", nodes.address))):
        cache = str(tmp_path / f"verdicts-{name}")
        out = tmp_path / name
        done = run_python("-m", "kernel_gym", *COMPARE, *words, "--out", out, KERNEL_GYM_CACHE=cache)
        assert done.returncode == 0, done.stderr
        tables.append(done.stdout.replace(str(out), "OUT"))
    assert tables[0] == tables[1]
    assert "ppo" in tables[0]


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_work(nodes: Any, tmp_path: Path) -> None:
    commands = [line for block in blocks(PAGE) if block.language == "bash" for line in block.commands]
    assert commands
    for line in commands:
        words = shlex.split(line.replace("HOST:PORT", nodes.address))
        assert words[0] == "kernel-gym"
        done = run_python("-m", "kernel_gym", *words[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.timeout(300)
def test_a_command_has_a_local_cluster_for_its_time() -> None:
    show = "import ray; ray.init(address='auto', log_to_driver=False); print(sorted(n['Alive'] for n in ray.nodes()))"
    done = run_python("-m", "kernel_gym.service.local_cluster", "--nodes", 2, sys.executable, "-c", show)
    assert done.returncode == 0, done.stderr
    assert "[True, True]" in done.stdout
