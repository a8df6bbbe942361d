"""The command `kernel-gym`: runs the sub-commands, and prints the help, the version and the shell completion."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn, cast

from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import Command
from kernel_gym.version import __version__

PROG = "kernel-gym"
DESCRIPTION = "Kernel synthesis as a Gymnasium environment: write, verify and time kernels, train and compare agents."

#: The commands by group, each with one line for `kernel-gym --help`.
GROUPS: dict[str, dict[str, str]] = {
    "this machine": {
        "doctor": "check this machine, with a self-test",
        "model": "install a language model on this machine",
        "completion": "print the completion script of a shell",
    },
    "tasks and kernels": {
        "suite": "list, show and audit tasks",
        "author": "print the kernel that an author writes",
        "verify": "verify a kernel: compile, check, time",
        "export": "write a kernel as a bundle for the vendor's toolchain",
        "attack": "attack the verifier with every known way to cheat",
        "serve": "serve verdicts over HTTP",
    },
    "runs": {
        "train": "train one agent and write a run folder",
        "compare": "train several agents on the same tasks and seeds",
        "evaluate": "evaluate trained agents on unseen tasks",
        "study": "run a named study",
        "pretrain": "train a network on forecasts, for the agent `trained`",
        "leaderboard": "compare agents on held-out tasks and authors",
    },
    "results": {
        "report": "write the HTML report of a run or study",
        "validate": "verify the kernels of a run again",
        "dataset": "export the attempts of runs as JSON lines",
        "memory": "list, search, export and check memory banks",
    },
    "analysis": {
        "credit": "compute what each memory did to a run's attempts",
        "author-validity": "compare a model with the simulated author",
        "gates": "count at which gates an author's drafts end",
        "oracles": "verify the best and the slowest kernel of every task",
        "placebo": "fit the skill of the placebo author",
        "fidelity": "compare verdicts and latencies with those of hardware",
        "calibrate": "compare the simulator's timing with measurements",
        "forecast": "renew and validate the forecast environment",
        "bench": "measure verdicts, memory, author and attempts",
        "bench-cuda": "measure verdicts on an NVIDIA GPU",
    },
}
#: Commands of earlier versions, each with what to use instead.
REMOVED = {"tabular": "the tabular environment was removed: `kernel-gym forecast renew` measures for its successor"}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the sub-command that the command line names, and exit with its status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in COMMANDS:
        command_line.execute(load(words[0]), words[1:], f"{PROG} {words[0]}")
    command_line.run(lambda: _answer(words), PROG)


def _answer(words: list[str]) -> int:
    """Answer a command line that names no sub-command, and return the exit status."""
    if words and words[0] in ("-h", "--help"):
        print(overview(), flush=True)
    elif words and words[0] == "--version":
        print(PROG, __version__)
    else:
        print(f"{PROG}: {_unknown(words[0])}" if words else overview(), file=sys.stderr)
        return 2
    return 0


def script(name: str) -> NoReturn:
    """Run a sub-command as a script of `scripts/`, which keeps the script's name in its messages."""
    command_line.execute(load(name))


def load(name: str) -> Command:
    """Return the module of a sub-command."""
    folder = "analysis" if name in GROUPS["analysis"] else "commands"
    return cast(Command, import_module(f"kernel_gym.cli.{folder}.{name.replace('-', '_')}"))


def overview() -> str:
    """Return the text of `kernel-gym --help`."""
    width = max(map(len, COMMANDS))
    lines = [f"usage: {PROG} [--help] [--version] COMMAND ...", "", DESCRIPTION]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:{width}}  {line}" for name, line in commands.items())]
    return "\n".join([*lines, "", f"`{PROG} COMMAND --help` lists the options of a command, with examples."])


def parser() -> argparse.ArgumentParser:
    """Return one parser for all sub-commands, which completion scripts are made from."""
    whole = argparse.ArgumentParser(prog=PROG, description=DESCRIPTION)
    whole.add_argument("--version", action="version", version=f"{PROG} {__version__}", help="print the version")
    commands = whole.add_subparsers(metavar="COMMAND")
    for name, line in COMMANDS.items():
        command_line.describe(commands.add_parser(name, help=line), load(name))
    return whole


def _unknown(name: str) -> str:
    if name in REMOVED:
        return REMOVED[name]
    near = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"{PROG} --help lists the commands"
    return f"unknown {'option' if name.startswith('-') else 'command'} {name!r}; {hint}"
