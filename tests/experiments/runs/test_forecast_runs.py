"""Training on forecasts: the same agents and curves, no compiler, round after round."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forecast_tasks import FIVE
from script import run_script
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kernel_gym import suites
from kernel_gym.agents import scoring, value
from kernel_gym.agents.contract import Agent, BudgetSpent, Info, MakeEnv, Metrics, Observation
from kernel_gym.agents.random import RandomAgent
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.prompt_context import note
from kernel_gym.envs.vector import view
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.reports.report import finished, write_report
from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome
from kernel_gym.experiments.runs.journal import first_episodes
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_recorder import journal_record
from kernel_gym.experiments.runs.tracking.metrics import documented
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies import evaluation
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind


def config(agent: str = "value", env: dict[str, Any] | None = None, **settings: Any) -> RunConfig:
    own = {"agent": agent, "budget": 4, "tasks": list(FIVE), "env": {"forecast": True} | (env or {})}
    overrides = own | settings
    return resolve(overrides=overrides)


def run(folder: Path, settings: RunConfig) -> RunOutcome:
    return train(settings, RunFolder.open(folder, settings))


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_run_repeats_and_keeps_its_memory(tmp_path: Path) -> None:
    outcome = run(tmp_path / "a", config())
    assert run(tmp_path / "b", config()) == outcome
    assert run(tmp_path / "a", config()) == outcome  # complete: only read
    rows = journal(tmp_path / "a")
    assert rows == journal(tmp_path / "b")
    assert len(rows) == 5 * 4
    with MemoryBank(tmp_path / "a" / "bank.sqlite", StaticEmbedder(), read_only=True) as bank:
        assert bank.problems() == ()
        assert bank.attempts == len(rows)
        items = {item.id: item for item in bank.items()}
        for row in rows:
            assert [items[id].task for id in row["produced"]] == [row["task"]] * 2
            assert items[row["produced"][0]].verdict is not None
        shown = [id for row in rows for id in row["context"]]
        uses = bank.outcomes([shown[0]])[shown[0]]
    starts = [row["start"] for row in rows]
    assert sum(one.uses for one in uses.values()) == shown.count(shown[0]) + starts.count(shown[0])
    text = write_report(tmp_path, tmp_path / "report.html", traces=False).read_text()
    assert "activation (4)" in text
    assert "attempts): " in text  # memories with what came of showing them


def test_the_memory_records_which_kernel_was_refined_to_which(tmp_path: Path) -> None:
    run(tmp_path / "a", config("random", {"author_options": {"profile": "strong"}}, budget=10, rounds=3))
    steps = [(row["start"], row["produced"][0]) for row in journal(tmp_path / "a") if row["start"] is not None]
    taken = [(start, child) for start, child in dict.fromkeys(steps) if start != child]
    assert 10 < len(taken) < len(steps)
    with MemoryBank(tmp_path / "a" / "bank.sqlite", StaticEmbedder(), read_only=True) as bank:
        assert bank.problems() == ()
        children = {start: [child.id for child in bank.children(start)] for start, _ in taken}
        assert children == {start: [child for one, child in taken if one == start] for start in children}
        first = {child: start for start, child in reversed(taken)}
        parents = {item.id: item.parent for item in bank.items(Kind.TRACE) if item.parent is not None}
        drafted = {row["produced"][0] for row in journal(tmp_path / "a") if row["start"] is None}
        assert parents == {child: start for child, start in first.items() if child not in drafted}
        assert all(bank.get(item.source).kind is Kind.TRACE for item in bank.items(Kind.EXPERIENCE))


class Owner(Agent):
    """Owns its loop, acts at random and counts its own steps."""

    owns_loop = True

    def act(self, observation: Observation, info: Info) -> int:
        """A legal action."""
        return int(self.rng.choice(np.flatnonzero(observation["action_mask"])))

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Play until the budget is spent; log after every attempt that is made."""
        env, picks = make_env(), 0
        try:
            while True:
                over, (observation, info) = False, env.reset(seed=None)
                while not over:
                    observation, _, ended, cut, info = env.step(self.act(observation, info))
                    picks, over = picks + 1, ended or cut
                    if "attempt" in info:
                        log({"picks": picks}, picks)
        except BudgetSpent:
            return


def test_metrics_of_agents_are_written_once_an_iteration(tmp_path: Path) -> None:
    run(tmp_path / "owner", config(f"{__name__}:Owner"))
    picks = EventAccumulator(str(tmp_path / "owner")).Reload().Scalars("agent/picks")
    assert [one.step for one in picks] == [1, 5, 10, 15, 20]
    assert picks[-1].value > 20
    run(tmp_path / "context-value", config("context-value", env={"author_options": {"profile": "strong"}}))
    events = EventAccumulator(str(tmp_path / "context-value")).Reload()
    assert [one.step for one in events.Scalars("agent/predicted")] == [1, 5, 10, 15, 20]  # and no two at one step
    doubt = [one.value for one in events.Scalars("agent/doubt")]
    assert 0 < doubt[-1] < doubt[0]
    tags = events.Tags()
    unknown = [name for name in (*tags["scalars"], *tags["histograms"]) if not documented(name)]
    assert [name for name in unknown if not name.startswith("_hparams_")] == []
    by_category = {f"category/activation/{figure}" for figure in ("solved", "reward", "compiled", "correct", "speedup")}
    assert {"values/draft", "stage/draft/reward", *by_category} <= {*tags["scalars"], *tags["histograms"]}
    assert b"author_options.profile" in b"".join(
        file.read_bytes() for file in (tmp_path / "context-value").glob("events*")
    )


