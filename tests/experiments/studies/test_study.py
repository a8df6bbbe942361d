"""Named studies: data that parses, the tasks they name, shards that resume, move, fail one by one."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from script import run_script

from kernel_gym import suites
from kernel_gym.cli.command_line import UsageError
from kernel_gym.cli.commands import evaluate
from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import make_agent
from kernel_gym.experiments.studies import study_commands, study_definition, tables
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard
from kernel_gym.experiments.studies.task_sampling import select_tasks, stratified
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Uncompilable

PASSED_ON = {
    "about": "A memory is made and passed on.",
    "question": "Does it arrive?",
    "agents": ["random"],
    "reference": "use/random",
    "phases": ["basics 1"],
    "settings": {"workers": 1},
    "arms": {"make": {"agents": ["value"]}, "use": {"memory": "make", "phases": ["level1 1"], "agents": ["value"]}},
    "sizes": {"quick": {"budget": 2, "seeds": 1}},
}


@pytest.mark.parametrize("name", study_definition.names())
@pytest.mark.parametrize("size", ["quick", "full"])
def test_every_study_resolves_at_both_sizes(name: str, size: str) -> None:
    study = study_definition.load(name)
    shards = study_definition.shards(study, size)
    assert len({shard.label for shard in shards}) == len(shards)
    contenders = list(dict.fromkeys(shard.contender for shard in shards))
    assert study.reference in {*contenders, *study.agents}
    assert {name for pair in study.pairs for name in pair} <= set(contenders)
    rivals = [contender for contender in contenders if contender != study.yardstick]
    assert len(study.compared(contenders)) >= (len(study.pairs) or len(rivals) - len(study.arms))
    assert {study.yardstick} - {""} <= set(contenders)
    assert {shard.memory for shard in shards} - {""} <= {shard.label for shard in shards}
    assert {*study.learners, *study.heuristics} <= {shard.contender for shard in shards}


def test_main_has_the_documented_settings() -> None:
    shards = study_definition.shards(study_definition.load("main"), "full")
    assert {shard.seed for shard in shards} == set(range(10))
    for shard in shards:
        assert (shard.config.budget, shard.config.batch) == (30, 40)
        assert [task.partition("/")[0] for task in shard.tasks] == ["level1"] * 40 + ["level2"] * 40
        assert shard.config.env.author_options == {"profile": "middle"}
        assert shard.config.env.memory == ("fresh" if shard.agent in ("pass@k", "refinement") else "shared")
    placebo = study_definition.shards(study_definition.load("placebo"), "full")
    assert [one.tasks for one in placebo] == [one.tasks for one in shards]
    assert {one.config.env.author_options["profile"] for one in placebo} == {"placebo"}


def test_tuning_gives_every_learner_as_many_settings_on_tasks_of_its_own() -> None:
    shards = study_definition.shards(study_definition.load("tuning"), "full")
    tried = Counter(shard.agent for shard in shards if shard.seed == 0)
    assert set(tried.values()) == {4}
    assert set(tried) == set(study_definition.load("main").learners)
    settings = {(shard.agent, str(shard.config.agent_options)) for shard in shards}
    assert len(settings) == sum(tried.values())  # no setting twice
    for agent, options in {(shard.agent, tuple(shard.config.agent_options.items())) for shard in shards}:
        make_agent(shards[0].config.model_copy(update={"agent": agent, "agent_options": dict(options)}))
    used = {task for shard in study_definition.shards(study_definition.load("main"), "full") for task in shard.tasks}
    assert not used & {task for shard in shards for task in shard.tasks}


@pytest.mark.parametrize("size", ["quick", "full"])
def test_frozen_agents_meet_tasks_that_no_agent_was_trained_tuned_or_fitted_on(size: str) -> None:
    unseen = study_definition.shards(study_definition.load("unseen"), size)
    frozen = {task for shard in unseen if shard.arm == "frozen" for task in shard.tasks}
    trained = {task for shard in unseen if shard.arm == "trained" for task in shard.tasks}
    tuned = {task for shard in study_definition.shards(study_definition.load("tuning"), "full") for task in shard.tasks}
    # docs/method/agents.md: the weights that context-value begins with
    fitted = {task.id for task in select_tasks("level1 30 after 40")}
    assert frozen
    assert not frozen & (trained | tuned | fitted)


def test_selected_agents_keep_their_arms_and_those_that_build_their_memory() -> None:
    tuning = study_definition.shards(study_definition.load("tuning"), "quick", ["context-value"])
    assert {shard.agent for shard in tuning} == {"context-value"}
    assert {shard.arm for shard in tuning} == {"defaults", "greedier", "doubtful", "items"}
    handed = study_definition.shards(study_definition.load("value-vs-heuristic"), "quick", ["heuristic"])
    assert {shard.contender for shard in handed} == {"level1/value", "level2/heuristic"}
    with pytest.raises(ConfigError, match="no arm of the study has random"):
        study_definition.shards(
            study_definition.parse("mine", PASSED_ON | {"arms": {"": {"agents": ["value"]}}}), "quick", ["random"]
        )


def test_a_size_reads_the_former_name_of_its_share_of_tasks() -> None:
    sizes = {"new": {"tasks": 0.5}, "old": {"operators": 0.5}}
    study = study_definition.parse("mine", PASSED_ON | {"phases": ["level1 4"], "arms": {"": {}}, "sizes": sizes})
    new, old = (study_definition.shards(study, size) for size in ("new", "old"))
    assert [shard.tasks for shard in new] == [shard.tasks for shard in old]
    assert {len(shard.tasks) for shard in new} == {2}
    with pytest.raises(ConfigError, match=r"sizes\.quick\.operators"):
        study_definition.parse("mine", PASSED_ON | {"sizes": {"quick": {"operators": 2}}})


@pytest.mark.parametrize("option", ["--tasks", "--operators"])
def test_evaluate_takes_ids_and_samples(option: str) -> None:
    parser = argparse.ArgumentParser()
    evaluate.add_arguments(parser)
    sample = parser.parse_args(["runs/main", option, "level1 2 after 4 + level2 1", "--out", "out"])
    assert evaluate._tasks(sample.tasks) == select_tasks("level1 2 after 4 + level2 1")
    named = parser.parse_args(["runs/main", option, "level1/gelu, level1/relu", "--out", "out"])
    assert [task.id for task in evaluate._tasks(named.tasks)] == ["level1/gelu", "level1/relu"]
    with pytest.raises(UsageError, match="--tasks names no task"):
        evaluate.run(parser.parse_args(["runs/main", option, "", "--out", "out"]))


@pytest.mark.parametrize("count", [1, 8, 40, 99])
def test_a_stratified_choice_has_every_category_by_its_share(count: int) -> None:
    tasks = suites.load_suite("level1")
    kept = stratified(tasks, count)
    assert len(kept) == len({task.id for task in kept}) == count
    shares = Counter(task.category for task in tasks)
    for category, had in Counter(task.category for task in kept).items():
        assert abs(had - shares[category] * count / len(tasks)) < 1


def test_tasks_that_are_kept_back_are_disjoint_from_the_first_ones() -> None:
    first, rest = select_tasks("level1 40"), select_tasks("level1 20 after 40")
    assert len(rest) == 20
    assert not {task.id for task in first} & {task.id for task in rest}
    for share in (0.2, 0.4):
        assert {task.id for task in select_tasks("level1 20 after 40", share)} <= {task.id for task in rest}, (
            "kept back at any size"
        )
    assert [task.suite for task in select_tasks("level1 40 + level2 20", share=0.1)] == ["level1"] * 4 + ["level2"] * 2
    for words in ("level1", "level1 many", "level1 4 before 2", "level1 4 after", "level1 101"):
        with pytest.raises(ConfigError):
            select_tasks(words)


def test_a_study_takes_other_suites_and_says_so() -> None:
    definition = study_definition.on_suites(study_definition.load("main"), ["attention", "mhc"])
    assert definition.phases == ("attention 15", "mhc 15")
    assert [len(select_tasks(phase)) for phase in definition.phases] == [15, 15]
    assert definition.about.endswith("Here its tasks are others: 15 tasks of attention, then 15 tasks of mhc.")


def test_an_invalid_study_is_a_one_line_error() -> None:
    with pytest.raises(ConfigError, match=r"there are .*main"):
        study_definition.load("nothing")
    with pytest.raises(ConfigError, match="colour"):
        study_definition.parse("mine", PASSED_ON | {"colour": "blue"})
    with pytest.raises(ConfigError, match="sizes are quick"):
        study_definition.shards(study_definition.parse("mine", PASSED_ON), "huge")
    uneven = study_definition.parse("mine", PASSED_ON | {"phases": ["level1 1", "level1 2"], "arms": {"": {}}})
    with pytest.raises(ConfigError, match="equally many"):
        study_definition.shards(uneven, "quick")


@pytest.mark.slow
def test_a_memory_is_made_passed_on_and_the_folder_can_be_moved(tmp_path: Path) -> None:
    shards = tuple(study_definition.shards(study_definition.parse("mine", PASSED_ON), "quick"))
    study = Study(shards, tmp_path / "here", "use/value")
    seen: list[tuple[int, int]] = []
    assert study.run(2, lambda done, total: seen.append((done, total))) == []
    assert seen[-1] == (4, 4)
    source, used = (study.path(shard) for shard in shards)
    assert (used / MEMORY_FILE).exists()
    assert not (source / MEMORY_FILE).exists()
    assert "basics/" in (used / MEMORY_FILE).read_text()
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = Study(shards, tmp_path / "there", "use/value")
    assert moved.run(2, lambda done, total: None) == []  # complete: nothing is done again
    text = tables.results("mine", study_definition.parse("mine", PASSED_ON), moved)
    assert "2 of 2 runs complete" in text
    assert "No contrast was named before these runs" in text
    named = PASSED_ON | {"contrasts": [("use/value", "use/random", "area")]}
    assert "No contrast has complete runs" in tables.results("mine", study_definition.parse("mine", named), moved)
    assert "Not complete yet" not in text
    assert "mixed" not in text
    for shard in shards:
        (moved.path(shard) / "provenance.json").write_text(
            '{"commit": "one"}'
        )  # as files were before runs told of more
    assert moved.commits() == ["one"]
    again = '{"commit": "one", "resumed": [{"commit": "another", "attempt": 1, "command": []}]}'
    (moved.path(shards[0]) / "provenance.json").write_text(again)
    assert moved.commits() == ["another", "one"]
    (moved.path(shards[1]) / "complete").rename(tmp_path / "complete")
    assert "Not complete yet: use/value (seed 0)" in tables.results(
        "mine", study_definition.parse("mine", PASSED_ON), moved
    )
    (tmp_path / "complete").rename(moved.path(shards[1]) / "complete")
    assert "are of different commits" in tables.results("mine", study_definition.parse("mine", PASSED_ON), moved)
    assert "| use/value |" in text


def test_an_arm_of_all_agents_passes_on_to_each_its_own() -> None:
    shards = study_definition.shards(study_definition.load("unseen"), "quick", seeds=[1])
    frozen = [shard for shard in shards if shard.arm == "frozen"]
    assert [shard.memory for shard in frozen] == [f"trained/{shard.agent}/seed-1" for shard in frozen]
    assert all(shard.config.initial_agent and not shard.config.learning for shard in frozen)
    with pytest.raises(ConfigError, match="one agent of its own or with all"):
        study_definition.shards(
            study_definition.parse(
                "mine", PASSED_ON | {"arms": {"make": {"agents": ["value", "random"]}, "use": {"memory": "make"}}}
            ),
            "quick",
        )


def test_a_memory_whose_copy_was_killed_is_copied_again(tmp_path: Path) -> None:
    shards = tuple(study_definition.shards(study_definition.parse("mine", PASSED_ON), "quick"))
    study = Study(shards, tmp_path, "use/value")
    source, folder = (RunFolder.open(study.path(shard), shard.config) for shard in shards)
    with MemoryBank(source.bank, StaticEmbedder()) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, f"{i}", f"{i}") for i in range(9)])
    (source.agent / "value.json").write_text("{}")
    (folder.path / f"{MEMORY_FILE}.part").write_text('{"half": ')
    study._copy_memory(shards[1])
    assert len((folder.path / MEMORY_FILE).read_text().splitlines()) == 10
    assert (folder.path / AGENT_FOLDER / "value.json").exists()
    assert not (folder.path / f"{MEMORY_FILE}.part").exists()


@pytest.mark.parametrize("overlapping", [False, True])
def test_statistics_are_passed_on_unless_they_may_be_of_the_tasks_to_come(tmp_path: Path, overlapping: bool) -> None:
    shards = tuple(study_definition.shards(study_definition.parse("mine", PASSED_ON), "quick"))
    study = Study(shards, tmp_path, "use/value")
    source, folder = (RunFolder.open(study.path(shard), shard.config) for shard in shards)
    task = shards[1].tasks[0] if overlapping else "level9/other"
    with MemoryBank(source.bank, StaticEmbedder()) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "p", "p")], attempt=False)
        bank.add([MemoryItem(Kind.TRACE, "t", "t", "t", Uncompilable("no"), task)])
        bank.record(Stage.DRAFT, [1], -1.0)
    study._copy_memory(shards[1])
    header, *lines = [json.loads(line) for line in (folder.path / MEMORY_FILE).read_text().splitlines()]
    assert header["excluded_tasks"] == ([task] if overlapping else [])
    assert header["provenance"]["agent"] == "value"
    assert [line["outcomes"] for line in lines] == ([[]] if overlapping else [[["draft", 1, -1.0, -0.2]], []])


SLEEPING_STUDY = """
import os, time
from pathlib import Path
from kernel_gym.experiments.studies.study_definition import Shard
from kernel_gym.experiments.studies.study import Study
from kernel_gym.cli.command_line import UsageError
from kernel_gym.cli.commands import evaluate
from kernel_gym.config import resolve

