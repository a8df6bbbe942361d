"""The report and the evaluation of real, tiny runs: whole, self-contained, honest about what it can't know."""

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from journals import journal_row
from script import run_script

from kernel_gym import suites
from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments import drawing
from kernel_gym.experiments.reports import pipe_trace, report, top_memories, unrelated_runs
from kernel_gym.experiments.reports.report import finished, write_pictures, write_report
from kernel_gym.experiments.reports.sections import MOST_IN_A_PICTURE, sections
from kernel_gym.experiments.runs import finished_run, validation
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.reference_latency import ReferenceLatencies
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies import agent_comparison, evaluation, study_commands, study_definition
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Outcomes


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents, one seed, two tasks of two suites."""
    folder = tmp_path_factory.mktemp("study")
    for agent in ("value", "random"):
        settings = resolve(
            overrides={"agent": agent, "tasks": ["level1/relu", "basics/vector_add"], "budget": 3, "workers": 1}
        )
        path = folder / agent / "seed-0"
        train(settings, RunFolder.open(path, settings))
    return folder


class Tags(HTMLParser):
    """Which tags are open at the end, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_is_whole_and_loads_nothing(runs: Path, tmp_path: Path) -> None:
    text = write_report(runs, tmp_path / "report.html", reference="random").read_text()
    page = Tags()
    page.feed(text)
    assert page.open == []
    assert [link for link in page.loads if not link.startswith("#")] == []
    assert not re.search(r"url\(|@import", text)
    assert "default-src 'none'" in text
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)
    for words in (
        "level1",
        "basics",
        "value - random",
        "How far tasks came, by category",
        "nothing is tested",
        "attempts to solve",
        "agent: ",
        "commit: ",
        "simulated",
    ):
        assert words in text, words


def test_a_report_says_how_it_was_made_but_not_where(runs: Path, tmp_path: Path) -> None:
    study = tmp_path / "moved"
    shutil.copytree(runs, study)
    command = ["scripts/study.py", "main", "--out", "/home/someone/runs/main", "--memory=/data/secret/bank.jsonl"]
    for folder in study.glob("*/seed-0/provenance.json"):
        provenance = json.loads(folder.read_text())
        again = {"attempt": 2, "commit": "abc", "command": command}
        folder.write_text(json.dumps(provenance | {"command": command, "resumed": [again]}))
    page = write_report(study, tmp_path / "report.html").read_text()
    assert page.count("scripts/study.py main --out .../main --memory=.../bank.jsonl") == 2
    assert not re.search("someone|secret", page)


def test_tiers_and_steps_say_how_far_tasks_and_attempts_came() -> None:
    def attempt(compiled: bool, latency: float | None = None) -> dict[str, Any]:
        return {"verdict": {"compiled": compiled, "feasible": latency is not None, "latency_us": latency}}

    history = [attempt(False), attempt(True), attempt(True, 8.0), attempt(True, 9.0), attempt(True, 4.0)]
    assert finished_run.steps(history) == [0, 1, 2, 2, 3]
    assert [finished_run.tier(history[:n]) for n in range(1, 6)] == [0, 1, 2, 2, 3]


def test_a_run_leaves_the_latencies_that_its_own_are_compared_with(runs: Path) -> None:
    for run in finished(runs):
        solved = {task for task, own in run.outcome.tasks.items() if own.best_us is not None}
        assert set(json.loads((run.folder.path / "references.json").read_text())) == solved
        assert {task for task, own in run.outcome.tasks.items() if own.oracle_us is not None} <= solved


