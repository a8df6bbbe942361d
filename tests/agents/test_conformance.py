"""Every agent of ours keeps the contract."""

import pytest

from kernel_gym import plugins
from kernel_gym.agents.complement import ComplementAgent
from kernel_gym.agents.conformance import AgentContract
from kernel_gym.agents.contract import Agent
from kernel_gym.agents.heuristic import HeuristicAgent
from kernel_gym.agents.knowing import KnowingAgent
from kernel_gym.agents.pass_at_k import PassAtKAgent
from kernel_gym.agents.random import RandomAgent
from kernel_gym.agents.refinement import RefinementAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.agents.value import ValueAgent


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


class TestComplement(AgentContract):
    def make(self, seed: int) -> Agent:
        return ComplementAgent(seed)


class TestValueByTask(AgentContract):
    def make(self, seed: int) -> Agent:
        return ValueAgent(seed, key="task", epsilon=0.5)


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
        ("complement", ComplementAgent),
        ("knowing", KnowingAgent),
    ],
)
def test_agents_are_found_by_name(name: str, kind: type[Agent]) -> None:
    assert plugins.load("kernel_gym.agents", name) is kind
