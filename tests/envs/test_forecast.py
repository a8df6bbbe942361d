"""The forecast environment decides what the live author decides, and keeps the live environment's contract."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_gym  # noqa: F401
from kernel_gym import plugins, suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.author import Explanation, named_stream
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.authors.apprentice.forecast.batched_rng import BatchedRng
from kernel_gym.authors.apprentice.forecast.latency_model import LatencyModel
from kernel_gym.authors.apprentice.forecast.measurements import load
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.envs import factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.forecast.bank import ForecastBank
from kernel_gym.envs.forecast.environment import ForecastEnv, ForecastVectorEnv
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Child
from kernel_gym.envs.prompt_context import note, start_point
from kernel_gym.envs.seeding import generator
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.analysis.forecast_validity import compare_pieces, forecast_attempts
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.experience import trace
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task

ID = "kernel_gym/KernelSynthesisForecast-v0"
TASKS = ["level1/relu", "level1/softmax", "level1/sum_reduction_over_a_dimension"]
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**40), st.text(max_size=20), st.integers(0, 10_000), st.text(min_size=1, max_size=20))
@pytest.mark.slow
def test_random_numbers_are_numpys_to_the_bit(seed: int, task: str, attempt: int, name: str) -> None:
    rng = BatchedRng(seed, task, ["other", name])
    root = int(generator(seed, task, attempt).integers(2**63))
    assert rng.root(attempt) == root
    assert rng.doubles(attempt)[1].tolist() == named_stream(root, name).random(3).tolist()
    for high in (2, 3, 4):
        assert rng.integer(attempt, 1, 1, high) == int(named_stream(root, name).integers(1, high))


# ---- the author ------------------------------------------------------------------------------------------------------


def _walk(env: gym.Env[Any, Any], attempts: int, seed: int) -> Iterator[tuple[Attempt, dict[int, tuple[Child, ...]]]]:
    """Random picks; yields each attempt with the children that start points had when it was made."""
    rng = np.random.default_rng(seed)
    seen, info = env.reset(seed=seed)
    children: dict[int, tuple[Child, ...]] = {}
    while attempts:
        if info["start_due"]:
            children = {one.id: one.children for one in info["candidates"]}
        seen, _, ended, _, info = env.step(np.int64(rng.choice(np.flatnonzero(seen["action_mask"]))))
        if attempt := info.get("attempt"):
            attempts -= 1
            yield attempt, children
        if ended:
            seen, info = env.reset()


def _start(bank: ForecastBank, task: Task, attempt: Attempt, children: tuple[Child, ...]) -> StartPoint | None:
    if attempt.start is None:
        return None
    start = bank.item(attempt.start)
    refined = [
        trace(task, Kernel(one.code), one.verdict, Stage.REFINE, start=start)
        for one in (bank.item(child.id) for child in children)
        if one.verdict is not None
    ]
    return start_point(start, refined)


def _stubborn() -> Profile:
    """An author with every mechanism: beliefs, misreadings and skeletons."""
    own = {"person": 3, "belief": 1.0, "grasp": 0.5, "skeleton": 0.6, "formula": 0.0, "boundary": 1.0, "precision": 1.0}
    return Profile.model_validate(load_profile("strong").model_dump() | own | {"name": "stubborn"})


def _beside_live(env: ForecastEnv, profile: str | Profile, more: Context = ()) -> Iterator[tuple[Attempt, Explanation]]:
    """Yield 24 attempts with what the live author writes, given the same notes, start point and random numbers."""
    live, numbers = Apprentice(profile), dict[str, int]()
    for attempt, children in _walk(env, 24, seed=5):
        task = suites.find_task(attempt.task)
        number = numbers[task.id] = numbers.get(task.id, -1) + 1
        context = (*(note(env.bank.item(id), task) for id in (*attempt.context, *attempt.api_pages)), *more)
        start = _start(env.bank, task, attempt, children.get(attempt.start or 0, ()))
        yield attempt, live.explain(task, context, start, generator(5, task.id, number))


@pytest.mark.parametrize("profile", ["middle", "strong~3", "placebo", "oracle", _stubborn()])
def test_the_author_decides_as_the_live_one(profile: str | Profile) -> None:
    """The same notes, start point and random numbers give the live author the same kernel, letter for letter."""
    env, stages = ForecastEnv(tasks=TASKS, budget=8, author_options={"profile": profile}), set()
    for attempt, explanation in _beside_live(env, profile):
        assert attempt.kernel.source == explanation.kernel.source
        stages.add(attempt.stage)
    assert stages == set(Stage) or profile == "placebo"


@pytest.mark.parametrize("pages", ["all", "demonstration"])
def test_the_author_mends_as_the_live_one(pages: Any) -> None:
    """Repairs of the last attempt, with misreadings and mistakes that go unnoticed, in two protocols.

    Spellings are compared for what a kernel without mistakes needs, too: some mistakes make it need other idioms.
    """
    own = {"person": 3, "belief": 1.0, "formula": -1.0, "boundary": 0.5, "inertia": 0.4, "hinted": 3.0, "skill": -1.0}
    profile = Profile.model_validate(load_profile("middle").model_dump() | own | {"name": "mending"})
    env = ForecastEnv(tasks=TASKS, budget=8, author_options={"profile": profile}, repair=True, pages=pages)
    shown = (demonstration("ascendc"),) if pages == "demonstration" else ()
    repairs, equal = [], 0
    for attempt, explanation in _beside_live(env, profile, shown):
        variant: Any = attempt.kernel.variant  # type: ignore[attr-defined]
        needed = {variant.idioms[column].id for column in variant.text.needed}
        live = {choice.idiom: choice.spelling for choice in explanation.choices}
        shared = {name: live[name] for name in live if name in needed or name.startswith("meaning.")}
        assert shared == {name: variant.wrong.get(name, "right") for name in shared}
        assert explanation.schedule_choice is not None
        assert variant.schedule == explanation.schedule_choice.schedule
        assert not attempt.api_pages or pages == "all"
        equal += attempt.kernel.source == explanation.kernel.source
        repairs += [attempt] if attempt.stage is Stage.DRAFT and attempt.start is not None else []
    assert equal >= 22
    assert len(repairs) >= 6
    assert {attempt.verdict.feasible for attempt in repairs} == {True, False}


@pytest.mark.parametrize("pages", ["basics", "none", "demonstration"])
def test_first_contexts_are_those_of_the_live_environment(pages: Any) -> None:
    options: dict[str, Any] = {"tasks": TASKS[:1], "budget": 2, "pages": pages, "repair": True}
    options["author_options"] = {"profile": Profile(name="helpless", skill=-3.0)}
    live, forecast = KernelSynthesisEnv(verifier=_Refusing(), **options), ForecastEnv(**options)
    live.reset(seed=3)
    forecast.reset(seed=3)
    (*_, info), (*_, told) = (env.step(np.int64(env.options.slots)) for env in (live, forecast))
    assert info["attempt"].api_pages == told["attempt"].api_pages
    assert len(told["attempt"].api_pages) == (4 if pages == "basics" else 0)
    assert info["attempt"].kernel.source == told["attempt"].kernel.source
    assert info["attempt"].produced == told["attempt"].produced
    assert [one.id for one in info["candidates"]] == [one.id for one in told["candidates"]]
    assert (live.action_masks() == forecast.action_masks()).all()
    live.close()


@pytest.mark.parametrize("composition", ["similarity", "stratified"])
def test_pages_and_first_pools_are_those_of_the_live_environment(composition: str) -> None:
    """Until the first verdict, both environments show the same candidates and the same numbers."""
    options: dict[str, Any] = {"tasks": TASKS[:1], "budget": 3, "picks": 3, "composition": composition}
    live, forecast = KernelSynthesisEnv(verifier=_Refusing(), **options), ForecastEnv(**options)
    (seen, info), (other, told) = live.reset(seed=3), forecast.reset(seed=3)
    assert data_equivalence(seen, other, exact=True)
    assert [one.item for one in info["candidates"]] == [one.item for one in told["candidates"]]
    for _ in range(3):
        *_, info = live.step(np.int64(np.flatnonzero(seen["action_mask"])[0]))
        *_, told = forecast.step(np.int64(np.flatnonzero(seen["action_mask"])[0]))
        seen = {"action_mask": live.action_masks()}
    assert info["attempt"].context == told["attempt"].context
    assert info["attempt"].api_pages == told["attempt"].api_pages
    assert info["attempt"].kernel.source == told["attempt"].kernel.source
    assert info["attempt"].produced == told["attempt"].produced
    assert info.keys() == told.keys()
    live.close()


def test_observations_agree_after_the_first_failures() -> None:
    """With the messages of the forecast, the live environment shows the same numbers of version 2."""
    options: dict[str, Any] = {"tasks": TASKS[:1], "budget": 4, "picks": 2, "author_options": {"profile": "weak"}}
    forecast = ForecastEnv(**options)
    for seed in range(20):
        seen, _ = forecast.reset(seed=seed)
        given, made = [seen], list[Any]()
        while len(made) < 3:
            seen, *_, info = forecast.step(np.int64(np.flatnonzero(seen["action_mask"])[0]))
            given.append(seen)
            made += [info["attempt"].verdict] if "attempt" in info else []
        if not any(verdict.feasible for verdict in made):
            break
    else:
        pytest.fail("no seed has three failures")
    live = KernelSynthesisEnv(verifier=_Saying(made), **options)
    other, _ = live.reset(seed=seed)
    layout, names = live.layout, ("compiled", "length", "covered", "named", "unnamed", "repeated", "text")
    for expected in given:
        for name in names:
            where = layout.candidate(name).ravel()
            np.testing.assert_allclose(other["observations"][where], expected["observations"][where], atol=0.02)
        for name in ("outcomes", "author"):
            where = layout.globals(name)
            np.testing.assert_allclose(other["observations"][where], expected["observations"][where], atol=1e-6)
        if expected is not given[-1]:
            other, *_ = live.step(np.int64(np.flatnonzero(expected["action_mask"])[0]))
    live.close()


class _Saying:
    """A verifier that gives verdicts in turn."""

    def __init__(self, verdicts: list[Any]) -> None:
        self.verdicts = list(verdicts)

    def verify(self, kernel: Kernel, task: Task) -> Any:
        return self.verdicts.pop(0)


class _Refusing:
    """A verifier that refuses every kernel."""

    def verify(self, kernel: Kernel, task: Task) -> Any:
        from kernel_gym.verdict import Uncompilable

        return Uncompilable("line 3: refused | x")


def test_what_items_show_is_what_their_texts_show() -> None:
    """Readings are put together without the texts; they equal those of the texts in nearly all places."""
    env = ForecastEnv(tasks=TASKS, budget=8)
    wrong = total = 0
    produced = {id for attempt, _ in _walk(env, 30, seed=2) for id in attempt.produced}
    for id in produced:
        item, place = env.bank.item(id), int(env.bank.places(id))
        reading = read_note(note(item, suites.find_task(item.task)))
        assert abs(reading.length - env.items.length[place]) < 0.1 * reading.length
        for column, name in enumerate(idioms()):
            sight = reading.sights.get(name)
            for kind in ("right", "wrong", "pointed", "taught", "commented"):
                wrong += bool(getattr(env.items, kind)[place, column]) != bool(sight and getattr(sight, kind))
                total += 1
    assert total > 10_000
    assert wrong / total < 0.002


def test_vectors_are_those_of_a_bank_that_embeds_the_texts() -> None:
    env = ForecastEnv(tasks=TASKS, budget=8)
    ids = sorted({id for attempt, _ in _walk(env, 20, seed=2) for id in attempt.produced})
    items = [env.bank.item(id).plain() for id in ids]  # type: ignore[attr-defined]
    with MemoryBank(None, env.items.descriptions.embedder) as bank:
        vectors = bank.embed_items(items)
    near = np.vecdot(vectors, env.items.vectors[env.bank.places(np.array(ids))])
    assert near.min() > 0.99
    assert np.median(near) > 0.999


# ---- verdicts --------------------------------------------------------------------------------------------------------


def test_every_mistake_has_a_message_of_its_declared_effect() -> None:
    measured = load()
    for idiom in idioms().values():
        for wrong in idiom.wrong:
            message = measured.messages.get(f"{idiom.id}:{wrong.name}")
            if message is not None and idiom.effect_of(wrong) != "slow":
                declared = idiom.effect_of(wrong)
                assert (message.cause or message.outcome) == declared
    assert len(measured.messages) >= 0.9 * sum(len(idiom.wrong) for idiom in idioms().values())


def test_measured_latencies_are_met_and_the_best_schedule_is_fast() -> None:
    env = ForecastEnv(tasks=TASKS[:1], author_options={"profile": "oracle"}, budget=1)
    env.reset(seed=0)
    *_, info = env.step(np.int64(env.options.slots))
    points = {point.schedule: point for point in load().points["level1/relu"]}
    assert info["attempt"].verdict.latency_us == pytest.approx(points[Schedule()].latency, rel=0.02)
    assert points[Schedule()].latency <= 1.2 * min(point.latency for point in points.values())


def test_a_task_without_measurements_is_forecast_too() -> None:
    measured = load()
    fast, slow = (
        LatencyModel(measured).forecast("elsewhere/task", schedule, {"cores", "tile"})
        for schedule in (Schedule(), Schedule(cores=1, tile=256))
    )
    assert slow.latency > 2 * fast.latency > 0
    assert fast.bottleneck
    assert slow.bottleneck


@pytest.fixture(scope="module")
def judge() -> Iterator[Any]:
    verifier = factories.verifier(Options(workers=1))
    yield verifier
    verifier.close()


@needs_compiler
@pytest.mark.slow
def test_forecasts_agree_with_live_verdicts(judge: Any) -> None:
    tasks = [suites.find_task(name) for name in TASKS]
    pieces = {piece: forecast_attempts(piece, tasks) for piece in range(2)}  # two attempts at each task
    comparisons = [c for some in compare_pieces(pieces, judge.verify_all).values() for c in some]
    assert len(comparisons) == 12
    assert sum(c.forecast == c.live for c in comparisons) >= 11
    assert all(0.5 < c.forecast_us / c.live_us < 2.0 for c in comparisons if c.forecast_us and c.live_us)


# ---- the environment's contract --------------------------------------------------------------------------------------


def test_the_checker_of_gymnasium_finds_nothing() -> None:
    check_env(gym.make(ID, tasks=TASKS, budget=2).unwrapped, skip_render_check=True)


#: Agents that own their training loop have tests of their own.
LEARNERS = ("ppo", "dqn", "maskable-ppo")
AGENTS = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "oracle" else [])  # it predicts every candidate
    for name in sorted(set(plugins.names("kernel_gym.agents")) - set(LEARNERS))
]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("options", [{}, {"repair": True, "pages": "demonstration"}])
def test_every_agent_plays_and_repeats(name: str, options: dict[str, Any]) -> None:
    def attempts() -> list[Attempt]:
        env = gym.make(ID, tasks=TASKS[:2], budget=5, **options)
        return list(play(env, plugins.load("kernel_gym.agents", name)(seed=1), 14, seed=2))

    played = attempts()
    assert len(played) == 14
    assert {attempt.verdict.feasible for attempt in played} == {True, False} or name == "oracle"
    again = attempts()
    assert [(a.context, a.start, a.reward, a.produced) for a in played] == [
        (a.context, a.start, a.reward, a.produced) for a in again
    ]
    assert played[-1] == again[-1]


@pytest.mark.slow
def test_picks_that_repair_mistakes_beat_random_ones() -> None:
    """A picker that knows the author's odds picks what makes a kernel without mistakes likeliest."""
    names = ["relu", "sigmoid", "tanh", "gelu", "softmax", "elu", "hardtanh", "leakyrelu"]
    tasks = [task for task in suites.load_suite("level1") if task.name in names]
    assert len(tasks) >= 6

    def reward(helpful: bool) -> float:
        env = ForecastEnv(tasks=tasks, budget=6, stages="draft")
        rng, rewards = np.random.default_rng(0), list[float]()
        seen, info = env.reset(seed=1)
        while len(rewards) < 150:
            action = _helpful(env, info) if helpful else int(rng.choice(np.flatnonzero(seen["action_mask"])))
            seen, paid, ended, _, info = env.step(np.int64(action))
            rewards += [float(paid)] * ("attempt" in info)
            if ended:
                seen, info = env.reset()
        return float(np.mean(rewards[50:]))

    assert reward(helpful=True) > reward(helpful=False) + 0.1


