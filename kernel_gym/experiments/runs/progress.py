"""Progress with the time left: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from kernel_gym.experiments.studies.study import Failure

#: Seconds between two lines of a log.
LOG_EVERY = 60.0


class Show(Protocol):
    """Says how far it is."""

    def __call__(self, done: int, total: int, title: str | None = None) -> None: ...


@contextmanager
def bar(title: str, console: Console, already: int = 0) -> Iterator[Show]:
    """A bar that appears with the first news: what refuses its input before says nothing but why."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as begun:
        drawn = Progress(*columns, console=console)
        line = drawn.add_task(title, completed=already)

        def show(done: int, total: int, title: str | None = None) -> None:
            if not drawn.live.is_started:
                begun.enter_context(drawn)
            drawn.update(line, completed=done, total=total, description=title)

        yield show


@contextmanager
def shown(title: str, already: int) -> Iterator[Callable[[int, int], None]]:
    """A function that takes attempts made and attempts in all; `already` of them were there before and took no time."""
    if not sys.stderr.isatty():
        yield _logged(title, already)
        return
    with bar(title, Console(stderr=True), already) as show:
        yield show


def _logged(title: str, already: int) -> Callable[[int, int], None]:
    begin = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < LOG_EVERY:
            return
        last = now
        print(
            f"{title}: {done} of {total} attempts, {_left(done - already, total - done, now - begin)}", file=sys.stderr
        )

    return show


def _left(made: int, missing: int, seconds: float) -> str:
    """The time left at the speed so far."""
    if made <= 0:
        return "time left unknown"
    minutes = missing * seconds / made / 60
    return f"about {minutes / 60:.1f} hours left" if minutes >= 100 else f"about {minutes:.0f} minutes left"


def named_failures(failures: Sequence[Failure]) -> int:
    """Name on stderr what failed; the exit status of a command."""
    for failure in failures:
        print(f"{failure.shard} failed: {failure.reason}", file=sys.stderr)
    return 1 if failures else 0
