"""Verify the best and the slowest kernel that the apprentice can write for every task, and print their latencies.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. Where that would run past
what a device executes, it is the best one on a single core. On a GPU (`--device cuda`) the module under torch is timed
beside them.
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

from kernel_gym import plugins, suites
from kernel_gym.cli import command_line
from kernel_gym.cli.result_file import append_result, read_results
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.oracle_margins import Margin
    from kernel_gym.hardware.device import Device

EXAMPLES = """
kernel-gym oracles level1 level2
kernel-gym oracles level1/softmax level1/19 --json
kernel-gym oracles level1 --quick --policy reference
kernel-gym oracles attention level3 --quick --workers 8 --out oracles.jsonl
kernel-gym oracles attention level3 --quick --out oracles.jsonl --markdown
kernel-gym oracles level1 level2 --quick --device cuda --workers 4 --out cuda.jsonl --markdown
"""
RESUMES = True
#: Ratios of latencies that are printed beside the latencies.
RATIOS = ("spread", "launches", "over_floor", "over_torch", "over_torch_float32")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("names", nargs="*", default=list(suites.SUITES), help="suites, folders or single tasks")
    command_line.add_trust_argument(parser)
    parser.add_argument("--quick", action="store_true", help="judge the oracles alone")
    parser.add_argument("--device", default="ascend-sim", help="where kernels run (default: %(default)s)")
    add_policy_argument(parser, "strict")
    parser.add_argument(
        "--workers", type=command_line.count, default=1, help="processes that judge at once (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="append results to a file, and go on from there")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print latencies over the floor (on a GPU: over torch's) as a page has them",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each category and every shortfall; the exit status is 1 if there is a shortfall."""
    from kernel_gym.experiments.analysis.oracle_margins import measure_all
    from kernel_gym.experiments.runs.progress import show_progress

    _see_that_it_is_there(arguments.device)
    tasks = list({task.id: task for name in arguments.names for task in _named(name)}.values())
    measured = _measured(arguments)
    rest = [task for task in tasks if task.id not in measured]
    with show_progress("oracles", unit="tasks") as show:
        show(len(tasks) - len(rest), len(tasks))
        options = {"quick": arguments.quick, "workers": arguments.workers, "device": arguments.device}
        for margin in measure_all(rest, arguments.policy, **options):
            measured[margin.task] = margin
            append_result(arguments.out, asdict(margin))
            show(len(measured), len(tasks))
    margins = [measured[task.id] for task in tasks]
    lacking = {margin.task: reasons for margin in margins if (reasons := margin.shortfalls())}
    if arguments.json:
        print(json.dumps([asdict(margin) | {name: getattr(margin, name) for name in RATIOS} for margin in margins]))
    elif arguments.markdown:
        print("\n".join(_page_lines(margins)))
    else:
        _print(margins)
        for name, reasons in lacking.items():
            print(f"{name}: {'; '.join(reasons)}")
    return 1 if lacking else 0


def _see_that_it_is_there(name: str) -> None:
    device: Device = plugins.load("kernel_gym.devices", name)()
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{name} cannot be used here: {reason}")


def _named(name: str) -> tuple[Task, ...]:
    single = name.endswith(".py") or ("/" in name and not Path(name).is_dir())
    return (suites.find_task(name),) if single else suites.load_suite(name)


def _measured(arguments: argparse.Namespace) -> dict[str, Margin]:
    """Return what the file has already; rows of `--quick` lack the slowest kernel."""
    from kernel_gym.experiments.analysis.oracle_margins import Margin

    rows = read_results(arguments.out, Margin)
    rows = [row for row in rows if row.device == arguments.device]
    return {row.task: row for row in rows if arguments.quick or row.naive or row.oracle != "feasible"}


def _by_category(margins: list[Margin]) -> dict[tuple[str, str], list[Margin]]:
    groups: defaultdict[tuple[str, str], list[Margin]] = defaultdict(list)
    for margin in margins:
        groups[margin.suite, margin.category].append(margin)
    return dict(sorted(groups.items()))


def _page_lines(margins: list[Margin]) -> Iterator[str]:
    """Yield the lines of a Markdown table: how far oracles are from the floor or from torch, by category."""
    beside = any(margin.torch_us for margin in margins)
    columns = {"over_torch": "torch", "over_torch_float32": "torch in float32"} if beside else {"over_floor": "floor"}
    titles = [f"oracle / {title}: least | median | most" for title in columns.values()]
    titles += ["no slower than torch"] if beside else []
    yield f"| suite | category | judged | feasible | {' | '.join(titles)} |"
    yield "|---" * (4 + 3 * len(columns) + beside) + "|"
    rows = [(f"`{suite}`", category, group) for (suite, category), group in _by_category(margins).items()]
    for suite, category, group in [*rows, *([("all", "", margins)] if beside else [])]:
        feasible = [margin for margin in group if margin.oracle == "feasible"]
        cells = [cell for name in columns for cell in _range(_ratios(feasible, name))]
        cells += [str(sum(ratio <= 1 for ratio in _ratios(feasible, "over_torch")))] if beside else []
        yield f"| {suite} | {category} | {len(group)} | {len(feasible)} | {' | '.join(cells)} |"


def _ratios(margins: list[Margin], name: str) -> list[float]:
    """Return the ratios of one name that were measured, sorted."""
    return sorted(ratio for margin in margins if (ratio := getattr(margin, name)) is not None)


def _print(margins: list[Margin]) -> None:
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
        "floors: least",
        "median",
        "most",
        *(("torch: least", "median", "most") if any(margin.torch_us for margin in margins) else ()),
        box=None,
    )
    for (suite, category), group in _by_category(margins).items():
        table.add_row(suite, category, *_counts(group))
    table.add_row("all", "", *_counts(margins))
    console = Console()
    console.width = max(console.width, 120)
    console.print(table)


def _counts(group: list[Margin]) -> Iterator[str]:
    spreads, launches, floors, over_torch = (
        _ratios(group, name) for name in ("spread", "launches", "over_floor", "over_torch")
    )
    yield str(len(group))
    yield str(sum(margin.oracle == "feasible" for margin in group))
    yield str(sum(spread >= 1 for spread in spreads))
    yield from _range(spreads)
    yield f"{launches[0]:.1f}" if launches else ""
    yield from _range(floors)
    if over_torch:
        yield from _range(over_torch)


def _range(ratios: list[float]) -> Iterator[str]:
    """Yield the least, the median and the largest of sorted ratios."""
    for place in (0, len(ratios) // 2, len(ratios) - 1):
        yield f"{ratios[place]:.1f}" if ratios else ""
