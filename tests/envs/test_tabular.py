"""The tabular environment decides what the live one decides, and its kernels got the verdicts that it tells."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import ROOT

import kernel_gym  # noqa: F401
from kernel_gym import plugins, suites
from kernel_gym.authors.apprentice import Apprentice, Explanation, load_profile
from kernel_gym.authors.apprentice.author import named_stream
from kernel_gym.authors.apprentice.tabular.author import ChosenRow, TabularAuthor, TabularRequest
from kernel_gym.authors.apprentice.tabular.batched_rng import BatchedRng
from kernel_gym.authors.apprentice.tabular.table import PACKAGED, load
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Candidate, Child
from kernel_gym.envs.prompt_context import child_line, note
from kernel_gym.envs.seeding import generator
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.envs.tabular.environment import TabularEnv, TabularVectorEnv
from kernel_gym.envs.tabular.item_arrays import ItemArrays, item_arrays
from kernel_gym.envs.tabular.table_builder import TableBuilder
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.experience import trace
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task

ID = "kernel_gym/KernelSynthesisTabular-v0"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def arrays() -> ItemArrays:
    return item_arrays(PACKAGED)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**40), st.text(max_size=20), st.integers(0, 10_000), st.text(min_size=1, max_size=20))
def test_random_numbers_are_numpys_to_the_bit(seed: int, task: str, attempt: int, name: str) -> None:
    rng = BatchedRng(seed, task, ["other", name])
    root = int(generator(seed, task, attempt).integers(2**63))
    assert rng.root(attempt) == root
    assert rng.doubles(attempt)[1].tolist() == named_stream(root, name).random(3).tolist()
    for high in (2, 3, 4):
        assert rng.integer(attempt, 1, 1, high) == int(named_stream(root, name).integers(1, high))


def _both(arrays: ItemArrays, profile: str, count: int, seed: int) -> list[tuple[int, ChosenRow, Explanation]]:
    """What the tabular and the live author make of the same contexts, every other time refining."""
    author, live = TabularAuthor(arrays, load_profile(profile)), Apprentice(profile)
    rng, decisions = np.random.default_rng(seed), []
    offered = [place for place, item in enumerate(arrays.items) if item.kind != "api"]
    for number in range(count):
        task = int(rng.integers(len(arrays.tasks)))
        picks = rng.choice(offered, 5, replace=False)
        rows = [i for i, (t, row) in enumerate(arrays.rows) if t == task and row.verdict.feasible]
        start = int(rng.choice(rows)) if number % 2 else -1
        children = [int(row) for row in rng.choice(rows, 2)] if number % 4 == 3 else []
        shown = np.append(picks, arrays.trace(start) if start >= 0 else -1)
        pages = arrays.api_pages(np.array([task]), shown[None])[0]
        schedules = tuple(arrays.index.schedule_of[child] for child in children)
        request = TabularRequest(task, number, np.concatenate([picks, pages]), start, schedules)
        context = tuple(note(arrays.items[place], arrays.tasks[task]) for place in [*picks, *pages[pages >= 0]])
        point = _start_point(arrays, start, children) if start >= 0 else None
        explanation = live.explain(arrays.tasks[task], context, point, generator(seed, arrays.tasks[task].id, number))
        decisions.append((task, author.write(seed, [request])[0], explanation))
    return decisions


def _start_point(arrays: ItemArrays, start: int, children: Sequence[int]) -> StartPoint:
    item, (task, row) = arrays.items[arrays.trace(start)], arrays.rows[start]
    refined = [
        trace(arrays.tasks[task], arrays.kernels[child], arrays.rows[child][1].verdict, Stage.REFINE, start=item)
        for child in children
    ]
    return StartPoint(arrays.kernels[start], row.verdict, tuple(child_line(child, item) for child in refined))


@pytest.mark.parametrize("profile", ["middle", "strong", "weak~3", "placebo", "oracle"])
def test_the_tabular_author_decides_as_the_live_one(arrays: ItemArrays, profile: str) -> None:
    exact = 0
    for task, written, explanation in _both(arrays, profile, 40, 5):
        assert explanation.schedule_choice is not None
        assert written.schedule == explanation.schedule_choice.schedule
        if written.schedule in arrays.table.tasks[task].needed:
            wrong = {choice.idiom: choice.spelling for choice in explanation.choices if not choice.right}
            assert written.wrong == wrong
        if written.exact:
            exact += 1
            assert arrays.kernels[written.row].source == explanation.kernel.source
    assert exact or profile == "placebo"


class RecordingEnv(Apprentice):
    """The live author; remembers what it decided."""

    def __init__(self, profile: str) -> None:
        super().__init__(profile)
        self.told: list[tuple[Task, Explanation]] = []

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        self.told.append((task, self.explain(task, context, start, rng)))
        return self.told[-1][1].kernel


@pytest.fixture(scope="module")
def judge() -> Iterator[Any]:
    verifier = factories.verifier(Options(workers=1))
    yield verifier
    verifier.close()


@needs_compiler
@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_a_table_of_a_live_run_repeats_the_run(judge: Any, memory: str, tmp_path: Path) -> None:
    """Real author, verifier, bank, pools and observations on one side; then the same seeds and picks on a table of what
    came of them. Each episode ends with its first refinement, which is remembered in other words."""
    author = RecordingEnv("middle")
    tasks = [suites.find_task("level1/relu"), suites.find_task("level1/sigmoid")]
    live = KernelSynthesisEnv(tasks=tasks, author=author, verifier=judge, memory=memory, budget=4, picks=3)
    episodes = [list(_episode(live, seed)) for seed in range(4)]
    builder = TableBuilder(tasks, judge, live.bank.embedder)
    decided = {(task.id, one.kernel.source): (task, one) for task, one in author.told}
    for task, one in decided.values():
        assert one.schedule_choice is not None
        wrong = {choice.idiom: choice.spelling for choice in one.choices if not choice.right}
        builder.add(tasks.index(task), one.schedule_choice.schedule, wrong)
    builder.table.save(tmp_path / "run.json.xz")
    tabular = TabularEnv(table=tmp_path / "run.json.xz", memory=memory, budget=4, picks=3)
    for seed, steps in enumerate(episodes):
        again = list(_episode(tabular, seed))
        assert len(again) == len(steps)
        for (seen, reward, info), (other, paid, recorded) in zip(again, steps, strict=True):
            assert info.pop("exact", True)
            assert data_equivalence(seen, other, exact=True)
            assert reward == paid
            assert info.keys() == recorded.keys()
            candidates = zip(info.pop("candidates"), recorded["candidates"], strict=True)
            assert all(_same(one, another) for one, another in candidates)
            assert info == {key: value for key, value in recorded.items() if key != "candidates"}
    assert len(author.told) >= 8


def _same(one: Candidate, other: Candidate) -> bool:
    """Equal but for who an experience tells of: the tabular memory doesn't link items."""
    return replace(one, item=replace(one.item, source=None)) == replace(other, item=replace(other.item, source=None))


