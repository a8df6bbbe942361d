"""Training with everything real: deterministic, resumable after a kill, honest about what it writes."""

import json
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from python_process import PythonProcess
from repository import ROOT
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kernel_gym.agents.context_value import ContextValueAgent
from kernel_gym.agents.value import ValueAgent
from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.figures import RunOutcome
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.runs.run_recorder import RunRecorder
from kernel_gym.experiments.runs.tracking.metrics import METRICS, OTHERS, documented
from kernel_gym.experiments.runs.training import make_environments, train
from kernel_gym.experiments.runs.validation import claims
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.memory.seed import seed_items
from kernel_gym.verdict import Uncompilable
from kernel_gym.verifier.secret import PUBLISHED, fingerprint

TASKS = ("relu", "sum_reduction_over_a_dimension")


def config(agent: str = "value", **overrides: Any) -> RunConfig:
    return resolve(overrides={"agent": agent, "tasks": TASKS, "budget": 3, "workers": 1} | overrides)


def run(folder: Path, settings: RunConfig) -> RunOutcome:
    return train(settings, RunFolder.open(folder, settings))


def journal(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for row in rows:
        row["verdict"].pop("seconds")
    return rows


def test_the_same_seed_gives_the_same_run_and_another_one_another(tmp_path: Path) -> None:
    first = run(tmp_path / "a", config())
    assert run(tmp_path / "b", config()) == first
    assert journal(tmp_path / "a") == journal(tmp_path / "b")
    run(tmp_path / "c", config(seed=1))
    assert [row["kernel"] for row in journal(tmp_path / "c")] != [row["kernel"] for row in journal(tmp_path / "a")]


class Silent:
    """Has no answer, which nobody needs to judge."""

    language = "ascendc"

    def identity(self) -> str:
        return "silent"

    def write(self, task: Any, context: Any, start: Any, rng: Any) -> Kernel:
        return Kernel("", self.language)


LEVELS = ("level2/conv2d_mish_mish", "level1/relu", "level2/conv2d_relu_bias_add", "level1/sigmoid")


def test_a_task_that_is_named_twice_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="level1/relu would count twice"):
        run(tmp_path / "twice", config("random", tasks=["relu", "gelu", "level1/relu"]))
    assert not (tmp_path / "twice" / "results.jsonl").exists()


def test_level_by_level_one_level_is_finished_before_the_next_begins(tmp_path: Path) -> None:
    def levels(folder: str, tasks: Sequence[str], batch: int = 0) -> list[str]:
        env = {"curriculum": "levels", "author": f"{__name__}:Silent"}
        run(tmp_path / folder, config("random", tasks=tasks, batch=batch, budget=2, env=env))
        return [row["task"] for row in journal(tmp_path / folder)]

    level_1, level_2 = [LEVELS[1], LEVELS[3]], [LEVELS[0], LEVELS[2]]
    assert levels("equal", LEVELS) == level_1 * 2 + level_2 * 2, "a batch for each level"
    assert levels("uneven", LEVELS[:3]) == [LEVELS[1]] * 2 + [LEVELS[0]] * 2 + [LEVELS[2]] * 2
    assert levels("single", LEVELS, 1) == [task for task in (*level_1, *level_2) for _ in range(2)]
    with pytest.raises(ConfigError, match="batches of 4 would mix the levels: batch must divide 2"):
        levels("mixed", LEVELS, 4)
    with pytest.raises(ConfigError, match="4 tasks don't make whole batches of 3"):
        levels("torn", LEVELS, 3)


