"""Telling items apart where ids don't: with fresh memory, every episode gives the items of its own the same ids."""

from __future__ import annotations

from collections import defaultdict
from itertools import count


class ItemNumbers:
    """The number of an item, for those who keep something by item: its id, unless other items have the same one.

    Ids up to `lasting` are of items that every episode begins with; those above it are each episode's own, and get
    numbers below 0, never the same twice. With None, as in shared memory, all ids last. An episode is known by its
    task: two of one task at the same time are taken for one.
    """

    def __init__(self, lasting: int | None = None) -> None:
        self._lasting = lasting
        self._own: dict[str, dict[int, int]] = defaultdict(dict)
        self._new = count(-1, -1)

    def number(self, task: str, id: int) -> int:
        """The number of the item that has this id in the episode of a task."""
        if self._lasting is None or id <= self._lasting:
            return id
        own = self._own[task]
        if id not in own:
            own[id] = next(self._new)
        return own[id]

    def begin_episode(self, task: str) -> frozenset[int]:
        """An episode of the task begins: the numbers of the last one's items, which nobody meets again."""
        return frozenset(self._own.pop(task, {}).values())
