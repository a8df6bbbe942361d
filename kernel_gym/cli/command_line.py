"""What all commands share: how they are parsed, how they end, and the types of their options.

Bad input is one line on stderr and exit status 2. Ctrl-C and SIGTERM print one line and exit with status 130.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, Protocol

from kernel_gym.errors import KernelGymError
from kernel_gym.suites.problem_files import TRUST


class UsageError(KernelGymError):
    """Raised for options that do not go together; the usage is printed above the message."""


class Failed(KernelGymError):
    """Raised if a command ran and has no result; the exit status is 1."""


#: The end of the message about an interrupted command that loses nothing.
GOES_ON = "the same command goes on"


class Command(Protocol):
    """A module of `kernel_gym.cli.commands` or `kernel_gym.cli.analysis`.

    Its docstring is the description, EXAMPLES is the end of the help.

    A command that loses nothing when it is interrupted sets `RESUMES = True`.
    """

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options to the parser."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command and return its exit status."""


def describe(parser: argparse.ArgumentParser, command: Command) -> argparse.ArgumentParser:
    """Give a parser the description, the options and the examples of a command."""
    parser.description = command.__doc__
    parser.epilog = "examples:\n" + "\n".join(f"  {line}" for line in command.EXAMPLES.strip().splitlines())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_arguments(parser)
    return parser


def execute(command: Command, words: Sequence[str] | None = None, prog: str | None = None) -> NoReturn:
    """Parse the command line, run the command, and exit with its status."""
    parser = describe(argparse.ArgumentParser(prog=prog), command)

    def main() -> int:
        arguments = parser.parse_args(words)
        try:
            return command.run(arguments)
        except UsageError as error:
            parser.error(str(error))
        except KeyboardInterrupt:
            if getattr(command, "RESUMES", False):
                raise KeyboardInterrupt(GOES_ON) from None
            raise

    run(main, parser.prog)


def run(main: Callable[[], int], prog: str | None = None) -> NoReturn:
    """Run `main` and exit with its status; an error that a user can mend is one line that begins with `prog`."""
    prog = prog or sys.argv[0].rpartition("/")[2]
    try:
        with _terminable():
            status = main()
    except KernelGymError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        status = 1 if isinstance(error, Failed) else 2
    except KeyboardInterrupt as interrupt:
        print(": ".join(("interrupted", *map(str, interrupt.args))), file=sys.stderr)
        status = 130
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        sys.stderr.close()
        status = 0
    except OSError as error:  # a file or folder that is missing, a disk that is full
        print(f"{prog}: {_message(error)}", file=sys.stderr)
        status = 2
    sys.exit(status)


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: `timeout`, batch systems and containers send it.

    Only the first one counts: `timeout` sends two, one to the process and one to its group.
    """

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _message(error: OSError) -> str:
    reason = " ".join((error.strerror or str(error) or type(error).__name__).split())
    return f"{error.filename}: {reason.lower()}" if error.filename is not None else reason


def count(text: str) -> int:
    """Parse a positive whole number."""
    if not re.fullmatch("0*[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


class _Trust(argparse.Action):
    """Sets `$KERNEL_GYM_TRUST`, which worker processes inherit."""

    def __call__(self, *_: object) -> None:
        os.environ[TRUST] = "1"


def add_trust_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets problem files run without confinement."""
    words = "run the code of .py problem files in this process, unconfined: for files that you trust"
    parser.add_argument("--trust", action=_Trust, nargs=0, help=f"{words} (also {TRUST}=1)")


def words(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of names."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
