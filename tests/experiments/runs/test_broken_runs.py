"""A run folder in which something is broken: one line says what and how to mend it, and doing that mends it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from forecast_tasks import FIVE

from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.analysis.credit import CreditSettings, examine
from kernel_gym.experiments.reports.report import write_report
from kernel_gym.experiments.runs.dataset import RecordedRun
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.runs.validation import claims
from kernel_gym.experiments.studies.evaluation import complete_runs, evaluation_study


def config(memory: str = "shared") -> RunConfig:
    return resolve(
        overrides={"agent": "value", "tasks": list(FIVE), "budget": 4, "env": {"forecast": True, "memory": memory}}
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("made") / "run"
    train(config(), RunFolder.open(path, config()))
    return path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(shutil.copytree(finished, tmp_path / "run"))


def remembered(folder: RunFolder) -> object:
    with folder.open_bank() as bank:
        items = bank.items()
        return items, bank.outcomes([item.id for item in items])


def evaluated(path: Path) -> object:
    return evaluation_study(complete_runs([path]), ["level2/nothing"], 1, path.parent / "evaluated")


USES: dict[str, Callable[[Path], object]] = {
    "train": lambda path: train(load_config(path), RunFolder(path)),
    "validate": lambda path: list(claims(path)),
    "report": lambda path: write_report(path, path.parent / "report.html"),
    "credit": lambda path: examine(path, CreditSettings()),
    "evaluate": evaluated,
    "dataset": RecordedRun.open,
}


@pytest.mark.parametrize("use", USES)
def test_an_invalid_line_of_the_journal_is_a_one_line_error_in_every_command(use: str, run: RunFolder) -> None:
    lines = run.journal.read_text().splitlines(keepends=True)
    run.journal.write_text("".join([*lines[:5], '{"task": "level1/relu"}\n', *lines[6:]]))
    with pytest.raises(KernelGymError, match=r"results\.jsonl is not a journal: line 6 is no record") as error:
        USES[use](run.path)
    assert "\n" not in str(error.value)


def test_following_the_message_restores_the_journal(run: RunFolder) -> None:
    before, memory = run.journal.read_bytes(), remembered(run)
    run.journal.write_bytes(b"".join(before.splitlines(keepends=True)[:5]))
    with pytest.raises(KernelGymError, match=f"delete {run.path / 'complete'} and run the same command again"):
        train(config(), run)
    (run.path / "complete").unlink()
    train(config(), run)
    assert run.journal.read_bytes() == before
    assert remembered(run) == memory


@pytest.mark.parametrize("use", ["evaluate", "dataset"])
@pytest.mark.parametrize("damage", [None, b"", b"no bank" * 999])
def test_following_the_message_restores_a_missing_or_damaged_memory(
    use: str, damage: bytes | None, run: RunFolder
) -> None:
    memory = remembered(run)
    run.bank.unlink()
    if damage is not None:
        run.bank.write_bytes(damage)
    with pytest.raises(KernelGymError, match=f"delete {run.path / 'complete'} and run the command") as error:
        USES[use](run.path)
    assert "\n" not in str(error.value)
    assert (f"{run.bank} is missing" in str(error.value)) == (damage is None)
    assert ("delete it, " in str(error.value)) == (damage is not None)
    (run.path / "complete").unlink()
    run.bank.unlink(missing_ok=True)
    train(config(), run)
    assert remembered(run) == memory
    USES[use](run.path)


def test_train_notices_that_the_memory_of_a_complete_run_is_missing(run: RunFolder) -> None:
    memory = remembered(run)
    run.bank.unlink()
    train(config(), run)
    assert remembered(run) == memory
    assert run.complete


def test_a_run_whose_memory_cannot_be_restored_is_unchanged(run: RunFolder) -> None:
    lines = run.journal.read_text().replace('"reward": -1.0', '"reward": -0.5', 1)
    run.journal.write_text(lines)
    run.bank.unlink()
    files = set(run.path.rglob("*"))
    with pytest.raises(KernelGymError, match=r"came out differently than recorded \(reward\)"):
        train(config(), run)
    assert set(run.path.rglob("*")) == files
    assert run.complete


def test_a_run_that_is_being_repeated_is_not_complete(run: RunFolder) -> None:
    run.open_journal().close()  # killed here
    assert not run.complete
    with pytest.raises(KernelGymError, match="no complete run"):
        complete_runs([run.path])
    train(config(), run)
    assert complete_runs([run.path]) == [run]


def test_a_run_without_memory_resumes_and_its_evaluation_is_refused(tmp_path: Path) -> None:
    folder = RunFolder.open(tmp_path / "run", config("fresh"))
    train(config("fresh"), folder)
    provenance = folder.provenance
    train(config("fresh"), folder)
    assert folder.provenance == provenance, "a complete run is only read"
    with pytest.raises(ConfigError, match=r"kept no memory: train with env\.memory=shared"):
        evaluated(folder.path)
