"""Everything real: suite, apprentice, compiler, simulator, verifier, memory."""

import copy
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import kernel_gym  # noqa: F401
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.value import ValueAgent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.vector import view
from kernel_gym.experiments.runs.play import play
from kernel_gym.memory.item import Stage

OPTIONS: dict[str, Any] = {"suite": "level1", "tasks": ["relu", "sigmoid"], "budget": 4, "picks": 2}
K = 8


def test_the_environment_checker_reports_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("kernel_gym/KernelSynthesis-v0", **OPTIONS).unwrapped)


@pytest.fixture(scope="module")
def attempts() -> list[Attempt]:
    env = gym.make("kernel_gym/KernelSynthesis-v0", **OPTIONS)
    attempts = list(play(env, ValueAgent(0), 8, seed=0))
    env.close()
    return attempts


def test_every_attempt_has_a_verdict_of_the_device(attempts: list[Attempt]) -> None:
    assert [attempt.task for attempt in attempts] == ["level1/relu"] * 4 + ["level1/sigmoid"] * 4
    assert {attempt.verdict.device for attempt in attempts} == {"ascend-sim"}
    assert all(attempt.kernel.source for attempt in attempts)
    assert all(attempt.api_pages for attempt in attempts)
    for attempt in attempts:
        assert -1.0 <= attempt.reward <= 1.0
        assert (attempt.stage is Stage.REFINE) == (attempt.start is not None) == (attempt.best_us is not None)


def test_the_same_seed_gives_the_same_kernels_and_rewards(attempts: list[Attempt]) -> None:
    env = gym.make("kernel_gym/KernelSynthesis-v0", **OPTIONS)
    assert list(play(env, ValueAgent(0), 8, seed=0)) == attempts
    env.close()


def test_a_copy_makes_its_own_verifier_and_continues_identically() -> None:
    env = gym.make("kernel_gym/KernelSynthesis-v0", **OPTIONS)
    env.reset(seed=0)
    env.step(K)
    twin = copy.deepcopy(env)
    assert env.step(K)[1] == twin.step(K)[1]
    env.close()
    twin.close()


def test_a_batch_of_tasks_is_judged_together() -> None:
    envs = gym.make_vec("kernel_gym/KernelSynthesis-v0", num_envs=2, **OPTIONS)
    observations, infos = envs.reset(seed=0)
    agent, done = SimilarityAgent(), list[Attempt]()
    while len(done) < 4:
        actions = np.array([agent.act(*view(observations, infos, i)) for i in range(2)])
        observations, _, _, _, infos = envs.step(actions)
        done += list(infos.get("attempt", ()))
    assert [attempt.task for attempt in done] == ["level1/relu", "level1/sigmoid"] * 2
    envs.close()
