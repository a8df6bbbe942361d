"""Print the script that completes `kernel-gym` in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = """
kernel-gym completion bash > ~/.local/share/bash-completion/completions/kernel-gym
kernel-gym completion zsh > ~/.zsh/completions/_kernel-gym
kernel-gym completion tcsh > ~/.kernel-gym.completion.csh
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="whose script to print")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from kernel_gym.cli.main import parser

    whole = parser()
    for action in _actions(whole):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(whole, arguments.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of all its sub-commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
