"""Asking an author for several kernels at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


def side_by_side(ask: Callable[[Question], Answer], questions: Sequence[Question], at_once: int) -> list[Answer]:
    """The answers in order, `at_once` questions under way at a time.

    An error stops what has not begun and is raised once the answers under way have arrived: they were paid for. Ctrl-C
    leaves at once; threads that wait for an answer don't keep the process alive.
    """
    if at_once == 1 or len(questions) <= 1:
        return [ask(question) for question in questions]
    waiting: SimpleQueue[tuple[Future[Answer], Question]] = SimpleQueue()
    futures: list[Future[Answer]] = []
    for question in questions:
        futures.append(Future())
        waiting.put((futures[-1], question))
    threads = [Thread(target=_work_off, args=(ask, waiting), daemon=True) for _ in questions[:at_once]]
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


def _work_off(ask: Callable[[Question], Answer], waiting: SimpleQueue[tuple[Future[Answer], Question]]) -> None:
    for future, question in _taken(waiting):
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(ask(question))
            except BaseException as error:
                # Whatever still waits comes later in the order, so the error is what the caller meets first.
                for unasked, _ in _taken(waiting):
                    unasked.cancel()
                future.set_exception(error)


def _taken(waiting: SimpleQueue[tuple[Future[Answer], Question]]) -> Iterator[tuple[Future[Answer], Question]]:
    while True:
        try:
            yield waiting.get_nowait()
        except Empty:
            return
