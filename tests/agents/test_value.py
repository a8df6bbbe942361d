"""The value agent: its updates, its bounds, and the known optimum."""

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernel_gym  # noqa: F401
from kernel_gym.agents.random import RandomAgent
from kernel_gym.agents.value import Normaliser, ValueAgent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.known_optimum import DRAFT_SECRET, REFINE_SECRET
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible, Incorrect, Uncompilable
from kernel_gym.verdict import Profile as Bottleneck


def attempt(reward: float, context: tuple[int, ...], stage: Stage = Stage.DRAFT, start: int | None = None) -> Attempt:
    return Attempt(
        task="s/a",
        category="math",
        stage=stage,
        index=0,
        context=context,
        start=start,
        api_pages=(99,),
        kernel=Kernel("x"),
        verdict=Incorrect(""),
        reward=reward,
        best_us=None,
        produced=(),
    )


def test_every_item_that_was_shown_moves_towards_the_reward() -> None:
    agent = ValueAgent(alpha=0.2)
    agent.learn(attempt(1.0, (4, 7)))
    agent.learn(attempt(-1.0, (7,)))
    assert agent.value(Stage.DRAFT, 4) == pytest.approx(0.2)
    assert agent.value(Stage.DRAFT, 7) == pytest.approx(0.2 + 0.2 * (-1.0 - 0.2))
    assert agent.value(Stage.REFINE, 4) == agent.value(Stage.DRAFT, 99) == 0.0, "no other stage, no API page"


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_shares_of_exploration_are_reported(epsilon: float) -> None:
    env, agent = gym.make("kernel_gym/KnownOptimum-v0"), ValueAgent(epsilon=epsilon, seed=3)
    first, *_, last = [agent.exploration.shares() for _ in play(env, agent, 60, seed=1)]
    assert last["explored"] == pytest.approx(epsilon, abs=0.1)
    assert first["valued"] < last["valued"] <= 1.0
    assert 0.0 < last["untried"] < 1.0
    assert last["untried"] < first["untried"]


def test_the_start_point_is_valued_too() -> None:
    agent = ValueAgent()
    for reward in (0.5, -0.5, 0.5):
        agent.learn(attempt(reward, (4,), Stage.REFINE, start=11))
    assert agent.value(Stage.REFINE, 11) == agent.value(Stage.REFINE, 4) != 0.0


def test_the_key_says_what_values_depend_on() -> None:
    by_task, by_category = ValueAgent(key="task"), ValueAgent(key="category")
    for agent in (by_task, by_category):
        agent.learn(attempt(1.0, (4,)))
    assert by_task.value(Stage.DRAFT, 4, "s/a", "math") > by_task.value(Stage.DRAFT, 4, "s/b", "math") == 0.0
    assert by_category.value(Stage.DRAFT, 4, "s/b", "math") > by_category.value(Stage.DRAFT, 4, "s/a", "loss") == 0.0


@given(rewards=st.lists(st.tuples(st.floats(-1, 1), st.booleans()), max_size=60), alpha=st.floats(0.01, 1.0))
def test_values_stay_within_the_bounds_of_what_is_learned(rewards: list[tuple[float, bool]], alpha: float) -> None:
    agent = ValueAgent(alpha=alpha, clip=3.0)
    for reward, refining in rewards:
        agent.learn(attempt(reward, (1, 2), Stage.REFINE if refining else Stage.DRAFT, 3 if refining else None))
    assert all(-1 - 1e-9 <= v <= 1 + 1e-9 for (stage, *_), v in agent.values.items() if stage == "draft")
    assert all(-3 - 1e-9 <= v <= 3 + 1e-9 for v in agent.values.values())


