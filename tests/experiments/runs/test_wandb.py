"""`make test-wandb`: runs at Weights & Biases, in the package's own offline mode."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_gym.cli import main
from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_recorder import RunRecorder
from kernel_gym.experiments.runs.tracking import wandb_run
from kernel_gym.experiments.runs.training import train


def config(**overrides: Any) -> RunConfig:
    settings = {"agent": "random", "tasks": ["level1/relu"], "budget": 4, "wandb": "kernels"}
    return resolve(overrides=settings | {"env": {"forecast": True}} | overrides)


def test_without_the_package_the_option_is_refused_before_the_work_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wandb_run, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="2"):
        main.main(["train", "--forecast", "--wandb", "kernels", "--out", str(tmp_path / "run")])
    assert capsys.readouterr().err.count("pip install 'kernel_gym[wandb]'") == 1
    assert not (tmp_path / "run").exists()


def test_tracking_does_not_change_the_results(tmp_path: Path) -> None:
    assert config().digest == config(wandb="").digest
    RunFolder.open(tmp_path, config(wandb=""))
    RunFolder.open(tmp_path, config())  # and can be added to a run that exists


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="needs Weights & Biases: pip install 'kernel_gym[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


#: The package writes LevelDB's log format after a header of its own: blocks with parts of records, each with a header.
HEADER, BLOCK, PART, LAST = 7, 32_768, 7, (1, 4)


def parts(data: bytes) -> Iterator[bytes]:
    """Yield the records of an offline run's file."""
    at, record = HEADER, b""
    while at + PART <= len(data):
        if BLOCK - at % BLOCK < PART:  # the rest of a block is padding
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + PART : at + PART + length]
        at += PART + length
        if kind in LAST:
            yield record
            record = b""


def stored(folder: Path) -> list[Any]:
    """Return the records of all offline runs in a run folder, in the order in which they were begun."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # ends the package's own process, which writes the files
    files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
    return [wandb_internal_pb2.Record.FromString(part) for file in files for part in parts(file.read_bytes())]


def points(folder: Path, name: str) -> list[tuple[int, float]]:
    """Return the attempts and values that a metric was logged with."""
    rows = []
    for record in stored(folder):
        if record.WhichOneof("record_type") == "history":
            row = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
            if name in row:
                rows.append((json.loads(row["attempts"]), json.loads(row[name])))
    return rows


@pytest.mark.usefixtures("offline")
def test_an_offline_run_has_settings_curves_images_and_figures(tmp_path: Path) -> None:
    settings = config()
    outcome = train(settings, RunFolder.open(tmp_path / "run", settings))
    runs = [record.run for record in stored(tmp_path / "run") if record.WhichOneof("record_type") == "run"]
    assert {(run.project, run.run_group, run.display_name) for run in runs} == {("kernels", "random", "random, seed 0")}
    shown = {item.key: json.loads(item.value_json) for item in runs[0].config.update}
    assert (shown["agent"], shown["budget"]) == ("random", 4)
    assert [attempts for attempts, _ in points(tmp_path / "run", "solved/correct")] == [1, 2, 3, 4]
    assert points(tmp_path / "run", "solved/correct")[-1][1] == outcome.figures["correct"]
    assert points(tmp_path / "run", "figure/attempts/_type")[-1] == (4, "image-file")
    final = [
        json.loads(item.value_json)
        for record in stored(tmp_path / "run")
        if record.WhichOneof("record_type") == "summary"
        for item in record.summary.update
        if "final/area" in (item.key, "/".join(item.nested_key))
    ]
    assert final == [outcome.figures["area"]]


@pytest.mark.usefixtures("offline")
def test_rounds_are_logged_with_their_number(tmp_path: Path) -> None:
    settings = config(rounds=2)
    outcome = train(settings, RunFolder.open(tmp_path / "run", settings))
    areas = points(tmp_path / "run", "round/area")
    assert [attempts for attempts, _ in areas] == [4, 8]
    assert areas[-1][1] == outcome.figures["area"]
    assert [number for _, number in points(tmp_path / "run", "round")] == [1, 2]


class Interrupted(Exception):
    """Stands for Ctrl-C."""


@pytest.mark.usefixtures("offline")
def test_a_resumed_run_is_the_same_run_and_logs_nothing_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder, settings = RunFolder.open(tmp_path / "run", config()), config()
    record = RunRecorder.record

    def interrupted(recorder: RunRecorder, attempt: Any) -> None:
        record(recorder, attempt)
        if recorder.attempts == 2:
            raise Interrupted

    monkeypatch.setattr(RunRecorder, "record", interrupted)
    with pytest.raises(Interrupted):
        train(settings, folder)
    monkeypatch.setattr(RunRecorder, "record", record)
    train(settings, folder)
    ids = {entry.run.run_id for entry in stored(folder.path) if entry.WhichOneof("record_type") == "run"}
    assert ids == {(folder.path / wandb_run.ID_FILE).read_text()}
    assert sorted(attempts for attempts, _ in points(folder.path, "solved/correct")) == [1, 2, 3, 4]


@pytest.mark.usefixtures("offline")
def test_a_run_that_cannot_be_begun_is_one_line(tmp_path: Path) -> None:
    settings = config(wandb="no/such:project?")
    with pytest.raises(KernelGymError, match=r"Weights & Biases: .*project name.*WANDB_MODE=offline") as error:
        train(settings, RunFolder.open(tmp_path / "run", settings))
    assert "\n" not in str(error.value)