@pytest.mark.parametrize("name", ["error", "rllib/loss", "sb3/train/loss", "anything"])
def test_metrics_of_the_libraries_are_documented(name: str) -> None:
    assert documented(f"agent/{name}") == (name != "anything")


def test_an_agent_is_saved_during_the_run_and_can_be_loaded_again(tmp_path: Path) -> None:
    run(tmp_path / "a", config(budget=8, checkpoints=4))
    run(tmp_path / "b", config(budget=8))
    assert journal(tmp_path / "a") == journal(tmp_path / "b")
    assert not (tmp_path / "b" / "checkpoints").exists()
    saved = {int(path.name): path for path in (tmp_path / "a" / "checkpoints").iterdir()}
    assert sorted(saved) == [10, 20, 30, 40]
    learned = [len(value.read_item_values(saved[attempts])) for attempts in sorted(saved)]
    assert learned[0] < learned[-1]
    assert value.read_item_values(saved[40]) == value.read_item_values(tmp_path / "a" / "agent")
    run(tmp_path / "c", config(initial_agent=str(saved[10])))


def test_rounds_are_worked_on_one_after_another_and_the_last_counts(tmp_path: Path) -> None:
    settings = config("random", rounds=3, env={"memory": "fresh"})
    outcome = run(tmp_path / "run", settings)
    rows = journal(tmp_path / "run")
    assert [row["index"] for row in rows] == [index for _ in range(3) for index in range(4) for _ in range(5)]
    last = {row["task"] for row in rows[40:] if row["verdict"]["feasible"]}
    assert outcome.figures["correct"] == len(last) / 5
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    written = events.Tags()["scalars"]
    assert [name for name in written if not documented(name) and not name.startswith("_hparams_")] == []
    assert {name for name in written if name.startswith("round/")} <= {f"round/{figure}" for figure in FIGURES}
    area = [(one.step, one.value) for one in events.Scalars("round/area")]
    assert [step for step, _ in area] == [1, 2, 3]
    assert area[-1][1] == pytest.approx(outcome.figures["area"])
    assert run(tmp_path / "run", settings) == outcome


