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

    def add(self, items: Items, verdict: Verdict, traces: Sequence[int]) -> None:
        """Count an attempt; `traces` has the place of its trace, if that joined the memory."""
        self.outcomes[verdict.outcome] += 1
        for place in traces:
            self.kernel_words = _union(self.kernel_words, items.known_words[place])
        if not verdict.feasible:
            self.failure_words = _union(self.failure_words, items.message_words(verdict.feedback))
            self.failures[items.failure_number(verdict)] += 1


def repeated(histories: Sequence[BatchedHistory], codes: NDArray[np.int64]) -> Numbers:
    """Return the share of each history's failures that are of each of these kinds; -1 is no failure."""
    if not any(history.failures for history in histories):
        return np.zeros(codes.shape)
    counts = np.zeros((len(histories), 2 + max((max(h.failures, default=0) for h in histories), default=0)))
    for row, history in zip(counts, histories, strict=True):
        for code, count in history.failures.items():
            row[code] = count
    totals = np.maximum(1.0, counts.sum(axis=1, keepdims=True))
    known = np.where(codes < counts.shape[1] - 1, codes, -1)  # the last column stays empty
    shares_of_failures: Numbers = (counts / totals)[np.arange(len(counts))[:, None], known]
    return shares_of_failures


def _union(one: Bits, other: Bits) -> Bits:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    union = longer.copy()
    union[: len(shorter)] |= shorter
    return union


def aligned(rows: Sequence[Bits]) -> Bits:
    """Return bits of different lengths as the rows of a new array."""
    if len(rows) == 1:
        return rows[0][None].copy()
    aligned = np.zeros((len(rows), max(map(len, rows), default=0)), np.uint64)
    for row, bits in zip(aligned, rows, strict=True):
        row[: len(bits)] = bits
    return aligned


def word_shares(wholes: Bits, parts: Bits) -> Numbers:
    """Return the share of each whole that is in each of its parts, whose axes are wholes, parts and bits."""
    width = min(wholes.shape[1], parts.shape[-1])
    if not width:
        return np.zeros(parts.shape[:-1])
    count = np.maximum(1, bit_count(wholes))
    common = bit_count(wholes[:, None, :width] & parts[..., :width])
    shares_of_wholes: Numbers = common / count[:, None]
    return shares_of_wholes


def share_of(whole: Any, part: Any) -> Numbers:
    """Return the share of `whole` that is in `part`, both as bits along the last axis; 0 if `whole` is empty."""
    share: Numbers = bit_count(whole & part) / np.maximum(bit_count(whole), 1)
    return share


def bit_count(bits: Any) -> Any:
    """Return the number of bits along the last axis; quicker than `sum` for few of them."""
    return np.add.reduce(np.bitwise_count(bits), axis=-1, dtype=np.int64)
