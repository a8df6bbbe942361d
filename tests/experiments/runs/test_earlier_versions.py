"""A run folder that version 0.1.0 wrote (agent `complement`, now `context-value`) can still be used."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from kernel_gym.config import resolve
from kernel_gym.experiments.reports.report import finished, write_report
from kernel_gym.experiments.runs.earlier_versions import current_config, current_contender
from kernel_gym.experiments.runs.journal import Drift
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.runs.validation import claims
from kernel_gym.experiments.studies import agent_comparison
from kernel_gym.memory.item import Kind

FIXTURE = Path(__file__).parent.parent / "fixtures" / "run-0.1.0.tar.xz"
#: Version 0.1.0 had the first version of the observation.
SETTINGS = {
    "agent": "context-value",
    "suite": "level1",
    "tasks": ["relu", "sigmoid"],
    "budget": 6,
    "seed": 0,
    "env": {"layout": 1},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "complement"


def test_an_old_configuration_is_read_with_current_names(run: Path) -> None:
    assert load_config(run) == resolve(overrides=SETTINGS | {"workers": 1})
    assert load_config(run).digest == resolve(overrides=SETTINGS).digest


@pytest.mark.slow
def test_the_kernels_of_an_old_run_are_judged_again_and_the_new_timing_shows(run: Path) -> None:
    """Kernels start later in the simulator since: the verdicts hold, the latencies are within 5%."""
    checked = list(claims(run, unsafe=True))
    assert len(checked) == 7
    assert {claim.outcome for claim in checked} == {"feasible"}
    assert all(claim.now_us == pytest.approx(claim.claimed_us, rel=0.05) for claim in checked)


def test_the_memory_of_an_old_run_can_be_read(run: Path) -> None:
    with RunFolder(run).open_bank() as bank:
        kinds = {item.kind for item in bank.items()}
        assert {"level1/relu", "level1/sigmoid"} <= set(bank.tasks())
    assert {Kind.TRACE, Kind.EXPERIENCE} <= kinds


def test_the_same_configuration_finds_an_old_run_complete(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    config = resolve(overrides=SETTINGS)
    assert train(config, RunFolder.open(run, config)).figures["correct"] == 1.0
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_an_old_run_that_was_stopped_is_not_continued_and_stays_as_it_is(run: Path) -> None:
    """Its journal cannot be replayed: the seed knowledge has grown and the simulator's timing has changed."""
    (run / "complete").unlink()
    journal = run / "results.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-3]))
    config = resolve(overrides=SETTINGS)
    with pytest.raises(Drift, match="came out differently than recorded") as drift:
        train(config, RunFolder.open(run, config))
    assert "\n" not in str(drift.value)
    assert journal.read_text() == "".join(lines[:-3])


def test_a_study_with_an_old_run_is_reported_and_resumed(run: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    (study / "complement").mkdir(parents=True)
    shutil.move(run, study / "complement" / "seed-0")
    (study / "comparison.json").write_text(json.dumps({"differences_from": "complement"}))
    assert [complete.contender for complete in finished(study)] == ["context-value"]
    report = write_report(study, tmp_path / "report.html", traces=False).read_text()
    assert "One run in detail: context-value, seed 0" in report
    assert agent_comparison.reference(study) == "context-value"
    comparison = agent_comparison.agent_comparison(resolve(overrides=SETTINGS), ["context-value"], 1, study)
    assert comparison.complete() == list(comparison.shards)
    assert comparison.run(1, lambda done, total: None) == []
    assert [path.name for path in study.iterdir() if path.is_dir()] == ["complement"]


def test_old_names_are_translated_everywhere() -> None:
    assert current_contender("frozen/complement") == "frozen/context-value"
    assert current_contender("knowing") == "oracle"
    config = current_config({"agent": "value", "env": {"author": "kernel_gym.generators.model.author:ModelAuthor"}})
    assert config == {"agent": "value", "env": {"author": "kernel_gym.authors.model.author:ModelAuthor"}}
