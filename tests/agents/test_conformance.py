"""Every shipped agent passes the conformance tests."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from kernel_gym import plugins
from kernel_gym.agents.conformance import AgentContract
from kernel_gym.agents.context_value import ContextValueAgent
from kernel_gym.agents.contract import Agent, BudgetSpent
from kernel_gym.agents.feature_value import FeatureValueAgent
from kernel_gym.agents.heuristic import HeuristicAgent
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.pass_at_k import PassAtKAgent
from kernel_gym.agents.random import RandomAgent
from kernel_gym.agents.refinement import RefinementAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.agents.value import ValueAgent
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError


class TestRandom(AgentContract):
    def make(self, seed: int) -> Agent:
        return RandomAgent(seed)


class TestSimilarity(AgentContract):
    def make(self, seed: int) -> Agent:
        return SimilarityAgent(seed)


class TestHeuristic(AgentContract):
    def make(self, seed: int) -> Agent:
        return HeuristicAgent(seed)


class TestSimilarityFeasible(AgentContract):
    def make(self, seed: int) -> Agent:
        return SimilarityFeasibleAgent(seed)


class TestSimilarityDiverse(AgentContract):
    def make(self, seed: int) -> Agent:
        return SimilarityDiverseAgent(seed)


class TestPassAtK(AgentContract):
    def make(self, seed: int) -> Agent:
        return PassAtKAgent(seed)


class TestRefinement(AgentContract):
    def make(self, seed: int) -> Agent:
        return RefinementAgent(seed)


class TestValue(AgentContract):
    def make(self, seed: int) -> Agent:
        return ValueAgent(seed)


class TestContextValue(AgentContract):
    def make(self, seed: int) -> Agent:
        return ContextValueAgent(seed)


class TestFeatureValue(AgentContract):
    def make(self, seed: int) -> Agent:
        return FeatureValueAgent(seed)


class TestValueByTask(AgentContract):
    def make(self, seed: int) -> Agent:
        return ValueAgent(seed, key="task", epsilon=0.5)


class TestOracle(AgentContract):
    attempts = 3

    def make(self, seed: int) -> Agent:
        return OracleAgent(seed, draws=1)

    def environment(self) -> gym.Env[Any, Any]:
        """The oracle reads the apprentice's probabilities, which exist for real tasks only."""
        tasks = ("relu", "softmax")
        return gym.make("kernel_gym/KernelSynthesisForecast-v0", tasks=tasks, budget=4, picks=2, pool_factor=2)


class Network(AgentContract):
    """Agents that score candidates with a network, tested with untrained weights."""

    def scorer(self, seed: int) -> Any:
        from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes

        torch.manual_seed(seed)
        return CandidateScorer(ScorerSizes.of(Layout(int(self.environment().action_space.n) - 1), 16))  # type: ignore[attr-defined]


class TestPPO(Network):
    def make(self, seed: int) -> Agent:
        pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
        from kernel_gym.agents.ppo import PPOAgent

        agent = PPOAgent(seed)
        agent.scorer = self.scorer(seed)
        return agent


class TestDQN(Network):
    def make(self, seed: int) -> Agent:
        pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
        from kernel_gym.agents.dqn import DQNAgent

        agent = DQNAgent(seed)
        agent.scorer = self.scorer(seed)
        return agent


class TestTrained(Network):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    def make(self, seed: int) -> Agent:
        from kernel_gym.agents import scoring
        from kernel_gym.agents.trained import TrainedAgent

        scoring.save(self.scorer(seed), self.tmp_path / f"{seed}.pt")
        return TrainedAgent(seed, weights=str(self.tmp_path / f"{seed}.pt"), greedy=False)


class TestUntrainedPPO(AgentContract):
    def make(self, seed: int) -> Agent:
        pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
        from kernel_gym.agents.ppo import PPOAgent

        return PPOAgent(seed)

    def test_a_loaded_agent_acts_as_the_saved_one(self, tmp_path: Path) -> None:
        """An untrained agent saves nothing, so loading is an error."""
        self.make(1).save(tmp_path)
        with pytest.raises(ConfigError, match="holds no trained network"):
            self.make(1).load(tmp_path)


class TestMaskablePPO(AgentContract):
    """Trained for a few steps, because only the library makes its network."""

    def make(self, seed: int) -> Agent:
        pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: make test-sb3")
        from kernel_gym.agents.maskable_ppo import MaskablePPOAgent

        agent = MaskablePPOAgent(seed, steps_per_batch=8, epochs=1)
        agent.fit(ShortTraining(self), 8, lambda metrics, step: None)
        return agent


class ShortTraining:
    """Makes environments that end the training after a few steps."""

    def __init__(self, contract: AgentContract) -> None:
        self.contract = contract

    def __call__(self) -> gym.Env[Any, Any]:
        return self.contract.environment()

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        return Ending(gym.vector.SyncVectorEnv([self]))


class Ending(gym.vector.VectorWrapper):
    steps = 0

    def step(self, actions: Any) -> Any:
        self.steps += 1
        if self.steps > 20:
            raise BudgetSpent
        return self.env.step(actions)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("random", RandomAgent),
        ("similarity", SimilarityAgent),
        ("heuristic", HeuristicAgent),
        ("similarity-feasible", SimilarityFeasibleAgent),
        ("similarity-diverse", SimilarityDiverseAgent),
        ("pass@k", PassAtKAgent),
        ("refinement", RefinementAgent),
        ("value", ValueAgent),
        ("context-value", ContextValueAgent),
        ("oracle", OracleAgent),
    ],
)
def test_agents_are_found_by_name(name: str, kind: type[Agent]) -> None:
    assert plugins.load("kernel_gym.agents", name) is kind


def test_the_package_lists_every_shipped_agent() -> None:
    import kernel_gym.agents

    shipped = [point for point in entry_points(group="kernel_gym.agents") if point.value.startswith("kernel_gym.")]
    table = kernel_gym.agents.__doc__ or ""
    assert [point.name for point in shipped if f"`{point.name}`" not in table] == []
    assert len(shipped) > 10
