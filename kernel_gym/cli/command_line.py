"""What all command lines share: bad input is one line on stderr and exit status 2, Ctrl-C is quiet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from kernel_gym.errors import KernelGymError


def parser(description: str, examples: str) -> argparse.ArgumentParser:
    """An argument parser whose help ends with examples."""
    return argparse.ArgumentParser(
        description=description,
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run(main: Callable[[], int]) -> NoReturn:
    """Run a command line's `main` and leave with its exit status."""
    try:
        status = main()
    except KernelGymError as error:
        print(f"{sys.argv[0].rpartition('/')[2]}: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        sys.stderr.close()
        status = 0
    except OSError as error:  # a file or folder that is missing, a disk that is full
        print(f"{sys.argv[0].rpartition('/')[2]}: {_in_words(error)}", file=sys.stderr)
        status = 2
    sys.exit(status)


def _in_words(error: OSError) -> str:
    reason = " ".join((error.strerror or str(error) or type(error).__name__).split())
    return f"{error.filename}: {reason.lower()}" if error.filename is not None else reason


def count(text: str) -> int:
    """A number of things, at least one."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def words(text: str) -> tuple[str, ...]:
    """A comma-separated list of names."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
