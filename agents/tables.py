"""A comparison as a person reads it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from kernel_gym.agents.comparison import FIGURES, Interval, RunOutcome, intervals, paired_differences
from kernel_gym.agents.study import Study


def print_comparison(study: Study, outcomes: Sequence[RunOutcome], tasks: int) -> None:
    """The figures of every agent with intervals, and its difference from the first one."""
    console = Console(width=None if sys.stdout.isatty() else 128)
    base = study.base
    title = f"{tasks} operators, {base.budget} attempts each, {study.seeds} seeds: mean [95% interval]"
    table = Table(title=title, box=box.SIMPLE, padding=(0, 1))
    table.add_column("agent")
    for name in FIGURES:
        table.add_column(name, justify="right")
    for agent, figures in intervals(outcomes).items():
        table.add_row(agent, *(_cell(value) for value in figures.values()))
    console.print(table)
    for name, meaning in FIGURES.items():
        console.print(f"  {name}: {meaning}", highlight=False)
    reference = study.agents[0]
    for agent, gap in paired_differences(outcomes, reference, "area").items():
        if gap is None:
            continue
        verdict = "no difference beyond noise" if gap.low <= 0 <= gap.high else "differs"
        console.print(
            f"  {agent} - {reference} in area: {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}], {verdict}",
            highlight=False,
        )
    if base.env.author == "apprentice":
        console.print("The author is simulated: this compares what it was shown, not language models.", highlight=False)
    console.print(f"Curves: tensorboard --logdir {study.folder}", highlight=False)


def _cell(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
