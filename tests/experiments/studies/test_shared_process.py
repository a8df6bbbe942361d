"""Runs on forecasts share processes, short ones that of their study, with the results of processes of their own."""

import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from forecast_tasks import FIVE

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.random import RandomAgent
from kernel_gym.config import resolve
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs import isolated_run
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.studies import study as studies
from kernel_gym.experiments.studies import study_definition
from kernel_gym.experiments.studies.agent_comparison import agent_comparison
from kernel_gym.experiments.studies.study import Study


class Failing(RandomAgent):
    """Fails at its first choice."""

    def act(self, observation: Observation, info: Info) -> int:
        raise RuntimeError("no idea")


class Located(RandomAgent):
    """Writes down its process; the first time, that is then lost."""

    def __init__(self, seed: int = 0, out: str = "", lost: bool = False) -> None:
        super().__init__(seed)
        with Path(out).open("a") as file:
            file.write(f"{os.getpid()}\n")
        if lost and len(Path(out).read_text().splitlines()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)


class Loop(RandomAgent):
    """Owns its training loop."""

    owns_loop = True


def comparison(out: Path, *agents: str, **settings: Any) -> Study:
    base = resolve(overrides={"budget": 3, "tasks": list(FIVE), "env": {"forecast": True}} | settings)
    return agent_comparison(base, agents, 1, out)


def content(study: Study) -> list[tuple[bytes, list[str], dict[str, Any]]]:
    folders = [RunFolder(study.path(shard)) for shard in study.shards]
    files = [{file.name: json.loads(file.read_text()) for file in folder.agent.iterdir()} for folder in folders]
    banks = [list(sqlite3.connect(folder.bank).iterdump()) for folder in folders]
    return [
        (folder.journal.read_bytes(), bank, saved) for folder, bank, saved in zip(folders, banks, files, strict=True)
    ]


@pytest.mark.slow
def test_runs_in_this_process_and_in_processes_of_their_own_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = comparison(tmp_path / "apart", "value", "context-value")
    with monkeypatch.context() as patch:
        patch.setattr(studies, "SHORT_RUN", 0)
        assert apart.run(2, lambda done, total: None) == []
    here, seen = comparison(tmp_path / "here", "value", "context-value"), list[tuple[int, int]]()
    monkeypatch.setattr(isolated_run, "start_run", lambda *_: pytest.fail("a process was started"))
    assert here.run(2, lambda done, total: seen.append((done, total))) == []
    assert content(here) == content(apart)
    assert seen[-1] == (30, 30)


def located(tmp_path: Path, **options: Any) -> tuple[Study, Path]:
    out = tmp_path / "processes"
    base = resolve(
        overrides={
            "budget": 1,
            "tasks": list(FIVE),
            "env": {"forecast": True},
            "agent_options": {"out": str(out)} | options,
        }
    )
    return agent_comparison(base, [f"{__name__}:Located"], 3, tmp_path / "study"), out


@pytest.mark.slow
def test_runs_on_forecasts_follow_one_another_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "SHORT_RUN", 0)
    study, out = located(tmp_path)
    assert study.run(1, lambda done, total: None) == []
    processes = out.read_text().split()
    assert len(processes) == 3
    assert len({*processes, str(os.getpid())}) == 2


@pytest.mark.slow
def test_a_lost_process_fails_its_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "SHORT_RUN", 0)
    study, out = located(tmp_path, lost=True)
    (failure,) = study.run(1, lambda done, total: None)
    assert failure.shard.endswith("seed-0")
    assert "was killed by signal 9" in failure.reason
    assert [shard.seed for shard in study.complete()] == [1, 2]
    first, *others = out.read_text().split()
    assert len(set(others)) == 1
    assert first not in others


def test_banks_that_nobody_begins_with_can_be_left_out_and_made_later(tmp_path: Path) -> None:
    whole, lean = comparison(tmp_path / "whole", "value"), comparison(tmp_path / "lean", "value")
    assert whole.run(1, lambda done, total: None) == lean.run(1, lambda done, total: None, banks="needed") == []
    folder = RunFolder(lean.path(lean.shards[0]))
    assert folder.journal.read_bytes() == RunFolder(whole.path(whole.shards[0])).journal.read_bytes()
    assert not folder.bank.exists()
    with pytest.raises(KernelGymError, match="its memory is made again from the journal"):
        folder.open_bank()
    (folder.path / "complete").unlink()
    assert lean.run(1, lambda done, total: None) == []
    assert content(lean) == content(whole)


def test_a_run_waits_for_the_memory_that_it_begins_with_alone() -> None:
    shards = study_definition.shards(study_definition.load("predictions"), "quick", seeds=[0])
    waiting = [shard for shard in shards if shard.arm in ("level1", "level2", "scratch")]
    source = "level1/value/seed-0"
    assert {shard.memory for shard in waiting if shard.arm == "level2"} == {source}
    assert {shard.arm for shard in Study._ready(waiting, [])} == {"level1", "scratch"}
    rest = [shard for shard in waiting if shard.arm != "level1"]
    assert {shard.arm for shard in Study._ready(rest, [source])} == {"scratch"}
    assert {shard.arm for shard in Study._ready(rest, [])} == {"level2", "scratch"}


def test_a_run_that_fails_in_this_process_leaves_the_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = comparison(tmp_path, f"{__name__}:Failing", "random")
    (failure,) = study.run(1, lambda done, total: None)
    assert failure.shard.endswith("Failing/seed-0")
    assert failure.reason == "RuntimeError: no idea"
    assert "no idea" in capsys.readouterr().err  # with its traceback, as from a process
    assert [shard.agent for shard in study.complete()] == ["random"]


@pytest.mark.parametrize(
    ("agent", "settings", "short"),
    [
        ("random", {}, True),
        ("random", {"budget": 30}, False),
        (f"{__name__}:Loop", {}, False),
        ("random", {"tasks": ["relu"], "env": {"forecast": False}}, False),
    ],
)
def test_long_runs_runs_with_ray_and_runs_on_a_device_have_their_own_process(
    agent: str, settings: dict[str, Any], short: bool, tmp_path: Path
) -> None:
    (shard,) = comparison(tmp_path, agent, **settings).shards
    assert studies._is_short(shard) == short
