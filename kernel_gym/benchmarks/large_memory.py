"""Measures a memory bank of a million items: its file, opening it, the first and further searches, memory.

The bank is filled as runs fill it, with random vectors of 256 numbers in place of embedded texts. It is opened and
searched in a process of its own, whose largest resident memory is one of the figures.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from kernel_gym.benchmarks.memory_speed import QUERY, VERDICT, RandomEmbedder
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Kind, MemoryItem

#: Items that one transaction adds, and characters of an item's text.
BATCH, CHARACTERS = 10_000, 400
DIMENSION = 256


def benchmark(size: int = 1_000_000, repeats: int = 10) -> dict[str, float]:
    """Measure a bank in a file.

    Args:
        size: Items of the bank.
        repeats: Searches of each kind; the median counts.

    Returns:
        Microseconds to add an item, bytes of the file for an item, seconds to open the bank and search once,
        milliseconds of further searches, and resident memory in MB.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bank.sqlite"
        begin = perf_counter()
        _fill(path, size)
        filled = perf_counter() - begin
        figures = {
            f"large_memory_add_us_of_{size}": 1e6 * filled / size,
            "large_memory_bytes_per_item": path.stat().st_size / size,
        }
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return figures | process.submit(_search, path, size, repeats).result()


def _fill(path: Path, size: int) -> None:
    text = (QUERY + "; ") * (CHARACTERS // len(QUERY))
    with MemoryBank(path, RandomEmbedder(DIMENSION)) as bank:
        for begin in range(0, size, BATCH):
            numbers = range(begin, min(size, begin + BATCH))
            bank.add(
                [MemoryItem(Kind.TRACE, f"{i}", f"{text} {i}", "", VERDICT, f"level1/{i % 1000}") for i in numbers]
            )


def _search(path: Path, size: int, repeats: int) -> dict[str, float]:
    number, before = count(), _resident_mb()
    begin = perf_counter()
    with MemoryBank(path, RandomEmbedder(DIMENSION), read_only=True) as bank:
        opened = perf_counter() - begin
        bank.retrieve(QUERY, 64)
        loaded = perf_counter() - begin
        plain = median_ms(lambda: bank.retrieve(f"{QUERY} {next(number)}", 64), repeats)
        filtered = median_ms(lambda: bank.retrieve(f"{QUERY} {next(number)}", 64, task="level1/7"), repeats)
    return {
        f"large_memory_open_s_of_{size}": opened,
        f"large_memory_first_search_s_of_{size}": loaded,
        f"large_memory_top64_ms_of_{size}": plain,
        f"large_memory_top64_of_a_task_ms_of_{size}": filtered,
        f"large_memory_resident_mb_of_{size}": _resident_mb() - before,
    }


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """Return the median of the milliseconds of several calls."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return 1e3 * sorted(times)[repeats // 2]
