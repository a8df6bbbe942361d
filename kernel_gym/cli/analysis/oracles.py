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
from rich.table import Table

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.cli.result_file import append_result, read_results
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.oracle_margins import Margin

EXAMPLES = """
kernel-gym oracles level1 level2
kernel-gym oracles level1/softmax level1/19 --json
kernel-gym oracles level1 --quick --policy reference
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("names", nargs="*", default=list(suites.SUITES), help="suites, folders or single tasks")
    command_line.add_trust_argument(parser)
    parser.add_argument("--quick", action="store_true", help="judge the oracles alone")
    add_policy_argument(parser, "strict")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append results to a file, and go on from there")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each category and every shortfall; the exit status is 1 if there is a shortfall."""
    from kernel_gym.experiments.analysis.oracle_margins import Margin, measure
    from kernel_gym.experiments.runs.progress import show_progress
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.verifier import Verifier

    tasks = [task for name in arguments.names for task in _named(name)]
    measured, margins = _measured(arguments), list[Margin]()
    with Verifier(AscendSim(), policy=arguments.policy) as verifier, show_progress("oracles", unit="tasks") as show:
        for task in tasks:
            show(len(margins), len(tasks))
            if task.id not in measured:
                measured[task.id] = measure(task, verifier, quick=arguments.quick)
                append_result(arguments.out, asdict(measured[task.id]))
            margins.append(measured[task.id])
        show(len(tasks), len(tasks))
    lacking = {margin.task: reasons for margin in margins if (reasons := margin.shortfalls())}
    if arguments.json:
        print(
            json.dumps([asdict(margin) | {"spread": margin.spread, "launches": margin.launches} for margin in margins])
        )
    else:
        _print(margins)
        for name, reasons in lacking.items():
            print(f"{name}: {'; '.join(reasons)}")
    return 1 if lacking else 0


def _named(name: str) -> tuple[Task, ...]:
    single = name.endswith(".py") or ("/" in name and not Path(name).is_dir())
    return (suites.find_task(name),) if single else suites.load_suite(name)


def _measured(arguments: argparse.Namespace) -> dict[str, Margin]:
    """Return what the file has already; rows of `--quick` lack the slowest kernel."""
    from kernel_gym.experiments.analysis.oracle_margins import Margin

    rows = read_results(arguments.out, Margin)
    return {row.task: row for row in rows if arguments.quick or row.naive or row.oracle != "feasible"}


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