def sleeper(seed):
    Path("pid").write_text(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    config = resolve(overrides={"tasks": ["relu"], "budget": 1, "agent": "sleeping_study:sleeper"})
    shard = Shard("", "sleeper", 0, config, ("level1/relu",))
    Study((shard,), Path("study"), "").run(1, lambda done, of: None)
"""


def test_a_killed_study_leaves_no_process_behind(tmp_path: Path) -> None:
    """An orphan would keep writing the run that the same command resumes."""
    (tmp_path / "sleeping_study.py").write_text(SLEEPING_STUDY)
    command = subprocess.Popen([sys.executable, "sleeping_study.py"], cwd=tmp_path)
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert command.poll() is None
        time.sleep(0.05)
    command.kill()
    command.wait()
    while _alive(int(pid.read_text())):  # until the test's own timeout
        time.sleep(0.05)


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_runs_that_fail_or_are_killed_say_so_and_leave_the_others_alone(tmp_path: Path) -> None:
    base = resolve(overrides={"tasks": ["relu"], "budget": 1, "workers": 1})
    killed = base.model_copy(update={"agent": f"{__name__}:killed"})
    wrong = base.model_copy(update={"agent": "random", "agent_options": {"nonsense": 1}})
    shards = tuple(
        Shard(name, "random", 0, config, ("level1/relu",)) for name, config in (("killed", killed), ("wrong", wrong))
    )
    follower = Shard("after", "random", 0, base, ("level1/relu",), memory="wrong/random/seed-0")
    study = Study((*shards, follower), tmp_path, "wrong/random")
    failures = {failure.shard: failure.reason for failure in study.run(2, lambda done, total: None)}
    assert "run the same command again" in failures["killed/random/seed-0"]
    assert "nonsense" in failures["wrong/random/seed-0"]
    assert "which failed" in failures["after/random/seed-0"]
    assert study.complete() == []


@pytest.mark.slow
def test_a_memory_that_cannot_be_copied_fails_its_shard_alone(tmp_path: Path) -> None:
    base = resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 1, "workers": 1})
    config = base.model_copy(update={"initial_memory": MEMORY_FILE, "initial_agent": AGENT_FOLDER, "learning": False})
    names = ("damaged", "blocked", "dropped")
    shards = [Shard(name, "random", 0, base, ("level1/relu",)) for name in names]
    users = [Shard(f"use-{one.arm}", "random", 0, config, ("level1/relu",), memory=one.label) for one in shards]
    study = Study((*shards, *users), tmp_path, "")
    for shard in shards:
        source = RunFolder.open(study.path(shard), base)
        with MemoryBank(source.bank, StaticEmbedder()) as bank:
            bank.add([MemoryItem(Kind.PRACTICE, "one", "one")])
        (source.path / "complete").touch()
    damaged, blocked, dropped = (RunFolder(study.path(shard)) for shard in shards)
    damaged.bank.write_bytes(b"no bank" * 999)
    (blocked.agent / "learned").touch()
    (RunFolder.open(study.path(users[1]), config).path / AGENT_FOLDER).touch()
    dropped.agent.rmdir()  # as stores do that keep no empty folders
    failures = {failure.shard: failure.reason for failure in study.run(1, lambda done, total: None)}
    assert set(failures) == {users[0].label, users[1].label}
    assert f"delete it, delete {damaged.path / 'complete'}" in failures[users[0].label]
    assert "FileExistsError" in failures[users[1].label]
    assert RunFolder(study.path(users[2])).complete


def killed(seed: int) -> None:
    """An agent whose process is killed before it acts."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_command_lists_studies_and_says_what_is_missing(tmp_path: Path) -> None:
    listed = run_script("study", "--list").stdout
    lines = listed.splitlines()
    answer_studies = ["mechanism", "prompts"]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == [*study_definition.names(), *answer_studies]
    sizes = sum(len(study_definition.load(name).sizes) for name in study_definition.names())
    assert sum(line.startswith(" ") for line in lines) == sizes + len(answer_studies)
    at = next(i for i, line in enumerate(lines) if line.startswith("main "))
    assert "quick: 33 runs, 3,960 attempts, estimated 11 minutes on two idle cores" in lines[at + 1]
    bad = run_script("study", "placebo", "--out", tmp_path, "--table")
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    assert "no complete run" in bad.stderr


def test_a_folder_says_which_study_it_holds_and_holds_no_other(tmp_path: Path) -> None:
    request = study_commands.StudyRequest("main", "quick")
    assert study_commands.definition_in(tmp_path) is None
    study_commands._write_study_file(request, tmp_path / "main")
    study_commands._write_study_file(request, tmp_path / "main")
    assert study_commands.definition_in(tmp_path / "main") == study_definition.load("main")
    with pytest.raises(ConfigError, match="holds the study main at size quick; choose another --out"):
        study_commands._write_study_file(study_commands.StudyRequest("main", "full"), tmp_path / "main")


def test_a_study_is_judged_by_one_policy(tmp_path: Path) -> None:
    request = study_commands.StudyRequest("main", "quick", policy="reference")
    assert {shard.config.env.policy for shard in request.study(tmp_path).shards} == {"reference"}
    assert {shard.config.env.policy for shard in replace(request, policy="strict").study(tmp_path).shards} == {"strict"}
    study_commands._write_study_file(request, tmp_path)
    assert study_commands.definition_in(tmp_path) == study_definition.load("main")
    with pytest.raises(ConfigError, match="at size quick, judged by policy reference; choose another --out"):
        study_commands._write_study_file(study_commands.StudyRequest("main", "quick"), tmp_path)


def test_contrasts_are_written_down_before_the_first_run_and_never_after(tmp_path: Path) -> None:
    request = study_commands.StudyRequest("main", "quick")
    folder = tmp_path / "main"
    study_commands._write_study_file(request, folder)
    content = yaml.safe_load((folder / study_commands.STUDY_FILE).read_text())
    assert content["contrasts"] == [list(contrast) for contrast in study_definition.load("main").contrasts]
    (folder / study_commands.STUDY_FILE).write_text(
        yaml.safe_dump(content | {"contrasts": [["dqn", "random", "correct"]], "margins": {"correct": 0.1}})
    )
    study_commands._write_study_file(request, folder)  # what was named stays
    recorded = study_commands.definition_in(folder)
    assert recorded is not None
    assert (recorded.contrasts, recorded.margins) == ((("dqn", "random", "correct"),), {"correct": 0.1})
    begun = tmp_path / "begun"
    shard = request.study(begun).shards[0]
    RunFolder.open(begun / shard.label, shard.config).journal.write_text("{}\n")
    study_commands._write_study_file(request, begun)
    assert "contrasts" not in yaml.safe_load((begun / study_commands.STUDY_FILE).read_text())


def test_a_study_folder_of_an_earlier_version_is_read_and_tests_nothing(tmp_path: Path) -> None:
    (tmp_path / study_commands.STUDY_FILE).write_text("size: quick\nstudy: main\n")
    definition = study_commands.definition_in(tmp_path)
    assert definition is not None
    assert definition.contrasts == ()
    main = study_definition.load("main")
    assert definition.model_copy(update={"contrasts": main.contrasts}) == main
    (tmp_path / study_commands.STUDY_FILE).write_text("size: quick\nstudy: main\ncontrasts: [[value, random, luck]]\n")
    with pytest.raises(ConfigError, match="measures are"):
        study_commands.definition_in(tmp_path)


def test_the_main_study_takes_any_suite(tmp_path):
    request = study_commands.StudyRequest("main", "full", agents=["value"], seeds=["0"], suites=["attention", "mhc"])
    (shard,) = request.study(tmp_path).shards
    assert [task.partition("/")[0] for task in shard.tasks] == ["attention"] * 15 + ["mhc"] * 15
    study_commands._write_study_file(request, tmp_path)
    with pytest.raises(ConfigError, match="holds the study main at size full on attention,mhc"):
        study_commands._write_study_file(study_commands.StudyRequest("main", "full"), tmp_path)


def test_a_study_with_tasks_in_its_arms_takes_no_other_suite(tmp_path):
    with pytest.raises(ConfigError, match="cannot be run on another suite"):
        study_commands.StudyRequest("transfer", "quick", suites=["mhc"]).study(tmp_path)
