"""The vector form: lock-step, one bank, the paper's outer iteration."""

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

import kernel_gym  # noqa: F401
from kernel_gym.authors.contract import Author, Context, StartPoint, WriteRequest
from kernel_gym.envs.known_optimum import ArithmeticJudge
from kernel_gym.envs.vector import KernelSynthesisVectorEnv, view
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged, Verdict

K, N = 12, 3


@pytest.fixture
def vector(stand_ins: Any) -> Any:
    def make_envs(num_envs: int = 3, **options: Any) -> KernelSynthesisVectorEnv:
        return KernelSynthesisVectorEnv(num_envs=num_envs, **stand_ins.parts(**options))

    return make_envs


class PoolJudge(ArithmeticJudge):
    """Judges side by side; fails on some, or altogether, as often as told."""

    def __init__(self, unjudged: int = 0, broken: int = 0) -> None:
        self.batches: list[int] = []
        self.unjudged, self.broken = unjudged, broken

    def verify_all(self, pairs: list[tuple[Kernel, Task]]) -> list[Verdict]:
        self.batches.append(len(pairs))
        if self.broken:
            self.broken -= 1
            raise InfrastructureError("the pool is gone")
        verdicts: list[Verdict] = [self.verify(kernel, task) for kernel, task in pairs]
        if self.unjudged:
            self.unjudged -= 1
            verdicts[0] = Unjudged("a worker died")
        return verdicts


def test_gymnasium_makes_the_vector_environment(stand_ins: Any) -> None:
    envs = gym.make_vec(
        "kernel_gym/KernelSynthesis-v0", num_envs=2, vectorization_mode="vector_entry_point", **stand_ins.parts()
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, infos = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    assert list(infos["task"]) == ["some/task-0", "some/task-1"]
    envs.close()


def test_a_finished_environment_waits_with_generate_as_the_only_legal_action(vector: Any) -> None:
    envs = vector()
    envs.reset(seed=0)
    observations, rewards, *_, infos = envs.step(np.array([K, 0, 1]))
    assert observations["action_mask"].sum(axis=1).tolist() == [1, 12, 12]
    assert observations["action_mask"][0, K] == 1.0
    assert not rewards.any()
    assert "attempt" not in infos
    observations, rewards, *_, infos = envs.step(np.array([5, K, 2]))
    assert "attempt" not in infos
    *_, infos = envs.step(np.array([5, 5, 3]))
    assert infos["attempt"][0].context == (), "what a waiting one does is ignored"
    assert [len(attempt.context) for attempt in infos["attempt"]] == [0, 1, 3]


def test_all_attempts_of_an_iteration_see_the_bank_as_it_was(vector: Any, stand_ins: Any) -> None:
    envs = vector(author=stand_ins.Listed("latency 5.0"), bank=stand_ins.bank(4), tasks=stand_ins.tasks(3))
    envs.reset(seed=0)
    assert [len(pool) for pool in envs.reset(seed=0)[1]["candidates"]] == [4, 4, 4]
    *_, infos = envs.step(np.full(3, K))
    produced = [attempt.produced for attempt in infos["attempt"]]
    assert produced == [(5, 6), (7, 8), (9, 10)], "committed in index order"
    assert envs.bank.attempts == 3
    *_, infos = envs.step(np.zeros(3, int))
    assert [len(pool) for pool in infos["candidates"]] == [9, 9, 9], "all see all but their own start point"


def test_kernels_of_an_iteration_are_judged_side_by_side_and_only_failures_again(vector: Any, stand_ins: Any) -> None:
    judge, author = PoolJudge(unjudged=2), stand_ins.Listed("latency 5.0")
    envs = vector(author=author, verifier=judge)
    envs.reset(seed=0)
    _, rewards, *_ = envs.step(np.full(3, K))
    assert rewards.tolist() == [1.0, 1.0, 1.0]
    assert judge.batches == [3], "single ones are judged singly"
    assert len(author.asked) == 3, "each kernel was written once"


def test_a_broken_pool_is_retried(vector: Any, stand_ins: Any) -> None:
    judge = PoolJudge(broken=2)
    envs = vector(author=stand_ins.Listed("latency 5.0"), verifier=judge)
    envs.reset(seed=0)
    _, rewards, *_ = envs.step(np.full(3, K))
    assert judge.batches == [3, 3, 3]
    assert rewards.tolist() == [1.0, 1.0, 1.0]
    judge.broken = 3
    _, rewards, _, _, infos = envs.step(np.full(3, K))
    _, rewards, _, _, infos = envs.step(np.full(3, K))
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert list(infos["failure"]) == ["the pool is gone"] * 3
    assert infos["attempts_left"].tolist() == [5, 5, 5]


def test_an_ended_episode_is_reset_while_the_others_continue(vector: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("latency 5.0", "wrong", "wrong")
    envs = vector(author=author, stages="draft", tasks=stand_ins.tasks(5))
    envs.reset(seed=0)
    _, _, terminated, _, infos = envs.step(np.full(3, K))
    assert terminated.tolist() == [True, False, False]
    _, rewards, terminated, _, infos = envs.step(np.array([K, 1, 2]))
    assert list(infos["task"]) == ["some/task-3", "some/task-1", "some/task-2"]
    assert infos["picks_left"].tolist() == [N, N - 1, N - 1], "the action of the one that reset is ignored"
    assert not terminated.any()
    assert not rewards.any()


def test_the_whole_protocol_gives_every_task_its_budget(vector: Any, stand_ins: Any) -> None:
    envs = vector(num_envs=4, tasks=stand_ins.tasks(4), budget=5)
    observations, infos = envs.reset(seed=2)
    rng, count, ends = np.random.default_rng(0), dict[str, int](), np.zeros(4, bool)
    while not ends.all():
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in observations["action_mask"]])
        observations, _, terminated, _, infos = envs.step(actions)
        ends |= terminated
        for attempt in infos.get("attempt", ()):
            count[attempt.task] = count.get(attempt.task, 0) + 1
    assert count == {f"some/task-{i}": 5 for i in range(4)}
    assert envs.bank.attempts == 20


