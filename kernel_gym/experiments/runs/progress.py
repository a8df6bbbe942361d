"""Show progress with the time left: a bar on a terminal, a line per minute in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Seconds between two lines in a log.
LOG_EVERY = 60.0


class ShowProgress(Protocol):
    """Shows how many of the parts of some work are done."""

    def __call__(self, done: int, total: int, title: str | None = None) -> None: ...


@contextmanager
def bar(title: str, console: Console, already: int = 0) -> Iterator[ShowProgress]:
    """Yield a function that updates a progress bar, which appears with the first update.

    So a command that refuses its input prints nothing but the reason.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        progress = Progress(*columns, console=console)
        line = progress.add_task(title, completed=already)

        def show(done: int, total: int, title: str | None = None) -> None:
            if not progress.live.is_started:
                stack.enter_context(progress)
            progress.update(line, completed=done, total=total, description=title)

        yield show


@contextmanager
def show_progress(title: str, already: int) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the attempts made and the attempts in all; `already` were made before."""
    if not sys.stderr.isatty():
        yield _log_progress(title, already)
        return
    with bar(title, Console(stderr=True), already) as show:
        yield show


def _log_progress(title: str, already: int) -> Callable[[int, int], None]:
    begin = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < LOG_EVERY:
            return
        last = now
        print(
            f"{title}: {done} of {total} attempts, {_time_left(done - already, total - done, now - begin)}",
            file=sys.stderr,
        )

    return show


def _time_left(finished: int, missing: int, seconds: float) -> str:
    """Return the time left at the speed so far."""
    if finished <= 0:
        return "time left unknown"
    minutes = missing * seconds / finished / 60
    return f"about {minutes / 60:.1f} hours left" if minutes >= 100 else f"about {minutes:.0f} minutes left"
