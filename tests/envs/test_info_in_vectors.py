"""Gymnasium's own vector environments put the infos of environments in different states into arrays."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList

import kernel_gym  # noqa: F401

NUMBERS = {"start": np.int64, "first_us": np.float64, "best_us": np.float64, "start_due": np.bool_}


def walk(envs: VectorEnv[Any, Any, Any], steps: int) -> list[dict[str, Any]]:
    """Step with legal actions that differ between the sub-environments; the infos."""
    rng, ends = np.random.default_rng(0), 0
    observations, infos = envs.reset(seed=[1, 2, 3])
    seen = [infos]
    for _ in range(steps):
        actions = [rng.choice(np.flatnonzero(mask)) for mask in observations["action_mask"]]
        observations, _, terminated, _, infos = envs.step(np.array(actions))
        ends += int(terminated.sum())
        seen.append(infos)
    envs.close()
    assert ends > 1
    return seen


def assert_numeric_and_different(seen: list[dict[str, Any]]) -> None:
    for infos in seen:
        assert {key: infos[key].dtype for key in NUMBERS} == NUMBERS
        assert all(infos[f"_{key}"].all() for key in NUMBERS)
        assert ((infos["best_us"] > 0) == (infos["first_us"] > 0)).all()
        assert (infos["start"][infos["best_us"] == 0] == 0).all()
    for key in NUMBERS:
        assert any(infos[key].any() and not infos[key].all() for infos in seen), f"{key} was alike in all"


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kernel_gym/KnownOptimum-v0", {"stages": "both", "budget": 5}),
        ("kernel_gym/KernelSynthesisForecast-v0", {"budget": 3, "tasks": ["level1/relu", "level1/softmax"]}),
    ],
    ids=["known optimum", "forecast"],
)
def test_infos_of_different_states_fit_into_one_array(name: str, options: dict[str, Any], mode: str) -> None:
    envs: VectorEnv[Any, Any, Any] = gym.make_vec(name, num_envs=3, vectorization_mode=mode, **options)
    assert_numeric_and_different(walk(envs, 60))


def test_infos_of_the_live_environment_fit_into_one_array(stand_ins: Any) -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.make("kernel_gym/KernelSynthesis-v0", **stand_ins.parts())

    assert_numeric_and_different(walk(SyncVectorEnv([make] * 3), 60))


def test_the_infos_of_each_can_be_listed_as_rllib_does() -> None:
    envs = DictInfoToList(gym.make_vec("kernel_gym/KnownOptimum-v0", 2, "sync", stages="both", budget=4))
    _, infos = envs.reset(seed=[1, 2])
    assert [info["best_us"] for info in infos] == [0.0, 0.0]
    for action in range(12):
        *_, infos = envs.step(np.array([action, 0]))
        assert all({"start", "first_us", "best_us", "candidates"} <= info.keys() for info in infos)
