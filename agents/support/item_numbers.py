"""Numbers for memory items that stay unique with fresh memory, where every episode reuses the same ids."""

from __future__ import annotations

from collections import defaultdict
from itertools import count


class ItemNumbers:
    """Gives every memory item a number of its own.

    The number of an item that every episode starts with is its id. An item that belongs to one episode gets a number
    below 0, never the same twice. An episode is identified by its task, so two simultaneous episodes of one task count
    as one.

    Args:
        lasting: Ids up to this one mean the same item in every episode. None, for shared memory: all ids do.
    """

    def __init__(self, lasting: int | None = None) -> None:
        self._lasting = lasting
        self._own: dict[str, dict[int, int]] = defaultdict(dict)
        self._new = count(-1, -1)

    def number(self, task: str, id: int) -> int:
        """Return the number of the item that has this id in the present episode of a task."""
        if self._lasting is None or id <= self._lasting:
            return id
        own = self._own[task]
        if id not in own:
            own[id] = next(self._new)
        return own[id]

    def begin_episode(self, task: str) -> frozenset[int]:
        """Begin a new episode of a task. Returns the numbers of the last episode's own items, now out of use."""
        return frozenset(self._own.pop(task, {}).values())
