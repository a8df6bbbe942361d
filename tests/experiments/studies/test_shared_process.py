"""Short runs on a table share the process of their study, with the results of processes of their own."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from forecast_tasks import FIVE

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.random import RandomAgent
from kernel_gym.config import resolve
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.studies import study as studies
from kernel_gym.experiments.studies.agent_comparison import agent_comparison
from kernel_gym.experiments.studies.study import Study


class Failing(RandomAgent):
    """Fails at its first choice."""

    def act(self, observation: Observation, info: Info) -> int:
        raise RuntimeError("no idea")


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


def test_runs_in_this_process_and_in_processes_of_their_own_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = comparison(tmp_path / "apart", "value", "context-value")
    with monkeypatch.context() as patch:
        patch.setattr(studies, "SHORT_RUN", 0)
        assert apart.run(2, lambda done, total: None) == []
    here, seen = comparison(tmp_path / "here", "value", "context-value"), list[tuple[int, int]]()
    monkeypatch.setattr(studies, "start_run", lambda *_: pytest.fail("a process was started"))
    assert here.run(2, lambda done, total: seen.append((done, total))) == []
    assert content(here) == content(apart)
    assert seen[-1] == (30, 30)


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
        ("random", {"rounds": 1000}, False),
        (f"{__name__}:Loop", {}, False),
        ("random", {"tasks": ["relu"], "env": {"forecast": False}}, False),
    ],
)
def test_long_runs_runs_with_ray_and_runs_on_a_device_have_their_own_process(
    agent: str, settings: dict[str, Any], short: bool, tmp_path: Path
) -> None:
    (shard,) = comparison(tmp_path, agent, **settings).shards
    assert studies._is_short(shard) == short