def test_the_same_seed_gives_the_same_trajectory(vector: Any) -> None:
    def walk(envs: Any) -> list[Any]:
        rng, returned = np.random.default_rng(1), [envs.reset(seed=4)]
        return returned + [envs.step(rng.integers(0, K + 1, 3)) for _ in range(60)]

    envs = vector()
    first, second, third = walk(envs), walk(envs), walk(vector())
    for one, other in ((first, second), (first, third)):
        assert all(data_equivalence(list(a), list(b), exact=True) for a, b in zip(one, other, strict=True))


def test_one_sub_environment_alone_is_the_single_environment(vector: Any, make: Any) -> None:
    envs, env = vector(num_envs=1), make()
    (observations, infos), (observation, info) = envs.reset(seed=3), env.reset(seed=3)
    rng, over = np.random.default_rng(0), False
    for _ in range(60):
        seen, info_of_first = view(observations, infos, 0)
        assert data_equivalence(seen, dict(observation), exact=True)
        assert data_equivalence(info_of_first, info, exact=True)
        action = int(rng.integers(K + 1))
        observations, rewards, terminated, _, infos = envs.step(np.array([action]))
        if over:
            observation, info = env.reset()
            over = False
        else:
            observation, reward, over, _, info = env.step(action)
            assert (reward, over) == (rewards[0], terminated[0])