@given(rewards=st.lists(st.floats(-1, 1), min_size=1, max_size=80))
def test_the_normaliser_keeps_mean_and_deviation_and_its_safeguards(rewards: list[float]) -> None:
    normaliser = Normaliser(floor=0.1, clip=3.0)
    results = [normaliser(reward) for reward in rewards]
    assert normaliser.mean == pytest.approx(np.mean(rewards), abs=1e-9)
    assert normaliser.sigma == pytest.approx(max(0.1, np.std(rewards)), abs=1e-6)
    assert all(abs(result) <= 3.0 for result in results)
    assert results[0] == 0.0


def test_wrong_constants_are_refused() -> None:
    for wrong in ({"alpha": 0.0}, {"epsilon": 1.5}, {"key": "state"}, {"sigma_floor": 0.0}, {"clip": 0.0}):
        with pytest.raises(ConfigError):
            ValueAgent(**wrong)  # type: ignore[arg-type]


def test_values_of_another_key_are_not_loaded(tmp_path: Path) -> None:
    ValueAgent(key="task").save(tmp_path)
    with pytest.raises(ConfigError, match="key='task'"):
        ValueAgent().load(tmp_path)


def test_values_follow_their_items_to_another_bank() -> None:
    agent = ValueAgent()
    agent.learn(attempt(1.0, (4, 7)))
    agent.learn(attempt(-1.0, (9,)))
    agent.remap_items({4: 9, 9: 2})
    assert agent.value(Stage.DRAFT, 9) == pytest.approx(0.2)
    assert agent.value(Stage.DRAFT, 2) == pytest.approx(-0.2)
    assert agent.value(Stage.DRAFT, 4) == agent.value(Stage.DRAFT, 7) == 0.0, "7 is not in that bank"


def last_rewards(agent: Any, secret: int) -> float:
    """Return the mean reward of the last of 200 attempts."""
    env = gym.make("kernel_gym/KnownOptimum-v0", secret=secret)
    return float(np.mean([attempt.reward for attempt in play(env, agent, 200, seed=secret)][-100:]))


@cache
def random_rewards(secret: int) -> float:
    return last_rewards(RandomAgent(secret), secret)


@pytest.mark.parametrize("secret", [0, *(pytest.param(secret, marks=pytest.mark.slow) for secret in (1, 2))])
@pytest.mark.parametrize("key", ["item", "category", "task"])
def test_the_agent_finds_the_one_useful_memory(secret: int, key: Any) -> None:
    learned = last_rewards(ValueAgent(secret, key=key), secret)
    assert learned > 0.8
    assert learned > random_rewards(secret) + 1.0


def test_learned_values_can_be_read() -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", secret=1)
    agent = ValueAgent(1)
    for _ in play(env, agent, 200, seed=1):
        pass
    best = max(agent.values, key=lambda row: agent.values[row])
    assert DRAFT_SECRET in env.unwrapped.bank.get(best[2]).text  # type: ignore[attr-defined]


def refining(agent: Any) -> tuple[float, float]:
    """Return how often the useful memory is shown, and the mean reward, in the last refining attempts."""
    env = gym.make("kernel_gym/KnownOptimum-v0", stages="both", budget=20)
    last = [attempt for attempt in play(env, agent, 500, seed=2) if attempt.stage is Stage.REFINE][-200:]
    items = {item.id: item.text for item in env.unwrapped.bank.items()}  # type: ignore[attr-defined]
    shown = [any(REFINE_SECRET in items[i] for i in attempt.context) for attempt in last]
    return float(np.mean(shown)), float(np.mean([attempt.reward for attempt in last]))


def test_the_agent_learns_which_memories_make_kernels_faster() -> None:
    shown, reward = refining(ValueAgent(2))
    chance_shown, chance_reward = refining(RandomAgent(2))
    assert shown > 0.8 > 0.3 > chance_shown
    assert reward > chance_reward + 0.1


