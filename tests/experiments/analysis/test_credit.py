"""True effects: the author's own prospects, the picker that knows, and what the command makes of a run."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from script import run_script

from kernel_gym import suites
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.authors.apprentice import Apprentice, oracle
from kernel_gym.authors.apprentice.prediction import predict
from kernel_gym.authors.contract import Note
from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.analysis.credit import (
    CreditReport,
    CreditSettings,
    Effect,
    State,
    examine,
    examined_attempts,
    pick_context,
)
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible, Uncompilable

TASK = suites.find_task("level1/softmax")
VERIFIED = Note("trace", oracle(TASK).source, oracle(TASK).source, Feasible("", latency=1.0))


def config(**more: Any) -> RunConfig:
    return resolve(overrides={"agent": "value", "tasks": ["leaky_relu", "sigmoid"], "budget": 3} | more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("credit") / "run"
    train(config(), RunFolder.open(path, config()))
    return path


@pytest.mark.parametrize("context", [(), (VERIFIED,)], ids=["nothing", "verified code"])
def test_the_predicted_chance_is_how_often_it_happens(context: tuple[Note, ...]) -> None:
    author, rng = Apprentice(), np.random.default_rng(5)
    written = [author.explain(TASK, context, None, rng) for _ in range(300)]
    happened = np.mean([all(choice.right for choice in one.choices) for one in written])
    predicted = predict(author, TASK, context, draws=100, seed=1).feasible
    assert predicted == pytest.approx(happened, abs=0.05)


def test_verified_code_raises_the_chance_and_an_author_that_does_not_read_is_not_moved() -> None:
    for profile, moved in (("middle", True), ("placebo", False)):
        author = Apprentice(profile)
        before, after = (predict(author, TASK, context).feasible for context in ((), (VERIFIED,)))
        assert (after > before) == moved, profile
        assert moved or after == before
    assert predict(Apprentice("oracle"), TASK, ()).feasible == 1.0


def test_the_oracle_picks_what_helps_and_stops_when_nothing_does() -> None:
    good = MemoryItem(Kind.TRACE, "", VERIFIED.text, VERIFIED.code, Feasible("", latency=1.0), "level1/other", id=1)
    bad = MemoryItem(Kind.TRACE, "", "void f() { Subs(x); }" * 900, "Subs(x);", Uncompilable("no"), "level1/x", id=2)
    info: dict[str, Any] = {
        "task": TASK.id,
        "stage": Stage.DRAFT,
        "start_due": False,
        "draft_due": False,
        "start": 0,
        "picked": (),
        "candidates": (Candidate(bad, 0.9), Candidate(good, 0.1)),
    }
    oracle, mask = OracleAgent(), {"action_mask": np.array([1, 1, 1], np.float32)}
    assert oracle.act(mask, info) == 1
    after = {"action_mask": np.array([1, 0, 1], np.float32)}
    assert oracle.act(after, info | {"picked": (1,)}) == 2, "the long failure would only distract"


def test_examining_a_run_does_not_change_it(run: Path) -> None:
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    seen: list[tuple[int, int]] = []
    report = examine(run, CreditSettings(states=3), lambda done, of: seen.append((done, of)))
    assert {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()} == before
    assert seen[-1] == (len(report.states), len(report.states))
    for state in report.states:
        assert all(0 <= chance <= 1 for chance in state.chances.values())
        assert state.chances["oracle"] >= state.chances["nothing"]
        assert sum(effect.left_out is not None for effect in state.effects) <= 5
    again = examine(run, CreditSettings(states=3))
    assert again == report, "the same question, the same answer"


def test_pickers_are_offered_what_the_schedule_offered(tmp_path: Path) -> None:
    """Two of sixteen slots at first: no agent could have shown more."""
    schedule = {"forecast": True, "picks": 2, "pool_factor": 8, "pool_schedule": [[0, 1], [2, 8]]}
    settings = config(tasks=["level1/relu", "level1/softmax"], env=schedule)
    train(settings, RunFolder.open(tmp_path / "run", settings))
    widths = set()
    for examined in examined_attempts(tmp_path / "run", CreditSettings(states=None, stage="")):
        early, pool = examined.replayed.attempt.index < 2, examined.replayed.state["candidates"]
        assert examined.replayed.mask[:-1].tolist() == [1.0] * len(pool) + [0.0] * (16 - len(pool))
        widths.add((early, len(pool)))
        for agent in (examined.oracle, SimilarityDiverseAgent()):
            assert {one.id for one in pick_context(agent, examined.replayed.state, examined.replayed.mask)} <= {
                one.id for one in pool
            }
    assert widths == {(True, 2), (False, 16)}


@pytest.mark.slow
def test_a_run_that_began_with_memories_and_values_of_another_is_examined_too(run: Path, tmp_path: Path) -> None:
    with MemoryBank(run / "bank.sqlite", StaticEmbedder(), read_only=True) as bank:
        bank.export(tmp_path / "memory.jsonl")
    began = config(
        tasks=["tanh"], budget=2, initial_memory="memory.jsonl", initial_agent=str(run / "agent"), learning=False
    )
    folder = RunFolder.open(tmp_path / "run", began)
    shutil.move(tmp_path / "memory.jsonl", folder.path)
    train(began, folder)
    state = examine(folder.path, CreditSettings(states=1)).states[0]
    assert {effect.value for effect in state.effects} != {0.0}, "what the agent had learned is what it is asked about"


def test_the_left_out_effect_is_the_loss_without_the_candidate(run: Path) -> None:
    state = examine(run, CreditSettings(states=1)).states[0]
    shown = [effect for effect in state.effects if effect.left_out is not None]
    assert shown
    if len(shown) == 1:
        assert shown[0].left_out == pytest.approx(state.chances["agent"] - state.chances["nothing"])


def test_correlation_is_that_of_ranks() -> None:
    def state(values: list[float | None]) -> State:
        effects = tuple(
            Effect(i, "trace", "", True, alone, None, value)
            for i, (alone, value) in enumerate(zip((0.1, 0.2, 0.9), values, strict=True))
        )
        return State("s/a", "draft", 0, {"agent": 0.1, "oracle": 0.3}, {}, effects)

    assert state([1.0, 2.0, 300.0]).correlation("alone") == pytest.approx(1.0)
    assert state([3.0, 2.0, 1.0]).correlation("alone") == pytest.approx(-1.0)
    assert state([1.0, 1.0, 1.0]).correlation("alone") is state([None] * 3).correlation("alone") is None
    report = CreditReport("mine", (state([1.0, 2.0, 3.0]), state([3.0, 2.0, 1.0])))
    mean, count = report.correlation("alone")
    assert mean is not None
    assert (mean.mean, count) == (pytest.approx(0.0), 2)
    assert report.regrets()["agent"] is not None
    assert report.regrets()["agent"].mean == pytest.approx(0.2)  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_command_prints_data(run: Path) -> None:
    done = run_script("credit", run, "--states", 2, "--verify", 1, "--kernels", 2, "--json", check=True)
    data = json.loads(done.stdout)
    assert set(data["verified"]) == {"nothing", "agent", "oracle"}
    assert len(data["states"]) == 2


@pytest.fixture(scope="module")
def forecast_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("credit") / "forecast_run"
    on_forecasts = config(tasks=["level1/relu", "level1/softmax"], budget=4, env={"forecast": True})
    train(on_forecasts, RunFolder.open(path, on_forecasts))
    return path


@pytest.mark.slow
def test_a_run_on_forecasts_is_examined_in_the_states_that_are_given(forecast_run: Path) -> None:
    journal = Journal.read(forecast_run / "results.jsonl")
    report = examine(forecast_run, CreditSettings(states=None, stage="", tasks=("softmax",), attempts=(0, 3)))
    assert [(state.task, state.attempt) for state in report.states] == [("level1/softmax", 0), ("level1/softmax", 3)]
    for state in report.states:
        record = next(one for one in journal if (one["task"], one["index"]) == (state.task, state.attempt))
        assert {one.item for one in state.effects if one.left_out is not None} == set(record["context"])
        assert state.stage == record["stage"]
        assert all(one.title for one in state.effects)
    every = examine(forecast_run, CreditSettings(states=None, stage="draft"))
    drafts = [(one["task"], one["index"]) for one in journal if one["stage"] == "draft"]
    assert [(state.task, state.attempt) for state in every.states] == drafts
    assert report.states[0] in every.states, "what else is asked changes nothing"


def test_the_command_prints_a_table_for_each_given_state(forecast_run: Path) -> None:
    lines = run_script("credit", forecast_run, "--task", "softmax", "--attempt", 0, check=True).stdout.splitlines()
    assert lines[0].strip() == "level1/softmax, attempt 0 (draft)"
    assert lines[1].split() == ["item", "alone", "left", "out", "value", "kind", "title"]
    end = next(i for i, line in enumerate(lines) if line.startswith("chance of a good kernel: nothing"))
    (state,) = examine(forecast_run, CreditSettings(None, "", tasks=("softmax",), attempts=(0,))).states
    assert sorted(int(line.split()[0]) for line in lines[2:end]) == sorted(one.item for one in state.effects)


def test_a_run_that_no_longer_replays_is_one_line_that_names_it(forecast_run: Path, tmp_path: Path) -> None:
    drifted = tmp_path / "drifted"
    shutil.copytree(forecast_run, drifted)
    text = (drifted / "results.jsonl").read_text().replace('"reward": -1.0', '"reward": -0.5', 1)
    (drifted / "results.jsonl").write_text(text)
    done = run_script("credit", drifted, "--states", 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"credit.py: {drifted} cannot be replayed: attempt ")
    assert "(reward)" in done.stderr
    assert "--out" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("settings", "says"), [
    (CreditSettings(stage="no such"), "has no attempts in the stage 'no such'"),
    (CreditSettings(tasks=("nope",), stage=""), "has no attempts at nope; its tasks: level1/relu, level1/softmax"),
    (CreditSettings(tasks=("relu", "nope"), stage=""), "has no attempts at nope; its"),
    (CreditSettings(attempts=(4, 9), stage=""), "has no attempts numbered 4, 9;"),
    (CreditSettings(tasks=("relu",), attempts=(0,), stage="refine"), "at relu numbered 0 in the stage 'refine'"),
])  # fmt: skip
def test_missing_states_are_a_one_line_error(settings: CreditSettings, says: str, forecast_run: Path) -> None:
    with pytest.raises(KernelGymError) as error:
        examine(forecast_run, settings)
    assert str(error.value).startswith(f"{forecast_run} has no attempts")
    assert says in str(error.value)


def test_runs_that_cannot_be_examined_are_one_line_errors(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="simulated author only"):
        examine(_other(tmp_path / "b", run, env={"author": "openai"}), CreditSettings())
    with pytest.raises(ConfigError, match="owns its training loop"):
        examine(_other(tmp_path / "c", run, agent="ppo"), CreditSettings())
    with pytest.raises(KernelGymError, match="holds no run"):
        examine(tmp_path / "nothing", CreditSettings())


def _other(path: Path, run: Path, **changes: Any) -> Path:
    """A run folder with another configuration and the same journal."""
    RunFolder.open(path, config(**changes))
    (path / "results.jsonl").write_bytes((run / "results.jsonl").read_bytes())
    return path