def test_a_missing_contender_is_named(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are random, value"):
        write_report(runs, tmp_path / "report.html", reference="heuristic")


def test_the_report_of_a_comparison_has_the_reference_that_the_comparison_had(tmp_path: Path) -> None:
    """The first agent named, whatever comes first in the alphabet; agents of others have folders without a colon."""
    folder = tmp_path / "compared"
    agents = ["kernel_gym.agents.similarity:SimilarityAgent", "pass@k", "random"]
    base = resolve(overrides={"tasks": ["level1/relu"], "budget": 2, "env": {"forecast": True}})
    for first in (agents[0], agents[2]):
        study = agent_comparison.agent_comparison(base, [first, *(name for name in agents if name != first)], 1, folder)
        for shard in study.shards:
            train(shard.config, RunFolder.open(study.path(shard), shard.config))
        agent_comparison.write(study)
        page = write_report(folder, tmp_path / "report.html", traces=False).read_text()
        compared = set(re.findall(r"[\w.@-]+ - ([\w.@-]+)</", page))
        assert compared == {first.replace(":", "-")}
    (folder / "comparison.json").write_text("{}")
    with pytest.raises(KernelGymError, match="--reference"):
        write_report(folder, tmp_path / "report.html", traces=False)


def test_the_report_of_a_study_compares_as_the_study_does(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(runs, folder)
    (folder / study_commands.STUDY_FILE).write_text("study: main\nsize: quick\n")
    text = write_report(folder, tmp_path / "report.html", traces=False).read_text()
    assert "difference from the best heuristic" in text
    assert "nothing is tested" in text  # the folder names no contrasts, as those of earlier versions
    assert "value - random" in text
    assert "random - " not in text  # whom main compares with whom: nobody with the first by name
    for row in study_definition.load("main").published:
        assert escape(row.what, quote=False) in text
    assert "best heuristic" not in write_report(runs, tmp_path / "report.html", traces=False).read_text()
    (folder / study_commands.STUDY_FILE).write_text(
        "study: main\nsize: quick\ncontrasts: [[value, random, correct]]\nmargins: {}\n"
    )
    text = write_report(folder, tmp_path / "report.html", traces=False).read_text()
    assert "nothing is tested" not in text
    assert "undecided: one seed has no interval" in text
    (folder / study_commands.STUDY_FILE).write_text("nonsense")
    with pytest.raises(KernelGymError, match="does not name a study"):
        write_report(folder, tmp_path / "report.html")


def test_runs_on_other_tasks_are_not_compared(runs: Path) -> None:
    def reduced(run: finished_run.FinishedRun, name: str, tasks: list[str]) -> finished_run.FinishedRun:
        return replace(run, contender=name, records=[one for one in run.records if one["task"] in tasks])

    value, random = sorted(finished(runs), key=lambda run: run.contender != "value")
    both = ["level1/relu", "basics/vector_add"]
    apart = [reduced(value, "a", both[:1]), reduced(random, "b", both[1:]), reduced(random, "c", both)]
    groups = sections({"": apart}, "", None)
    assert [one["name"] for one in groups] == ["basics", "level1"]  # and not all operators: those differ
    assert [[row[0] for table in one["compared"] for row in table[1:]] for one in groups] == [
        ["c - b"],
        ["c - a"],
    ]
    uneven = [replace(one, records=[r | {"task": f"level1/{r['task'][-1]}"} for r in one.records]) for one in apart]
    groups = sections({"": uneven}, "", None)
    assert [one["name"] for one in groups] == [
        "All tasks: 1 task of a",
        "All tasks: 1 task of b",
        "All tasks: 2 tasks of c",
    ]
    assert not any(one["compared"] for one in groups)


def test_unrelated_runs_in_one_folder_are_not_averaged(runs: Path, tmp_path: Path) -> None:
    def copied(agent: str, name: str, **changes: Any) -> None:
        shutil.copytree(runs / agent / "seed-0", tmp_path / "all" / name)
        file = tmp_path / "all" / name / "config.yaml"
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes))

    copied("value", "mine/seed-0")
    copied("random", "mine/seed-1", seed=1)  # another agent under the same name
    copied("value", "short/seed-0", budget=2)
    page = write_report(tmp_path / "all", tmp_path / "report.html", traces=False).read_text()
    heads = re.findall(r'<section class="results"[^>]*><h2>(.*?)</h2>(.*?)</section>', page, re.DOTALL)
    contenders = {name: re.findall(r"<tr><td>([^<]*)</td>", text.partition("</table>")[0]) for name, text in heads}
    mine = ["mine (agent random)", "mine (agent value)"]
    assert {name: sorted(seeds) for name, seeds in contenders.items()} == {
        "basics, budget 3": mine,
        "level1, budget 3": mine,
        "All tasks, budget 3": mine,
        "basics, budget 2": ["short"],
        "level1, budget 2": ["short"],
        "All tasks, budget 2": ["short"],
    }
    assert "The runs differ in budget: those that do are in separate sections." in page
    assert "not averaged: mine (agent random); mine (agent value)." in page
    assert "The runs differ" not in write_report(runs, tmp_path / "one.html", traces=False).read_text()


