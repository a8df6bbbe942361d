"""How fast the memory is: figures for `make bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import numpy as np

from kernel_gym.memory.bank import Bank
from kernel_gym.memory.embedding import StaticEmbedder, Vectors
from kernel_gym.memory.item import Kind, MemoryItem, Stage

QUERY = "softmax over the last dimension of a batch of rows, numerically stable"


class RandomEmbedder:
    """Random unit vectors, so that a large bank is filled in seconds and only the search is measured."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._rng = np.random.default_rng(0)

    def identity(self) -> str:
        """Names the settings."""
        return f"random/{self.dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One random row per text."""
        rows = self._rng.standard_normal((len(texts), self.dimension), np.float32)
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def benchmark(sizes: tuple[int, ...] = (2_000, 20_000, 100_000), repeats: int = 30) -> dict[str, float]:
    """Median milliseconds of embedding a text and of top-64 searches in banks of several sizes."""
    return _embedding(repeats) | {name: ms for size in sizes for name, ms in _searching(size, repeats).items()}


def _embedding(repeats: int) -> dict[str, float]:
    embedder = StaticEmbedder(remember=1)
    text = (QUERY + "; LocalTensor<float> rowMax = workQueue.AllocTensor<float>();\n") * 20
    texts = iter([f"{text[: 2048 - 8]} {i}" for i in range(repeats + 1)])
    embedder.embed([next(texts)])
    return {"embed_2kB_ms": _milliseconds(lambda: embedder.embed([next(texts)]), repeats)}


def _searching(size: int, repeats: int) -> dict[str, float]:
    with Bank(None, RandomEmbedder(StaticEmbedder().dimension)) as bank:
        bank.add([MemoryItem(Kind.TRACE, f"trace {i}", f"text {i}", task=f"level1/{i % 100}") for i in range(size)])
        bank.retrieve(QUERY, 64)
        return {
            f"top64_of_{size}_ms": _milliseconds(lambda: bank.retrieve(QUERY, 64), repeats),
            f"top64_of_{size}_filtered_ms": _milliseconds(
                lambda: bank.retrieve(QUERY, 64, (Kind.TRACE,), exclude=range(1, 20), language="ascendc"), repeats
            ),
            f"add_to_{size}_ms": _milliseconds(
                lambda: bank.add([MemoryItem(Kind.TRACE, "new", f"new {len(bank)}")]), repeats
            ),
            f"record_8_of_{size}_ms": _milliseconds(lambda: bank.record(Stage.DRAFT, range(1, 9), 1.0), repeats),
        }


def _milliseconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return round(1e3 * median(times), 3)