def test_two_environments_on_one_task_draw_differently(vector: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("wrong")
    envs = vector(num_envs=2, author=author, tasks=stand_ins.tasks(1))
    envs.reset(seed=0)
    envs.step(np.full(2, K))
    envs.step(np.full(2, K))
    draws = [number for *_, number in author.asked]
    assert len(set(draws)) == 4


def test_fresh_memory_is_one_bank_each(vector: Any, stand_ins: Any) -> None:
    envs = vector(
        author=stand_ins.Listed("latency 5.0"), bank=stand_ins.bank(4), memory="fresh", tasks=stand_ins.tasks(3)
    )
    envs.reset(seed=0)
    envs.step(np.full(3, K))
    *_, infos = envs.step(np.zeros(3, int))
    assert [len(pool) for pool in infos["candidates"]] == [5, 5, 5], "each sees its own experience and the four given"
    assert len(envs.bank) == 4
    envs.close()


def test_authors_write_concurrently(vector: Any) -> None:
    single, many = vector(writers=1), vector(writers=3)
    for envs in (single, many):
        envs.reset(seed=8)
    for _ in range(4):
        a, b = single.step(np.full(3, K)), many.step(np.full(3, K))
        assert a[1].tolist() == b[1].tolist()


def test_a_list_of_seeds_is_refused_for_there_is_one_bank(vector: Any) -> None:
    with pytest.raises(ConfigError, match="one seed"):
        vector().reset(seed=[1, 2, 3])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_invalid_batch_is_a_one_line_error(vector: Any) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        vector(num_envs=0)
    with pytest.raises(ConfigError, match="as many tasks"):
        vector(num_envs=2).reset(seed=0, options={"tasks": ["some/task-2"]})
    with pytest.raises(gym.error.ResetNeeded):
        vector().step(np.zeros(3, int))


@pytest.mark.parametrize("how", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))], ids=["copy", "pickle"])
@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_a_copy_in_mid_iteration_continues_identically_and_independently(vector: Any, how: Any, memory: str) -> None:
    def walk(envs: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        return [envs.step(rng.integers(0, K + 1, 3)) for _ in range(30)]

    envs = vector(memory=memory)
    envs.reset(seed=4)
    envs.step(np.array([0, K, 1]))
    twin, size = how(envs), len(envs.bank)
    ahead = walk(twin)
    assert len(envs.bank) == size
    assert all(data_equivalence(list(a), list(b), exact=True) for a, b in zip(ahead, walk(envs), strict=True))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vector_forms_take_the_environment(mode: str) -> None:
    envs = gym.make_vec("kernel_gym/KnownOptimum-v0", num_envs=2, vectorization_mode=mode)
    observations, _ = envs.reset(seed=1)
    for _ in range(25):
        assert envs.observation_space.contains(observations)
        observations, *_ = envs.step(np.full(2, envs.single_action_space.n - 1))
    envs.close()


def test_tasks_can_be_named(vector: Any) -> None:
    _, infos = vector(num_envs=2).reset(seed=0, options={"tasks": ["some/task-2", "some/task-0"]})
    assert list(infos["task"]) == ["some/task-2", "some/task-0"]


def test_actions_outside_the_space_are_refused(vector: Any) -> None:
    envs = vector()
    envs.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction):
        envs.step(np.array([0, 0, K + 1]))


def test_rendering_shows_every_environment(vector: Any, stand_ins: Any) -> None:
    envs = KernelSynthesisVectorEnv(2, "ansi", **stand_ins.parts())
    envs.reset(seed=0)
    frames = envs.render()
    assert frames is not None
    assert ["task-0" in frames[0], "task-1" in frames[1]] == [True, True]


class BatchingAuthor:
    """Writes all kernels of an iteration in one call, as another author writes them; fails as often as told."""

    language = "text"

    def __init__(self, author: Author, failures: int = 0) -> None:
        self.author, self.failures = author, failures
        self.batches: list[int] = []

    def identity(self) -> str:
        return "batching"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        return self.author.write(task, context, start, rng)

    def write_many(self, requests: list[WriteRequest]) -> list[Kernel]:
        self.batches.append(len(requests))
        if self.failures:
            self.failures -= 1
            raise InfrastructureError("the model is gone")
        return [self.write(ask.task, ask.context, ask.start, ask.rng) for ask in requests]


@pytest.mark.parametrize("failures", [0, 1])
def test_an_author_that_writes_batches_is_asked_once_an_iteration(vector: Any, stand_ins: Any, failures: int) -> None:
    author = BatchingAuthor(stand_ins.Lucky(), failures)
    together, alone = vector(author=author), vector(author=stand_ins.Lucky())
    for envs in (together, alone):
        envs.reset(seed=8)
    for _ in range(4):
        a, b = together.step(np.full(3, K)), alone.step(np.full(3, K))
        assert a[1].tolist() == b[1].tolist()
    assert author.batches == [3] * (2 + failures)  # refining takes two steps, the choice of the start point first


def test_an_author_that_stays_away_leaves_all_attempts_unjudged(vector: Any, stand_ins: Any) -> None:
    envs = vector(author=BatchingAuthor(stand_ins.Lucky(), failures=3))
    envs.reset(seed=8)
    *_, infos = envs.step(np.full(3, K))
    assert all("the author could not be reached: the model is gone" in failure for failure in infos["failure"])
