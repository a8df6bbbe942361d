"""One attempt: the picks, the kernel, its verdict and its reward."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Verdict


@dataclass(frozen=True)
class Attempt:
    """What `learn` is told once an attempt is over.

    `context` holds the ids of the picked items in order, `start` the id of the start point in refining, `api_pages` the
    ids of what the environment added. `produced` holds the ids of the items that joined the bank. `best_us` is the best
    latency before the attempt (None while drafting).
    """

    task: str
    category: str
    stage: Stage
    index: int
    context: tuple[int, ...]
    start: int | None
    api_pages: tuple[int, ...]
    kernel: Kernel
    verdict: Verdict
    reward: float
    best_us: float | None
    produced: tuple[int, ...]