def _episode(env: gym.Env[Any, Any], seed: int) -> Iterator[tuple[Any, float, dict[str, Any]]]:
    """Random legal picks until the episode is over, or until a kernel has been refined."""
    rng, ended = np.random.default_rng(seed), False
    seen, info = env.reset(seed=seed)
    yield seen, 0.0, dict(info)
    while not ended:
        seen, reward, ended, _, info = env.step(rng.choice(np.flatnonzero(seen["action_mask"])))
        if (attempt := info.get("attempt")) and attempt.stage is Stage.REFINE:
            return
        yield seen, float(reward), dict(info)


@needs_compiler
def test_verdicts_are_those_of_the_verifier(arrays: ItemArrays, judge: Any) -> None:
    for number in np.random.default_rng(0).choice(len(arrays.rows), 6, replace=False).tolist():
        task, row = arrays.rows[number]
        verdict = judge.verify(arrays.kernels[number], arrays.tasks[task])
        assert (verdict.outcome, verdict.latency_us) == (row.verdict.outcome, row.verdict.latency_us)


@needs_compiler
@pytest.mark.slow
def test_the_nearest_kernel_mostly_ends_as_the_live_one_would(arrays: ItemArrays, judge: Any) -> None:
    near = [decision for decision in _both(arrays, "middle", 80, 9) if not decision[1].exact]
    same = [
        judge.verify(explanation.kernel, arrays.tasks[task]).outcome == arrays.rows[written.row][1].verdict.outcome
        for task, written, explanation in near
    ]
    assert len(same) >= 20
    assert np.mean(same) >= 0.9