def test_loading_restores_the_statistics_and_keeps_the_settings(tmp_path: Path) -> None:
    trained = ValueAgent(sigma_floor=0.1, clip=3.0)
    for reward in (1.0, -1.0, 1.0):
        trained.normaliser(reward)
    trained.save(tmp_path)
    other = ValueAgent(sigma_floor=0.5, clip=1.0)
    other.load(tmp_path)
    assert (other.normaliser.count, other.normaliser.mean) == (3, trained.normaliser.mean)
    assert (other.normaliser.floor, other.normaliser.clip) == (0.5, 1.0)


# ---- the rules -------------------------------------------------------------------------------------------------------


def candidate(id: int, kind: Kind = Kind.TRACE, **fields: Any) -> Candidate:
    verdict = fields.pop("verdict", None) or (Incorrect("no") if kind is not Kind.PRACTICE else None)
    item = MemoryItem(kind, str(id), "x", verdict=verdict, task="s/b", id=id, **fields)
    return Candidate(item, 1.0 / id)


def state(*candidates: Candidate, picked: tuple[int, ...] = (), **fields: Any) -> tuple[Any, Any]:
    mask = np.array([one.id not in picked for one in candidates] + [True], np.float32)
    info = {"task": "s/a", "category": "math", "stage": Stage.DRAFT, "start": 0, "start_due": False, "picked": picked}
    return {"observations": np.zeros(1), "action_mask": mask}, info | {"candidates": candidates} | fields


def test_the_simple_rule_draws_as_it_always_did() -> None:
    """Its actions in a run of the known optimum, as they were before there were rules."""
    env, agent = gym.make("kernel_gym/KnownOptimum-v0", stages="both"), ValueAgent(5, epsilon=0.3)
    contexts = [attempt.context for attempt in play(env, agent, 40, seed=1)]
    assert hashlib.sha256(repr(contexts).encode()).hexdigest()[:16] == "756a4df6cb8d99d7"


def test_exploration_once_a_context_makes_all_picks_random_or_none() -> None:
    agent = ValueAgent(3, rule="published", epsilon=0.5, half_life=0.0, matched=0)
    pool = [candidate(id) for id in range(1, 11)]
    randoms = []
    for _ in range(40):
        picked: tuple[int, ...] = ()
        drawn = []
        for _ in range(4):
            slot = agent.act(*state(*pool, picked=picked))
            drawn.append(agent._tasks["s/a"].random)
            picked += (pool[slot].id,)
        assert len(set(drawn)) == 1
        randoms.append(drawn[0])
    assert 10 < sum(randoms) < 30


def test_epsilon_halves_with_the_attempts_at_a_task() -> None:
    agent = ValueAgent(3, epsilon=1.0, half_life=2.0)
    for index in range(20):
        agent.learn(replace(attempt(-1.0, ()), index=index))
    pool = [candidate(1), candidate(2)]
    agent.act(*state(*pool))
    assert not agent._tasks["s/a"].random
    agent.learn(attempt(-1.0, ()))  # a new episode begins
    agent._tasks["s/a"].attempts = 0
    agent.act(*state(*pool))
    assert agent._tasks["s/a"].random


def test_experiences_that_say_the_same_count_as_one() -> None:
    said = [Uncompilable(f"line {line}: no Foo | code {line}") for line in (3, 70)]
    pool = [candidate(id, Kind.EXPERIENCE, verdict=verdict) for id, verdict in enumerate(said, 1)]
    pool.append(candidate(3, Kind.EXPERIENCE, verdict=Uncompilable("line 3: no Bar | code 3")))
    agent = ValueAgent(merge=True, epsilon=0.0)
    assert agent.act(*state(*pool)) == 0
    agent.learn(attempt(-1.0, (2,)))
    assert agent.candidate_values(*state(*pool)) == pytest.approx([-0.2, -0.2, 0.0])
    assert agent.act(*state(*pool, picked=(1,))) == 2  # the second says what the first one does
    assert agent.act(*state(*pool, picked=(1, 3))) == 3  # generate
    assert ValueAgent(epsilon=0.0).act(*state(*pool, picked=(1,))) == 1


