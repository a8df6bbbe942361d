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
    assert sorted(set(timed)) == study_definition.names()


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


@pytest.mark.parametrize("study", ["placebo", "placebo-calibrated"])
def test_all_agents_are_equal_on_the_placebo(study: str) -> None:
    text = (DOCS / "results" / f"{study.replace('-', '_')}.md").read_text()
    rows = re.findall(r"^\| ([\w@-]+) \| (\d\.\d\d .*) \|$", text, re.MULTILINE)
    assert len(rows) == 3 * len(study_definition.load(study).agents)
    assert len({figures for _, figures in rows}) == 3  # one of each level and one of both
    assert "equal in every seed" in text


def test_the_arena_page_says_what_its_command_printed() -> None:
    text, record = (DOCS / "arena.md").read_text(), (DOCS / "results" / "arena.md").read_text()
    study = study_definition.load("arena")
    sections = dict(section.split("\n", 1) for section in record.split("\n## ")[1:])
    shares = [
        dict(re.findall(r"^\| \d+ \| ([\w-]+) \| (\S+ \[\S+ \S+\]) \|", sections[title], re.MULTILINE))
        for title in study.rankings
    ]
    _, table = text.split("| agent | refining, three authors | each drafts its own way | 300 attempts |")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n\n")[0].splitlines()[2:]]
    stated = {re.findall(r"`([\w-]+)`", name)[0]: cells for name, *cells in rows}
    assert stated == {agent: [column.get(agent, "") for column in shares] for agent in study.agents}
    contrasts = dict(re.findall(r"^\| middle/([\w-]+) - \S+ \| speedup \| (\S+ \[[^\]]*\])", record, re.MULTILINE))
    differences = re.findall(r"`([\w-]+)` (\d\S*x \[\S+x, \S+x\])", text.split("Everything else describes")[0])
    assert dict(differences) == {agent: value for agent, value in contrasts.items() if agent != "pareto"}


def test_every_registered_prediction_has_a_hit_or_a_miss() -> None:
    text = (DOCS / "results" / "predictions.md").read_text()
    for row in study_definition.load("predictions").predictions:
        assert re.search(rf"^\| {re.escape(row.figure)} \|.*\| (hit|miss) \|$", text, re.MULTILINE), row.figure


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
