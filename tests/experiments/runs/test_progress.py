"""Progress: what is at work, preparation, and a time left that settles."""

import logging
import random
import re
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from kernel_gym import activity, suites
from kernel_gym.config import resolve
from kernel_gym.experiments.runs import isolated_run, progress
from kernel_gym.experiments.runs.progress import TimeLeft, bar, show_progress
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import Shard
from kernel_gym.tasks import operators


class Clock:
    """Time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def estimates(seconds: list[float], batch: int = 5) -> list[tuple[float, float]]:
    """(seconds left in truth, seconds left as shown) after each batch of attempts, which end together."""
    clock = Clock()
    left = TimeLeft(clock=clock)
    total, rows = batch * len(seconds), []
    left.update(0, total)
    for number, duration in enumerate(seconds):
        clock.now += duration
        for i in range(batch):
            left.update(batch * number + i + 1, total)
        rows.append((sum(seconds[number + 1 :]), left.seconds() or 0.0))
    return rows


def test_the_time_left_is_stable_for_attempts_of_unequal_length() -> None:
    rng = random.Random(0)
    rows = estimates([rng.choice([0.5, 1.0, 1.0, 6.0]) for _ in range(400)])
    for (truth, shown), (_, before) in zip(rows[40:-20], rows[39:], strict=False):
        assert abs(shown - before) < 0.08 * before + 1.0, "a jump"
        assert shown == pytest.approx(truth, rel=0.35)
    assert rows[-1] == (0, 0)


def test_the_time_left_follows_a_change_of_speed_and_counts_down_in_between() -> None:
    rows = estimates([4.0] * 100 + [1.0] * 300)
    assert rows[99][1] == pytest.approx(1200, rel=0.05)  # as if it went on like this
    assert rows[250][1] == pytest.approx(149, rel=0.1)
    clock = Clock()
    left = TimeLeft(already=50, clock=clock)
    assert left.seconds() is None
    for done in (50, 55, 60):
        left.update(done, 100)
        clock.now += 10
    assert left.seconds() == pytest.approx(80 - 10)
    before = left.seconds() or 0.0
    clock.now += 3
    assert left.seconds() == pytest.approx(before - 3)
    clock.now += 1e6
    assert left.seconds() == 0


def test_a_resumed_run_is_not_taken_for_a_fast_one() -> None:
    clock = Clock()
    left = TimeLeft(already=1000, clock=clock)
    for done in range(1001):  # replayed in no time
        left.update(done, 1100)
    clock.now += 50
    left.update(1010, 1100)
    assert left.seconds() == pytest.approx(450)


def test_a_bar_names_preparation_and_what_is_at_work() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=160, color_system=None)
    with bar("value", console) as show:
        activity.prepare("building the simulator")
        time.sleep(0.3)
        show(0, 20)
        activity.attempt("level1/softmax", 7, "writing")
        activity.gate("level1/softmax", "correctness")
        time.sleep(0.3)
        show(1, 20, "value: 1 task solved")
    text = file.getvalue()
    assert "building the simulator" in text
    assert "level1/softmax, attempt 7: correctness" in text
    assert "1/20" in text.splitlines()[-1] or "1/20" in text
    assert activity.LOGGER.handlers == []
    assert not activity.LOGGER.isEnabledFor(logging.INFO)


def test_a_bar_that_showed_only_preparation_disappears() -> None:
    def refused(console: Console) -> None:
        with bar("value", console):
            activity.prepare("trying the model")
            raise ValueError("refused")

    file = StringIO()
    with pytest.raises(ValueError, match="refused"):
        refused(Console(file=file, force_terminal=True, width=160))
    assert file.getvalue().rstrip().endswith("\x1b[2K")  # the line is erased


def test_a_log_has_a_line_a_minute_even_if_nothing_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.05)
    with show_progress("value") as show:
        activity.prepare("starting Ray")
        time.sleep(0.2)
        show(3, 20)
        activity.attempt("level1/relu", 4, "verifying")
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "value: preparing; starting Ray"
    assert lines[-1] == "value: 3 of 20 attempts, time left unknown; level1/relu, attempt 4: verifying"


def test_a_run_on_a_device_names_suite_task_attempt_and_gates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "cache"))
    caplog.set_level(logging.INFO, activity.LOGGER.name)
    config = resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 2, "workers": 1})
    train(config, RunFolder.open(tmp_path / "run", config))
    said = [record.getMessage() for record in caplog.records if record.name == activity.LOGGER.name]
    assert "reading the seed knowledge" in said
    for number in (1, 2):
        assert f"level1/relu, attempt {number}: writing" in said
        assert f"level1/relu, attempt {number}: verifying" in said
    assert said.index("level1/relu, attempt 1: verifying") < said.index("level1/relu: screen")


def test_preparations_are_named_when_they_are_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, activity.LOGGER.name)
    suites._packaged.cache_clear()
    task = suites.find_task("level1/relu")
    operators._operators.cache_clear()
    for _ in range(2):  # the second time they are cached
        operators._operators(task, tmp_path / "operators.json")
        suites.find_task("level1/relu")
    said = [record.getMessage() for record in caplog.records if record.name == activity.LOGGER.name]
    assert said == ["loading the suite level1", "exporting level1/relu"]


def test_runs_in_other_processes_say_what_they_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, activity.LOGGER.name)
    config = resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 1, "workers": 1})
    study = Study((Shard("", "random", 0, config, ("level1/relu",)),), tmp_path, "random")
    assert study.run(1, lambda done, total: None) == []
    records = {record.getMessage(): record for record in caplog.records if record.name == activity.LOGGER.name}
    assert records["level1/relu, attempt 1: writing"].run == "random/seed-0"  # type: ignore[attr-defined]


def test_a_watched_run_forwards_activity_and_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, activity.LOGGER.name)
    config = resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 1, "workers": 1})
    folder, seen = RunFolder.open(tmp_path, config), list[tuple[int, int, int]]()
    messages, process = isolated_run.start_run(config, folder.path, watched=True)
    assert isolated_run.wait_for_run(messages, process, lambda *counts: seen.append(counts)) == ""
    assert [counts[:2] for counts in seen] == [(0, 1), (1, 1)]
    assert any(re.match("level1/relu, attempt 1", record.getMessage()) for record in caplog.records)


def test_train_on_no_terminal_prints_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    with show_progress("value") as show:
        show(1, 2)
    assert capsys.readouterr() == ("", "")