def test_runs_judged_under_different_policies_are_in_separate_sections(runs: Path, tmp_path: Path) -> None:
    for name in ("value", "random"):
        shutil.copytree(runs / name, tmp_path / name)
    file = tmp_path / "random" / "seed-0" / "config.yaml"
    file.write_text(file.read_text().replace("policy: strict", "policy: reference"))
    groups = unrelated_runs.by_settings(finished(tmp_path))
    assert {settings: [run.contender for run in group] for settings, group in groups.items()} == {
        "env.policy strict": ["value"],
        "env.policy reference": ["random"],
    }


def test_the_run_in_detail_is_no_yardstick_s_unless_asked_for(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(runs / "random", folder / "random")
    shutil.copytree(runs / "value", folder / "oracle")
    config = folder / "oracle" / "seed-0" / "config.yaml"
    config.write_text(config.read_text().replace("agent: value", "agent: oracle"))
    for request, shown in (("", "random"), ("random/0", "random"), ("oracle/seed-0", "oracle")):
        text = write_report(folder, tmp_path / "report.html", traces=False, detailed=request).read_text()
        assert f"One run in detail: {shown}, seed 0" in text
    with pytest.raises(ConfigError, match="there are oracle/0, random/0"):
        write_report(folder, tmp_path / "report.html", detailed="value/0")


def test_categories_are_those_of_the_suites(runs: Path) -> None:
    kinds = {kind for kind, _, _ in report._tiers(finished(runs), {})}
    assert kinds == {suites.find_task(task).category for task in ("level1/relu", "basics/vector_add")}


def test_every_contender_of_a_picture_has_its_own_line_style() -> None:
    assert len(set(drawing.COLOURS)) == len(drawing.COLOURS) > MOST_IN_A_PICTURE
    assert len(study_definition.load("main").agents) <= MOST_IN_A_PICTURE
    many = 2 * len(drawing.COLOURS)
    assert len({drawing.swatch(i) for i in range(many)}) == many
    drawn = drawing.curves({str(i): [(0.0, 1.0)] for i in range(many)}, "", key=True)
    assert drawn.count("stroke-dasharray") == len(drawing.COLOURS)
    assert drawn.count("<rect") == 3 * len(drawing.COLOURS)  # a dashed one is in two pieces


@pytest.mark.slow
def test_the_pictures_stand_alone(runs: Path, tmp_path: Path) -> None:
    written = {file.stem: ElementTree.parse(file).getroot() for file in write_pictures(runs, tmp_path / "pictures")}
    assert {"curves", "timeline"} <= set(written) <= {"curves", "timeline", "transfer", "pipes"}
    space = "{http://www.w3.org/2000/svg}"
    assert {root.tag for root in written.values()} == {f"{space}svg"}
    assert {"value", "random"} <= {text.text for text in written["curves"].iter(f"{space}text")}


def test_a_trace_shows_the_core_that_ended_last() -> None:
    def did(core: int, pipe: int, name: str, begin: float, us: float) -> dict[str, Any]:
        return {"ph": "X", "name": name, "pid": core, "tid": pipe, "ts": begin, "dur": us, "args": {"line": 7}}

    names = [
        {"ph": "M", "name": "thread_name", "pid": core, "tid": pipe, "args": {"name": name}}
        for core in (0, 1)
        for pipe, name in ((1, "V"), (4, "MTE2"))
    ]
    core = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "core 1"}}
    launch = did(9, 0, "launch 1", 0, 99) | {"cat": "launch"}
    events = [*names, core, launch, did(0, 4, "copy_in", 1, 2), did(1, 1, "add", 3, 4), did(1, 4, "copy_in", 1, 2)]
    operations = pipe_trace.last_core(events)
    assert [(one.pipe, one.name, one.begin, one.end) for one in operations] == [
        ("MTE2", "copy_in", 1, 3),
        ("V", "add", 3, 7),
    ]
    drawn = ElementTree.fromstring(pipe_trace.picture(operations))
    assert [title.text for title in drawn.iter("title")] == ["copy_in, line 7: 2.000 us", "add, line 7: 4.000 us"]
    with pytest.raises(KernelGymError, match="no pipe"):
        pipe_trace.last_core(names)


