"""The tasks of the problem files that clients send.

Loading a file runs it many times, for minutes if it is slow. So few files are loaded at a time, fewer of one client,
and those that wait count against the client's share of the queue. A file that several requests send is loaded once,
and it goes on loading if they go away.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakValueDictionary

from fastapi.concurrency import run_in_threadpool

from kernel_gym.suites.problem_files import load_file
from kernel_gym.tasks.task import Task

#: Files that are loaded at a time, those of one client among them, and tasks that are remembered.
LOADING, OF_ONE_CLIENT, REMEMBERED = 4, 2, 256


class ProblemTasks:
    """Loads problem files; used by the event loop alone.

    Args:
        place: Holds a place of a client in the queue while a file waits or is loaded; raises if there is none.
    """

    def __init__(self, place: Callable[[str], AbstractContextManager[None]]) -> None:
        self._place = place
        self._room = asyncio.Semaphore(LOADING)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._loads: dict[str, asyncio.Task[Task]] = {}
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    async def load(self, source: str, client: str) -> Task:
        """Return the task of a problem file's text.

        Raises:
            KernelGymError: The file cannot be loaded, or the client's share of the queue is full.
        """
        if source in self._tasks:
            self._tasks.move_to_end(source)
            return self._tasks[source]
        if source not in self._loads:
            self._loads[source] = asyncio.create_task(self._load(source, client))
            self._loads[source].add_done_callback(lambda load: self._end(source, load))
        return await asyncio.shield(self._loads[source])

    async def _load(self, source: str, client: str) -> Task:
        turn = self._turns.setdefault(client, asyncio.Semaphore(OF_ONE_CLIENT))
        with self._place(client):
            async with turn, self._room:
                return await run_in_threadpool(task_of_text, source)

    def _end(self, source: str, load: asyncio.Task[Task]) -> None:
        del self._loads[source]
        if not load.cancelled() and load.exception() is None:
            self._tasks[source] = load.result()
            if len(self._tasks) > REMEMBERED:
                self._tasks.popitem(last=False)


def task_of_text(source: str) -> Task:
    """Return the task of a problem file's text; its code runs confined, even if this process trusts its own files."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.py"
        path.write_bytes(source.encode(errors="replace"))  # JSON can hold halves of characters
        return load_file(path)
