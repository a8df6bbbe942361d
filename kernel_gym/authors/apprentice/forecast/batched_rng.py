"""The author's random numbers, many attempts at a time.

The live author makes a numpy generator for every choice, which takes longer than the rest of a forecast attempt. The
numbers depend on seed, task, attempt and the name of the choice alone. So they are computed for blocks of attempts with
array arithmetic: numpy's SeedSequence and PCG64, step by step, to the same bits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Longs = NDArray[np.uint64]

#: Doubles that are kept of each stream; no choice of the author takes more.
KEPT = 3
#: Attempts whose numbers are computed together, and how many such blocks are kept.
BLOCK, BLOCKS = 16, 2

_MASK = 0xFFFFFFFF
_LOW = np.uint64(_MASK)
_HALF = np.uint64(32)
# PCG64's multiplier, high and low half.
_HIGH_FACTOR, _LOW_FACTOR = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)


class BatchedRng:
    """The first doubles of every named random stream, by attempt, for one run seed and task."""

    def __init__(self, seed: int, task: str, names: Sequence[str]) -> None:
        self._seed, self._task = seed, task
        self._names = np.array([crc32(name.encode()) for name in names], np.uint64)
        self._blocks: dict[int, tuple[Longs, Longs, NDArray[np.float64]]] = {}

    def root(self, attempt: int) -> int:
        """Return the author's first draw, which seeds every stream."""
        return int(self._block(attempt)[0][attempt % BLOCK])

    def doubles(self, attempt: int) -> NDArray[np.float64]:
        """Return the first `KEPT` doubles of each stream, one row for each name."""
        rows: NDArray[np.float64] = self._block(attempt)[2][attempt % BLOCK]
        return rows

    def integer(self, attempt: int, name: int, low: int, high: int) -> int | None:
        """Return `integers(low, high)` of a fresh stream; None in the one case in 2**32 in which numpy draws again."""
        product = (int(self._block(attempt)[1][attempt % BLOCK, name]) & _MASK) * (high - low)
        if high - low > 1 and (product & _MASK) < 2**32 % (high - low):
            return None
        return low + (product >> 32)

    def _block(self, attempt: int) -> tuple[Longs, Longs, NDArray[np.float64]]:
        number = attempt // BLOCK
        if number not in self._blocks:
            first = roots(self._seed, self._task, range(number * BLOCK, (number + 1) * BLOCK))
            drawn = outputs(first, self._names)
            if len(self._blocks) == BLOCKS:
                del self._blocks[min(self._blocks)]
            self._blocks[number] = (first, drawn[..., 0], doubles(drawn))
        return self._blocks[number]


def roots(seed: int, task: str, attempts: Sequence[int]) -> Longs:
    """Return `generator(seed, task, attempt).integers(2**63)` for each attempt."""
    keys = (hashlib.sha256(json.dumps((seed, task, attempt)).encode()).digest()[:16] for attempt in attempts)
    entropy = np.stack([np.frombuffer(key[::-1], "<u4") for key in keys]).astype(np.uint32)
    return _outputs(entropy, 1)[..., 0] >> np.uint64(1)


def outputs(roots: Longs, names: Longs) -> Longs:
    """Return the first outputs of the streams, of shape (roots, names, KEPT)."""
    entropy = np.zeros((len(roots), len(names), 4), np.uint32)
    low, high = (roots & _LOW)[:, None], (roots >> _HALF)[:, None]
    # A number below 2**32 is one word of entropy, a larger one two.
    entropy[..., 0] = low
    entropy[..., 1] = np.where(high > 0, high, names)
    entropy[..., 2] = np.where(high > 0, names, 0)
    return _outputs(entropy, KEPT)


def doubles(outputs: Longs) -> NDArray[np.float64]:
    """Return the outputs as numbers in [0, 1)."""
    return (outputs >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _outputs(entropy: Words, count: int) -> Longs:
    """Return the first outputs of PCG64 seeded with SeedSequence(entropy of four words); last axis: outputs."""
    words = _state(_mixed([entropy[..., i] for i in range(4)]))
    longs = [words[2 * i].astype(np.uint64) | (words[2 * i + 1].astype(np.uint64) << _HALF) for i in range(4)]
    bit = np.uint64(1)
    increment = ((longs[2] << bit) | (longs[3] >> np.uint64(63)), (longs[3] << bit) | bit)
    state = _step(_sum(increment, (longs[0], longs[1])), increment)
    drawn = []
    for _ in range(count):
        state = _step(state, increment)
        drawn.append(_rotated(state[0] ^ state[1], state[0] >> np.uint64(58)))
    return np.stack(drawn, axis=-1)


def _mixed(pool: list[Words]) -> list[Words]:
    """Return the entropy pool of numpy's SeedSequence, for many seeds at once."""
    constant = 0x43B0D7E5

    def hashed(value: Words) -> Words:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * 0x931E8875 & _MASK
        value = value * np.uint32(constant)
        return value ^ (value >> np.uint32(16))

    pool = [hashed(word) for word in pool]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(pool[source])
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    return pool


def _state(pool: list[Words]) -> list[Words]:
    """Return eight words of state from the pool."""
    constant, words = 0x8B51F9DD, []
    for i in range(8):
        word = pool[i % 4] ^ np.uint32(constant)
        constant = constant * 0x58F38DED & _MASK
        word = word * np.uint32(constant)
        words.append(word ^ (word >> np.uint32(16)))
    return words


def _step(state: tuple[Longs, Longs], increment: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    """Return the next PCG64 state: state * multiplier + increment modulo 2**128."""
    high, low = state
    a, b = low >> _HALF, low & _LOW
    c, d = _LOW_FACTOR >> _HALF, _LOW_FACTOR & _LOW
    middle = a * d + (b * d >> _HALF)
    other = b * c + (middle & _LOW)
    carried = a * c + (middle >> _HALF) + (other >> _HALF)
    return _sum((carried + high * _LOW_FACTOR + low * _HIGH_FACTOR, low * _LOW_FACTOR), increment)


def _sum(a: tuple[Longs, Longs], b: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    low = a[1] + b[1]
    return a[0] + b[0] + (low < a[1]), low


def _rotated(value: Longs, by: Longs) -> Longs:
    return (value >> by) | (value << ((np.uint64(64) - by) & np.uint64(63)))
