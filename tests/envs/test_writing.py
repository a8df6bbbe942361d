"""Tests of the environment whose action is a kernel's source."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import kernel_gym  # noqa: F401  registers the environments
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.verdict import Feasible, Incorrect, Uncompilable

ID = "kernel_gym/KernelWriting-v0"


class Judge:
    """A verifier whose verdict depends on the source: a number is the latency, `wrong` and `lost` fail."""

    def __init__(self) -> None:
        self.calls = 0

    def verify(self, kernel, task):
        self.calls += 1
        if kernel.source == "lost":
            raise InfrastructureError("the device went away")
        if kernel.source == "wrong":
            return Incorrect("3 of 96 values differ ‘here’")
        if not kernel.source.strip().isdigit():
            return Uncompilable("error")
        return Feasible("Correct.", latency=float(kernel.source))


def make(**options):
    return gym.make(ID, **({"tasks": ["relu"], "verifier": Judge(), "budget": 4} | options))


def test_the_environment_keeps_gymnasiums_contract():
    check_env(make().unwrapped, skip_render_check=True)


def test_rewards_are_those_of_drafting_and_refining():
    env = make()
    observation, info = env.reset(seed=0)
    assert info["task"] == "level1/relu"
    assert "relu" in observation["task"].lower()
    rewards = [env.step(source)[1] for source in ("nonsense", "20", "10")]
    assert rewards == [-1.0, 1.0, pytest.approx(np.tanh(np.log(2)))]
    observation, reward, terminated, _, info = env.step("40")
    assert reward == pytest.approx(np.tanh(np.log(10 / 40)))
    assert terminated
    assert observation["best_kernel"] == "10"
    assert list(observation["latency_us"]) == [20.0, 10.0]
    assert (observation["stage"], observation["attempts_left"]) == (1, 0)
    assert info["attempt"].verdict.latency_us == 40.0
    with pytest.raises(gym.error.ResetNeeded):
        env.step("1")


def test_feedback_is_that_of_the_last_attempts_newest_first():
    env = make(history=2)
    env.reset(seed=0)
    for source in ("nonsense", "wrong", "20"):
        observation = env.step(source)[0]
    first, second = observation["feedback"].split("\n\n")
    assert first.startswith("feasible: Correct.")
    assert second == "incorrect: 3 of 96 values differ ?here?"
    assert env.observation_space.contains(observation)


def test_drafting_ends_with_the_first_feasible_kernel():
    env = make(stages="draft")
    env.reset(seed=0)
    assert not env.step("wrong")[2]
    assert env.step("5")[2]


def test_an_infrastructure_error_is_retried_and_costs_nothing():
    judge = Judge()
    env = make(verifier=judge)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step("lost")
    assert (judge.calls, reward, terminated, truncated) == (3, 0.0, False, False)
    assert observation["attempts_left"] == 4
    assert info["failure"] == "the device went away"
    truncations = [env.step("lost")[3] for _ in range(4)]
    assert truncations == [False, False, False, True]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_episode_continues_identically_and_independently(duplicate):
    env = make(curriculum="mixed", tasks=["relu", "tanh"]).unwrapped
    env.reset(seed=3)
    env.step("20")
    other = duplicate(env)
    for source in ("wrong", "10"):
        assert data_equivalence(env.step(source)[:2], other.step(source)[:2])
    env.step("5")
    assert data_equivalence(env.reset()[0], other.reset()[0])


def test_the_same_seed_gives_the_same_tasks():
    orders = []
    for _ in range(2):
        env = make(curriculum="mixed", tasks=["relu", "tanh", "gelu", "sigmoid"])
        orders.append([env.reset(seed=5 if n == 0 else None)[1]["task"] for n in range(6)])
    assert orders[0] == orders[1]


def test_an_empty_answer_is_an_infeasible_attempt():
    judge = Judge()
    env = make(verifier=judge)
    env.reset(seed=0)
    assert env.step(" \n")[1] == -1.0
    assert judge.calls == 0


@pytest.mark.parametrize("action", ["é", "x" * 65537, 7])
def test_other_actions_are_refused(action):
    env = make().unwrapped
    env.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction, match="65536 printable"):
        env.step(action)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"picks": 3}, "no option 'picks'"), ({"history": 0}, "history"), ({"stages": "refine"}, "no kernel to refine")],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        make(**options)


def test_several_environments_make_a_vector():
    envs = gym.make_vec(ID, 2, vectorization_mode="sync", tasks=["relu"], verifier=Judge(), budget=4)
    envs.reset(seed=0)
    observation, rewards, *_ = envs.step(("20", "nonsense"))
    assert list(rewards) == [1.0, -1.0]
    assert observation["kernel"] == ("20", "nonsense")


def test_the_state_is_rendered_as_text():
    env = make(render_mode="ansi")
    env.reset(seed=0)
    env.step("20")
    assert "best 20.00 us" in env.render()


def test_the_real_verifier_pays_for_the_oracle():
    from kernel_gym import suites
    from kernel_gym.authors.apprentice.author import oracle

    env = make(verifier=None)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(oracle(suites.find_task("level1/relu")).source)
    assert reward == 1.0, info["attempt"].verdict.feedback
    env.close()
