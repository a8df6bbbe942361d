"""A finished run goes on with a larger budget, and is then the run that the larger budget would have made."""

import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from forecast_tasks import FIVE

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.random import RandomAgent
from kernel_gym.cli.command_line import execute
from kernel_gym.cli.main import load
from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies import agent_comparison, study_commands, study_definition
from kernel_gym.experiments.studies.study import Study


class Thrifty(RandomAgent):
    """Chooses by the share of the budget that is left."""

    def act(self, observation: Observation, info: Info) -> int:
        slots = observation["action_mask"].nonzero()[0]
        return int(slots[info["attempts_left"] % len(slots)])


def config(budget: int, agent: str = "value", **settings: Any) -> RunConfig:
    forecast = {"agent": agent, "budget": budget, "seed": 3, "tasks": list(FIVE[-2:]), "env": {"forecast": True}}
    return resolve(overrides=forecast | settings)


def run(path: Path, settings: RunConfig) -> RunFolder:
    folder = RunFolder.open(path, settings)
    train(settings, folder)
    return folder


def content(folder: RunFolder) -> dict[str, Any]:
    """Everything that a run leaves and that its settings decide."""
    with sqlite3.connect(folder.bank) as bank:
        memory = [re.sub(r'"seconds": \{[^}]*\}', "", line) for line in bank.iterdump()]  # of gates: they differ
    return {
        "config": (folder.path / "config.yaml").read_text(),
        "journal": [row | {"verdict": row["verdict"] | {"seconds": {}}} for row in Journal.read(folder.journal)],
        "memory": memory,
        "agent": {file.name: file.read_bytes() for file in folder.agent.iterdir()},
        "best": {file.name: file.read_bytes() for file in (folder.path / "best").iterdir()},
        "kernels": {file.name for file in (folder.path / "kernels").iterdir()},
        "complete": folder.complete,
    }


@pytest.mark.parametrize("agent", ["random", "value", "context-value"])
def test_an_extended_run_is_the_run_of_the_larger_budget(agent: str, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", config(9, agent))
    folder = run(tmp_path / "run", config(4, agent))
    journal = folder.journal.read_bytes()
    assert run(tmp_path / "run", config(9, agent)).journal.read_bytes().startswith(journal)
    assert content(folder) == content(whole)
    assert [part["attempt"] for part in folder.provenance["resumed"]] == [len(journal.splitlines())]


@pytest.mark.slow
def test_an_extended_run_on_a_device_is_the_run_of_the_larger_budget(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"tasks": ["relu"], "workers": 1, "env": {}}
    whole = run(tmp_path / "whole", config(3, "random", **settings))
    run(tmp_path / "run", config(1, "random", **settings))
    assert content(run(tmp_path / "run", config(3, "random", **settings))) == content(whole)


def test_a_run_is_not_shortened_and_not_changed_in_anything_else(tmp_path: Path) -> None:
    before = content(run(tmp_path, config(4)))
    with pytest.raises(KernelGymError, match="budget 4, which can be extended and not shortened; choose another"):
        RunFolder.open(tmp_path, config(3))
    with pytest.raises(KernelGymError, match=r"another configuration \(budget, seed\)"):
        RunFolder.open(tmp_path, config(9, seed=4))
    assert content(RunFolder(tmp_path)) == before


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rounds": 2}, "it has several rounds"),
        ({"batch": 1}, "its tasks come in batches"),
        ({"agent": f"{__name__}:Loop"}, "observes the share of the budget that is left, so it must train anew"),
    ],
)
def test_an_extension_that_would_change_the_run_is_refused_before_it_begins(
    settings: dict[str, Any], says: str, tmp_path: Path
) -> None:
    run(tmp_path, config(2, **{key: value for key, value in settings.items() if key != "agent"}))
    stored = yaml.safe_load((tmp_path / "config.yaml").read_text()) | settings
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(stored))
    before = content(RunFolder(tmp_path))
    folder = RunFolder.open(tmp_path, config(3, **settings))
    with pytest.raises(ConfigError, match=f"cannot be extended to 3 attempts a task: .*{says}"):
        train(config(3, **settings), folder)
    assert content(folder) == before


