"""A comparison of agents as `scripts/compare.py` prints it: a table on the terminal and `comparison.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from kernel_gym.config import RunConfig, merged
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.comparison import FIGURES, by_seed, intervals
from kernel_gym.experiments.runs.progress import named_failures, shown
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import operators
from kernel_gym.experiments.statistics import differences
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import Shard, folder_name
from kernel_gym.experiments.studies.tables import COMPARED, SIMULATED, figures_table

#: Figures that fit on a screen.
SHOWN = ("compiled", "correct", "area", "speedup", "reward")
#: What is written into a comparison's folder.
FILE = "comparison.json"


def crossed(base: RunConfig, agents: Sequence[str], seeds: int, folder: Path) -> Study:
    """Agents x seeds on one configuration; the first agent is the reference.

    What `agent_options` has under an agent's name is for that agent alone, the rest for all.
    """
    tasks = tuple(operators(base, RunFolder(folder)))
    shards = [
        Shard("", agent, seed, base.model_copy(update=_own(base, agent, agents) | {"seed": seed}), tasks)
        for seed in range(seeds)
        for agent in agents
    ]
    return Study(tuple(shards), folder, agents[0])


def _own(base: RunConfig, agent: str, agents: Sequence[str]) -> dict[str, Any]:
    """An agent with its options."""
    shared = {name: value for name, value in base.agent_options.items() if name not in agents}
    own = base.agent_options.get(agent, {})
    if not isinstance(own, Mapping):
        raise ConfigError(f"agent_options.{agent} holds the options of {agent}, for example agent_options.{agent}.x=1")
    return {"agent": agent, "agent_options": merged(shared, own)}


def _pairs(study: Study) -> list[tuple[str, str]]:
    contenders = dict.fromkeys(shard.contender for shard in study.shards)
    return [(name, study.reference) for name in contenders if name != study.reference]


def carry_out(study: Study, what: str, parallel: int, *, as_json: bool) -> int:
    """Make the runs with progress, name what failed, print what is complete; the exit status of a command."""
    with shown(what, study.done) as watch:
        failures = study.run(parallel, watch)
    if study.complete():
        written = write(study)
        if as_json:
            print(written, end="")
        else:
            show(study)
    return named_failures(failures)


def write(study: Study) -> str:
    """Write `comparison.json`: every run, the intervals, and the differences from the reference."""
    runs = study.outcomes()
    summary = {
        "runs": [asdict(run) for run in runs],
        "intervals": {
            agent: {name: value and asdict(value) for name, value in figures.items()}
            for agent, figures in intervals(runs).items()
        },
        "differences_from": study.reference,
        "differences": {
            figure: {one.contender: asdict(one) for one in differences(by_seed(runs, figure), _pairs(study))}
            for figure in COMPARED
        },
    }
    text = json.dumps(summary, indent=1)
    (study.folder / FILE).write_text(text)
    return text


def reference(folder: Path) -> str:
    """The folder of the contender that others were compared with; empty if the folder holds no comparison."""
    file = folder / FILE
    try:
        name = json.loads(file.read_text())["differences_from"] if file.exists() else ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelGymError(f"{file} doesn't say what was compared with: name it with --reference") from error
    return folder_name(str(name))


def show(study: Study) -> None:
    """Print the figures of every agent with intervals, and its difference from the reference."""
    console = Console(width=None if sys.stdout.isatty() else 128)
    runs = study.outcomes()
    first = study.shards[0]
    seeds = len({shard.seed for shard in study.shards})
    title = f"{len(first.tasks)} operators, {first.config.budget} attempts each, {seeds} seeds: mean [95% interval]"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1))
    head, *rows = figures_table(runs, SHOWN)
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for name in SHOWN:
        console.print(f"  {name}: {FIGURES[name]}", highlight=False)
    for one in differences(by_seed(runs, "area"), _pairs(study)):
        console.print(f"  {one.contender} - {one.reference} in area: {one}", highlight=False, soft_wrap=True)
    if first.config.env.author == "apprentice":
        console.print(SIMULATED, highlight=False)
    console.print(f"Curves: tensorboard --logdir {study.folder}", highlight=False)
