#!/usr/bin/env python
"""How far an author's first drafts come: the share that ends at each gate, by profile and category."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym import command_line, suites
from kernel_gym.errors import ConfigError
from kernel_gym.generators.apprentice import Apprentice, Unsupported, lower, oracle, profile_names
from kernel_gym.generators.contract import Context, Note
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from kernel_gym.verifier import Verifier

EXAMPLES = """
scripts/gates.py --suite level1 --tries 4
scripts/gates.py --suite level1 --tasks relu,softmax --profiles weak,middle,strong --tries 20 --json
"""
ENDS = ("uncompilable", "fault", "mismatch", "timeout", "refused", "cheated", "feasible")
#: What 1,032 kernels of language models that reached the compiler came to on a real NPU.
REAL = {"uncompilable": 487, "mismatch": 279, "fault": 70, "timeout": 62, "feasible": 134}


def main() -> int:
    """Judge drafts with an empty context and with the oracle's kernel shown, and print where they end."""
    arguments = _arguments()
    tasks = list(_tasks(arguments))
    profiles = command_line.words(arguments.profiles)
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    with Verifier(AscendSim(), workers=arguments.workers) as verifier:
        for task in track(tasks, "judging", console=Console(stderr=True)):
            for profile in profiles:
                for shown, context in _contexts(task):
                    drafts = [_draft(profile, task, context, seed) for seed in range(arguments.tries)]
                    verdicts = verifier.verify_all([(draft, task) for draft in drafts])
                    key = (profile, task.category, shown)
                    counts.setdefault(key, Counter()).update(_end(verdict) for verdict in verdicts)
    _print(counts, arguments.json)
    return 0


def _arguments() -> argparse.Namespace:
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("--suite", default="level1", help="a suite or a folder of problem files")
    parser.add_argument("--tasks", default="", help="names in the suite; default: all that the apprentice can lower")
    parser.add_argument("--profiles", default="weak,middle,strong", help=f"of {', '.join(profile_names())}")
    parser.add_argument("--tries", type=int, default=4, help="drafts for each task, profile and context")
    parser.add_argument("--workers", type=int, default=1, help="devices side by side")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    return parser.parse_args()


def _tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    wanted = command_line.words(arguments.tasks)
    found = [task for task in suites.suite(arguments.suite) if not wanted or task.name in wanted]
    missing = set(wanted) - {task.name for task in found}
    if missing:
        raise ConfigError(f"no task {', '.join(sorted(missing))} in {arguments.suite}")
    for task in found:
        try:
            lower(task)
        except Unsupported:
            continue
        yield task


def _contexts(task: Task) -> list[tuple[str, Context]]:
    source = oracle(task).source
    return [("empty", ()), ("oracle", (Note("trace", source, source, Feasible("Correct.", latency=1.0)),))]


def _draft(profile: str, task: Task, context: Context, seed: int) -> Kernel:
    return Apprentice(profile).write(task, context, None, np.random.default_rng([seed, task.number or 0]))


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome


def _print(counts: dict[tuple[str, str, str], Counter[str]], as_json: bool) -> None:
    if as_json:
        rows = [{"profile": p, "category": c, "shown": s, **n} for (p, c, s), n in sorted(counts.items())]
        print(json.dumps({"drafts": rows, "real": REAL}))
        return
    table = Table("profile", "category", "shown", *ENDS, box=None)
    for (profile, category, shown), ends in sorted(counts.items()):
        table.add_row(profile, category, shown, *_shares(ends))
    table.add_row("real models", "all", "one example", *_shares(Counter(REAL)))
    console = Console()
    console.width = max(console.width, 110)
    console.print(table)


def _shares(ends: Counter[str]) -> list[str]:
    total = sum(ends.values())
    return [f"{100 * ends[end] / total:.0f}%" if ends[end] else "" for end in ENDS]


if __name__ == "__main__":
    command_line.run(main)