class Loop(RandomAgent):
    """Owns its training loop."""

    owns_loop = True


def test_an_agent_that_depends_on_the_budget_cannot_be_extended_and_its_run_is_unchanged(tmp_path: Path) -> None:
    agent = f"{__name__}:Thrifty"
    before = content(run(tmp_path, config(2, agent)))
    with pytest.raises(KernelGymError, match=r"attempt \d+ came out differently .* its agent chooses differently"):
        run(tmp_path, config(5, agent))
    assert content(RunFolder(tmp_path)) == before
    assert RunFolder(tmp_path).finished(config(2, agent))


@pytest.mark.slow
def test_a_comparison_is_extended_run_by_run(tmp_path: Path) -> None:
    def compare(budget: int, out: Path) -> dict[str, Any]:
        study = agent_comparison.agent_comparison(config(budget), ["random", "value"], 2, out)
        assert study.run(1, lambda done, total: None) == []
        return dict(json.loads(agent_comparison.write(study)))

    compare(3, tmp_path / "run")
    assert compare(6, tmp_path / "run") == compare(6, tmp_path / "whole")


STUDY = {
    "about": "Runs on forecasts.",
    "question": "Which agent is better?",
    "agents": ["random", "value"],
    "reference": "random",
    "phases": ["level1 1"],
    "settings": {"workers": 1, "env": {"forecast": True, "author_options": {"profile": "strong"}}},
    "sizes": {"quick": {"budget": 2, "seeds": 1}},
}


def study(monkeypatch: pytest.MonkeyPatch, *words: str, **changes: Any) -> int:
    definition = study_definition.parse("mine", STUDY | changes)
    monkeypatch.setattr(study_definition, "load", lambda name: definition)
    monkeypatch.setattr(sys, "argv", ["study"])
    with pytest.raises(SystemExit) as ended:
        execute(load("study"), ["mine", *words])
    return int(str(ended.value.code))


def test_a_study_is_extended_with_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study_definition, "select_tasks", lambda words, share: _tasks())
    out = ["--out", str(tmp_path / "run"), "--parallel", "1"]
    assert study(monkeypatch, *out) == 0
    assert study(monkeypatch, *out, "--budget", "4") == 0
    assert study(monkeypatch, *out, "--table") == 0  # the folder knows its budget
    assert study(monkeypatch, "--out", str(tmp_path / "whole"), "--budget", "4") == 0
    for label in ("random/seed-0", "value/seed-0"):
        assert content(RunFolder(tmp_path / "run" / label)) == content(RunFolder(tmp_path / "whole" / label))
    assert "2 of 2 runs complete" in (tmp_path / "run" / "results.md").read_text()
    assert study_commands.definition_in(tmp_path / "run") is not None
    capsys.readouterr()
    assert study(monkeypatch, *out, "--budget", "3") == 2
    assert "holds the study mine at size quick with budget 4; choose another --out" in capsys.readouterr().err


def _tasks() -> list[Any]:
    from kernel_gym import suites

    return [suites.find_task("level1/relu")]


def test_a_shard_that_begins_with_another_s_memory_is_not_extended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_definition, "select_tasks", lambda words, share: _tasks())
    arms = {"make": {"agents": ["value"]}, "use": {"memory": "make", "agents": ["value"]}}
    definition = study_definition.parse("mine", STUDY | {"arms": arms, "reference": "use/value"})

    def shards(budget: int) -> Study:
        size = definition.sizes["quick"].model_copy(update={"budget": budget})
        changed = definition.model_copy(update={"sizes": {"quick": size}})
        return Study(tuple(study_definition.shards(changed, "quick")), tmp_path, "use/value")

    for shard in shards(2).shards:
        folder = RunFolder.open(shards(2).path(shard), shard.config)
        folder.journal.write_text("recorded\n")
    with pytest.raises(ConfigError, match="begins with the memory of make/value/seed-0, which becomes another one"):
        shards(3).run(1, lambda done, total: None)
