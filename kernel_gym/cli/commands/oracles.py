"""Verify the best and the slowest kernel that the apprentice can write for every task, and print their latencies.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. Where that would run past
what a device executes, it is the best one on a single core.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.oracle_margins import Margin

EXAMPLES = """
kernel-gym oracles level1 level2
kernel-gym oracles level1/softmax level1/19 --json
kernel-gym oracles level1 --quick --policy reference
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("names", nargs="*", default=list(suites.SUITES), help="suites, folders or single tasks")
    command_line.add_trust_argument(parser)
    parser.add_argument("--quick", action="store_true", help="judge the oracles alone")
    add_policy_argument(parser, "strict")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append what is measured to a file, task by task")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each category and every shortfall; the exit status is 1 if there is a shortfall."""
    from kernel_gym.experiments.analysis.oracle_margins import measure
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.verifier import Verifier

    tasks = [task for name in arguments.names for task in _named(name)]
    with Verifier(AscendSim(), policy=arguments.policy) as verifier:
        shown = track(tasks, "judging", console=Console(stderr=True), disable=arguments.json)
        margins = [_append(measure(task, verifier, quick=arguments.quick), arguments) for task in shown]
    lacking = {margin.task: reasons for margin in margins if (reasons := margin.shortfalls())}
    if arguments.json:
        print(
            json.dumps([asdict(margin) | {"spread": margin.spread, "launches": margin.launches} for margin in margins])
        )
    else:
        _print(margins)
        for task, reasons in lacking.items():
            print(f"{task}: {'; '.join(reasons)}")
    return 1 if lacking else 0


def _named(name: str) -> tuple[Task, ...]:
    single = name.endswith(".py") or ("/" in name and not Path(name).is_dir())
    return (suites.find_task(name),) if single else suites.load_suite(name)


def _append(margin: Margin, arguments: argparse.Namespace) -> Margin:
    if arguments.out:
        with arguments.out.open("a") as file:
            file.write(json.dumps(asdict(margin)) + "\n")
    return margin


def _print(margins: list[Margin]) -> None:
    groups: defaultdict[tuple[str, str], list[Margin]] = defaultdict(list)
    for margin in margins:
        groups[margin.suite, margin.category].append(margin)
    table = Table(
        "suite",
        "category",
        "tasks",
        "oracles",
        "slower",
        "spread: least",
        "median",
        "most",
        "launches: least",
        box=None,
    )
    for (suite, category), group in sorted(groups.items()):
        table.add_row(suite, category, *_counts(group))
    table.add_row("all", "", *_counts(margins))
    console = Console()
    console.width = max(console.width, 100)
    console.print(table)


def _counts(group: list[Margin]) -> Iterator[str]:
    spreads = sorted(margin.spread for margin in group if margin.spread is not None)
    yield str(len(group))
    yield str(sum(margin.oracle == "feasible" for margin in group))
    yield str(sum(spread >= 1 for spread in spreads))
    for place in (0, len(spreads) // 2, len(spreads) - 1):
        yield f"{spreads[place]:.1f}" if spreads else ""
    launches = [margin.launches for margin in group if margin.launches is not None]
    yield f"{min(launches):.1f}" if launches else ""