def _helpful(env: ForecastEnv, info: dict[str, Any]) -> int:
    """Pick the candidate that makes a kernel without mistakes likeliest, given the picks so far."""
    episodes, items, picked = env._episodes, env.items, len(info["picked"])
    ids, task = np.array(info["candidates"].ids), suites.find_task(info["task"])
    shown = np.full((len(ids), env.options.picks + items.page_slots), -1)
    shown[:, :picked] = env.bank.places(np.array(info["picked"], np.int64))
    shown[:, picked] = env.bank.places(ids)
    priors = np.repeat(episodes.author._prior(task.name)[None], len(ids), axis=0)
    odds = episodes.author._odds(priors, shown, np.repeat(episodes.task, len(ids)), items)
    needed = list(items.descriptions.texts(task).text(Schedule()).needed)
    chances = -np.log1p(np.exp(-odds[:, needed])).sum(axis=1)
    return int(np.where(np.isin(ids, info["picked"]), -np.inf, chances).argmax())


@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_start_points_list_the_results_of_refining_them(memory: str) -> None:
    """Compared with a plain record of the attempts; frozen memory adds and lists feasible kernels alone."""
    env, rng = ForecastEnv(tasks=TASKS[:1], budget=25, memory=memory), np.random.default_rng(3)
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
        if attempt is not None and attempt.start is not None and attempt.produced[:1] not in ((), (attempt.start,)):
            child = Child(attempt.produced[0], attempt.verdict.outcome, attempt.verdict.latency_us)
            children.setdefault(attempt.start, {}).setdefault(child.id, child)
    assert offered_children


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_a_vector_of_one_equals_the_single_environment(memory: str, repair: bool) -> None:
    options: dict[str, Any] = {"tasks": TASKS, "budget": 3, "memory": memory, "repair": repair}
    single, vector = ForecastEnv(**options), ForecastVectorEnv(1, **options)
    rng = np.random.default_rng(0)
    (observation, info), (many, infos) = single.reset(seed=4), vector.reset(seed=4)
    for _ in range(60):
        assert data_equivalence((observation, info), view(many, infos, 0), exact=True)
        action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        assert (single.action_masks() == vector.action_masks()[0]).all()
        observation, reward, ended, _, info = single.step(np.int64(action))
        many, rewards, terminated, truncated, infos = vector.step(np.array([action]))
        assert (rewards[0], terminated[0], truncated[0]) == (reward, ended, False)
        if ended:
            observation, info = single.reset()
            many, *_, infos = vector.step(np.array([0]))


