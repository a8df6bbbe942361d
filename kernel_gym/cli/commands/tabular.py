"""Make a table for the tabular environment: kernels of a few tasks with their real verdicts.

Rounds of play on the current table find the kernels that the author would write and the table lacks. Those that are
needed most often are written, judged and added, until the table has enough kernels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import UsageError
from kernel_gym.envs.options import Options

if TYPE_CHECKING:
    from kernel_gym.envs.tabular.table_builder import TableBuilder

EXAMPLES = """
kernel-gym tabular --tasks relu,sigmoid --kernels 100 --out relu.json.xz
kernel-gym tabular --renew relu.json.xz --out renewed.json.xz
"""
ROOT = Path(__file__).resolve().parents[3]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--suite", default="level1", help="where the tasks are from")
    parser.add_argument("--tasks", type=command_line.words, default=(), help="names, separated by commas")
    command_line.add_trust_argument(parser)
    parser.add_argument("--renew", metavar="TABLE", help="write and judge the kernels of this table anew instead")
    parser.add_argument("--kernels", type=int, default=300, help="how many to judge in all")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of play in which they are found")
    parser.add_argument(
        "--attempts",
        type=int,
        default=2000,
        help="attempts played a round, for each profile, on shared and on fresh memory",
    )
    parser.add_argument("--profiles", type=command_line.words, default=("middle", "strong"), help="authors who play")
    parser.add_argument("--out", type=Path, required=True, help="the file, ending in .json.xz")


def run(arguments: argparse.Namespace) -> int:
    """Make the table and print what it covers."""
    if bool(arguments.tasks) == bool(arguments.renew):
        raise UsageError("name either --tasks or a table to --renew")

    from kernel_gym.authors.apprentice import Apprentice
    from kernel_gym.authors.apprentice.tabular.table import load
    from kernel_gym.envs import factories
    from kernel_gym.envs.tabular.table_builder import TableBuilder

    old = load(arguments.renew) if arguments.renew else None
    names = [task.id for task in old.tasks] if old else arguments.tasks
    options, tasks = Options(suite=arguments.suite), [suites.find_task(name, arguments.suite) for name in names]
    judge = factories.verifier(options)
    try:
        builder = TableBuilder(tasks, judge, factories.embedder(options))
        if old:
            builder.renew(old, lambda line: print(line, file=sys.stderr, flush=True))
            _, covered = _played(builder, arguments, arguments.rounds)
        else:
            covered = _grown(builder, arguments)
        builder.table.provenance = {
            "commit": _commit(),
            "device": judge.device.identity() if hasattr(judge, "device") else "",
            "author": Apprentice(arguments.profiles[0]).identity(),
            "embedder": factories.embedder(options).identity(),
            "command": old.provenance["command"] if old else _command(arguments),
            "coverage": covered,
        }
        builder.table.save(arguments.out)
    finally:
        judge.close()
    size = arguments.out.stat().st_size
    rows = sum(len(task.rows) for task in builder.table.tasks)
    print(f"{rows} kernels of {len(tasks)} tasks, {size / 1e3:.0f} kB")
    for name, text in covered.items():
        print(f"{name}: {text}")
    return 0


def _grown(builder: TableBuilder, arguments: argparse.Namespace) -> dict[str, str]:
    """Play and verify in turns; return what the table covers at the end."""
    for number in range(arguments.rounds):
        missing, _ = _played(builder, arguments, number)
        left = arguments.kernels - sum(len(task.rows) for task in builder.table.tasks)
        builder.grow(missing, -(-left // (arguments.rounds - number)), lambda line: None)
    return _played(builder, arguments, arguments.rounds)[1]


def _played(builder: TableBuilder, arguments: argparse.Namespace, number: int) -> tuple[Counter[Any], dict[str, str]]:
    """Play one round; return which kernels the table lacks, and how often it had them all."""
    from kernel_gym.authors.apprentice import load_profile

    missing: Counter[Any] = Counter()
    covered = {}
    for name in arguments.profiles:
        for memory in ("shared", "fresh"):
            played = builder.play(load_profile(name), arguments.attempts, number, memory=memory, budget=10)
            absent, coverage = builder.missing_kernels(played)
            missing.update(absent)
            covered[f"{name}, {memory}"] = str(coverage)
            print(f"round {number}, {name}, {memory}: {coverage}", file=sys.stderr, flush=True)
    return missing, covered


def _command(arguments: argparse.Namespace) -> str:
    return (
        f"kernel-gym tabular --suite {arguments.suite} --tasks {','.join(arguments.tasks)} "
        f"--kernels {arguments.kernels} --rounds {arguments.rounds} --attempts {arguments.attempts}"
    )


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
