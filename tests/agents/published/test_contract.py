"""Every published agent keeps the agents' contract, is found by name, and keeps its trees apart."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import kernel_gym  # noqa: F401
from kernel_gym import plugins
from kernel_gym.agents import published
from kernel_gym.agents.conformance import AgentContract
from kernel_gym.agents.contract import Agent
from kernel_gym.agents.published.forecaster import ForecasterAgent
from kernel_gym.agents.published.greedy import GreedyAgent
from kernel_gym.agents.published.islands import IslandsAgent
from kernel_gym.agents.published.judge import JudgeAgent
from kernel_gym.agents.published.map_elites import MapElitesAgent
from kernel_gym.agents.published.max_value import MaxValueAgent
from kernel_gym.agents.published.one_shot import OneShotAgent
from kernel_gym.agents.published.pareto import ParetoAgent
from kernel_gym.agents.published.puct import PUCTAgent
from kernel_gym.agents.published.shinka import ShinkaAgent
from kernel_gym.agents.published.tree_agent import Tree, TreeAgent, Visit
from kernel_gym.agents.published.uct import UCTAgent
from kernel_gym.agents.published.world_model import WorldModelAgent
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play

AGENTS: dict[str, type[Any]] = {
    "puct": PUCTAgent,
    "shinka": ShinkaAgent,
    "islands": IslandsAgent,
    "map-elites": MapElitesAgent,
    "uct": UCTAgent,
    "pareto": ParetoAgent,
    "judge": JudgeAgent,
    "greedy": GreedyAgent,
    "one-shot": OneShotAgent,
    "max-value": MaxValueAgent,
    "world-model": WorldModelAgent,
    "forecaster": ForecasterAgent,
}


@pytest.mark.parametrize("drafting", ["heuristic", "own"])
@pytest.mark.parametrize("kind", AGENTS.values(), ids=AGENTS)
class TestPublished(AgentContract):
    """The contract, for every agent and both ways to draft."""

    attempts = 12

    @pytest.fixture(autouse=True)
    def _kind(self, kind: type[Any], drafting: str) -> None:
        self.kind, self.drafting = kind, drafting

    def make(self, seed: int) -> Agent:
        agent: Agent = self.kind(seed, drafting=self.drafting)
        return agent


@pytest.mark.parametrize(("name", "kind"), AGENTS.items())
def test_published_agents_are_found_by_name(name: str, kind: type[Agent]) -> None:
    assert plugins.load("kernel_gym.agents", name) is kind


def test_the_package_lists_every_published_agent_and_its_source() -> None:
    table = published.__doc__ or ""
    assert [name for name in AGENTS if f"| `{name}` |" not in table] == []
    for kind in AGENTS.values():
        text = __import__(kind.__module__, fromlist=["x"]).__doc__
        assert "Deviations from the" in text
        assert "\n1. " in text
        assert "arXiv" in text or "OpenEvolve" in text


def test_drafting_is_a_known_word() -> None:
    for kind in AGENTS.values():
        with pytest.raises(ConfigError, match="drafting is heuristic or own, not 'mine'"):
            kind(0, drafting="mine")


class Recorder(TreeAgent):
    """Starts from the newest kernel."""

    def choose_start(self, tree: Tree, kernels: Any) -> int:
        return max(kernels)


def test_a_tree_counts_tries_of_the_whole_lineage_and_no_kernel_twice() -> None:
    tree = Tree([Visit(0, 1, 100.0), Visit(1, 2, 50.0), Visit(2, 3, None), Visit(2, 1, 100.0), Visit(2, 4, 25.0)])
    assert tree.parent == {1: 0, 2: 1, 4: 2}
    assert tree.lineage(4) == [4, 2, 1]
    assert (tree.tries[1], tree.tries[2], tree.tries_below[1]) == (1, 3, 4)
    assert tree.best_result == {1: 2.0, 2: 4.0}
    assert tree.number == {2: 0, 4: 3}
    assert tree.stale == 0
    assert tree.fastest == 4


def test_trees_belong_to_one_task_and_with_fresh_memory_to_one_episode() -> None:
    for memory, expected in (("fresh", 5), ("shared", 10)):
        env = gym.make(
            "kernel_gym/KnownOptimum-v0", landscape="hill", stages="both", memory=memory, budget=5, tasks_count=2
        )
        agent = Recorder()
        if memory == "fresh":
            agent.use_fresh_memory(12)
        list(play(env, agent, 20, seed=1))
        assert {task: len(tree.visits) for task, tree in agent.trees.items()} == dict.fromkeys(
            ("known/task-0", "known/task-1"), expected
        )


def test_a_tree_moves_to_the_ids_of_another_bank(tmp_path: Path) -> None:
    agent, other = Recorder(), Recorder()
    agent.trees["a"] = Tree([Visit(0, 1, 100.0), Visit(1, 2, 50.0), Visit(2, 3, 10.0)])
    agent.save(tmp_path)
    other.load(tmp_path)
    other.remap_items({1: 11, 3: 13})
    assert other.trees["a"].latency == {11: 100.0, 13: 10.0}
    assert other.trees["a"].parent == {11: 0, 13: 0}
