"""DQN through RLlib, and MaskablePPO of sb3-contrib: masks obeyed, the known optimum found."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")

from ray.rllib.algorithms.algorithm import Algorithm

from kernel_gym.agents.contract import Agent, MakeEnv
from kernel_gym.agents.dqn import DQNAgent
from kernel_gym.agents.rllib import _silent_ray
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.envs.known_optimum import KnownOptimumEnv
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError, InfrastructureError
from tests.agents.test_ppo import Counted, KnownOptimum


def trained(agent: Agent, budget: int) -> tuple[Counted, list[Mapping[str, float]]]:
    make_env = KnownOptimum(budget)
    log: list[Mapping[str, float]] = []
    agent.fit(make_env, budget, lambda metrics, step: log.append(metrics))
    return make_env.envs, log


def acts_the_same_after_loading(agent: Agent, other: Agent, folder: Path) -> bool:
    agent.save(folder)
    other.load(folder)
    observation, info = KnownOptimumEnv().reset(seed=1)
    agent.rng, other.rng = np.random.default_rng(0), np.random.default_rng(0)
    return [agent.act(observation, info) for _ in range(20)] == [other.act(observation, info) for _ in range(20)]


def test_dqn_finds_the_useful_memory_and_keeps_to_the_mask(tmp_path: Path) -> None:
    agent = DQNAgent(seed=3)
    envs, log = trained(agent, 600)
    assert envs.illegal == 0
    assert np.mean(envs.rewards[:150]) < 0
    assert np.mean(envs.rewards[-100:]) > 0.5
    assert any(name.endswith("qf_mean") for name in log[-1])
    assert acts_the_same_after_loading(agent, DQNAgent(seed=3), tmp_path)


def test_the_target_network_begins_with_the_loaded_weights() -> None:
    """A random target network would pull the values back until its first update."""
    agent = DQNAgent(seed=3)
    agent.scorer = CandidateScorer(ScorerSizes.of(Layout(int(KnownOptimumEnv().action_space.n) - 1), agent.hidden))
    with _silent_ray(""):
        algorithm = agent._build(KnownOptimum(10))
        learner = algorithm.learner_group._learner.module["default_policy"]
        for network in (learner.scorer, learner._target_scorer, algorithm.get_module().scorer):
            assert all(torch.equal(network.state_dict()[k], v) for k, v in agent.scorer.state_dict().items())
        algorithm.stop()


def loaded(folder: Path) -> DQNAgent:
    agent = DQNAgent(seed=4, explored_steps=1)
    agent.load(folder)
    return agent


@pytest.mark.slow
def test_training_continues_from_the_loaded_agent(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    agent = DQNAgent(seed=3)
    before, _ = trained(agent, 800)
    agent.save(tmp_path)
    after, _ = trained(loaded(tmp_path), 60)
    assert np.mean(after.rewards) > np.mean(before.rewards[:150]) + 0.3


@pytest.mark.slow
def test_training_is_deterministic() -> None:
    """Run by `make test-slow`."""
    assert trained(DQNAgent(seed=3), 120)[0].rewards == trained(DQNAgent(seed=3), 120)[0].rewards


def test_settings_go_to_rllib_and_wrong_ones_are_one_line() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        trained(DQNAgent(seed=3, settings={"nonsense": 1}), 10)


def test_an_address_without_a_cluster_is_a_one_line_error() -> None:
    with pytest.raises(ConfigError, match="cannot reach a Ray cluster"):
        trained(DQNAgent(seed=3, ray_address="127.0.0.1:1"), 10)


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


def test_an_empty_folder_holds_no_network(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="train the agent first"):
        DQNAgent().load(tmp_path)


def test_another_library_learns_on_the_same_environment(tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install 'kernel_gym[sb3]'")
    from kernel_gym.agents.maskable_ppo import MaskablePPOAgent

    agent = MaskablePPOAgent(seed=3)
    envs, log = trained(agent, 1000)
    assert envs.illegal == 0
    assert np.mean(envs.rewards[:200]) < 0
    assert np.mean(envs.rewards[-200:]) > 0.7
    assert any("entropy" in name for name in log[-1])
    assert acts_the_same_after_loading(agent, MaskablePPOAgent(seed=3), tmp_path)
