"""DQN through RLlib, and MaskablePPO of sb3-contrib: masks obeyed, the known optimum found."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")


from kernel_gym.agents.contract import Agent
from kernel_gym.agents.dqn import DQNAgent
from kernel_gym.agents.rllib import _silent_ray
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.envs.known_optimum import KnownOptimumEnv
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError
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


@pytest.mark.usefixtures("shared_ray")
@pytest.mark.slow
def test_dqn_finds_the_useful_memory_and_keeps_to_the_mask(tmp_path: Path) -> None:
    agent = DQNAgent(seed=3)
    envs, log = trained(agent, 500)
    assert envs.illegal == 0
    assert np.mean(envs.rewards[:150]) < 0
    assert np.mean(envs.rewards[-100:]) > 0.5
    assert any(name.endswith("qf_mean") for name in log[-1])
    assert acts_the_same_after_loading(agent, DQNAgent(seed=3), tmp_path)


@pytest.mark.usefixtures("shared_ray")
@pytest.mark.slow
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
@pytest.mark.usefixtures("shared_ray")
def test_training_continues_from_the_loaded_agent(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    agent = DQNAgent(seed=3)
    before, _ = trained(agent, 800)
    agent.save(tmp_path)
    after, _ = trained(loaded(tmp_path), 60)
    assert np.mean(after.rewards) > np.mean(before.rewards[:150]) + 0.3


@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
def test_training_is_deterministic() -> None:
    """Run by `make test-slow`."""
    assert trained(DQNAgent(seed=3), 120)[0].rewards == trained(DQNAgent(seed=3), 120)[0].rewards


@pytest.mark.usefixtures("shared_ray")
def test_settings_go_to_rllib_and_wrong_ones_are_one_line() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        trained(DQNAgent(seed=3, settings={"nonsense": 1}), 10)


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
