"""Whatever is registered passes the checker, repeats itself, copies and closes."""

import copy
import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import (
    Autoreset,
    ClipReward,
    FilterObservation,
    FlattenObservation,
    NormalizeReward,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeAwareObservation,
    TimeLimit,
    TransformAction,
)

import kernel_gym  # noqa: F401
from kernel_gym.env_registration import REMOVED
from kernel_gym.errors import ConfigError

WRITING = "kernel_gym/KernelWriting-v0"  # its actions are texts: test_writing.py has its contract
IDS = sorted(name for name in gym.registry if name.startswith("kernel_gym/") and name not in (REMOVED, WRITING))


@pytest.fixture
def build(stand_ins: Any) -> Any:
    """Makes a registered environment, with stand-ins for who writes and who judges."""

    def make(name: str, **options: Any) -> gym.Env[Any, Any]:
        parts = {} if "KnownOptimum" in name or "Forecast" in name else stand_ins.parts()
        return gym.make(name, **(parts | options))

    return make


def test_the_presets_are_registered() -> None:
    assert {"kernel_gym/KernelSynthesis-v0", "kernel_gym/KernelSynthesisDraft-v0", "kernel_gym/KnownOptimum-v0"} <= set(
        IDS
    )


@pytest.mark.parametrize("make", [gym.make, lambda name: gym.make_vec(name, 2, "vector_entry_point")])
def test_the_removed_id_says_what_to_use_instead(make: Any) -> None:
    with pytest.raises(ConfigError, match="KernelSynthesisForecast-v0") as error:
        make(REMOVED)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_reports_nothing(build: Any, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = build(name)
        check_env(env.unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_the_same_seed_gives_the_same_trajectory(build: Any, rollout: Any, name: str) -> None:
    first, second = rollout(build(name), 120, 7), rollout(build(name), 120, 7)
    assert all(data_equivalence(a, b, exact=True) for a, b in zip(first, second, strict=True))
    again = build(name)
    rollout(again, 50, 3)
    assert all(data_equivalence(a, b, exact=True) for a, b in zip(first, rollout(again, 120, 7), strict=True))


def test_another_seed_gives_another_trajectory(build: Any) -> None:
    def rewards(seed: int) -> list[float]:
        env = build("kernel_gym/KernelSynthesis-v0")
        env.reset(seed=seed)
        return [env.step(12)[1] for _ in range(5)]

    assert len({tuple(rewards(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_in_mid_episode_continues_identically_and_independently(
    build: Any, rollout: Any, name: str, how: Any
) -> None:
    env = build(name)
    rollout(env, 17, 2)
    twin = how(env)
    size = len(env.unwrapped.bank)

    def walk(walked: gym.Env[Any, Any]) -> list[Any]:
        rng = np.random.default_rng(0)
        returned = []
        for _ in range(40):
            returned.append(walked.step(int(rng.integers(12))))
            if returned[-1][2]:
                returned.append(walked.reset())
        return returned

    ahead = walk(twin)
    assert len(env.unwrapped.bank) == size, "the copy's attempts must not reach the original's bank"
    assert all(data_equivalence(a, b, exact=True) for a, b in zip(ahead, walk(env), strict=True))


def test_the_usual_wrappers_work(build: Any, rollout: Any) -> None:
    env = build("kernel_gym/KernelSynthesis-v0")
    wrapped = ClipReward(RecordEpisodeStatistics(TimeLimit(OrderEnforcing(env), 9)), -0.5, 0.5)
    ends = [step for step in rollout(wrapped, 40, 1) if len(step) == 5 and (step[2] or step[3])]
    assert ends
    assert all("episode" in step[4] for step in ends)
    flat = FlattenObservation(build("kernel_gym/KernelSynthesis-v0"))
    observation, _ = flat.reset(seed=1)
    assert flat.observation_space.contains(observation)


@pytest.mark.parametrize(
    "wrap",
    [
        Autoreset,
        PassiveEnvChecker,
        NormalizeReward,
        lambda env: FilterObservation(env, ["observations"]),
        lambda env: TimeAwareObservation(FlattenObservation(TimeLimit(env, 7)), normalize_time=True),
        lambda env: TransformAction(env, lambda action: (action + 1) % env.action_space.n, env.action_space),
    ],
    ids=["autoreset", "checker", "normalised reward", "filtered", "time aware", "transformed action"],
)
def test_observations_stay_in_the_space_under_a_wrapper(build: Any, wrap: Any) -> None:
    env = wrap(build("kernel_gym/KernelSynthesis-v0", budget=2))
    observation, _ = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(30):
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert np.isfinite(reward)
        if (terminated or truncated) and not isinstance(env, Autoreset):
            observation, _ = env.reset()
    env.close()


def test_the_vector_form_takes_its_wrappers(stand_ins: Any) -> None:
    parts = stand_ins.parts() | {"budget": 1}
    envs = gym.make_vec("kernel_gym/KernelSynthesis-v0", num_envs=2, vectorization_mode="vector_entry_point", **parts)
    counted = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    counted.reset(seed=1)
    ended = []
    for _ in range(20):
        *_, infos = counted.step(np.full(2, envs.single_action_space.n - 1))
        ended += list(infos["episode"]["l"][infos["_episode"]]) if "episode" in infos else []
    assert ended
    counted.close()


def test_a_legal_action_can_be_sampled_as_the_docstring_says(build: Any) -> None:
    env = build("kernel_gym/KernelSynthesis-v0")
    observation, _ = env.reset(seed=1)
    for _ in range(60):
        action = env.action_space.sample(observation["action_mask"].astype(np.int8))
        assert observation["action_mask"][action] == 1.0
        observation, _, terminated, _, _ = env.step(action)
        if terminated:
            observation, _ = env.reset()


def test_rendering_describes_the_episode(build: Any, capsys: Any) -> None:
    env = build("kernel_gym/KernelSynthesis-v0", render_mode="ansi")
    env.reset(seed=3)
    assert "3 picks left" in env.render()
    env.step(2)
    assert " *  2 practice" in env.render()
    env.step(12)
    assert "reward" in env.render()
    env = build("kernel_gym/KernelSynthesis-v0", render_mode="human")
    env.reset(seed=3)
    env.step(12)
    shown = capsys.readouterr().out
    assert "some/task-0" in shown
    assert "reward" in shown


def test_closing_twice_is_allowed_and_passed_parts_stay_open(build: Any, stand_ins: Any) -> None:
    bank = stand_ins.bank()
    env = build("kernel_gym/KernelSynthesis-v0", bank=bank)
    env.reset(seed=0)
    env.close()
    env.close()
    assert len(bank) == 30


def test_a_bank_in_a_file_is_made_used_and_closed(build: Any, tmp_path: Any, stand_ins: Any) -> None:
    from kernel_gym.envs.known_optimum import HashEmbedder
    from kernel_gym.memory.bank import MemoryBank

    file = tmp_path / "bank.sqlite"
    with MemoryBank(file, HashEmbedder()) as bank:
        bank.add(stand_ins.bank(5).items(), attempt=False)
    env = build("kernel_gym/KernelSynthesis-v0", bank=file, embedder=HashEmbedder())
    env.reset(seed=0)
    env.step(12)
    env.close()
    with MemoryBank(file, HashEmbedder()) as bank:
        assert len(bank) == 7


def test_importing_the_package_is_light() -> None:
    code = "import kernel_gym, sys; print('torch' in sys.modules or 'ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
