"""Compute the true effect of memories on a run's attempts, and score the agent's values and picks against it."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import UsageError

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.credit import CreditReport, State
    from kernel_gym.experiments.analysis.prior_weights import Fit
    from kernel_gym.experiments.statistics import Interval

EXAMPLES = """
kernel-gym train --agent value --suite level1 --tasks relu,gelu,softmax --budget 10 --out runs/value
kernel-gym credit runs/value --states 40
kernel-gym credit runs/value --states 40 --verify 10 --kernels 8
kernel-gym credit runs/value --stage refine --states 20 --json
kernel-gym credit runs/value --task softmax --attempt 0,3
kernel-gym credit runs/context-value runs/similarity-diverse --states 90 --fit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", type=Path, nargs="+", help="run folder; the author must be the simulated one")
    parser.add_argument(
        "--states",
        type=command_line.count,
        help="attempts to look at, drawn at random (default 60; all of those that --task and --attempt name)",
    )
    parser.add_argument(
        "--task", type=command_line.words, default=(), help="tasks: only their attempts, each with a table"
    )
    parser.add_argument(
        "--attempt",
        type=numbers,
        default=(),
        metavar="N[,N]",
        help="only these attempts at a task, counted from 0 as in the journal, each with a table",
    )
    parser.add_argument(
        "--stage", choices=("draft", "refine"), help="of which stage (default draft; either, where attempts are named)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed that decides which attempts are drawn (default 0)")
    parser.add_argument(
        "--draws", type=command_line.count, default=4, help="schedules that a chance is averaged over (default 4)"
    )
    parser.add_argument("--verify", type=int, default=0, help="states in which kernels are also written and verified")
    parser.add_argument(
        "--kernels", type=command_line.count, default=8, help="kernels a picker in each of those (default 8)"
    )
    parser.add_argument("--fit", action="store_true", help="fit weights for `context-value`; takes several runs")
    parser.add_argument("--json", action="store_true", help="print data instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Repeat the run's attempts, with a progress bar, and print the effects."""
    if arguments.verify < 0:
        raise UsageError("--verify must be at least 0")
    if len(arguments.run) > 1 and not arguments.fit:
        raise UsageError("one run at a time; only --fit takes several")

    from kernel_gym.experiments.analysis.credit import CreditSettings, examine
    from kernel_gym.experiments.analysis.prior_weights import fit
    from kernel_gym.experiments.runs.progress import bar

    named = bool(arguments.task or arguments.attempt)
    settings = CreditSettings(
        arguments.states or (None if named else 60),
        arguments.stage or ("" if named else "draft"),
        tasks=arguments.task,
        attempts=arguments.attempt,
        **{name: getattr(arguments, name) for name in ("seed", "draws", "verify", "kernels")},
    )
    with bar("states", Console(stderr=True)) as watch:
        if arguments.fit:
            weights = fit(arguments.run, settings, watch)
        else:
            report = examine(arguments.run[0], settings, watch)
    if arguments.fit:
        print(json.dumps(asdict(weights))) if arguments.json else _print_fit(weights)
    else:
        print(json.dumps(report.to_json())) if arguments.json else _print(report, each=named)
    return 0


def numbers(text: str) -> tuple[int, ...]:
    """Parse comma-separated whole numbers from 0 on."""
    words = command_line.words(text)
    if not words or not all(re.fullmatch("[0-9]{1,18}", word) for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers from 0 on, such as 0,3")
    return tuple(map(int, words))


def _print_fit(fit: Fit) -> None:
    print(f"{fit.contexts} contexts: how much log-odds of a good kernel change with")
    for name, weight in fit.weights.items():
        print(f"  {name:10s} {weight:+.2f}")
    print(f"explained of the variance within states, tasks left out: {fit.explained:.2f}")


def _print(report: CreditReport, each: bool) -> None:
    for state in report.states if each else ():
        _print_state(state)
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


def _print_state(state: State) -> None:
    """Print the candidates of a state, those that help most alone first."""
    table = Table(title=f"{state.task}, attempt {state.attempt} ({state.stage})", box=None, title_justify="left")
    for name in ("item", "alone", "left out", "value"):
        table.add_column(name, justify="right")
    table.add_column("kind")
    table.add_column("title", no_wrap=True, max_width=60)
    for effect in sorted(state.effects, key=lambda effect: -effect.alone):
        figures = (f"{x:+.3f}" if x is not None else "-" for x in (effect.alone, effect.left_out, effect.value))
        table.add_row(str(effect.item), *figures, effect.kind, effect.title)
    Console(width=110).print(table)
    print("chance of a good kernel:", ", ".join(f"{name} {chance:.3f}" for name, chance in state.chances.items()), "\n")


def _words(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"
