"""The attempts in a report: all that was shown, written and judged, each text once."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernel_gym.config import resolve
from kernel_gym.experiments.reports import episodes
from kernel_gym.experiments.reports.report import finished, write_report
from kernel_gym.experiments.reports.task_matrix import run_name, task_matrix
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train

TASKS = ("level1/relu", "level1/gelu")


def make(folder: Path, agent: str) -> Path:
    settings = resolve(overrides={"agent": agent, "tasks": TASKS, "budget": 6, "env": {"forecast": True}})
    train(settings, RunFolder.open(folder / agent / "seed-0", settings))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents on a table, whose kernels the bank keeps."""
    return make(make(tmp_path_factory.mktemp("study"), "value"), "random")


def unpacked(packed: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return data


def test_every_attempt_is_there_with_what_it_was_shown_and_what_came_of_it(runs: Path) -> None:
    data = unpacked(episodes.packed(finished(runs)))
    texts = data["texts"]
    assert len(texts) == len(set(texts))
    assert list(data["runs"]) == ["random, seed 0", "value, seed 0"]
    for agent in ("random", "value"):
        folder = RunFolder(runs / agent / "seed-0")
        with folder.open_bank() as bank:
            items = {item.id: item for item in bank.items()}
        for task in TASKS:
            rows = [row for row in Journal.read(folder.journal) if row["task"] == task]
            attempts = data["runs"][f"{agent}, seed 0"][task]
            assert len(attempts) == len(rows) == 6
            for attempt, row in zip(attempts, rows, strict=True):
                assert texts[attempt["feedback"]] == row["verdict"]["feedback"]
                assert (attempt["stage"], attempt["latency"]) == (row["stage"], row["verdict"]["latency_us"])
                assert texts[attempt["kernel"]] == items[row["produced"][0]].code
                for index, id in zip(attempt["context"], row["context"], strict=True):
                    kind, title, parts, code = data["memories"][index]
                    assert (kind, title) == (items[id].kind.value, items[id].title)
                    assert "".join(texts[part] for part in parts) == items[id].text
                    assert (texts[code] if code is not None else "") == items[id].code
                assert (attempt["start"] is None) == (row["start"] is None)


def test_with_fresh_memory_an_id_is_not_taken_for_the_item_of_another_episode(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "value", tmp_path / "value")
    file = tmp_path / "value" / "seed-0" / "config.yaml"
    file.write_text(file.read_text().replace("memory: shared", "memory: fresh"))
    kinds = []
    for folder in (runs, tmp_path):
        data = unpacked(episodes.packed([run for run in finished(folder) if run.contender == "value"]))
        attempts = [attempt for task in TASKS for attempt in data["runs"]["value, seed 0"][task]]
        shown = [index for attempt in attempts for index in attempt["context"]]
        kinds.append({data["memories"][index][0] if index is not None else "unknown" for index in shown})
        assert all(attempt["kernel"] is not None for attempt in attempts)
    assert "trace" in kinds[0]
    assert kinds[1] == {"practice", "unknown"}


@pytest.mark.parametrize(("choice", "shown"), [("auto", 2), ("all", 2), ("one", 1), ("none", 0)])
def test_an_option_selects_the_runs_whose_attempts_are_in_the_report(
    runs: Path, tmp_path: Path, choice: str, shown: int
) -> None:
    page = write_report(runs, tmp_path / "report.html", traces=False, detailed="value/0", attempts=choice).read_text()
    packed = re.search(r'id="episode-data">([^<]*)<', page)
    assert (0 if packed is None else len(unpacked(packed[1])["runs"])) == shown
    assert ('href="#episodes"' in page) == (shown > 0)
    assert len(re.findall('<td class="[a-z]+"><a href="#run=', page)) == shown * len(TASKS)


def test_a_large_study_has_the_attempts_of_one_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = finished(runs)
    assert episodes.shown_runs(both, both[1], "auto") == both
    monkeypatch.setattr(episodes, "MOST_ATTEMPTS", 23)
    assert episodes.shown_runs(both, both[1], "auto") == [both[1]]
    assert episodes.shown_runs(both, both[1], "all") == both


def test_a_kernel_that_a_run_did_not_keep_is_shown_as_missing(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "value", tmp_path / "value")
    folder = RunFolder(tmp_path / "value" / "seed-0")
    folder.bank.unlink()
    shutil.rmtree(folder.path / "kernels", ignore_errors=True)
    data = unpacked(episodes.packed(finished(tmp_path)))
    attempts = [attempt for task in TASKS for attempt in data["runs"]["value, seed 0"][task]]
    assert {attempt["kernel"] for attempt in attempts} == {None}
    assert {index for attempt in attempts for index in attempt["context"]} == {None}


def test_the_matrix_counts_seeds_and_leads_to_the_fastest_attempt(runs: Path) -> None:
    [value] = [run for run in finished(runs) if run.contender == "value"]
    matrix = task_matrix([value], [value])
    for task, history in value.histories().items():
        cell = matrix[task]["value"]
        feasible = [(row["verdict"]["latency_us"], i) for i, row in enumerate(history, 1) if row["verdict"]["feasible"]]
        assert (cell.solved, cell.seeds, cell.kind) == ((1, 1, "all") if feasible else (0, 1, "none"))
        assert cell.latency == min(feasible, default=(None,))[0]
        assert cell.first == (feasible[0][1] if feasible else None)
        name = run_name(value).replace(",", "%2C").replace(" ", "%20")
        assert cell.link == f"#run={name}&task={task}&attempt={min(feasible)[1] if feasible else 1}"
    assert {cell.link for cells in task_matrix([value]).values() for cell in cells.values()} == {""}
