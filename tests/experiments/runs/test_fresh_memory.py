"""With fresh memory ids repeat from episode to episode: what is known of an item must not pass to another one."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forecast_tasks import FIVE
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kernel_gym.agents.context_value import ContextValueAgent
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.agents.value import ValueAgent
from kernel_gym.config import resolve
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.vector import view
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.runs.run_recorder import RunRecorder
from kernel_gym.experiments.runs.tracking.metrics import Meter
from kernel_gym.experiments.runs.training import make_environments, train
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.verdict import Incorrect

SEED = len(seed_items("ascendc"))
OWN = SEED + 1


def attempt(task: str, index: int, *shown: int, reward: float = 1.0, produced: tuple[int, ...] = ()) -> Attempt:
    no = Incorrect("")
    return Attempt(task, "math", Stage.DRAFT, index, shown, None, (), Kernel("x"), no, reward, None, produced)


def test_items_of_different_episodes_have_different_numbers() -> None:
    numbers = ItemNumbers(lasting=SEED)
    assert numbers.number("s/a", SEED) == numbers.number("s/b", SEED) == SEED
    first, other, second = numbers.number("s/a", OWN), numbers.number("s/b", OWN), numbers.number("s/a", OWN + 1)
    assert len({first, other, second, SEED}) == 4
    assert numbers.number("s/a", OWN) == first
    assert numbers.begin_episode("s/a") == {first, second}
    assert numbers.number("s/a", OWN) not in (first, second, other)
    assert ItemNumbers().number("s/a", OWN) == ItemNumbers().number("s/b", OWN) == OWN


def test_a_value_ends_with_the_episode_of_its_item(tmp_path: Path) -> None:
    agent = ValueAgent(alpha=0.2)
    agent.use_fresh_memory(SEED)
    agent.learn(attempt("s/a", 0, SEED))
    agent.learn(attempt("s/a", 1, SEED, OWN))

    def values_of(task: str) -> list[float]:
        return [agent.value(Stage.DRAFT, item, task) for item in (SEED, OWN)]

    assert values_of("s/a") == pytest.approx([0.36, 0.2])
    assert values_of("s/b") == pytest.approx([0.36, 0.0]), "another item there"
    agent.learn(attempt("s/a", 0, SEED))
    assert values_of("s/a") == pytest.approx([0.488, 0.0]), "another item now"
    agent.learn(attempt("s/a", 1, OWN))
    agent.save(tmp_path)
    rows = json.loads((tmp_path / "value.json").read_text())["values"]
    assert [row[:3] for row in rows] == [["draft", "", SEED]]


@pytest.mark.parametrize("kind", [ValueAgent, ContextValueAgent])
def test_on_forecasts_every_value_is_of_one_episode_or_of_the_seed(kind: type[ValueAgent | ContextValueAgent]) -> None:
    envs, agent = ForecastVectorEnv(5, tasks=FIVE, memory="fresh", budget=4), kind(0)
    agent.use_fresh_memory(len(envs.bank))
    episodes: Counter[str] = Counter()
    taught: dict[tuple[Any, ...], set[tuple[str, int]]] = defaultdict(set)
    observations, infos = envs.reset(seed=0)
    for _ in range(5 * 4 * 7):
        actions = [agent.act(*view(observations, infos, i)) for i in range(envs.num_envs)]
        observations, _, _, _, infos = envs.step(np.array(actions))
        for attempt in (one for i in range(envs.num_envs) if (one := view({}, infos, i)[1].get("attempt"))):
            before = dict(agent.values)
            agent.learn(attempt)
            episodes[attempt.task] += attempt.index == 0
            for row in [row for row, value in agent.values.items() if before.get(row) != value]:
                taught[row].add((attempt.task, episodes[attempt.task]))
    own = [where for row, where in taught.items() if not 0 < row[-1] <= SEED]
    assert min(episodes.values()) > 2
    assert len(own) > 10
    assert all(len(where) == 1 for where in own)
    assert any(len(where) > 1 for row, where in taught.items() if 0 < row[-1] <= SEED)


def test_the_oracle_refines_the_start_point_of_its_own_task() -> None:
    envs, agent = (
        ForecastVectorEnv(5, tasks=FIVE, memory="fresh", budget=8, author_options={"profile": "strong"}),
        OracleAgent(),
    )
    observations, infos = envs.reset(seed=0)
    chosen: dict[str, str] = {}
    for _ in range(30):
        views = [view(observations, infos, i) for i in range(envs.num_envs)]
        actions = [int(np.flatnonzero(observation["action_mask"])[0]) for observation, _ in views]
        for (_, info), action in zip(views, actions, strict=True):
            agent.remember_start_points(info)
            if info["start_due"]:
                chosen[info["task"]] = info["candidates"][action].item.code
        for _, info in views:
            if info["start"]:
                start = agent.request(info, []).start
                assert start is not None
                assert start.kernel.source == chosen[info["task"]]
        observations, _, _, _, infos = envs.step(np.array(actions))
    assert len(chosen) > 1


def test_memories_of_different_episodes_are_counted_apart() -> None:
    shared, fresh = (Meter(2, resolve(overrides={"env": {"memory": memory}}).env) for memory in ("shared", "fresh"))
    for meter, counted in ((shared, (2, 0.5)), (fresh, (6, 1 / 6))):
        for task, index, shown in (("s/a", 0, ()), ("s/b", 0, ()), ("s/a", 1, (OWN,)), ("s/a", 0, ())):
            produced = (OWN, OWN + 1) if index == 0 else ()
            figures = meter.add(attempt(task, index, *shown, produced=produced))
        assert (figures["memory/items"], figures["memory/shown"]) == pytest.approx(counted)


@pytest.mark.parametrize("agent", ["refinement", "value"])
def test_a_run_counts_and_learns_by_episode(tmp_path: Path, agent: str) -> None:
    settings = resolve(
        overrides={
            "agent": agent,
            "budget": 4,
            "rounds": 2,
            "tasks": list(FIVE),
            "env": {"forecast": True, "memory": "fresh"},
        }
    )
    folder = RunFolder.open(tmp_path / "run", settings)
    train(settings, folder)
    produced: dict[tuple[str, int], set[int]] = defaultdict(set)
    for place, line in enumerate(folder.journal.read_text().splitlines()):
        record = json.loads(line)
        produced[record["task"], place // 20].update(record["produced"])
    events = EventAccumulator(str(folder.path))
    events.Reload()
    assert events.Scalars("memory/items")[-1].value == sum(map(len, produced.values()))
    if agent == "value":
        items = [row[2] for row in json.loads((folder.agent / "value.json").read_text())["values"]]
        assert items
        assert max(items) <= SEED


def test_a_run_tells_its_agent_how_many_items_last(tmp_path: Path) -> None:
    settings = resolve(overrides={"agent": "value", "tasks": list(FIVE), "env": {"forecast": True, "memory": "fresh"}})
    folder = RunFolder.open(tmp_path / "run", settings)
    journal = folder.open_journal()
    plan = RunPlan.of(settings, folder)
    with RunRecorder(plan, journal) as recorder, make_environments(plan, recorder) as environments:
        agent = environments.agent()
    journal.close()
    assert isinstance(agent, ValueAgent)
    agent.learn(attempt("s/a", 0, SEED, OWN))
    assert agent.value(Stage.DRAFT, SEED, "s/b") > agent.value(Stage.DRAFT, OWN, "s/b") == 0.0
