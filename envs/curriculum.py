"""Which task comes next.

A curriculum is a function that orders the tasks for one round; when a round is over the next begins. Ours are
`sequential` (as given), `mixed` (shuffled anew each round) and `levels` (level by level, as given within a level); one
of your own is given as a function or as `module:function`. Where several tasks are worked on at once, `whole_levels`
says how many keep levels apart.
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
    """In the order given, every round."""
    return tasks


def mixed(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
    """In an order of its own each round."""
    return [tasks[i] for i in rng.permutation(len(tasks))]


def levels(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
    """Level by level; tasks without a level come last."""
    return sorted(tasks, key=lambda task: (task.level is None, task.level or 0))


def whole_levels(tasks: Sequence[Task]) -> int:
    """The most tasks that can be worked on at once with no level begun before the one before it is done."""
    return gcd(*Counter(task.level for task in tasks).values())


ORDERS: dict[str, Order] = {"sequential": sequential, "mixed": mixed, "levels": levels}


class Curriculum:
    """Deals out tasks, round after round."""

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
        """The next task."""
        if not self._ahead:
            rng = generator(self._seed, "curriculum", self._round)
            self._ahead = list(self._order(self.tasks, self._round, rng))
            self._round += 1
            if not self._ahead:
                raise ConfigError("the curriculum gave an empty round; it must name at least one task")
        return self._ahead.pop(0)

    def named(self, task: str) -> Task:
        """The task with an id or alias, out of turn."""
        for known in self.tasks:
            if task in (known.id, f"{known.suite}/{known.number}"):
                return known
        raise TaskError(f"task {task!r} is not one of this environment's: {', '.join(t.id for t in self.tasks[:8])}")


def _named(order: str) -> Order:
    if order in ORDERS:
        return ORDERS[order]
    if ":" not in order:
        raise ConfigError(f"unknown curriculum {order!r}; known: {', '.join(ORDERS)}; or write module:function")
    found: Order = plugins.imported(order)
    if not callable(found):
        raise ConfigError(f"curriculum {order!r} is no function (tasks, round, rng) -> tasks in order")
    return found
