#!/usr/bin/env python
"""Judge the best and the slowest kernel that the apprentice knows for every task, and print what lies between them.

The slowest is the naive one: one core, small tiles, one buffer, a launch for every operator. Where that would run past
what a device executes, it is the best one on a single core.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym import suites
from kernel_gym.authors.apprentice import Unsupported, lower, naive, oracle
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import fluent
from kernel_gym.cli import command_line
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.suites.headroom import LAUNCHES, SPREAD, exceptions
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from kernel_gym.verifier import Verifier

EXAMPLES = """
scripts/oracles.py level1 level2
scripts/oracles.py level1/softmax level1/19 --json
"""


@dataclass(frozen=True)
class Margin:
    """What was measured for one task: how each kernel ended, and microseconds."""

    task: str
    suite: str
    category: str
    oracle: str
    naive: str = ""
    fast_us: float | None = None
    slow_us: float | None = None
    launch_us: float | None = None
    feedback: str = ""

    @property
    def spread(self) -> float | None:
        """How many times as long the slowest kernel takes."""
        return self.slow_us / self.fast_us if self.slow_us and self.fast_us else None

    @property
    def launches(self) -> float | None:
        """The oracle's latency in units of what one launch costs."""
        return self.fast_us / self.launch_us if self.fast_us and self.launch_us else None

    def lacking(self) -> dict[str, str]:
        """What this task falls short of, by the name of the promise."""
        found = {} if self.oracle == "feasible" else {"oracle": f"no oracle: {self.feedback}"}
        if self.spread is not None and self.spread < SPREAD:
            found["spread"] = f"the slowest kernel takes only {self.spread:.2f} times as long"
        if self.launches is not None and self.launches < LAUNCHES:
            found["launch"] = f"the oracle takes only {self.launches:.1f} times what a launch costs"
        return found

    def shortfalls(self) -> list[str]:
        """What this task falls short of and is not listed as an exception for."""
        return [text for promise, text in self.lacking().items() if promise not in exceptions(self.task)]


def main() -> int:
    """Judge, print a line for each category, and name every shortfall; exit 1 if there is one."""
    arguments = _arguments()
    tasks = [task for name in arguments.names for task in _named(name)]
    with Verifier(AscendSim()) as verifier:
        shown = track(tasks, "judging", console=Console(stderr=True), disable=arguments.json)
        margins = [_told(measure(task, verifier, quick=arguments.quick), arguments) for task in shown]
    lacking = {margin.task: found for margin in margins if (found := margin.shortfalls())}
    if arguments.json:
        print(
            json.dumps([asdict(margin) | {"spread": margin.spread, "launches": margin.launches} for margin in margins])
        )
    else:
        _print(margins)
        for task, found in lacking.items():
            print(f"{task}: {'; '.join(found)}")
    return 1 if lacking else 0


def _arguments() -> argparse.Namespace:
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("names", nargs="*", default=list(suites.SUITES), help="suites, folders or single tasks")
    parser.add_argument("--quick", action="store_true", help="judge the oracles alone")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append what is measured to a file, task by task")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    return parser.parse_args()


def _named(name: str) -> tuple[Task, ...]:
    single = name.endswith(".py") or ("/" in name and not Path(name).is_dir())
    return (suites.find_task(name),) if single else suites.load_suite(name)


def _told(margin: Margin, arguments: argparse.Namespace) -> Margin:
    if arguments.out:
        with arguments.out.open("a") as file:
            file.write(json.dumps(asdict(margin)) + "\n")
    return margin


def measure(task: Task, verifier: Verifier, *, quick: bool = False) -> Margin:
    """Judge the kernels of a task."""
    named = (task.id, task.suite, task.category)
    try:
        fast = verifier.verify(oracle(task), task)
    except Unsupported as error:
        return Margin(*named, "unsupported", feedback=str(error))
    if not isinstance(fast, Feasible):
        return Margin(*named, _end(fast), feedback=fast.feedback)
    launch = fast.profile.waits["launch"] / fast.profile.counts["launches"]
    if quick:
        return Margin(*named, "feasible", "", fast.latency_us, None, launch)
    name, slow = _slowest(task, verifier)
    return Margin(*named, "feasible", name, fast.latency_us, slow.latency_us, launch)


def _slowest(task: Task, verifier: Verifier) -> tuple[str, Verdict]:
    slow = verifier.verify(naive(task), task)
    if slow.feasible:
        return "naive", slow
    alone = write_kernel(lower(task), replace(BEST, cores=1), fluent(idioms()))
    slow = verifier.verify(Kernel(alone, trusted=True), task)
    return ("one core" if slow.feasible else _end(slow)), slow


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome


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


if __name__ == "__main__":
    command_line.run(main)
