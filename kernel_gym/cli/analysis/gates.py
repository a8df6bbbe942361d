"""Count at which gates an author's first drafts end, by profile, suite and category."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import PROFILES

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.draft_gates import Key

EXAMPLES = """
kernel-gym gates --sample 20 --tries 1
kernel-gym gates --suites level1 --tasks relu,softmax --profiles weak,middle,strong --tries 20 --json
"""
ENDS = ("uncompilable", "fault", "mismatch", "timeout", "refused", "cheated", "feasible")
#: The outcomes of 1,032 kernels of language models that reached the compiler, on a real NPU.
REAL = {"uncompilable": 487, "mismatch": 279, "fault": 70, "timeout": 62, "feasible": 134}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--suites", default="level1,level2", help="suites or folders of problem files")
    parser.add_argument("--tasks", default="", help="names in the suites; default: all that the apprentice can lower")
    command_line.add_trust_argument(parser)
    parser.add_argument("--sample", type=int, help="number of tasks of each suite, spread over its categories")
    parser.add_argument("--profiles", default="weak,middle,strong", help=f"of {', '.join(PROFILES)}")
    parser.add_argument("--tries", type=int, default=1, help="drafts for each task, profile and context")
    parser.add_argument("--workers", type=int, default=1, help="verifications at once")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Judge drafts and print the share that ends at each gate. Verdicts are cached: run it again to resume."""
    from kernel_gym.experiments.analysis.draft_gates import count_ends, sample_tasks
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.verifier import Verifier

    names = command_line.words(arguments.tasks)
    suites = command_line.words(arguments.suites)
    tasks = [task for suite in suites for task in sample_tasks(suite, names, arguments.sample)]
    counts: dict[Key, Counter[str]] = {}
    with Verifier(AscendSim(), workers=arguments.workers) as verifier:
        for task in track(tasks, "judging", console=Console(stderr=True), disable=arguments.json):
            for profile in command_line.words(arguments.profiles):
                for key, ends in count_ends(task, profile, arguments.tries, verifier):
                    counts.setdefault(key, Counter()).update(ends)
    _print(counts, arguments.json)
    return 0


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
    """Return the counts over all categories of each suite."""
    totals: dict[Key, Counter[str]] = {}
    for (profile, suite, _, shown), ends in counts.items():
        totals.setdefault((profile, suite, "all", shown), Counter()).update(ends)
    return totals


def _shares(ends: Counter[str]) -> list[str]:
    total = sum(ends.values())
    return [f"{100 * ends[end] / total:.0f}%" if ends[end] else "" for end in ENDS]
