"""Measures the speed of the memory bank.

Figures, all in milliseconds: embedding a text of 2 kB, and in banks of several sizes a search for the 64 most similar
items (repeated, first-time and filtered), adding an item, and recording an outcome of 8 items.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import count
from time import perf_counter

import numpy as np

from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder, Vectors
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Uncompilable

QUERY = "softmax over the last dimension of a batch of rows, numerically stable"
VERDICT = Uncompilable("")


class RandomEmbedder:
    """Returns a random unit vector for each text, so that a large bank is filled in seconds."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def identity(self) -> str:
        """Return a name for the settings."""
        return f"random/{self._dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; equal texts have equal rows."""
        seeds = [zlib.crc32(text.encode()) for text in texts]
        rows = np.stack([np.random.default_rng(seed).standard_normal(self._dimension, np.float32) for seed in seeds])
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def benchmark(sizes: tuple[int, ...] = (2_000, 20_000, 100_000), repeats: int = 30) -> dict[str, float]:
    """Measure embedding, searching and writing.

    Args:
        sizes: Items of the banks.
        repeats: Measurements of each figure. The fastest one counts, because other processes only slow it down.

    Returns:
        Milliseconds by name.
    """
    return _embedding(repeats) | {name: ms for size in sizes for name, ms in _searching(size, repeats).items()}


def _embedding(repeats: int) -> dict[str, float]:
    embedder, number = StaticEmbedder(remember=1), count()
    text = (QUERY + "; LocalTensor<float> rowMax = workQueue.AllocTensor<float>();\n") * 20
    return {"embed_2kB_ms": _milliseconds(lambda: embedder.embed([f"{text[:2040]} {next(number)}"]), repeats)}


def _searching(size: int, repeats: int) -> dict[str, float]:
    number = count()
    with MemoryBank(None, RandomEmbedder(StaticEmbedder().dimension)) as bank:
        tasks = [f"level1/{i % 100}" for i in range(size)]
        bank.add([MemoryItem(Kind.TRACE, f"{i}", f"text {i}", "", VERDICT, task) for i, task in enumerate(tasks)])
        bank.retrieve(QUERY, 64)
        calls: dict[str, Callable[[], object]] = {
            "top64": lambda: bank.retrieve(QUERY, 64),
            "top64_first_time": lambda: bank.retrieve(f"{QUERY} {next(number)}", 64),
            "top64_filtered": lambda: bank.retrieve(QUERY, 64, (Kind.TRACE,), range(1, 20), language="ascendc"),
            "add": lambda: bank.add([MemoryItem(Kind.TRACE, "new", f"new {next(number)}", verdict=VERDICT)]),
            "record_8": lambda: bank.record(Stage.DRAFT, range(1, 9), 1.0),
        }
        return {f"{name}_of_{size}_ms": _milliseconds(call, repeats) for name, call in calls.items()}


def _milliseconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return round(1e3 * min(times), 3)
