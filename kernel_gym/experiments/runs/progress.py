"""Show progress: how much is done, the time left and what is at work; a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import logging
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from kernel_gym import activity

#: Seconds between two lines in a log.
LOG_EVERY = 60.0
#: Seconds between two samples of the speed: the attempts of a batch end together and are one sample.
SAMPLE_EVERY = 0.1
#: The share of the way that an update moves the estimate of the time left.
SMOOTHING = 0.3


class ShowProgress(Protocol):
    """Shows how many of the parts of some work are done."""

    def __call__(self, done: int, total: int, title: str | None = None) -> None: ...


class TimeLeft:
    """The time left of some work, estimated from the speed of the latest half of it.

    Each update moves the estimate a part of the way to what the latest speed gives; in between it counts down.

    Args:
        already: The parts that were done before; they say nothing about the speed.
        clock: Returns the seconds that passed since some moment.
    """

    def __init__(self, already: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._already, self._clock = already, clock
        self._times: list[float] = []
        self._counts: list[int] = []
        self._end: float | None = None

    def update(self, done: int, total: int) -> None:
        """Note how many of the parts are done."""
        now = self._clock()
        if done >= total:
            self._end = now
            return
        if done < self._already or (self._times and (now - self._times[-1] < SAMPLE_EVERY or done == self._counts[-1])):
            return
        self._times.append(now)
        self._counts.append(done)
        if len(self._times) == 1:
            return
        first = max(0, bisect_right(self._counts, (done + self._counts[0]) // 2) - 1)
        first = min(first, len(self._times) - 2)
        seconds = (now - self._times[first]) * (total - done) / (done - self._counts[first])
        self._end = now + seconds if self._end is None else self._end + SMOOTHING * (now + seconds - self._end)

    def seconds(self) -> float | None:
        """Return the seconds left, or None while nothing is known about the speed."""
        return None if self._end is None else max(0.0, self._end - self._clock())


class _AtWork(logging.Handler):
    """Keeps the latest activity of this process and of the runs in other processes, in words."""

    def __init__(self, notify: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.text = ""
        self._notify = notify
        self._attempts: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's text, with the run and the attempt that it belongs to."""
        run, task = str(getattr(record, "run", "")), str(getattr(record, "task", ""))
        attempt = int(getattr(record, "attempt", 0))
        text = record.getMessage()
        if attempt:
            self._attempts[run + task] = attempt
        elif task and (number := self._attempts.get(run + task)):
            text = text.replace(f"{task}:", f"{task}, attempt {number}:", 1)
        self.text = f"{run}: {text}" if run else text
        self._notify()


@contextmanager
def activity_handler(handler: logging.Handler) -> Iterator[None]:
    """Pass the records of this process's activity to a handler."""
    level = activity.LOGGER.level
    activity.LOGGER.addHandler(handler)
    activity.LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        activity.LOGGER.removeHandler(handler)
        activity.LOGGER.setLevel(level)


class _TimeLeftColumn(ProgressColumn):
    """The time left as hours, minutes and seconds."""

    def __init__(self, left: TimeLeft) -> None:
        super().__init__()
        self._left = left

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        seconds = self._left.seconds()
        return Text("-:--:--" if seconds is None else str(timedelta(seconds=round(seconds))))


class _WorkColumn(ProgressColumn):
    """What is at work."""

    def __init__(self, work: _AtWork) -> None:
        super().__init__()
        self._work = work

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        return Text("" if task.finished else self._work.text, style="dim", overflow="ellipsis", no_wrap=True)


@contextmanager
def bar(title: str, console: Console, already: int = 0) -> Iterator[ShowProgress]:
    """Yield a function that updates a progress bar.

    The bar appears with the first update, on a terminal with the first preparation. One that ends before the first
    update disappears, so a command that refuses its input leaves nothing but the reason.
    """

    def begin() -> None:
        if not progress.live.is_started:
            stack.enter_context(progress)

    left, work = TimeLeft(already), _AtWork(begin if console.is_terminal else lambda: None)
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(_TimeLeftColumn(left), _WorkColumn(work)),
    )
    with ExitStack() as stack:
        progress = Progress(*columns, console=console, transient=True)
        line = progress.add_task(title, completed=already, total=None)
        stack.enter_context(activity_handler(work))

        def show(done: int, total: int, title: str | None = None) -> None:
            begin()
            progress.live.transient = False
            left.update(done, total)
            progress.update(line, completed=done, total=total, description=title)

        yield show


@contextmanager
def show_progress(title: str, already: int = 0, unit: str = "attempts") -> Iterator[ShowProgress]:
    """Yield a function that takes the attempts (or other units) done and those in all; `already` were done before."""
    if sys.stderr.isatty():
        with bar(title, Console(stderr=True), already) as show:
            yield show
    else:
        with _log(title, already, unit) as show:
            yield show


@dataclass
class _Log:
    """The state of some work, in one line of a log."""

    title: str
    unit: str
    left: TimeLeft
    work: _AtWork
    counts: tuple[int, int] | None = None

    def __str__(self) -> str:
        parts = ["preparing"] if self.counts is None else [f"{self.counts[0]} of {self.counts[1]} {self.unit}"]
        if self.counts is not None:
            parts.append(_words(self.left.seconds()))
        return f"{self.title}: {', '.join(parts)}" + (f"; {self.work.text}" if self.work.text else "")


@contextmanager
def _log(title: str, already: int, unit: str) -> Iterator[ShowProgress]:
    """Print a line a minute, also while nothing is finished, so that the log shows what takes the time."""
    log = _Log(title, unit, TimeLeft(already), _AtWork())
    ended = Event()

    def show(done: int, total: int, title: str | None = None) -> None:
        log.left.update(done, total)
        log.counts, log.title = (done, total), title or log.title

    def print_lines() -> None:
        while not ended.wait(LOG_EVERY):
            print(log, file=sys.stderr, flush=True)

    printer = Thread(target=print_lines, name="kernel-gym-progress", daemon=True)
    printer.start()
    try:
        with activity_handler(log.work):
            yield show
    finally:
        ended.set()
        printer.join()


def _words(seconds: float | None) -> str:
    if seconds is None:
        return "time left unknown"
    minutes = seconds / 60
    return f"about {minutes / 60:.1f} hours left" if minutes >= 100 else f"about {minutes:.0f} minutes left"
