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
    sys.exit(status)


def words(text: str) -> tuple[str, ...]:
    """A comma-separated list of names."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
