"""State that an agent stores for each attempt between its first pick and its end.

Several episodes of one task may run side by side, and an agent does not know which of them it acts in. So an attempt is
found by its state: the start point and the items picked so far. Two attempts in the same state are interchangeable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

State = tuple[int, tuple[int, ...]]

#: Attempts stored for a task. An agent does not learn the end of every attempt, so the oldest are dropped.
REMEMBERED = 1024


class OpenAttempts(Generic[T]):
    """Stores a value for each open attempt, by task and state."""

    def __init__(self) -> None:
        self._by_task: dict[str, list[tuple[State, T]]] = defaultdict(list)

    def begin(self, task: str, start: int | None, picked: Sequence[int], stored: T) -> None:
        """Store a value for an attempt that begins, or that is seen for the first time."""
        attempts = self._by_task[task]
        attempts.append((_state(start, picked), stored))
        del attempts[:-REMEMBERED]

    def find(self, task: str, start: int | None, picked: Sequence[int]) -> T | None:
        """Return what is stored for the attempt in this state; None if there is none."""
        index = self._index(task, _state(start, picked))
        return None if index is None else self._by_task[task][index][1]

    def move(self, task: str, start: int | None, picked: Sequence[int], stored: T) -> None:
        """Give the attempt for which `stored` is stored a new state."""
        attempts = self._by_task[task]
        index = next(index for index, (_, value) in enumerate(attempts) if value is stored)
        attempts[index] = _state(start, picked), stored

    def end(self, task: str, start: int | None, picked: Sequence[int]) -> T | None:
        """Remove the attempt in this state. Returns what was stored for it; None if there is none."""
        index = self._index(task, _state(start, picked))
        return None if index is None else self._by_task[task].pop(index)[1]

    def _index(self, task: str, state: State) -> int | None:
        """Return the index of the newest attempt in the state; a task's only attempt matches any state."""
        attempts = self._by_task.get(task, [])
        if len(attempts) == 1:
            return 0
        return next((index for index in reversed(range(len(attempts))) if attempts[index][0] == state), None)


def _state(start: int | None, picked: Sequence[int]) -> State:
    # No start point is 0 in `info` and None in an `Attempt`.
    return start or 0, tuple(picked)
