"""The guide's one-file policy keeps the contract, is found by `module:Class` and runs."""

import re
from pathlib import Path

import gymnasium as gym
import pytest
from repository import ROOT

import kernel_gym  # noqa: F401
from kernel_gym import plugins
from kernel_gym.agents.conformance import AgentContract
from kernel_gym.agents.contract import Agent
from kernel_gym.agents.published.tree_agent import Tree, Visit
from kernel_gym.experiments.runs.play import play
from kernel_gym.experiments.studies.study_commands import StudyRequest, run, write_results
from kernel_gym.memory.item import Stage


class TestThirteenth(AgentContract):
    attempts = 12

    @pytest.fixture(autouse=True)
    def _guide(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        guide = (ROOT / "docs" / "guides" / "agent.md").read_text()
        (source,) = re.findall(r'```python title="thirteenth.py"\n(.*?)```', guide, re.DOTALL)
        (tmp_path / "thirteenth.py").write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(__import__("sys").modules, "thirteenth", raising=False)
        self.kind = plugins.load("kernel_gym.agents", "thirteenth:LeastTriedAgent")

    def make(self, seed: int) -> Agent:
        agent: Agent = self.kind(seed=seed)
        return agent

    def test_it_refines_what_was_tried_least(self) -> None:
        tree = Tree([Visit(0, 1, 100.0), Visit(1, 2, 50.0), Visit(1, 3, 80.0), Visit(2, 4, None)])
        assert self.kind().choose_start(tree, [2, 3, 1]) == 3

    def test_it_refines_on_forecasts(self) -> None:
        env = gym.make("kernel_gym/KernelSynthesisForecast-v0", tasks=["relu"], budget=8, start_points="all")
        stages = [attempt.stage for attempt in play(env, self.make(0), 8, seed=1)]
        assert Stage.REFINE in stages

    def test_it_enters_the_arena(self, tmp_path: Path) -> None:
        request = StudyRequest(
            "arena", "quick", ["greedy", "thirteenth:LeastTriedAgent"], ["0"], budget=3, arms=["weak"]
        )
        assert run(request, tmp_path / "arena", parallel=1) == []
        table = write_results(request, tmp_path / "arena")
        ranking = table.split("## Refining, 30 attempts, three authors")[1].split("\n\n")[1]
        assert "| thirteenth:LeastTriedAgent | 0." in ranking
