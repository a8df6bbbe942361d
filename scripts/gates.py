#!/usr/bin/env python
"""How far an author's first drafts come: the share that ends at each gate, by profile, suite and category."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice, zip_longest

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, Unsupported, lower, oracle, profile_names
from kernel_gym.authors.contract import Context, Note
from kernel_gym.cli import command_line
from kernel_gym.errors import ConfigError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from kernel_gym.verifier import Verifier

EXAMPLES = """
scripts/gates.py --sample 20 --tries 1
scripts/gates.py --suites level1 --tasks relu,softmax --profiles weak,middle,strong --tries 20 --json
"""
ENDS = ("uncompilable", "fault", "mismatch", "timeout", "refused", "cheated", "feasible")
#: What 1,032 kernels of language models that reached the compiler came to on a real NPU.
REAL = {"uncompilable": 487, "mismatch": 279, "fault": 70, "timeout": 62, "feasible": 134}

#: Profile, suite, category and what was shown.
Key = tuple[str, str, str, str]


def main() -> int:
    """Judge drafts with an empty context and with the oracle's kernel shown, and print where they end.

    Verdicts are kept, so a run that was stopped goes on where it was.
    """
    arguments = _arguments()
    tasks = [task for name in command_line.words(arguments.suites) for task in _tasks(name, arguments)]
    profiles = command_line.words(arguments.profiles)
    counts: dict[Key, Counter[str]] = {}
    with Verifier(AscendSim(), workers=arguments.workers) as verifier:
        for task in track(tasks, "judging", console=Console(stderr=True), disable=arguments.json):
            for profile in profiles:
                for shown, context in _contexts(task):
                    drafts = [_draft(profile, task, context, seed) for seed in range(arguments.tries)]
                    verdicts = verifier.verify_all([(draft, task) for draft in drafts])
                    key = (profile, task.suite, task.category, shown)
                    counts.setdefault(key, Counter()).update(_end(verdict) for verdict in verdicts)
    _print(counts, arguments.json)
    return 0


def _arguments() -> argparse.Namespace:
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("--suites", default="level1,level2", help="suites or folders of problem files")
    parser.add_argument("--tasks", default="", help="names in the suites; default: all that the apprentice can lower")
    parser.add_argument("--sample", type=int, help="so many tasks of each suite, spread over its categories")
    parser.add_argument("--profiles", default="weak,middle,strong", help=f"of {', '.join(profile_names())}")
    parser.add_argument("--tries", type=int, default=1, help="drafts for each task, profile and context")
    parser.add_argument("--workers", type=int, default=1, help="devices side by side")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    return parser.parse_args()


def _tasks(suite: str, arguments: argparse.Namespace) -> Iterator[Task]:
    wanted = command_line.words(arguments.tasks)
    found = [task for task in suites.load_suite(suite) if not wanted or task.name in wanted]
    if not found:
        raise ConfigError(f"no task {', '.join(wanted)} in {suite}")
    yield from islice(filter(_lowers, _spread(found)), arguments.sample)


def _spread(tasks: list[Task]) -> list[Task]:
    """The tasks in an order whose beginnings have all categories, and within them first, middle and last ones."""
    groups = [[task for task in tasks if task.category == name] for name in sorted({t.category for t in tasks})]
    rng = np.random.default_rng(0)
    shuffled = [[group[int(n)] for n in rng.permutation(len(group))] for group in groups]
    return [task for rank in zip_longest(*shuffled) for task in rank if task is not None]


def _lowers(task: Task) -> bool:
    try:
        lower(task)
    except Unsupported:
        return False
    return True


def _contexts(task: Task) -> list[tuple[str, Context]]:
    source = oracle(task).source
    return [("empty", ()), ("oracle", (Note("trace", source, source, Feasible("Correct.", latency=1.0)),))]


def _draft(profile: str, task: Task, context: Context, seed: int) -> Kernel:
    return Apprentice(profile).write(task, context, None, np.random.default_rng([seed, task.number or 0]))


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome


def _print(counts: dict[Key, Counter[str]], as_json: bool) -> None:
    if as_json:
        names = ("profile", "suite", "category", "shown")
        rows = [{**dict(zip(names, key, strict=True)), **ends} for key, ends in sorted(counts.items())]
        print(json.dumps({"drafts": rows, "real": REAL}))
        return
    table = Table("profile", "suite", "category", "shown", "drafts", *ENDS, box=None)
    for key, ends in sorted((counts | _totals(counts)).items()):
        table.add_row(*key, str(sum(ends.values())), *_shares(ends))
    table.add_row("real models", "", "all", "one example", str(sum(REAL.values())), *_shares(Counter(REAL)))
    console = Console()
    console.width = max(console.width, 130)
    console.print(table)


def _totals(counts: dict[Key, Counter[str]]) -> dict[Key, Counter[str]]:
    """All categories of a suite together."""
    totals: dict[Key, Counter[str]] = {}
    for (profile, suite, _, shown), ends in counts.items():
        totals.setdefault((profile, suite, "all", shown), Counter()).update(ends)
    return totals


def _shares(ends: Counter[str]) -> list[str]:
    total = sum(ends.values())
    return [f"{100 * ends[end] / total:.0f}%" if ends[end] else "" for end in ENDS]


if __name__ == "__main__":
    command_line.run(main)
