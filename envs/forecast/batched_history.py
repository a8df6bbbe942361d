"""What the attempts of an episode have shown, as sets of words in bits, and shares of such sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.envs.forecast.items import Bits, Items, Numbers
from kernel_gym.verdict import Verdict


class BatchedHistory:
    """`History` with words as bits and kinds of failure as numbers."""

    def __init__(self) -> None:
        self.kernel_words = self.failure_words = np.zeros(0, np.uint64)
        self.failures, self.outcomes = Counter[int](), Counter[str]()
        #: The share of the failures that are of each kind; the last place stays empty.
        self.failure_shares = np.zeros(1)

    def add(self, items: Items, verdict: Verdict, traces: Sequence[int]) -> None:
        """Count an attempt; `traces` has the place of its trace, if that joined the memory."""
        self.outcomes[verdict.outcome] += 1
        for place in traces:
            self.kernel_words = _union(self.kernel_words, items.known_words[place])
        if not verdict.feasible:
            self.failure_words = _union(self.failure_words, items.message_words(verdict.feedback))
            self.failures[items.failure_number(verdict)] += 1
            counts = np.zeros(2 + max(self.failures))
            counts[list(self.failures)] = list(self.failures.values())
            self.failure_shares = counts / self.failures.total()


def repeated(histories: Sequence[BatchedHistory], codes: NDArray[np.int64]) -> Numbers:
    """Return the share of each history's failures that are of each of these kinds; -1 is no failure."""
    shares = np.zeros((len(histories), max(len(history.failure_shares) for history in histories)))
    for row, history in zip(shares, histories, strict=True):
        row[: len(history.failure_shares)] = history.failure_shares
    known = np.where(codes < shares.shape[1] - 1, codes, -1)
    shares_of_failures: Numbers = shares[np.arange(len(shares))[:, None], known]
    return shares_of_failures


def _union(one: Bits, other: Bits) -> Bits:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    union = longer.copy()
    union[: len(shorter)] |= shorter
    return union


def bit_count(bits: Any) -> Any:
    """Return the number of bits along the last axis; quicker than `sum` for few of them."""
    return np.add.reduce(np.bitwise_count(bits), axis=-1, dtype=np.int64)