def test_merged_experiences_are_saved_and_follow_their_items(tmp_path: Path) -> None:
    same = [candidate(id, Kind.EXPERIENCE, verdict=Uncompilable(f"line {id}: no Foo")) for id in (4, 9)]
    agent, again = ValueAgent(merge=True, epsilon=0.0), ValueAgent(merge=True, epsilon=0.0)
    agent.act(*state(*same))
    agent.learn(attempt(1.0, (9,)))
    agent.save(tmp_path)
    again.load(tmp_path)
    again.remap_items({4: 14})
    new = candidate(20, Kind.EXPERIENCE, verdict=Uncompilable("line 8: no Foo"))
    again.act(*state(new))
    assert again.candidate_values(*state(new)) == pytest.approx([0.2])


def test_first_picks_of_refining_match_the_bottleneck() -> None:
    def measured(name: str) -> Feasible:
        return Feasible("ok", latency=1.0, profile=Bottleneck(bottleneck=name))

    start = replace(candidate(1, verdict=measured("mte2"), code="x"), start=True)
    pool = [
        candidate(2, verdict=measured("vector"), code="x"),
        candidate(3, Kind.PRACTICE, bottlenecks=("mte2",)),
        candidate(4, verdict=measured("mte2"), code="x"),
    ]
    refining = {"stage": Stage.REFINE, "start": 1}
    for matched, order in ((0, [0, 1, 2]), (1, [1, 0, 2]), (2, [1, 2, 0])):
        agent = ValueAgent(epsilon=0.0, matched=matched)
        agent.act(*state(start, start_due=True, stage=Stage.REFINE))
        picked: list[int] = []
        for _ in pool:
            picked.append(agent.act(*state(*pool, picked=tuple(pool[slot].id for slot in picked), **refining)))
        assert picked == order


def test_unseen_items_can_begin_with_the_mean_value() -> None:
    agent = ValueAgent(q0="mean", alpha=0.5)
    assert agent.value(Stage.DRAFT, 3) == 0.0
    agent.learn(attempt(-1.0, (1,)))
    agent.learn(attempt(1.0, (2,)))
    assert agent.value(Stage.DRAFT, 3) == pytest.approx((agent.value(Stage.DRAFT, 1) + agent.value(Stage.DRAFT, 2)) / 2)
    assert agent.value(Stage.REFINE, 3) == 0.0


def test_rewards_can_be_relative_to_the_tasks_own_success() -> None:
    agent = ValueAgent(baseline="task", alpha=0.5)
    agent.learn(attempt(-1.0, (1,)))
    agent.learn(attempt(-1.0, (2,)))  # no worse than usual
    agent.learn(attempt(1.0, (3,)))
    assert [agent.value(Stage.DRAFT, id) for id in (1, 2, 3)] == pytest.approx([-0.5, 0.0, 1.0])


def test_similarity_can_be_mixed_with_value() -> None:
    pool = [candidate(1), candidate(2), candidate(3)]  # the first is the most similar
    for weight, first in ((0.0, 2), (0.9, 0)):
        agent = ValueAgent(epsilon=0.0, similarity=weight)
        agent.learn(attempt(1.0, (3,)))
        assert agent.act(*state(*pool)) == first


def test_a_rule_sets_what_is_not_given() -> None:
    agent = ValueAgent(rule="published", epsilon=0.7)
    assert (agent.explore, agent.epsilon, agent.half_life, agent.merge, agent.matched) == (
        "context",
        0.7,
        10.0,
        True,
        2,
    )
    for wrong in ({"rule": "best"}, {"explore": "never"}, {"q0": "high"}, {"half_life": -1}, {"similarity": 2.0}):
        with pytest.raises(ConfigError, match="value: "):
            ValueAgent(**wrong)  # type: ignore[arg-type]
