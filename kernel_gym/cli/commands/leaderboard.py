"""Enter an agent into the benchmark on held-out tasks and authors, check a result, print the standings.

`run` runs the agent on forecasts and writes its result, `check` makes the choices of the journals again and computes
the result anew, and `table` prints the standings of several entries.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from kernel_gym.cli import command_line

EXAMPLES = """
kernel-gym leaderboard run similarity-feasible --out runs/board/similarity-feasible --workers 2
kernel-gym leaderboard run my_agents:MyAgent --set depth=3 --out runs/board/mine
kernel-gym leaderboard check runs/board/mine
kernel-gym leaderboard table runs/board/*
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run an agent and write its result; the same command goes on")
    run.add_argument("agent", help="the agent's name, or module:Class")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the agent")
    run.add_argument("--out", type=Path, required=True, help="folder of the entry")
    run.add_argument("--workers", type=int, default=1, help="runs at once (default: 1)")
    check = commands.add_parser("check", help="compute a result anew from its journals")
    check.add_argument("out", type=Path, help="folder of the entry")
    table = commands.add_parser("table", help="print the standings")
    table.add_argument("entries", type=Path, nargs="+", help="folders of entries")


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    return {"run": _run, "check": _check, "table": _table}[arguments.command](arguments)


def _run(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.analysis import leaderboard

    options = dict(_option(word) for word in arguments.set)
    leaderboard.enter(arguments.agent, options, arguments.out, arguments.workers, lambda name: print(name, flush=True))
    print(leaderboard.table([leaderboard.read_result(arguments.out)]), end="")
    return 0


def _option(word: str) -> tuple[str, object]:
    name, separator, value = word.partition("=")
    if not separator or not name:
        raise command_line.UsageError(f"--set takes NAME=VALUE, not {word!r}")
    return name, yaml.safe_load(value)


def _check(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.analysis import leaderboard

    problems = leaderboard.check(arguments.out)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{arguments.out}: every attempt repeats, and the result is right")
    return int(bool(problems))


def _table(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.analysis import leaderboard

    print(leaderboard.table([leaderboard.read_result(entry) for entry in arguments.entries]), end="")
    return 0
