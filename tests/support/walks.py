"""How a vector instruction walks its operands, written down a second time: the reference for the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

BLOCK, REPEAT = 32, 256


@dataclass(frozen=True)
class Operand:
    """Strides of one operand in blocks."""

    block: int = 1
    repeat: int = 8

    def index(self, repeat: int, lane: int, width: int) -> int:
        """The element that a lane of a repeat is."""
        per_block = BLOCK // width
        return ((repeat * self.repeat + lane // per_block * self.block) * BLOCK) // width + lane % per_block


@dataclass(frozen=True)
class Walk:
    """One call form: `count` elements, or `repeats` with `mask` bits and strides."""

    count: int | None = None
    mask: int = 0
    repeats: int = 0
    dst: Operand = Operand()
    src0: Operand = Operand()
    src1: Operand = Operand()

    def lanes(self, width: int) -> Iterator[list[tuple[int, int, int]]]:
        """Repeat by repeat the active elements: of the destination, of the sources."""
        if self.count is not None:
            yield [(i, i, i) for i in range(self.count)]
            return
        for repeat in range(self.repeats):
            active = [lane for lane in range(REPEAT // width) if self.mask >> lane & 1]
            yield [
                (
                    self.dst.index(repeat, lane, width),
                    self.src0.index(repeat, lane, width),
                    self.src1.index(repeat, lane, width),
                )
                for lane in active
            ]

    def ints(self) -> list[int]:
        """What the test kernels are handed."""
        form = 0 if self.count is not None else 1
        low, high = self.mask & (1 << 64) - 1, self.mask >> 64
        strides = [part for item in (self.dst, self.src0, self.src1) for part in (item.block, item.repeat)]
        return [form, self.count or 0, _signed(low), _signed(high), self.repeats, *strides]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def walks(width: int, elements: int) -> st.SearchStrategy[Walk]:
    """Walks that stay inside tensors of `elements` elements."""
    lanes = REPEAT // width
    operand = st.builds(Operand, st.integers(1, 3), st.integers(8, 24))
    source = st.builds(Operand, st.integers(0, 3), st.integers(0, 24))
    masks = st.one_of(
        st.integers(1, lanes).map(lambda n: (1 << n) - 1),
        st.integers(1, (1 << lanes) - 1),
        st.just((1 << lanes) - 1),
    )
    masked = st.builds(Walk, st.none(), masks, st.integers(0, 4), operand, source, source)
    return st.one_of(st.builds(Walk, st.integers(0, elements)), masked)
