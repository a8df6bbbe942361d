"""Calling a function for several arguments at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


def concurrent_calls(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], at_once: int
) -> list[Result]:
    """Call `function` for each argument, `at_once` calls at a time.

    An error cancels the calls that have not begun. It is raised when the calls under way have returned, because their
    answers may have been paid for. Ctrl-C returns at once; its threads do not keep the process alive.

    Args:
        function: Called in a thread, unless there is nothing to do in parallel.
        arguments: One for each call.
        at_once: Number of threads.

    Returns:
        The results in the order of the arguments.
    """
    if at_once == 1 or len(arguments) <= 1:
        return [function(argument) for argument in arguments]
    waiting: SimpleQueue[tuple[Future[Result], Argument]] = SimpleQueue()
    futures: list[Future[Result]] = []
    for argument in arguments:
        futures.append(Future())
        waiting.put((futures[-1], argument))
    threads = [Thread(target=_work_off, args=(function, waiting), daemon=True) for _ in arguments[:at_once]]
    for thread in threads:
        thread.start()
    try:
        return [future.result() for future in futures]
    except BaseException as error:
        for future in futures:
            future.cancel()
        if isinstance(error, Exception):
            for thread in threads:
                thread.join()
        raise


def _work_off(function: Callable[[Argument], Result], waiting: SimpleQueue[tuple[Future[Result], Argument]]) -> None:
    for future, argument in _taken(waiting):
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(argument))
            except BaseException as error:
                # Waiting calls come later in the order, so this error is the first in order.
                for later, _ in _taken(waiting):
                    later.cancel()
                future.set_exception(error)


def _taken(waiting: SimpleQueue[tuple[Future[Result], Argument]]) -> Iterator[tuple[Future[Result], Argument]]:
    while True:
        try:
            yield waiting.get_nowait()
        except Empty:
            return
