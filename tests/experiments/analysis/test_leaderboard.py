"""The leaderboard: results are computed from choices that are made again, not believed."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from kernel_gym import plugins
from kernel_gym.cli.main import main
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments import splits
from kernel_gym.experiments.analysis import leaderboard
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from tests.support.forecast_tasks import FIVE


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of one author with two quick tasks."""
    monkeypatch.setattr(leaderboard, "split_tasks", lambda split: FIVE[:2])
    for name, value in (("ENTRANTS", range(201, 202)), ("TASKS", 2), ("BUDGET", 3)):
        monkeypatch.setattr(leaderboard, name, value)


def entered(folder: Path) -> None:
    finished: list[str] = []
    leaderboard.enter("random", {}, folder, 1, finished.append)
    assert finished == [splits.author(201)]


def test_the_authors_and_tasks_are_fixed_and_unseen() -> None:
    runs = leaderboard.configurations("random", {})
    assert len(runs) == 10
    assert {name.partition("~")[2] for name in runs} == {str(n) for n in range(201, 211)}
    for config in runs.values():
        assert len(set(config.tasks)) == 20
        assert not set(config.tasks) & set(splits.split_tasks("training"))
        assert config.env.forecast
    assert runs == leaderboard.configurations("random", {})


@pytest.mark.usefixtures("small")
def test_a_result_is_computed_anew_from_the_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entered(tmp_path)
    assert leaderboard.check(tmp_path) == []
    with pytest.raises(SystemExit) as ended:
        main(["leaderboard", "check", str(tmp_path)])
    assert ended.value.code == 0
    assert "every attempt repeats" in capsys.readouterr().out
    # Another result than the journal's is found out.
    result = leaderboard.read_result(tmp_path)
    result["scores"][splits.author(201)]["solved"] = 0.9
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert "the journal" in leaderboard.check(tmp_path)[0]
    # So is a journal with a better verdict than its choices lead to.
    journal = RunFolder(tmp_path / "runs" / splits.author(201)).journal
    lines = journal.read_text().splitlines()
    forged = json.loads(lines[1])
    forged["reward"] = 1.0 if forged["reward"] < 0 else -1.0
    journal.write_text("\n".join([lines[0], json.dumps(forged), *lines[2:]]) + "\n")
    assert "attempt 2 has another reward" in leaderboard.check(tmp_path)[0]
    journal.write_text("\n".join(lines[:-1]) + "\n")
    assert "5 attempts, not 6" in leaderboard.check(tmp_path)[0]


@pytest.mark.usefixtures("small")
def test_a_result_has_the_scores_of_the_benchmark_alone(tmp_path: Path) -> None:
    entered(tmp_path)
    result = leaderboard.read_result(tmp_path)
    result["scores"]["somebody"] = {"solved": 1.0, "area": 1.0, "reward": 1.0}
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert leaderboard.check(tmp_path) == ["somebody: no author of the benchmark"]


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "mine | 1.000 |\n| other"},
        {"agent": 3},
        {"options": [1]},
        {"scores": ["a"]},
        {"scores": {"a": {"solved": 1.0}}},
        {"scores": {"a": {"solved": 1.0, "area": 1e999, "reward": 0.0}}},
        {"scores": {"a": {"solved": 1.0, "area": 1.5, "reward": 0.0}}},
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(tmp_path: Path, change: dict[str, object]) -> None:
    result = {"agent": "mine", "options": {}, "scores": {}} | change
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(KernelGymError, match="is not a valid result: make it again with `kernel-gym leaderboard run`"):
        leaderboard.read_result(tmp_path)


def test_results_of_all_shipped_agents_are_read(tmp_path: Path) -> None:
    for name in plugins.names("kernel_gym.agents"):
        (tmp_path / "result.json").write_text(json.dumps({"agent": name, "options": {}, "scores": {}}))
        assert leaderboard.read_result(tmp_path)["agent"] == name


def test_an_entry_names_no_code_that_a_check_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps({"agent": "theirs:Agent", "options": {}, "scores": {}}))
    assert all("there is no journal" in problem for problem in leaderboard.check(tmp_path))


def test_runs_have_other_seeds_with_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = {name: config.seed for name, config in leaderboard.configurations("random", {}).items()}
    assert list(seeds.values()) == list(range(201, 211))
    monkeypatch.setenv("KERNEL_GYM_SECRET", "a")
    hidden = {name: config.seed for name, config in leaderboard.configurations("random", {}).items()}
    monkeypatch.setenv("KERNEL_GYM_SECRET", "b")
    others = {name: config.seed for name, config in leaderboard.configurations("random", {}).items()}
    assert len({*seeds.values(), *hidden.values(), *others.values()}) == 30


def test_a_folder_without_a_result_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KernelGymError, match="leaderboard run AGENT"):
        leaderboard.check(tmp_path)


def test_the_standings_are_sorted_by_area() -> None:
    rows = [
        {"agent": name, "options": {}, "scores": {"a": {"area": area, "solved": area, "reward": 0.0}}}
        for name, area in (("low", 0.2), ("high", 0.8))
    ]
    lines = leaderboard.table(rows).splitlines()
    assert lines[2].startswith("| high | 0.800")
    assert lines[3].startswith("| low | 0.200")


def test_options_make_no_rows_of_the_standings() -> None:
    forged = {"a": "1) | 9 |\n| winner | 1.000 [1.000, 1.000] |", "b\r|": "\\|"}
    row = {"agent": "mine", "options": forged, "scores": {"a": {"area": 0.5, "solved": 0.5, "reward": 0.0}}}
    lines = leaderboard.table([row]).splitlines()
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)\|", lines[2])) == 5


def test_a_configuration_of_references_is_refused_before_it_is_written_out(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(60)]
    rows = ["a0: &a0 [1, 1]", *(f"{name}: &{name} [*{before}, *{before}]" for before, name in pairwise(names))]
    for options in ("".join(f"\n  {row}" for row in rows), "[" * 5000):
        (tmp_path / "config.yaml").write_text(f"agent: random\nagent_options: {options}\n")
        with pytest.raises(KernelGymError, match="not a run's configuration"):
            load_config(tmp_path)


def test_a_journal_that_is_nested_too_deep_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(KernelGymError, match="line 1 is no record of an attempt"):
        Journal.read(tmp_path / "journal.jsonl")