@pytest.mark.parametrize("memory", ["shared", "fresh", "frozen"])
def test_the_vector_form_stays_in_its_spaces_and_repeats(memory: str) -> None:
    def walk() -> list[Any]:
        options: dict[str, Any] = {"tasks": TASKS, "budget": 3, "memory": memory}
        envs = gym.make_vec(ID, num_envs=12, vectorization_mode="vector_entry_point", **options)
        rng = np.random.default_rng(1)
        seen, _ = envs.reset(seed=3)
        steps = []
        for _ in range(50):
            assert envs.observation_space.contains(seen)
            actions = (rng.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)
            seen, rewards, *ends, _ = envs.step(actions)
            steps.append((seen, rewards, ends))
        return steps

    assert all(data_equivalence(a, b, exact=True) for a, b in zip(walk(), walk(), strict=True))


@pytest.mark.parametrize("options", [{}, {"drafts": 2}, {"repair": True}, {"stages": "draft"}])
def test_what_is_kept_of_states_equals_what_is_computed_anew(options: dict[str, Any]) -> None:
    envs, rng = ForecastVectorEnv(2, tasks=TASKS, budget=4, picks=3, pool_factor=4, **options), np.random.default_rng(3)
    envs.reset(seed=5)
    episodes = envs._episodes
    for _ in range(40):
        kept, facts = (episodes.mask().copy(), episodes.over.copy(), episodes.ready.copy()), episodes.infos()
        episodes._legal = episodes._over = episodes._ready = episodes._facts = None
        assert all(
            np.array_equal(*pair) for pair in zip(kept, (episodes.mask(), episodes.over, episodes.ready), strict=True)
        )
        assert facts == episodes.infos()
        envs.step(rng.integers(0, envs.options.slots + 1, 2))


