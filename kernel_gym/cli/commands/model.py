"""Install a language model on this machine, list and remove installed ones, print where one is."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kernel_gym.llm.local import installation

EXAMPLES = """
kernel-gym model install
kernel-gym model list
kernel-gym model path
kernel-gym model remove
kernel-gym train --author local --suite level1 --tasks relu --budget 3 --out runs/local
kernel-gym train --author local --model FILE.gguf --suite level1 --tasks relu --budget 3 --out runs/mine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = installation.DEFAULT.about
    install = commands.add_parser("install", help=f"download a model (default: {about}, 1.12 GB); resumes")
    commands.add_parser("list", help="list the models that can be installed and those that are")
    path = commands.add_parser("path", help="print the file of an installed model")
    remove = commands.add_parser("remove", help="delete an installed model")
    for command in (install, path, remove):
        command.add_argument("name", nargs="?", default="", help=f"the model (default: {installation.DEFAULT.name})")


def run(arguments: argparse.Namespace) -> int:
    """Do what the sub-command says."""
    if arguments.command == "list":
        return _list()
    if arguments.command == "install":
        return _install(arguments.name)
    if arguments.command == "remove":
        print(f"removed {installation.remove(arguments.name)}")
    else:
        print(installation.existing_file(arguments.name))
    return 0


def _list() -> int:
    present = {path.stem: path for path in installation.installed()}
    for name, source in installation.SOURCES.items():
        state = f"installed: {present[name]}" if name in present else "not installed"
        print(f"{name}  {source.about}, {source.total_bytes / 1e9:.2f} GB; {state}")
    for name, path in present.items():
        if name not in installation.SOURCES:
            print(f"{name}  {path.stat().st_size / 1e9:.2f} GB; {path}")
    return 0


def _install(name: str) -> int:
    source = installation.source(name)
    started = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task(source.name, total=source.total_bytes)
        file = installation.install(source, lambda done, total: bar.update(line, completed=done, total=total))
    print(f"{file}  {source.about}; size and SHA-256 are right; {time.monotonic() - started:.0f} s")
    return 0
