"""The value agent: its updates, its bounds, and the known optimum."""

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
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Incorrect


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


def rewards(agent: Any, secret: int, attempts: int = 300) -> np.ndarray[Any, Any]:
    env = gym.make("kernel_gym/KnownOptimum-v0", secret=secret)
    return np.array([attempt.reward for attempt in play(env, agent, attempts, seed=secret)])


@pytest.mark.parametrize("secret", [0, 1, 2])
@pytest.mark.parametrize("key", ["item", "category", "task"])
def test_the_agent_finds_the_one_useful_memory(secret: int, key: Any) -> None:
    learned = rewards(ValueAgent(secret, key=key), secret)[-150:].mean()
    assert learned > 0.8
    assert learned > rewards(RandomAgent(secret), secret)[-150:].mean() + 1.0


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
