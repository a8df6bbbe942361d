"""Where a published agent's rule is the optimum, the agent finds it; a rule that is not the optimum there does not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kernel_gym  # noqa: F401
from kernel_gym.agents.contract import Agent
from kernel_gym.agents.published.greedy import GreedyAgent
from kernel_gym.agents.published.islands import IslandsAgent
from kernel_gym.agents.published.judge import JudgeAgent
from kernel_gym.agents.published.map_elites import MapElitesAgent
from kernel_gym.agents.published.max_value import MaxValueAgent
from kernel_gym.agents.published.one_shot import OneShotAgent
from kernel_gym.agents.published.pareto import ParetoAgent
from kernel_gym.agents.published.puct import PUCTAgent
from kernel_gym.agents.published.shinka import ShinkaAgent
from kernel_gym.agents.published.uct import UCTAgent
from kernel_gym.agents.published.world_model import WorldModelAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.value import ValueAgent
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.known_optimum import FASTER, FIRST_US, TRAP_US
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task

ID = "kernel_gym/KnownOptimum-v0"


def best_us(agent: Agent, landscape: str, budget: int, seed: int = 1, **options: Any) -> float:
    """Return the best latency of one episode."""
    known = {"stages": "both", "memory": "shared", "pool_factor": 15, "tasks_count": 1, "memories": 4}
    env = gym.make(ID, landscape=landscape, budget=budget, **known | options)
    return min(attempt.verdict.latency_us or 1e9 for attempt in play(env, agent, budget, seed=seed))


def test_greedy_climbs_the_hill_in_as_many_steps_as_there_are() -> None:
    assert best_us(GreedyAgent(), "hill", 12) == pytest.approx(FIRST_US * FASTER**11)
    assert best_us(IslandsAgent(), "hill", 12) > FIRST_US * FASTER**11, "which spends attempts on slower kernels"


def test_judge_crosses_the_valley() -> None:
    assert best_us(JudgeAgent(), "valley", 4) == 100.0
    assert best_us(SimilarityAgent(), "valley", 20) == FIRST_US, "the fastest kernel never leads on"


@pytest.mark.parametrize("kind", [PUCTAgent, UCTAgent, ShinkaAgent, partial(IslandsAgent, islands=2), MapElitesAgent])
def test_who_explores_leaves_the_trap(kind: Callable[[int], Agent]) -> None:
    assert max(best_us(kind(seed), "trap", 40) for seed in range(2)) < TRAP_US
    assert best_us(SimilarityAgent(), "trap", 20) == TRAP_US


@pytest.mark.parametrize("kind", [ParetoAgent, WorldModelAgent, MaxValueAgent])
def test_learners_find_the_one_useful_memory(kind: Any) -> None:
    env = gym.make(ID, stages="draft", budget=10)
    attempts = list(play(env, kind(3, drafting="own"), 120, seed=1))
    assert np.mean([attempt.reward for attempt in attempts[-30:]]) > 0.7
    assert np.mean([attempt.reward for attempt in play(env, SimilarityAgent(), 60, seed=1)]) < -0.3


class ExampleAuthor:
    """Drafts a feasible kernel if and only if it is shown exactly one kernel, of another task."""

    language = "text"

    def identity(self) -> str:
        return "example"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        shown = [note for note in context if note.kind != "api"]
        alone = len(shown) == 1 and bool(shown[0].code) and not shown[0].same_task
        return Kernel("latency 10.0" if alone or task.id == "known/task-0" else f"wrong {rng.random()}", self.language)


def test_one_shot_finds_the_example_where_one_is_enough_and_more_are_too_many() -> None:
    solved = {}
    for kind in (OneShotAgent, SimilarityAgent):
        agent: Agent = OneShotAgent(drafting="own") if kind is OneShotAgent else SimilarityAgent()
        env = gym.make(
            ID, author=ExampleAuthor(), stages="draft", memory="shared", budget=4, memories=3, pool_factor=20
        )
        attempts: list[Attempt] = list(play(env, agent, 12, seed=1))
        solved[kind] = {attempt.task for attempt in attempts if attempt.verdict.feasible}
    assert len(solved[OneShotAgent]) == 4
    assert solved[SimilarityAgent] == {"known/task-0"}


class GamblingAuthor:
    """Refines 2% slower; shown the bold advice it fails four times in five and is otherwise twice as fast."""

    language = "text"

    def identity(self) -> str:
        return "gambling"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        if start is None:
            return Kernel("latency 1000.0", self.language)
        if not any("Advice 3" in note.text for note in context):
            return Kernel(f"latency {(start.verdict.latency_us or 0.0) * 1.02!r}", self.language)
        if rng.random() < 0.8:
            return Kernel(f"wrong {rng.random()}", self.language)
        return Kernel(f"latency {(start.verdict.latency_us or 0.0) / 2!r}", self.language)


def test_max_value_takes_the_gamble_that_the_mean_avoids() -> None:
    bold = {}
    for kind in (MaxValueAgent, ValueAgent):
        env = gym.make(ID, author=GamblingAuthor(), stages="both", memory="frozen", budget=20, picks=1, memories=6)
        attempts = [a for a in play(env, kind(2), 240, seed=1) if a.stage is Stage.REFINE][-100:]
        bold[kind] = np.mean([4 in attempt.context for attempt in attempts])
    assert bold[MaxValueAgent] > 0.5 > 0.2 > bold[ValueAgent]
