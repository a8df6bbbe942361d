"""Kernels on the GPU of a Ray cluster: compiled in a task, judged by an actor that holds the GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster import ClusterVerifier
from kernel_gym.service.local_cluster import local_cluster

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]
RELU = suites.find_task("level1/relu")


def test_an_actor_judges_on_its_gpu_what_a_task_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs Ray")
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-of-nodes"))
    good = oracle(RELU, "cuda")
    wrong = Kernel(good.source.replace("fmaxf", "fminf"), "cuda", trusted=True)
    assert wrong.source != good.source
    with local_cluster(1, cores=2, gpus=1) as cluster:
        monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts-of-driver"))
        with ClusterVerifier(cluster.address, "cuda", {}) as verifier:
            assert verifier.workers == 1  # one GPU, though there are two cores
            verdicts = verifier.verify_all([(good, RELU), (wrong, RELU)])
            assert sum(verifier.compiled_on.values()) == 2
    assert [verdict.outcome for verdict in verdicts] == ["feasible", "incorrect"]
    assert verdicts[0].latency_us