def test_a_kernel_that_can_t_be_traced_has_a_reason(runs: Path, tmp_path: Path) -> None:
    broken = tmp_path / "value" / "seed-0"
    shutil.copytree(runs / "value" / "seed-0", broken)
    kept = sorted((broken / "best").glob("*.cpp"))
    for file in kept:
        file.write_text("not a kernel")
    text = write_report(tmp_path, tmp_path / "report.html").read_text()
    assert text.count("no trace: the kernel does not compile here") == len(kept)
    assert "no trace" not in write_report(tmp_path, tmp_path / "report.html", traces=False).read_text()


def test_an_empty_and_a_broken_folder_are_one_line_errors(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(KernelGymError, match="no complete run"):
        write_report(tmp_path, tmp_path / "report.html")
    shutil.copytree(runs / "value", tmp_path / "broken")
    (tmp_path / "broken" / "seed-0" / "results.jsonl").write_text("not a journal\n")
    done = run_script("report", tmp_path / "broken")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not a journal" in done.stderr


@pytest.mark.slow
def test_a_trained_agent_is_evaluated_frozen_on_what_it_has_not_seen(runs: Path, tmp_path: Path) -> None:
    complete = evaluation.complete_runs([runs / "value"])
    study = evaluation.evaluation_study(complete, ["level1/sigmoid"], 2, tmp_path)
    assert study.run(1, lambda done, total: None) == []
    assert [run.agent for run in study.outcomes()] == ["value"]
    learned = RunFolder(study.path(study.shards[0])).agent
    before, after = (json.loads((path / "value.json").read_text()) for path in (complete[0].agent, learned))
    assert before.pop("rng") != after.pop("rng")  # it acted
    assert before == after  # and did not learn
    records = []
    for path in (complete[0].bank, RunFolder(study.path(study.shards[0])).bank):
        with MemoryBank(path, StaticEmbedder(), read_only=True) as bank:
            outcomes = bank.outcomes(range(1, len(bank) + 1)).values()
            records.append(sum(stage.uses for item in outcomes for stage in item.values()))
    assert records[0] == records[1] > 0, "nor did the memory"
    assert evaluation.training_costs(complete) == {"value": {6}}
    with pytest.raises(ConfigError, match="has not seen"):
        evaluation.evaluation_study(complete, ["level1/relu"], 2, tmp_path)
    with pytest.raises(ConfigError, match="same agent and seed"):
        evaluation.evaluation_study(complete * 2, ["level1/sigmoid"], 2, tmp_path)


def test_valuable_memories_are_those_the_agent_values_or_else_those_with_a_long_good_record(runs: Path) -> None:
    by_agent = {run.config.agent: run for run in report.finished(runs)}
    how, memories = top_memories.top_memories(by_agent["value"], 4)
    assert how == "the values that value learned"
    rows = json.loads((by_agent["value"].folder.agent / "value.json").read_text())["values"]
    learned = {(stage, item): value for stage, _, item, value in rows}
    for stage, some in memories.items():
        assert 0 < len(some) <= 4
        assert [one.value for one in some] == [learned[stage.value, one.item.id] for one in some]
        assert [one.value for one in some] == sorted((one.value for one in some), reverse=True)
        assert all(one.record.uses >= top_memories.LEAST_USES for one in some)
    how, memories = top_memories.top_memories(by_agent["random"], 4)
    assert how == "mean reward, shrunk towards the stage's mean"
    lucky, proven = Outcomes(3, 1.0), Outcomes(40, 0.8)
    means = top_memories._shrunk_means({1: lucky, 2: proven, 3: Outcomes(100, -0.9)})
    assert means[2] > means[1] > means[3]


def test_oracle_and_floor_are_stated_for_the_run_and_by_category(monkeypatch: pytest.MonkeyPatch) -> None:
    possible = {"a": {"floor": 1.0, "oracle": 2.0}, "b": {"floor": 1.0}, "c": {"floor": 4.0, "oracle": 8.0}}
    monkeypatch.setattr(ReferenceLatencies, "_measure", lambda self, name: possible[name])
    latencies = ReferenceLatencies(verifier=None)  # type: ignore[arg-type]
    latencies.add("a", "norm", 4.0)
    latencies.add("b", "pool", 2.0)
    assert latencies.add("c", "norm", 8.0) == {
        "speedup/oracle": 0.75,
        "speedup/floor": 0.5,
        "category/norm/oracle": 0.75,
        "category/norm/floor": 0.375,
    }
    assert latencies.add("b", "pool", 3.0)["category/pool/floor"] == 0.5, "the best counts"


def test_a_claim_that_does_not_hold_is_found(runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "value" / "seed-0", run)
    kept = sorted((run / "best").glob("*.cpp"))
    if not kept:
        with pytest.raises(KernelGymError, match="nothing to validate"):
            list(validation.claims(run, unsafe=True))
        return
    rows = Journal.read(run / "results.jsonl")
    feasible = {(row["task"], row["kernel"]) for row in rows if row["verdict"]["feasible"]}
    claims = list(validation.claims(run, unsafe=True))
    assert {(claim.task, claim.kernel) for claim in claims} == feasible
    assert all(claim.holds for claim in claims)
    assert {claim.task.replace("/", "-") for claim in claims if claim.best} == {file.stem for file in kept}

    kept[0].write_text("not a kernel")
    holding = {claim.task.replace("/", "-"): claim.holds for claim in validation.claims(run, unsafe=True, best=True)}
    assert holding == {file.stem: file != kept[0] for file in kept}


def test_every_feasible_kernel_of_a_journal_is_judged(tmp_path: Path) -> None:
    settings = resolve(overrides={"agent": "random", "tasks": ["level1/relu"], "budget": 3, "workers": 1})
    folder = RunFolder.open(tmp_path, settings)
    slow, fast, lost = (Kernel(text) for text in ("slow", "fast", "lost"))
    for one in (slow, fast):
        folder.keep_kernel(one)
    folder.keep_best("level1/relu", "fast")
    rows = [(slow, 4.0), (fast, 2.0), (slow, 4.0), (lost, 3.0), (fast, 2.1)]
    lines = [journal_row(kernel=one.digest, us=us) for one, us in rows]
    folder.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    claimed = validation._read_claims(folder)
    assert [(one.kernel, one.attempts, one.best) for one in claimed] == [
        (slow.digest, 2, False),
        (fast.digest, 1, True),
        (lost.digest, 1, False),
        (fast.digest, 1, False),
    ]
    assert {i: one.source for i, one in validation._kernels(folder, claimed, "ascendc").items()} == {
        0: "slow",
        1: "fast",
        3: "fast",
    }
    assert not claimed[2].holds
    assert claimed[2].word == "cannot be checked (its source was not kept)"
    folder.keep_best("level1/relu", "faster")  # another kernel than the journal's
    assert set(validation._kernels(folder, claimed, "ascendc")) == {0, 3}
    folder.kernel(slow.digest).write_text("slower")
    assert set(validation._kernels(folder, claimed, "ascendc")) == {3}


def test_a_simulator_repeats_its_latencies_and_a_device_nearly_does() -> None:
    claim = validation.Claim("level1/relu", "", 100.0, now_us=100.0)
    assert claim.holds
    assert not replace(claim, now_us=100.1).holds
    assert replace(claim, now_us=100.1, noise=validation.NOISE).holds
    assert not replace(claim, now_us=90.0, noise=validation.NOISE).holds
    assert not replace(claim, now_us=None, noise=validation.NOISE).holds