@pytest.mark.slow
def test_a_learner_of_rllib_runs_on_forecasts(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
    run(tmp_path / "run", config("ppo", rounds=2, budget=5, checkpoints=2, env={"memory": "fresh"}))
    assert len(journal(tmp_path / "run")) == 5 * 5 * 2
    [saved] = (tmp_path / "run" / "checkpoints").glob("*/ppo.pt")
    for file in (saved, tmp_path / "run" / "agent" / "ppo.pt"):
        scoring.load(file)
    tags = EventAccumulator(str(tmp_path / "run")).Reload().Tags()["scalars"]
    logged = {tag.removeprefix("agent/rllib/") for tag in tags if tag.startswith("agent/rllib/")}
    assert {"policy_loss", "vf_loss", "entropy"} <= logged
    assert not [name for name in logged if re.search("num_|timer|throughput|time_|worker|pid|seq_no|connector", name)]


@pytest.mark.slow
def test_what_was_trained_on_forecasts_is_evaluated_on_the_device(tmp_path: Path) -> None:
    run(tmp_path / "value", config())
    complete = evaluation.complete_runs([tmp_path / "value"])
    study = evaluation.evaluation_study(complete, ["level1/tanh"], 1, tmp_path / "unseen")
    assert study.run(1, lambda done, total: None) == []
    assert [row["task"] for row in journal(study.path(study.shards[0]))] == ["level1/tanh"]
    run(tmp_path / "fresh", config("random", env={"memory": "fresh"}))
    with pytest.raises(KernelGymError, match="kept no memory"):
        evaluation.evaluation_study(evaluation.complete_runs([tmp_path / "fresh"]), ["level1/tanh"], 1, tmp_path / "no")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tasks": ["relu", "level1/19"]}, "count twice"),
        ({"initial_memory": "memory.jsonl"}, "cannot read .*memory.jsonl"),
        ({"env": {"device": "cuda"}}, "no device"),
        ({"env": {"forecast": False, "table": "small"}}, "env.table was removed"),
        ({"rounds": 2, "env": {"stages": "draft"}}, "rounds"),
    ],
)
def test_options_that_forecasts_do_not_support_are_one_line_errors(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(KernelGymError, match=words) as error:
        run(tmp_path / "run", config(**settings))
    assert "\n" not in str(error.value)


def test_figures_of_drafting_alone_are_of_each_task_s_first_episode(tmp_path: Path) -> None:
    """A solved task is attempted again with its solution in memory, which does not count as drafting."""
    drafting = config("random", env={"stages": "draft"}, budget=8)
    outcome = run(tmp_path / "draft" / "seed-0", drafting)
    rows = journal(tmp_path / "draft" / "seed-0")
    first: dict[str, list[dict[str, Any]]] = {}
    over: set[str] = set()
    for row in rows:  # five tasks at once, each on a bench of its own until it is over
        if row["task"] not in over and row["index"] == len(first.setdefault(row["task"], [])):
            first[row["task"]].append(row)
            over |= {row["task"]} if row["verdict"]["feasible"] or row["index"] == 7 else set()
    counted = [row["reward"] for history in first.values() for row in history]
    assert len(counted) < len(rows)
    assert len(over) == 5
    assert outcome.figures["reward"] == pytest.approx(np.mean(counted)) != np.mean([row["reward"] for row in rows])
    assert outcome.figures["speedup"] is None
    assert run(tmp_path / "draft" / "seed-0", drafting) == outcome  # complete: only read
    (read,) = finished(tmp_path)
    assert read.outcome.figures == outcome.figures
    assert read.speedups() == []
    events = EventAccumulator(str(tmp_path / "draft" / "seed-0"))
    events.Reload()
    assert "speedup/first_draft" not in events.Tags()["scalars"]
    write_report(tmp_path, tmp_path / "report.html", traces=False)


@pytest.mark.parametrize(("seed", "curriculum", "benches"), [(0, "mixed", 5), (1, "mixed", 2), (2, "sequential", 3)])
def test_first_episodes_are_found_among_others_that_overlap(seed: int, curriculum: str, benches: int) -> None:
    settings = {"stages": "draft", "curriculum": curriculum, "budget": 4, "author_options": {"profile": "strong"}}
    envs, agent = ForecastVectorEnv(benches, tasks=FIVE, **settings), RandomAgent(seed)
    observations, infos = envs.reset(seed=seed)
    dealt: Counter[str] = Counter()
    episode: dict[int, int] = {}
    records = []
    while len(records) < 120:
        actions = [agent.act(*view(observations, infos, i)) for i in range(benches)]
        observations, _, _, _, infos = envs.step(np.array(actions))
        for i in range(benches):
            if (attempt := view({}, infos, i)[1].get("attempt")) is not None:
                if attempt.index == 0:
                    episode[i] = dealt[attempt.task]
                    dealt[attempt.task] += 1
                records.append(journal_record(attempt) | {"episode": episode[i]})
    assert max(dealt.values()) > 2
    assert first_episodes(records) == [one for one in records if one["episode"] == 0]


@pytest.mark.slow
def test_agents_are_compared_on_forecasts_from_the_command_line(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    words = (
        "--forecast",
        "--tasks",
        "relu,softmax",
        "--agents",
        "random,similarity",
        "--budget",
        3,
        "--seeds",
        1,
        "--parallel",
        1,
    )
    done = run_script("compare", *words, "--json", "--out", tmp_path / "compared")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["intervals"]) == {"random", "similarity"}


def test_a_run_begins_with_the_memories_of_another(tmp_path: Path) -> None:
    """Its items are candidates with the ids of the bank, are read as their texts say, and values follow them."""
    others, own = list(FIVE[:3]), list(FIVE[3:])
    run(tmp_path / "a", config(tasks=others, budget=6, env={"author_options": {"profile": "strong"}}))
    with MemoryBank(tmp_path / "a" / "bank.sqlite", StaticEmbedder(), read_only=True) as bank:
        bank.export(tmp_path / "memory.jsonl")
        items = {item.id: item for item in bank.items()}
        vectors = dict(zip(items, bank.vectors(list(items)), strict=True))
        outcomes = bank.outcomes(list(items))
    memory = str(tmp_path / "memory.jsonl")
    settings = config(tasks=own, initial_memory=memory, initial_agent=str(tmp_path / "a" / "agent"))
    run(tmp_path / "b", settings)
    assert min(id for row in journal(tmp_path / "b") for id in row["produced"]) == len(items) + 1

    env = ForecastVectorEnv(1, initial_memory=memory, tasks=own, budget=2, pool_factor=30)
    _, infos = env.reset(seed=0)
    assert {one.item.task for one in infos["candidates"][0]} & set(others)
    assert len(env.bank) == len(items)
    for id, item in items.items():
        own_item, place = env.bank.item(id), int(env.bank.places(id))
        assert (own_item.text, own_item.verdict, own_item.stage) == (item.text, item.verdict, item.stage)
        reading = read_note(note(item, suites.find_task("level1/relu")))
        assert (env.items.feasible[place], env.items.length[place]) == (item.feasible, reading.length)
        if item.kind is Kind.TRACE:
            right = [bool((sight := reading.sights.get(name)) and sight.right) for name in idioms()]
            assert env.items.right[place, : len(right)].tolist() == right
        assert np.vecdot(vectors[id], env.items.vectors[place]) > 0.999
        uses = {stage: one.uses for stage, one in outcomes[id].items()}
        assert sum(env.bank.record_of[id - 1, :2]) == sum(uses.values())
    with pytest.raises(KernelGymError, match="memories of level1/"):
        ForecastVectorEnv(1, initial_memory=memory, tasks=others)