def test_a_run_folder_has_the_documented_files(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", config())
    rows = journal(tmp_path / "run")
    assert len(rows) == 6
    assert [row["index"] for row in rows] == [0, 0, 1, 1, 2, 2]
    solved = {row["task"] for row in rows if row["verdict"]["feasible"]}
    assert outcome.figures["correct"] == len(solved) / 2
    assert len(list((tmp_path / "run").glob("best/*.cpp"))) == len(solved)
    feasible = {row["kernel"] for row in rows if row["verdict"]["feasible"]}
    assert {file.stem for file in (tmp_path / "run").glob("kernels/*.cpp")} == feasible
    tags = EventAccumulator(str(tmp_path / "run")).Reload().Tags()
    written = [
        *tags["scalars"],
        *tags["histograms"],
        *tags["images"],
        *(name.removesuffix("/text_summary") for name in tags["tensors"]),
    ]
    assert [name for name in written if not documented(name) and not name.startswith("_hparams_")] == []
    for metric in (*METRICS, *OTHERS):  # and what is documented is written; no model was asked, nothing was refined
        pattern = re.sub(r"<\w+>", r".+", metric)
        absent = (
            metric.startswith(("<part>", "round/", "agent/rllib", "agent/sb3"))
            or metric in ("agent/predicted", "agent/doubt")  # complement's
            or "refine" in metric
            or ((metric.startswith(("kernel", "latency")) or "speedup" in metric) and not solved)
        )
        assert absent or any(re.fullmatch(pattern, name) for name in written), metric
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["kernel_gym"]
    assert run(tmp_path / "run", config()) == outcome  # complete: nothing is done again


def command(agent: str, budget: int, out: Path) -> PythonProcess:
    words = ("--agent", agent, "--tasks", ",".join(TASKS), "--budget", budget, "--workers", 1, "--out", out)
    return PythonProcess(ROOT / "scripts" / "train.py", *words)


@pytest.mark.slow
def test_a_run_killed_at_any_moment_resumes_to_the_same_journal(tmp_path: Path) -> None:
    settings = config(budget=4)
    run(tmp_path / "whole", settings)
    for _ in range(2):
        lines = _lines(tmp_path / "killed")
        process = command("value", 4, tmp_path / "killed")
        while process.returncode is None and _lines(tmp_path / "killed") < lines + 2:
            time.sleep(0.01)
        process.kill()
        assert lines < _lines(tmp_path / "killed")
    last = command("value", 4, tmp_path / "killed")
    last.communicate()
    assert last.returncode == 0
    assert journal(tmp_path / "killed") == journal(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("agent", ["value", "context-value"])
def test_a_run_killed_many_times_ends_with_the_same_journal(tmp_path: Path, agent: str) -> None:
    """`make test-slow`: killed at moments drawn at random, before, between and after attempts, then left alone."""
    settings = config(agent, budget=6)
    run(tmp_path / "whole", settings)
    moments = random.Random(agent)
    for _ in range(12):
        kept = _lines(tmp_path / "killed")
        process = command(agent, 6, tmp_path / "killed")
        time.sleep(moments.uniform(0.1, 5.0))
        process.kill()
        assert _lines(tmp_path / "killed") >= kept, "nothing that was committed may be lost"
    last = command(agent, 6, tmp_path / "killed")
    last.communicate()
    assert last.returncode == 0
    assert journal(tmp_path / "killed") == journal(tmp_path / "whole")
    with MemoryBank(tmp_path / "killed" / "bank.sqlite", StaticEmbedder(), read_only=True) as bank:
        assert bank.problems() == ()


def test_a_failed_replay_keeps_the_memory_and_a_resumed_run_records_its_provenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config("random", tasks=("relu",))
    folder = RunFolder.open(tmp_path / "run", settings)
    run(folder.path, settings)
    (folder.path / "complete").unlink()

    def held() -> dict[str, bytes]:
        files = (path for path in folder.path.rglob("*") if path.is_file() and path != folder.journal)
        return {str(path.relative_to(folder.path)): path.read_bytes() for path in files}

    whole, before = folder.journal.read_text(), held()
    rows = whole.splitlines(keepends=True)
    folder.journal.write_text("".join([*rows[:-1], rows[-1].replace('"index": 2', '"index": 7')]))
    with pytest.raises(KernelGymError, match=r"attempt 2 .*\(index\).* is left as it was"):
        run(folder.path, settings)
    assert held() == before
    assert {"bank.sqlite", "best/level1-relu.cpp"} <= before.keys()

    folder.journal.write_text("".join(rows[:-1]))
    monkeypatch.setattr("kernel_gym.experiments.runs.run_folder._commit", lambda: "later")
    run(folder.path, settings)
    (again,) = folder.provenance["resumed"]
    assert (again["attempt"], again["commit"], again["command"]) == (2, "later", sys.argv)
    assert folder.commits == (folder.provenance["commit"], "later")
    assert held().keys() - before.keys() == {"complete", *map(str, _events(folder))}
    assert json.loads(folder.journal.read_text().splitlines()[-1])["kernel"] == json.loads(rows[-1])["kernel"]


def _events(folder: RunFolder) -> list[Path]:
    return [path.relative_to(folder.path) for path in folder.path.glob("events.out.tfevents.*")]


def _lines(folder: Path) -> int:
    path = folder / "results.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_folder_of_another_run_is_left_alone(tmp_path: Path) -> None:
    folder = RunFolder.open(tmp_path / "run", config(seed=4))
    assert RunFolder.open(tmp_path / "run", config()) == folder  # nothing came of it yet: a mistyped option is no run
    folder.journal.write_text('{"task": "level1/relu"}\n')
    with pytest.raises(KernelGymError, match=r"another configuration \(env\.picks, seed\); choose another"):
        RunFolder.open(tmp_path / "run", config(seed=5, workers=3, env={"picks": 2}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(KernelGymError, match="not empty"):
        RunFolder.open(tmp_path / "other", config())


def test_a_folder_left_incomplete_by_a_kill_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kernel_gym.experiments.runs.run_folder.provenance", killed)  # it asks git and takes longest
    with pytest.raises(KeyboardInterrupt):
        RunFolder.open(tmp_path / "run", config())
    monkeypatch.undo()
    folder = RunFolder.open(tmp_path / "run", config())
    assert json.loads((folder.path / "provenance.json").read_text())["kernel_gym"]
    assert folder.agent.is_dir()


def test_learned_values_follow_their_items_into_the_next_bank(tmp_path: Path) -> None:
    """Leaving tasks out of an export moves the ids of all items after theirs."""
    settings = config(initial_memory="memory.jsonl", initial_agent="before")
    folder = RunFolder.open(tmp_path / "run", settings)
    with MemoryBank(None, StaticEmbedder()) as bank:
        bank.add(seed_items("ascendc"), attempt=False)
        traces = [
            MemoryItem(Kind.TRACE, task, task, task, Uncompilable("no"), task)
            for task in ("level1/relu", "level1/gelu")
        ]
        (gone,), (kept,) = (bank.add([trace]) for trace in traces)
        bank.export(folder.resolve("memory.jsonl"), exclude_tasks=["level1/relu"])
    before = ValueAgent()
    before.values = {("draft", "", 1): 0.1, ("draft", "", gone): 0.2, ("refine", "", kept): 0.3}
    before.save(folder.resolve("before"))
    journal = folder.open_journal()
    plan = RunPlan.of(settings, folder)
    with RunRecorder(plan, journal) as recorder, make_environments(plan, recorder) as environments:
        assert environments.agent().values == {("draft", "", 1): 0.1, ("refine", "", gone): 0.3}  # type: ignore[attr-defined]
    journal.close()
    with MemoryBank(folder.bank, StaticEmbedder(), read_only=True) as bank:
        assert bank.get(gone).task == "level1/gelu"


@pytest.mark.parametrize("forecast", [False, True])
def test_without_its_memory_an_agent_keeps_only_the_values_of_the_seed_knowledge(
    tmp_path: Path, forecast: bool
) -> None:
    """Later ids are other items in the new run."""
    env = {"forecast": forecast}
    seed = len(seed_items("ascendc"))
    value, context_value = ValueAgent(), ContextValueAgent()
    value.values = {("draft", "", seed): 0.1, ("refine", "", seed + 1): 0.2}
    context_value.effects.table = {("draft", seed): (0.1, 0.01), ("refine", seed + 1): (0.2, 0.01)}
    digests = {}
    for name, before in (("value", value), ("context-value", context_value)):
        settings = config(name, initial_agent="before", env=env, tasks=("level1/relu",))
        folder = RunFolder.open(tmp_path / name, settings)
        before.save(folder.resolve("before"))
        journal = folder.open_journal()
        plan = RunPlan.of(settings, folder)
        with RunRecorder(plan, journal) as recorder, make_environments(plan, recorder) as environments:
            digests[name] = environments.agent().values  # type: ignore[attr-defined]
        journal.close()
    assert digests == {"value": {("draft", "", seed): 0.1}, "context-value": {("draft", seed): 0.1}}


def test_options_that_an_agent_does_not_take_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        run(tmp_path / "run", config(agent_options={"nonsense": 1}))


def drafts(folder: Path) -> list[tuple[str, str]]:
    return [(row["task"], row["kernel"]) for row in journal(folder) if row["stage"] == "draft"]


@pytest.mark.slow
def test_agents_differ_by_what_they_show_and_by_nothing_else(tmp_path: Path) -> None:
    """With the placebo, which ignores its context, all agents draft the same kernels; with a reader they don't."""
    seen = {}
    for profile in ("placebo", "middle"):
        for agent in ("random", "similarity", "value"):
            settings = config(agent, budget=4, env={"author_options": {"profile": profile}})
            curve = run(tmp_path / f"{profile}-{agent}", settings).curve
            seen[profile, agent] = (curve, drafts(tmp_path / f"{profile}-{agent}"))
    assert seen["placebo", "random"] == seen["placebo", "similarity"] == seen["placebo", "value"]
    assert seen["middle", "random"][1] != seen["middle", "similarity"][1]


@pytest.mark.slow
def test_a_run_is_judged_and_validated_by_its_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_GYM_SECRET", raising=False)
    env = {"policy": "reference", "author_options": {"profile": "oracle"}}
    settings = config("random", tasks=["relu"], budget=1, env=env)
    run(tmp_path / "run", settings)
    (row,) = journal(tmp_path / "run")
    assert (row["verdict"]["policy"], row["verdict"]["secret"]) == ("reference", fingerprint(PUBLISHED))
    (claim,) = claims(tmp_path / "run", unsafe=True)
    assert claim.holds
    with pytest.raises(KernelGymError, match=r"another configuration \(env.policy\)"):
        run(tmp_path / "run", config("random", tasks=["relu"], budget=1, env=env | {"policy": "strict"}))
