"""The pages about studies and training say what the code and the records have."""

import re
from typing import Any

import pytest
from repository import ROOT

from kernel_gym.experiments.runs.figures import FIGURES
from kernel_gym.experiments.studies import study_definition

DOCS = ROOT / "docs"


#: What the records call agents that have other names today.
RENAMED = {"context-value": "complement", "oracle": "knowing"}


def test_every_agent_of_the_main_study_is_in_the_page() -> None:
    text = (DOCS / "method" / "agents.md").read_text()
    assert [name for name in study_definition.load("main").agents if f"`{name}`" not in text] == []


def test_every_study_with_a_measured_time_exists() -> None:
    text = (DOCS / "studies.md").read_text()
    _, table = text.split("## How long they take")
    timed = re.findall(r"`([\w-]+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)))
    assert sorted(timed) == study_definition.names()


def test_the_table_of_the_full_study_is_what_its_command_printed() -> None:
    printed = {
        section.splitlines()[0]: dict(re.findall(r"^\| ([\w@-]+) \| (\d.*) \|$", section, re.MULTILINE))
        for section in (DOCS / "results" / "main.md").read_text().split("\n## ")[1:]
    }
    _, table = (DOCS / "results.md").read_text().split("## `main`, full size")
    table, *_ = table.split("\n## ")
    shown = re.findall(r"^\| `([\w@-]+)` \| (\d.*) \|$", table, re.MULTILINE)
    assert [agent for agent, _ in shown] == list(study_definition.load("main").agents)
    for agent, cells in shown:
        record = RENAMED.get(agent, agent)
        figures = {suite: dict(zip(FIGURES, rows[record].split(" | "), strict=True)) for suite, rows in printed.items()}
        expected = [figures[suite][figure] for suite in ("level1", "level2") for figure in ("correct", "area")]
        expected += [figures["All operators"][figure] for figure in ("correct", "area", "speedup")]
        assert cells.split(" | ") == expected


def test_the_results_of_transfer_are_what_its_command_printed() -> None:
    _, printed = (DOCS / "results" / "transfer.md").read_text().split("\n## level2")
    after = dict(re.findall(r"^\| ([\w/-]+) \| (\S+ \[\S+ \S+\]) \|$", printed, re.MULTILINE))
    text = (DOCS / "results.md").read_text()
    for agent in study_definition.load("transfer").agents:
        cells = [after[f"{arm}/{agent}"] for arm in ("scratch", "mixed", "levels")]
        assert f"| `{agent}` | {' | '.join(cells)} |" in text


def test_all_agents_are_equal_on_the_placebo() -> None:
    text = (DOCS / "results" / "placebo.md").read_text()
    rows = re.findall(r"^\| ([\w@-]+) \| (\d.*) \|$", text, re.MULTILINE)
    assert len(rows) == 3 * len(study_definition.load("placebo").agents)
    assert len({figures for _, figures in rows}) == 3  # one of each level and one of both
    assert "equal in every seed" in text


def test_the_configuration_with_env_runners_is_valid() -> None:
    pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
    (shown,) = re.findall(r"```python\n(.*?)```", (DOCS / "guides" / "ray.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown, names)
    names["config"].validate()
    assert names["config"].num_env_runners == 4
    assert names["config"].sample_timeout_s >= 600
    assert names["config"].get_rollout_fragment_length() * 4 == names["config"].train_batch_size_per_learner
    assert names["config"].rl_module_spec.module_class is names["MaskedModule"]
