"""The picks of the heuristic agents."""

from typing import Any

import numpy as np

from kernel_gym.agents.contract import Agent
from kernel_gym.agents.pass_at_k import PassAtKAgent
from kernel_gym.agents.refinement import RefinementAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.envs.pool import Candidate
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.verdict import Feasible, Incorrect


def pool() -> tuple[Candidate, ...]:
    good, bad = Feasible("", latency=2.0), Incorrect("")
    rows: list[tuple[Kind, str, Any, str, float]] = [
        (Kind.TRACE, "s/a", bad, "alpha beta gamma", 0.9),
        (Kind.EXPERIENCE, "s/b", good, "alpha beta", 0.8),
        (Kind.TRACE, "s/b", good, "delta epsilon", 0.7),
        (Kind.TRACE, "s/c", good, "delta epsilon zeta", 0.6),
        (Kind.TRACE, "s/c", good, "omega", 0.4),
        (Kind.EXPERIENCE, "s/a", bad, "beta", 0.3),
    ]
    return tuple(
        Candidate(MemoryItem(kind, "t", text, text * (kind is Kind.TRACE), verdict, task, id=i + 1), similarity)
        for i, (kind, task, verdict, text, similarity) in enumerate(rows)
    )


def picks(agent: Agent, count: int = 4) -> list[int]:
    """Return the ids that an agent picks from the pool for task s/a, until it generates."""
    candidates, mask, picked = pool(), np.ones(8, np.float32), list[int]()
    mask[6] = 0.0
    for _ in range(count):
        info = {
            "start_due": False,
            "draft_due": False,
            "candidates": candidates,
            "picked": tuple(picked),
            "task": "s/a",
            "stage": "draft",
        }
        action = agent.act({"observations": np.zeros(1, np.float32), "action_mask": mask}, info)
        if action == 7:
            break
        picked.append(candidates[action].id)
        mask[action] = 0.0
    return picked


def test_similarity_takes_the_nearest() -> None:
    assert picks(SimilarityAgent()) == [1, 2, 3, 4]


def test_similarity_feasible_takes_feasible_traces_and_then_the_rest() -> None:
    assert picks(SimilarityFeasibleAgent()) == [3, 4, 5, 1]


def test_similarity_diverse_prefers_what_is_not_shown_yet() -> None:
    assert picks(SimilarityDiverseAgent(relevance=0.5)) == [3, 5, 4, 1]
    assert picks(SimilarityDiverseAgent(relevance=1.0)) == picks(SimilarityFeasibleAgent())


def test_pass_at_k_shows_nothing() -> None:
    assert picks(PassAtKAgent()) == []


def test_refinement_shows_the_latest_attempts_at_its_task() -> None:
    assert picks(RefinementAgent()) == [6, 1]


def test_the_fastest_start_point_is_taken() -> None:
    item = MemoryItem(Kind.TRACE, "t", "x", "x", verdict=Feasible("", latency=2.0), id=1)
    faster = MemoryItem(Kind.TRACE, "t", "x", "x", verdict=Feasible("", latency=1.0), id=2)
    candidates = tuple(Candidate(trace, 0.5, start=True) for trace in (faster, item))
    observation = {"observations": np.zeros(1, np.float32), "action_mask": np.array([1, 1, 0, 0], np.float32)}
    info = {"start_due": True, "candidates": candidates, "picked": (), "task": "s/a", "stage": "refine"}
    for agent in (SimilarityAgent(), SimilarityFeasibleAgent(), PassAtKAgent(), RefinementAgent()):
        assert agent.act(observation, info) == 0
