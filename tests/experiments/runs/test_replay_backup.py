"""Killed between any two steps, a run has either all that it had or all that its replay wrote."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kernel_gym.experiments.runs.replay_backup import ReplayBackup

#: Everything that changes a folder goes through one of these.
STEPS = ("rename", "unlink", "rmdir", "mkdir")
NAMES = (
    *("bank.sqlite", "bank.sqlite-wal", "bank.sqlite-shm", "events.out.tfevents.1.x"),
    *("best/a.cpp", "best/b.cpp", "complete"),
)


class Killed(BaseException):
    """The process ends here."""


def write(folder: Path, what: str) -> dict[str, str]:
    for name in NAMES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(what)
    return held(folder)


def held(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def killed_before(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """End at a step; the steps that were made."""
    steps: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if len(steps) == step:
                raise Killed
            steps.append(name)
            return real(*arguments, **keywords)

        return call

    with monkeypatch.context() as patched, suppress(Killed):
        for name in STEPS:
            patched.setattr(os, name, counted(name, getattr(os, name)))
        yield steps


def every_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[ReplayBackup], None]
) -> Iterator[dict[str, str]]:
    """What a run has after it was killed at each step of an action, started again and stopped."""
    for step in range(100):
        run = folder / str(step)
        run.mkdir()
        (run / "results.jsonl").write_text("journal")
        write(run, "had")
        ReplayBackup(run).make()
        write(run, "replayed")
        with killed_before(step, monkeypatch) as steps:
            act(ReplayBackup(run))
        ReplayBackup(run).make()
        ReplayBackup(run).restore()
        yield held(run)
        if len(steps) < step:
            assert step > 3, "it was killed somewhere"
            return


def whole(what: str) -> dict[str, str]:
    return {"results.jsonl": "journal"} | dict.fromkeys(NAMES, what)


def test_a_kill_during_backup_or_restore_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def there_and_back(aside: ReplayBackup) -> None:
        aside.restore()
        aside.make()

    assert all(state == whole("had") for state in every_step(tmp_path, monkeypatch, there_and_back))


def test_a_kill_during_discard_leaves_the_old_or_the_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = list(every_step(tmp_path, monkeypatch, ReplayBackup.discard))
    assert all(one in (whole("had"), whole("replayed")) for one in states)
    assert (states[0], states[-1]) == (whole("had"), whole("replayed"))


def test_a_killed_replay_leaves_no_files(tmp_path: Path) -> None:
    before = write(tmp_path, "had")
    ReplayBackup(tmp_path).make()
    (tmp_path / "bank.sqlite-journal").write_text("half")
    write(tmp_path, "replayed")
    ReplayBackup(tmp_path).make()
    assert [path.name for path in tmp_path.iterdir()] == ["aside"]
    ReplayBackup(tmp_path).restore()
    assert held(tmp_path) == before


def test_without_a_backup_restore_and_discard_change_nothing(tmp_path: Path) -> None:
    before = write(tmp_path, "had")
    ReplayBackup(tmp_path).restore()
    ReplayBackup(tmp_path).discard()
    assert held(tmp_path) == before