@pytest.mark.parametrize("name", ["random", "similarity-feasible", "value"])
def test_agents_play_and_learn(name: str) -> None:
    env = gym.make(ID, budget=5)
    agent = plugins.load("kernel_gym.agents", name)(seed=1)
    attempts = list(play(env, agent, 40, seed=2))
    assert len(attempts) == 40
    assert {attempt.verdict.feasible for attempt in attempts} == {True, False}
    assert max(attempt.stage for attempt in attempts) == Stage.REFINE
    again = plugins.load("kernel_gym.agents", name)(seed=1)
    assert attempts == list(play(gym.make(ID, budget=5), again, 40, seed=2))


@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_start_points_list_the_results_of_refining_them(memory: str) -> None:
    """Compared with a plain record of the attempts; frozen memory adds and lists feasible kernels alone."""
    env, rng = TabularEnv(budget=40, memory=memory), np.random.default_rng(3)
    seen, info = env.reset(seed=6)
    children: dict[int, dict[int, Child]] = {}
    offered_children, ended = 0, False
    while not ended:
        if info["start_due"]:
            offered = {one.id: one.children for one in info["candidates"]}
            assert offered == {id: tuple(children.get(id, {}).values()) for id in offered}
            offered_children += sum(map(len, offered.values()))
        action = int(rng.choice(np.flatnonzero(seen["action_mask"])))
        seen, _, ended, _, info = env.step(np.int64(action))
        attempt = info.get("attempt")
        if (
            attempt is not None
            and attempt.start is not None
            and attempt.produced
            and attempt.produced[0] != attempt.start
        ):
            child = Child(attempt.produced[0], attempt.verdict.outcome, attempt.verdict.latency_us)
            children.setdefault(attempt.start, {}).setdefault(child.id, child)
    assert offered_children


@pytest.mark.parametrize("stages", ["both", "draft"])
def test_a_scheduled_lambda_gives_the_pool_of_that_lambda(stages: str) -> None:
    """As in the live environment; in drafting the episodes of a batch come to be at different attempts."""
    options: dict[str, Any] = {"author_options": {"profile": "middle"}, "budget": 5, "picks": 4, "stages": stages}
    envs = TabularVectorEnv(5, pool_schedule=[(0, 1), (1, 3), (2, 2), (4, 4)], **options)
    fixed = {breadth: TabularEnv(pool_factor=breadth, **options) for breadth in range(1, 5)}
    for env in fixed.values():
        env.reset(seed=0)
        env._episodes.banks = envs._episodes.banks[:1]
    rng, seen = np.random.default_rng(0), set()
    observations, infos = envs.reset(seed=0)
    for _ in range(80):
        mask = observations["action_mask"]
        for i in np.flatnonzero(~envs._episodes.over).tolist():
            info = view(observations, infos, i)[1]
            breadth = envs.options.width(5 - info["attempts_left"]) // 4
            assert info["candidates"] == _offered(fixed[breadth], info)
            assert envs._episodes.ready[i] or mask[i, :-1].sum() == len(info["candidates"]) - len(info["picked"])
            seen.add((breadth, info["start_due"], info["stage"]))
        observations, _, _, _, infos = envs.step((rng.random(mask.shape) * mask).argmax(axis=1))
    assert len(seen) >= (9 if stages == "both" else 4)


def _offered(env: TabularEnv, like: dict[str, Any]) -> Any:
    """What an environment would offer for the same task and start point."""
    _, info = env.reset(options={"task": like["task"]})
    if like["start"]:
        slot = [candidate.id for candidate in info["candidates"]].index(like["start"])
        *_, info = env.step(np.int64(slot))
    return info["candidates"]


