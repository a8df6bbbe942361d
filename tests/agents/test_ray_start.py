"""The start of Ray, where no other test of the file has started it."""

import os
import signal
from collections.abc import Mapping

import pytest

pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")

from ray.rllib.algorithms.algorithm import Algorithm

from kernel_gym.agents.contract import MakeEnv
from kernel_gym.agents.dqn import DQNAgent
from kernel_gym.errors import ConfigError, InfrastructureError
from tests.agents.test_ppo import KnownOptimum


def test_an_address_without_a_cluster_is_a_one_line_error() -> None:
    with pytest.raises(ConfigError, match="cannot reach a Ray cluster"):
        DQNAgent(seed=3, ray_address="127.0.0.1:1").fit(KnownOptimum(10), 10, lambda metrics, step: None)


@pytest.mark.slow
def test_a_learner_on_a_cluster_learns_and_its_loss_is_a_one_line_error() -> None:
    """Run by `make test-slow`. A real cluster of one node; its learner is killed after the third report."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    agent, make_env, reports = (
        Killing(seed=3, ray_address=cluster.address),
        KnownOptimum(400),
        list[Mapping[str, float]](),
    )

    def log(metrics: Mapping[str, float], step: int) -> None:
        reports.append(metrics)
        if len(reports) == 3:
            agent.kill_learner()

    try:
        with pytest.raises(InfrastructureError, match="lost a Ray worker"):
            agent.fit(make_env, 400, log)
    finally:
        cluster.shutdown()
    assert any(name.endswith("qf_mean") for name in reports[-1])
    assert make_env.envs.illegal == 0


class Killing(DQNAgent):
    """An agent whose learner can be killed."""

    def _build(self, make_env: MakeEnv) -> Algorithm:
        self.algorithm = super()._build(make_env)
        return self.algorithm

    def kill_learner(self) -> None:
        pids = [result.get() for result in self.algorithm.learner_group.foreach_learner(lambda learner: os.getpid())]
        assert os.getpid() not in pids
        os.kill(pids[0], signal.SIGKILL)
