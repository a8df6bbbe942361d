"""One attempt: the picks, the kernel, its verdict and its reward."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Verdict


@dataclass(frozen=True)
class Attempt:
    """A finished attempt, as `info["attempt"]` and `Agent.learn` give it.

    Attributes:
        task: Id of the task.
        category: Category of the task.
        stage: Whether the attempt drafted or refined a kernel.
        index: Number of the attempt in its episode, from 0.
        context: Ids of the picked items, in the order of the picks.
        start: Id of the start point; in drafting that of the attempt that was mended, None for a new draft.
        api_pages: Ids of the API pages that the environment added to the context.
        kernel: The kernel that the author wrote.
        verdict: The verifier's verdict on it.
        reward: The reward of the verdict.
        best_us: Best latency of the task before the attempt; None while there is none.
        produced: Ids of the items that joined the bank, the trace first.
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
