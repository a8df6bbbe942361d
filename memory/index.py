"""Exact nearest-neighbour search over the items of a bank.

The index is one float32 matrix in memory, which grows with the bank, and a few columns to filter by. A query is one
matrix-vector product and a partial sort. It takes milliseconds for 1e5 items, so the search need not be approximate.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel_gym.memory.embedding import Vectors
from kernel_gym.memory.item import Kind

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Entry:
    """The columns of an item that searches filter by."""

    kind: str
    task: str
    category: str
    language: str
    feasible: bool


@dataclass(frozen=True)
class Filter:
    """Conditions on the items that a search returns; None means any value."""

    kinds: Collection[Kind] | None = None
    task: str | None = None
    category: str | None = None
    language: str | None = None
    feasible: bool | None = None
    exclude: Collection[int] = ()


class Index:
    """Vectors and filter columns of items 1, 2, 3, ...; row `id - 1` is item `id`."""

    def __init__(self, dimension: int) -> None:
        self._matrix = np.zeros((0, dimension), np.float32)
        self._columns = {name: np.zeros(0, np.int32) for name in Entry.__dataclass_fields__}
        self._codes: dict[str, int] = {}
        self.size = 0

    def append(self, entry: Entry, vector: Vectors) -> None:
        """Add the item with the next id."""
        if self.size == len(self._matrix):
            self._grow(max(1024, 2 * self.size))
        self._matrix[self.size] = vector
        for name, column in self._columns.items():
            value = getattr(entry, name)
            column[self.size] = int(value) if name == "feasible" else self._codes.setdefault(value, len(self._codes))
        self.size += 1

    def vectors(self, ids: Collection[int]) -> Vectors:
        """Return the vectors of items, one row each."""
        return self._matrix[np.fromiter(ids, np.intp, len(ids)) - 1]

    def similarities(self, query: Vectors) -> Vectors:
        """Return the cosine similarity of every item to the query, rounded to six places.

        Further places depend on the processor. `np.vecdot` computes row by row. `@` would use threads, which wait for
        each other on busy cores, and may sum a row in another order when the matrix has grown.
        """
        products: Vectors = np.vecdot(self._matrix[: self.size], query)
        return np.round(products, 6)

    def top(self, query: Vectors, k: int, where: Filter) -> list[tuple[int, float]]:
        """Return ids and similarities of the `k` most similar items that meet `where`; ties are ordered by id."""
        scores, rows = self.similarities(query), self._passing(where)
        if rows is None:
            rows = np.arange(self.size)
        else:
            scores = scores[rows]
        if k < len(rows):
            # Items that tie with the k-th stay until the sort below orders them by id.
            kth = np.partition(scores, len(scores) - k)[len(scores) - k] if k > 0 else np.inf
            near = np.flatnonzero(scores >= kth)
            rows, scores = rows[near], scores[near]
        order = np.lexsort((rows, -scores))[:k]
        return list(zip((rows[order] + 1).tolist(), scores[order].tolist(), strict=True))

    def _passing(self, where: Filter) -> Rows | None:
        masks = [
            self._columns[name][: self.size] == self._codes.get(value, -1)
            for name in ("task", "category", "language")
            if (value := getattr(where, name)) is not None
        ]
        if where.kinds is not None:
            masks.append(
                np.isin(self._columns["kind"][: self.size], [self._codes.get(kind, -1) for kind in where.kinds])
            )
        if where.feasible is not None:
            masks.append(self._columns["feasible"][: self.size] == int(where.feasible))
        if where.exclude:
            masks.append(self._outside(where.exclude))
        return np.flatnonzero(np.logical_and.reduce(masks)) if masks else None

    def _outside(self, exclude: Collection[int]) -> NDArray[np.bool_]:
        mask = np.ones(self.size, np.bool_)
        mask[[id - 1 for id in exclude if 1 <= id <= self.size]] = False
        return mask

    def _grow(self, capacity: int) -> None:
        self._matrix = np.concatenate(
            [self._matrix, np.zeros((capacity - len(self._matrix), self._matrix.shape[1]), np.float32)]
        )
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column, np.zeros(capacity - len(column), np.int32)])
