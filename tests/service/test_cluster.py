"""Verdicts from the nodes of a Ray cluster: those of one machine, also when a node is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster import ClusterVerifier
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="needs Ray")
RELU = suites.find_task("level1/relu")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Two nodes with a core each, as separate raylets, and an empty cache of verdicts."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def kernels(count: int) -> list[tuple[Kernel, Any]]:
    source = oracle(RELU).source
    return [(Kernel("not a kernel"), RELU)] + [(Kernel(f"{source}\n// {i}", trusted=True), RELU) for i in range(count)]


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
def test_a_run_on_a_cluster_is_the_run_of_one_machine(cluster: Any, tmp_path: Path) -> None:
    records = []
    for name, env in (("here", {}), ("cluster", {"cluster": cluster.address})):
        overrides = {"agent": "random", "tasks": ["relu", "tanh"], "budget": 3, "env": env}
        config = resolve(overrides=overrides)
        train(config, RunFolder.open(tmp_path / name, config))
        rows = Journal.read(RunFolder(tmp_path / name).journal)
        for row in rows:
            row["verdict"].pop("seconds")
        records.append(json.dumps(rows))
    assert records[0] == records[1]


def test_an_address_without_a_cluster_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"cannot reach a Ray cluster at '127.0.0.1:1'"):
        ClusterVerifier("127.0.0.1:1", "ascend-sim", {})
