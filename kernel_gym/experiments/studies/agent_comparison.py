"""Compare agents on one configuration: a table on the terminal and `comparison.json`."""

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
from kernel_gym.experiments.runs.earlier_versions import current_contender
from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome, intervals
from kernel_gym.experiments.runs.progress import show_progress
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import task_ids
from kernel_gym.experiments.studies.contrasts import MEASURES, Contrast, difference, judged
from kernel_gym.experiments.studies.seed_curves import write_seed_curves
from kernel_gym.experiments.studies.study import Study, print_failures
from kernel_gym.experiments.studies.study_definition import Shard, folder_name
from kernel_gym.experiments.studies.tables import SIMULATED_AUTHOR, figures_table

#: Figures that fit on a screen.
SHOWN = ("compiled", "correct", "area", "speedup", "reward")
#: What is written into a comparison's folder.
FILE = "comparison.json"


def agent_comparison(base: RunConfig, agents: Sequence[str], seeds: int, folder: Path) -> Study:
    """Return the study that crosses agents and seeds on one configuration; the first agent is the reference.

    Options under an agent's name in `agent_options` are for that agent alone, the others for all.
    """
    tasks = tuple(task_ids(base, RunFolder(folder)))
    shards = [
        Shard("", agent, seed, base.model_copy(update=_agent_settings(base, agent, agents) | {"seed": seed}), tasks)
        for seed in range(seeds)
        for agent in agents
    ]
    return Study(tuple(shards), folder, agents[0])


def _agent_settings(base: RunConfig, agent: str, agents: Sequence[str]) -> dict[str, Any]:
    """Return the settings that differ for an agent: its name and its options."""
    shared = {name: value for name, value in base.agent_options.items() if name not in agents}
    own = base.agent_options.get(agent, {})
    if not isinstance(own, Mapping):
        raise ConfigError(f"agent_options.{agent} holds the options of {agent}, for example agent_options.{agent}.x=1")
    return {"agent": agent, "agent_options": merged(shared, own)}


def _pairs(study: Study) -> list[tuple[str, str]]:
    contenders = dict.fromkeys(shard.contender for shard in study.shards)
    return [(name, study.reference) for name in contenders if name != study.reference]


def contrasts(study: Study) -> list[Contrast]:
    """Return what a comparison tests: every agent against the first, in area; the command names them before it runs."""
    return [(contender, reference, "area") for contender, reference in _pairs(study)]


def run_and_print(study: Study, title: str, parallel: int, *, as_json: bool) -> int:
    """Run a study with progress, print its figures and its failures; return the exit status of a command."""
    with show_progress(title, study.done) as watch:
        failures = study.run(parallel, watch)
    if study.complete():
        written = write(study)
        if as_json:
            print(written, end="")
        else:
            show(study)
    return print_failures(failures)


def write(study: Study) -> str:
    """Write `comparison.json` with every run, the intervals and the differences from the reference; return its text.

    The curves over seeds go to TensorBoard.
    """
    runs = study.outcomes()
    rows = judged(runs, contrasts(study))
    summary = {
        "runs": [asdict(run) for run in runs],
        "intervals": {
            agent: {name: value and asdict(value) for name, value in figures.items()}
            for agent, figures in intervals(runs).items()
        },
        "differences_from": study.reference,
        "differences": {
            "area": {row.contender: asdict(row) | {"conclusion": row.conclusion} for row in rows},
            **{measure: _described(runs, _pairs(study), measure) for measure in MEASURES if measure != "area"},
        },
    }
    text = json.dumps(summary, indent=1)
    (study.folder / FILE).write_text(text)
    write_seed_curves(study.folder)
    return text


def _described(runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], measure: str) -> dict[str, Any]:
    """Return contender -> a difference that is not tested."""
    differences = (difference(runs, (contender, reference, measure)) for contender, reference in pairs)
    return {row.contender: asdict(row) for row in differences if row is not None}


def reference(folder: Path) -> str:
    """Return the reference of the comparison that a folder holds; empty if it holds none."""
    file = folder / FILE
    try:
        name = json.loads(file.read_text())["differences_from"] if file.exists() else ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelGymError(f"{file} does not name the reference: name it with --reference") from error
    return folder_name(current_contender(str(name)))


def show(study: Study) -> None:
    """Print the figures of every agent with intervals, and their differences from the reference."""
    console = Console(width=None if sys.stdout.isatty() else 128)
    runs = study.outcomes()
    first = study.shards[0]
    seeds = len({shard.seed for shard in study.shards})
    title = f"{len(first.tasks)} tasks, {first.config.budget} attempts each, {seeds} seeds: mean [95% interval]"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1))
    head, *rows = figures_table(runs, SHOWN)
    for i, name in enumerate(head):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for name in SHOWN:
        console.print(f"  {name}: {FIGURES[name]}", highlight=False)
    for pair in judged(runs, contrasts(study)):
        console.print(f"  {pair}", highlight=False, soft_wrap=True)
    if first.config.env.author == "apprentice":
        console.print(SIMULATED_AUTHOR, highlight=False)
    console.print(f"Curves: tensorboard --logdir {study.folder}", highlight=False)