def test_memory_modes_keep_what_they_should() -> None:
    def sizes(memory: str) -> tuple[set[int], int]:
        options: dict[str, Any] = {"tasks": TASKS, "budget": 4, "author_options": {"profile": "strong"}}
        envs = ForecastVectorEnv(3, memory=memory, **options)
        envs.reset(seed=0)
        for _ in range(30):
            envs.step(np.full(3, envs.options.slots))
        return {len(bank) for bank in envs._episodes.banks}, envs.items.size

    seeds = len(ForecastEnv(tasks=TASKS[:1]).items.descriptions.seeds)
    assert all(size > seeds + 8 for size in sizes("shared")[0])
    fresh, rows = sizes("fresh")
    assert all(seeds < size <= seeds + 8 for size in fresh)
    assert rows <= seeds + 3 * 8  # rows of earlier episodes are used again
    assert sizes("frozen")[0].pop() < sizes("shared")[0].pop()


def test_texts_are_written_when_they_are_read() -> None:
    env = ForecastEnv(tasks=TASKS[:1], budget=4)
    (attempt, _), *_ = list(_walk(env, 2, seed=1))
    kernel: Any = attempt.kernel
    assert "source" not in kernel.variant.__dict__
    assert kernel.source.startswith("//")
    assert "source" in kernel.variant.__dict__
    written = env.bank.item(attempt.produced[0])
    assert written.code == kernel.source
    assert written.text.endswith(kernel.source)


def test_rendering_shows_the_pool_and_the_verdict() -> None:
    env = ForecastEnv(tasks=TASKS[:1], budget=2, render_mode="ansi")
    env.reset(seed=0)
    assert "5 picks left" in str(env.render())
    env.step(np.int64(env.options.slots))
    assert "reward" in str(env.render())


@pytest.mark.parametrize(
    "options",
    [
        {"device": "cuda"},
        {"stages": "refine"},
        {"tasks": ["level1/relu", "level1/19"]},
        {"measurements": "missing.json.xz"},
        {"author_options": {"temperature": 1}},
    ],
)
def test_options_that_it_does_not_support_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        ForecastEnv(**options)
    assert "\n" not in str(error.value)


def test_measurements_are_written_as_they_were_read(tmp_path: Path) -> None:
    measured = load()
    assert {"commit", "device", "command", "tasks"} <= set(measured.provenance)
    measured.save(tmp_path / "again.json.xz")
    assert load(tmp_path / "again.json.xz") == measured
    (tmp_path / "bad.json.xz").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="forecast renew"):
        load(tmp_path / "bad.json.xz")
