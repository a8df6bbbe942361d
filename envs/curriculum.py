"""The order in which tasks are worked on.

A curriculum is a function that orders the tasks for one round; when a round is over, the next begins. There are
`sequential` (as given), `mixed` (shuffled anew each round) and `levels` (level by level, as given within a level).
Another one is given as a function or named as `module:function`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import gcd

import numpy as np

from kernel_gym import plugins
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import ConfigError, TaskError
from kernel_gym.tasks.task import Task

Order = Callable[[Sequence[Task], int, np.random.Generator], Sequence[Task]]


def sequential(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
    """Return the tasks as given."""
    return tasks


def mixed(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
    """Return the tasks shuffled, differently each round."""
    return [tasks[i] for i in rng.permutation(len(tasks))]


def levels(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
    """Return the tasks level by level; tasks without a level come last."""
    return sorted(tasks, key=lambda task: (task.level is None, task.level or 0))


def whole_levels(tasks: Sequence[Task]) -> int:
    """Return the most tasks that can be worked on at once so that each level is finished before the next begins."""
    return gcd(*Counter(task.level for task in tasks).values())


ORDERS: dict[str, Order] = {"sequential": sequential, "mixed": mixed, "levels": levels}


class Curriculum:
    """Gives out tasks, round after round."""

    def __init__(self, tasks: Sequence[Task], order: str | Order = "sequential") -> None:
        if not tasks:
            raise ConfigError("no tasks: name a suite or give a list of tasks")
        self.tasks = tuple(tasks)
        self._order = _named(order) if isinstance(order, str) else order
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Go back to the first task of the first round."""
        self._seed, self._round = seed, 0
        self._ahead: list[Task] = []

    def next(self) -> Task:
        """Return the next task."""
        if not self._ahead:
            rng = generator(self._seed, "curriculum", self._round)
            self._ahead = list(self._order(self.tasks, self._round, rng))
            self._round += 1
            if not self._ahead:
                raise ConfigError("the curriculum gave an empty round; it must name at least one task")
        return self._ahead.pop(0)

    def named(self, task: str) -> Task:
        """Return the task with an id or alias, out of turn."""
        for candidate in self.tasks:
            if task in (candidate.id, f"{candidate.suite}/{candidate.number}"):
                return candidate
        raise TaskError(f"task {task!r} is not one of this environment's: {', '.join(t.id for t in self.tasks[:8])}")


def _named(order: str) -> Order:
    if order in ORDERS:
        return ORDERS[order]
    if ":" not in order:
        raise ConfigError(f"unknown curriculum {order!r}; known: {', '.join(ORDERS)}; or write module:function")
    function: Order = plugins.imported(order)
    if not callable(function):
        raise ConfigError(f"curriculum {order!r} is no function (tasks, round, rng) -> tasks in order")
    return function
