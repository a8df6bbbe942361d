#!/usr/bin/env python
"""Compute what memories really do to a run's attempts, and score the agent's values and its picks against it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kernel_gym import command_line

if TYPE_CHECKING:
    from kernel_gym.agents.credit import Report
    from kernel_gym.agents.prior_weights import Fit
    from kernel_gym.agents.statistics import Interval

EXAMPLES = """
scripts/train.py --agent value --suite level1 --tasks relu,gelu,softmax --budget 10 --out runs/value
scripts/credit.py runs/value --states 40
scripts/credit.py runs/value --states 40 --verify 10 --kernels 8
scripts/credit.py runs/value --stage refine --states 20 --json
scripts/credit.py runs/complement runs/similarity-diverse --states 90 --fit
"""


def main() -> int:
    """Play the run again, with a progress bar, and print what came out."""
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("run", type=Path, nargs="+", help="run folder; the author must be the simulated one")
    parser.add_argument(
        "--states", type=command_line.count, default=60, help="attempts to look at, drawn at random (default 60)"
    )
    parser.add_argument("--stage", choices=("draft", "refine"), default="draft", help="of which stage (default draft)")
    parser.add_argument("--seed", type=int, default=0, help="decides which attempts (default 0)")
    parser.add_argument(
        "--draws", type=command_line.count, default=4, help="schedules that a chance is averaged over (default 4)"
    )
    parser.add_argument("--verify", type=int, default=0, help="states in which kernels are written and judged, too")
    parser.add_argument(
        "--kernels", type=command_line.count, default=8, help="kernels a picker in each of those (default 8)"
    )
    parser.add_argument("--fit", action="store_true", help="fit weights for `complement` instead; takes several runs")
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    arguments = parser.parse_args()
    if min(arguments.states, arguments.draws, arguments.kernels) < 1 or arguments.verify < 0:
        parser.error("--states, --draws and --kernels must be at least 1, --verify at least 0")
    if len(arguments.run) > 1 and not arguments.fit:
        parser.error("one run at a time; only --fit takes several")

    from kernel_gym.agents.credit import Question, examine
    from kernel_gym.agents.prior_weights import fit

    names = ("states", "stage", "seed", "draws", "verify", "kernels")
    question = Question(**{name: getattr(arguments, name) for name in names})
    columns = (TextColumn("states"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task("", total=None)

        def watch(done: int, of: int) -> None:
            bar.update(line, completed=done, total=of)

        if arguments.fit:
            found = fit(arguments.run, question, watch)
        else:
            report = examine(arguments.run[0], question, watch)
    if arguments.fit:
        print(json.dumps(asdict(found))) if arguments.json else _print_fit(found)
    else:
        print(json.dumps(report.to_json())) if arguments.json else _print(report)
    return 0


def _print_fit(fit: Fit) -> None:
    print(f"{fit.contexts} contexts: how much log-odds of a good kernel change with")
    for name, weight in fit.weights.items():
        print(f"  {name:10s} {weight:+.2f}")
    print(f"explained of the variance within states, operators left out: {fit.explained:.2f}")


def _print(report: Report) -> None:
    chances, regrets, verified = report.chances(), report.regrets(), report.verified()
    table = Table(title=f"{report.agent}: {len(report.states)} states, mean [95% interval]", box=None)
    for name in ("who picks", "chance of a good kernel", "regret", *(["verified"] if verified else [])):
        table.add_column(name, justify="left" if name == "who picks" else "right")
    for name in chances:
        cells = [_words(chances[name]), _words(regrets.get(name))]
        table.add_row(name, *cells, *([_words(verified.get(name))] if verified else []))
    Console(width=110).print(table)
    for name, meaning in (("alone", "alone in the context"), ("left_out", "by leaving it out of the one shown")):
        mean, count = report.correlation(name)
        print(f"rank correlation of values with the effect of an item {meaning}: {_words(mean)} ({count} states)")


def _words(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


if __name__ == "__main__":
    command_line.run(main)