def test_the_first_kernel_is_the_oldest_in_the_bank() -> None:
    """With one slot the fastest kernel alone is offered."""
    env = TabularEnv(tasks=["level1/relu"], author_options={"profile": "strong"}, budget=20, picks=1, pool_factor=1)
    _, info = env.reset(seed=0)
    while info["attempts_left"]:
        *_, info = env.step(0)
    _, again = env.reset()
    assert again["first_us"] == info["first_us"] > info["best_us"] == again["best_us"]


@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_a_vector_of_one_equals_the_single_environment(memory: str) -> None:
    single, vector = TabularEnv(budget=3, memory=memory), TabularVectorEnv(1, budget=3, memory=memory)
    rng = np.random.default_rng(0)
    (observation, info), (many, infos) = single.reset(seed=4), vector.reset(seed=4)
    for _ in range(150):
        assert data_equivalence((observation, info), view(many, infos, 0), exact=True)
        action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        observation, reward, ended, _, info = single.step(np.int64(action))
        many, rewards, terminated, truncated, infos = vector.step(np.array([action]))
        assert (rewards[0], terminated[0], truncated[0]) == (reward, ended, False)
        if ended:
            observation, info = single.reset()
            many, *_, infos = vector.step(np.array([0]))


@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_the_vector_form_stays_in_its_spaces_and_repeats(memory: str) -> None:
    def walk() -> list[Any]:
        envs = gym.make_vec(ID, num_envs=12, vectorization_mode="vector_entry_point", budget=3, memory=memory)
        rng = np.random.default_rng(1)
        seen, _ = envs.reset(seed=3)
        texts = []
        for _ in range(60):
            assert envs.observation_space.contains(seen)
            actions = (rng.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)
            seen, rewards, *ends, infos = envs.step(actions)
            texts.append((seen, rewards, ends, infos.get("exact")))
        return texts

    assert all(data_equivalence(a, b, exact=True) for a, b in zip(walk(), walk(), strict=True))


def test_memory_modes_keep_what_they_should() -> None:
    def sizes(memory: str) -> set[int]:
        envs = TabularVectorEnv(5, memory=memory, budget=4, author_options={"profile": "strong"})
        envs.reset(seed=0)
        for _ in range(30):
            envs.step(np.full(5, envs.options.slots))
        return {len(bank) for bank in envs._episodes.banks}

    seed = item_arrays(PACKAGED).seed_size
    assert all(size > seed + 8 for size in sizes("shared"))
    assert all(seed < size <= seed + 8 for size in sizes("fresh"))
    assert sizes("frozen").pop() < sizes("shared").pop()


def test_the_table_says_where_it_comes_from_and_is_written_as_it_was_read(tmp_path: Path) -> None:
    table = load(PACKAGED)
    assert {"commit", "device", "author", "embedder", "command", "coverage"} == set(table.provenance)
    page = (ROOT / "docs" / "guides" / "tabular.md").read_text()
    for played, coverage in table.provenance["coverage"].items():
        exact, attempts, sound_exact, sound = re.findall(r"[\d.]+%?", coverage)
        assert f"| {played} | {exact} | {sound_exact} of {int(sound):,} |\n" in page
        assert f"{int(attempts):,} attempts each" in page
    assert f"{sum(len(task.rows) for task in table.tasks)} kernels" in page
    assert all(f"`{task.id.partition('/')[2]}`" in page for task in table.tasks)
    table.save(tmp_path / "again.json.xz")
    assert load(tmp_path / "again.json.xz") == table


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"stages": "refine"}, {"composition": "stratified"}])
def test_options_that_a_table_does_not_support_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        TabularEnv(**options)
    assert "\n" not in str(error.value)


def test_bad_tables_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json.xz").write_bytes(b"no table")
    for name in (tmp_path / "missing.json.xz", tmp_path / "bad.json.xz", "nameless"):
        with pytest.raises(ConfigError, match="table") as error:
            TabularEnv(table=name)
        assert "\n" not in str(error.value)
