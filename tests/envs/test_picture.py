"""`render_mode="rgb_array"`: pictures of the state, and the videos that Gymnasium's wrappers make of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import kernel_gym  # noqa: F401
from kernel_gym.envs import picture
from kernel_gym.verdict import GATES, Cheated, Feasible, Incorrect, Uncompilable, Unjudged, Verdict

FORECAST, OPTIMUM, LIVE = (
    f"kernel_gym/{name}-v0" for name in ("KernelSynthesisForecast", "KnownOptimum", "KernelSynthesis")
)
VECTOR = "vector_entry_point"


@pytest.fixture
def options(stand_ins: Any) -> Any:
    """The arguments of an environment that is drawn, by id; the live one has stand-ins for author and verifier."""
    return lambda name: {"render_mode": "rgb_array", "budget": 4} | (stand_ins.parts() if name == LIVE else {})


def generate(env: gym.Env[Any, Any]) -> int:
    """The action that generates now."""
    return int(env.action_space.n) - 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM, LIVE])
def test_a_picture_has_the_same_size_from_reset_to_the_end(options: Any, name: str) -> None:
    env = gym.make(name, **options(name))
    env.reset(seed=0)
    shapes, terminated = {np.shape(env.render())}, False
    while not terminated:
        _, _, terminated, _, _ = env.step(generate(env))
        frame = env.render()
        assert isinstance(frame, np.ndarray)
        assert frame.dtype == np.uint8
        shapes.add(frame.shape)
    assert shapes == {(picture.height(generate(env)), picture.WIDTH, 3)}
    assert picture.height(generate(env)) % 2 == picture.WIDTH % 2 == 0


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM, LIVE])
def test_equal_states_give_equal_pictures_and_different_states_different_ones(options: Any, name: str) -> None:
    first, second = gym.make(name, **options(name)), gym.make(name, **options(name))
    for env in (first, second):
        env.reset(seed=0)
    begun = np.array(first.render())
    assert (begun == second.render()).all()
    first.step(1)
    picked = np.array(first.render())
    assert (picked != begun).any()
    first.step(generate(first))
    assert (picked != np.array(first.render())).any()


def rows_of(frame: Any, colour: str) -> set[int]:
    """The rows of the candidates' list that have a pixel of a colour."""
    value = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    ys = np.flatnonzero((frame[:, : picture.END] == value).all(axis=-1).any(axis=1))
    return {int(y - picture.TOP) // picture.ROW for y in ys if y >= picture.TOP}


def test_the_picked_rows_are_marked() -> None:
    env = gym.make(FORECAST, render_mode="rgb_array")
    env.reset(seed=0)
    assert rows_of(env.render(), picture.PICKED) == set()
    env.step(3)
    env.step(17)
    assert rows_of(env.render(), picture.PICKED) == {3, 17}


@pytest.mark.parametrize(
    ("verdict", "passed"),
    [
        (Cheated("", gate="screen"), 0),
        (Uncompilable(""), 1),
        (Cheated("", gate="binary"), 2),
        (Incorrect(""), 3),
        (Cheated("", gate="latency"), 4),
        (Feasible("", latency=1.0), 5),
        (Unjudged(""), 0),
    ],
)
def test_the_gates_that_a_kernel_passed(verdict: Verdict, passed: int) -> None:
    colours = [picture._colour(verdict, gate) for gate in range(len(GATES))]
    refused = [] if passed == len(GATES) else [picture.PURPLE if verdict.hack else picture.RED]
    assert colours == ([picture.GREEN] * passed + refused + [picture.LINE] * 5)[:5]


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM, LIVE])
def test_the_vector_forms_draw_one_picture_each(options: Any, name: str) -> None:
    envs: Any = gym.make_vec(name, 3, VECTOR, **options(name))
    with pytest.raises(gym.error.ResetNeeded):
        envs.render()
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3
    assert len({frame.shape for frame in frames}) == 1
    assert (frames[0] != frames[1]).any()


@pytest.mark.parametrize("name", [FORECAST, OPTIMUM, LIVE])
def test_gymnasiums_checker_renders_every_mode(options: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, **options(name)).unwrapped, skip_render_check=False)


def test_an_attempt_that_could_not_be_judged_is_drawn(stand_ins: Any) -> None:
    class Broken:
        def verify(self, kernel: Any, task: Any) -> Verdict:
            return Unjudged("the device is gone")

    env = gym.make(LIVE, render_mode="rgb_array", **(stand_ins.parts() | {"verifier": Broken()}))
    env.reset(seed=0)
    before = np.array(env.render())
    env.step(generate(env))
    assert (before != np.array(env.render())).any()


def test_frames_are_collected_as_a_list() -> None:
    env = gym.make(FORECAST, render_mode="rgb_array_list", budget=1)
    env.reset(seed=0)
    env.step(generate(env))
    frames: Any = env.render()
    assert len(frames) == 2


def test_gymnasium_records_a_video(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="needs moviepy: pip install 'kernel_gym[video]'")
    env = gym.wrappers.RecordVideo(gym.make(FORECAST, render_mode="rgb_array", budget=2), str(tmp_path / "one"))
    env.reset(seed=0)
    while not env.step(generate(env))[2]:
        pass
    env.close()
    envs: Any = gym.make_vec(FORECAST, 2, VECTOR, render_mode="rgb_array", budget=1)
    envs = gym.wrappers.vector.RecordVideo(
        envs, str(tmp_path / "two"), video_length=2, step_trigger=lambda step: step == 0
    )
    envs.reset(seed=0)
    for _ in range(4):
        envs.step(np.full(2, generate(env)))
    envs.close()
    assert [file.stat().st_size > 1000 for file in sorted(tmp_path.rglob("*.mp4"))] == [True, True]
