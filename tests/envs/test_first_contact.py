"""What a newcomer tries first: constructing every id, rendering, masks for MaskablePPO, options of reset."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kernel_gym  # noqa: F401
from kernel_gym.env_registration import REMOVED
from kernel_gym.errors import ConfigError

IDS = sorted(name for name in gym.registry if name.startswith("kernel_gym/") and name != REMOVED)
FORECAST, OPTIMUM = "kernel_gym/KernelSynthesisForecast-v0", "kernel_gym/KnownOptimum-v0"
VECTOR = "vector_entry_point"


@pytest.mark.parametrize("name", IDS)
def test_every_id_constructs_without_arguments(name: str) -> None:
    env: Any
    mode = VECTOR if gym.spec(name).vector_entry_point else "sync"
    for env in (gym.make(name), gym.make_vec(name, vectorization_mode=mode)):
        assert env.action_space is not None
        env.close()


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM])
def test_the_fast_environments_run_without_arguments(name: str) -> None:
    env = gym.make(name)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        observation, _, terminated, _, _ = env.step(int(observation["action_mask"].nonzero()[0][0]))
        if terminated:
            observation, _ = env.reset()


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM])
def test_the_masks_that_maskable_ppo_asks_for_are_those_of_the_observation(name: str) -> None:
    env: Any = gym.make(name, budget=4, stages="both")
    with pytest.raises(gym.error.ResetNeeded):
        env.unwrapped.action_masks()
    observation, info = env.reset(seed=0)
    for _ in range(60):
        mask = env.get_wrapper_attr("action_masks")()
        assert mask.dtype == np.bool_
        assert (mask == (observation["action_mask"] == 1)).all()
        observation, _, terminated, _, info = env.step(int(mask.nonzero()[0][0]))
        if terminated:
            observation, info = env.reset()
    assert info["task"]


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM])
def test_the_vector_forms_have_one_row_each(name: str) -> None:
    envs: Any = gym.make_vec(name, num_envs=3, vectorization_mode=VECTOR)
    observations, _ = envs.reset(seed=0)
    for action in (0, 1, 12):
        observations, *_ = envs.step(np.array([action, 0, 12]))
        assert (envs.unwrapped.action_masks() == (observations["action_mask"] == 1)).all()


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM])
def test_maskable_ppo_learns_without_a_wrapper(name: str) -> None:
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: make test-sb3")
    model = contrib.MaskablePPO("MultiInputPolicy", gym.make(name, budget=4), n_steps=32, batch_size=32, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64


def test_forecast_rendering_describes_the_episode(capsys: pytest.CaptureFixture[str]) -> None:
    env: Any = gym.make(FORECAST, render_mode="ansi", budget=2, tasks=["level1/relu"])
    with pytest.raises(gym.error.ResetNeeded):
        env.unwrapped.render()
    env.reset(seed=0)
    assert env.render().startswith("level1/relu  draft  attempt 0/2  best none\n  5 picks left:\n")
    env.step(2)
    assert " *  2 " in env.render()
    env.step(20)
    assert "reward" in env.render()
    human = gym.make(FORECAST, render_mode="human", budget=2, tasks=["level1/relu"])
    human.reset(seed=0)
    human.step(20)
    assert human.render() is None
    shown = capsys.readouterr().out
    assert "level1/relu" in shown
    assert "reward" in shown


def test_the_best_kernel_is_compared_with_the_first() -> None:
    env: Any = gym.make(OPTIMUM, render_mode="ansi", stages="both", picks=12, pool_factor=1)
    env.reset(seed=0)
    for _ in range(12):
        env.step(int(env.unwrapped.action_masks().nonzero()[0][0]))
    assert "best 1000.00 us, 1.00 x as fast as the first" in env.render().splitlines()[0]
    for _ in range(13):
        env.step(int(env.unwrapped.action_masks().nonzero()[0][0]))
    assert "best 900.00 us, 1.11 x as fast as the first" in env.render().splitlines()[0]


def test_the_forecast_vector_form_renders_one_text_each() -> None:
    envs: Any = gym.make_vec(FORECAST, 2, VECTOR, render_mode="ansi", budget=2)
    envs.reset(seed=0)
    envs.step(np.array([20, 20]))
    first, second = envs.render()
    assert "reward" in first
    assert first.splitlines()[0] != second.splitlines()[0]


def test_an_unknown_render_mode_is_refused() -> None:
    from kernel_gym.envs.forecast.environment import ForecastEnv

    with pytest.raises(ConfigError, match="render_mode is one of ansi, human"):
        ForecastEnv(render_mode="smell")


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM, "kernel_gym/KernelSynthesis-v0"])
def test_unknown_options_of_reset_are_an_error_that_lists_the_known_ones(name: str) -> None:
    def refused(reset: Callable[..., Any], hint: str) -> None:
        with pytest.raises(ConfigError, match=f"unknown option of reset: budget, tusk; known: {hint}"):
            reset(seed=0, options={"tusk": "relu", "budget": 3, hint: None})

    refused(gym.make(name).reset, "task")
    refused(gym.make_vec(name, 2, VECTOR).reset, "tasks")


def test_a_wrong_number_of_tasks_is_refused_by_the_forecast_form_too() -> None:
    with pytest.raises(ConfigError, match="2 sub-environments need as many tasks, not 1"):
        gym.make_vec(FORECAST, 2, VECTOR).reset(options={"tasks": ["level1/relu"]})
