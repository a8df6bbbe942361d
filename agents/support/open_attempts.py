"""Attempts that have begun and not ended yet, for agents that keep something of their own for each.

Several benches may be at work on one task, and an agent isn't told at which one it acts. An attempt is found again by
its state, the start point and the items picked so far: two attempts in the same state are alike, so either will do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

State = tuple[int | None, tuple[int, ...]]

#: Attempts remembered for a task. An agent isn't told the end of all: the oldest are forgotten.
REMEMBERED = 1024


class OpenAttempts(Generic[T]):
    """What an agent keeps for each attempt under way, by task."""

    def __init__(self) -> None:
        self._by_task: dict[str, list[tuple[State, T]]] = defaultdict(list)

    def begin(self, task: str, start: int | None, picked: Sequence[int], kept: T) -> None:
        """An attempt begins, or is met for the first time."""
        here = self._by_task[task]
        here.append(((start, tuple(picked)), kept))
        del here[:-REMEMBERED]

    def find(self, task: str, start: int | None, picked: Sequence[int]) -> T | None:
        """What is kept for the attempt in this state; None if it isn't known."""
        place = self._place(task, (start, tuple(picked)))
        return None if place is None else self._by_task[task][place][1]

    def move(self, task: str, start: int | None, picked: Sequence[int], kept: T) -> None:
        """The attempt for which `kept` is kept comes into another state."""
        here = self._by_task[task]
        place = next(place for place, (_, one) in enumerate(here) if one is kept)
        here[place] = (start, tuple(picked)), kept

    def end(self, task: str, start: int | None, picked: Sequence[int]) -> T | None:
        """The attempt in this state has ended: what was kept for it is given back and forgotten."""
        place = self._place(task, (start, tuple(picked)))
        return None if place is None else self._by_task[task].pop(place)[1]

    def _place(self, task: str, state: State) -> int | None:
        """The newest in the state; the only one under way is meant whatever became of it."""
        here = self._by_task.get(task, [])
        if len(here) == 1:
            return 0
        return next((place for place in reversed(range(len(here))) if here[place][0] == state), None)
