"""Where the values come from that a bundle's model passes to its launches and returns.

Torch may move values around the launches, and make constants; what it computes is not the kernel's work. A model is
code of a stranger, so it is not asked. It is called a second time, in another process that never sees the values of the
call: there all elements of the inputs and of the launches' results have values of their own, by which the elements of
every array that the model sends are recognised. What it sends in the call itself must then have come from the same
places, or be the same constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from kernel_gym.hardware.device import Array

#: `input` and `result`: an input of the task or a result of a launch, or a part of one that lies in one piece, in any
#: shape; `moved` is put together from such arrays and constants, or has another type; `computed` is anything else.
Kind: TypeAlias = Literal["input", "result", "moved", "constant", "computed"]
#: Least and most bits of the first value, between 1e11 and 7e11; others follow, so that their number is the difference
#: of the bits. No usual constant is among them. A secret first value keeps models from making one of them.
_FIRST = (0x52000000, 0x53000000)
#: Bytes of arrays that are kept of one call.
MOST_BYTES = 2 << 30
_CODED = ("float32", "float64")
#: Most draws for values that another array does not have; a single truth value has only two.
_DRAWS = 64
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class Origin:
    """Where an array comes from; an input or result is the elements from `begin` to `end` of the array `source`."""

    kind: Kind
    source: int = -1
    begin: int = 0
    end: int = 0

    def meets(self, other: Origin) -> bool:
        """Return whether two arrays have elements in common."""
        return self.source == other.source and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class _Source:
    """An array that the model was given: the number of its first element, None if it has no numbers, and its size."""

    start: int | None
    size: int
    kind: Literal["input", "result"]


@dataclass(frozen=True)
class _Sent:
    """An array that the model sent: its type and shape, and its values or, if it is a part of a source, only where."""

    dtype: str
    shape: tuple[int, ...]
    values: Array | None = None
    part: tuple[int, int] | None = None


class Probe:
    """The second call: makes the values that the model gets, and keeps what it sends."""

    def __init__(self) -> None:
        self.attributes: list[list[Any]] = []
        self.same: list[list[tuple[int, int]]] = []  # for each launch, which tensors of the call its tensors are
        self._sources: list[_Source] = []
        self._given: list[Array | None] = []  # None for arrays whose elements have numbers
        self._sent: list[_Sent] = []
        self._count = 0
        self._kept = 0
        self._rng = np.random.default_rng()
        self._first = int(self._rng.integers(*_FIRST))

    def give(self, array: Array, fixed: bool = False, result: bool = False) -> Array:
        """Return an array for the model in place of one of the call.

        Args:
            array: An input of the call; for a result of a launch, an array of its shape and type.
            fixed: Whether the model may know the values, as those of a mask.
            result: Whether it stands for a result of a launch.
        """
        coded = array.dtype.name in _CODED and not fixed
        kind: Literal["input", "result"] = "result" if result else "input"
        self._sources.append(_Source(self._count if coded else None, array.size, kind))
        if coded:
            self._given.append(None)
            numbers = np.arange(self._count, self._count + array.size, dtype=np.uint32)
            self._count += array.size
            return (numbers + np.uint32(self._first)).view(np.float32).astype(array.dtype).reshape(array.shape)
        values = array if fixed else self._unlike_others(array, result)
        self._given.append(values)
        return values

    def observe(self, array: Array) -> None:
        """Keep an array that the model sent."""
        flat = np.ravel(array)
        part = self._part(self._numbers(flat)) if flat.dtype.name in _CODED and flat.size else None
        values: Array | None = None
        if part is None and flat.size and (_bits(flat) == _bits(flat[:1])).all():
            values = np.broadcast_to(flat[:1], flat.shape)
        elif part is None and (values := self._whole(flat)) is None:
            self._kept += flat.nbytes
            values = flat if self._kept <= MOST_BYTES else None
        self._sent.append(_Sent(flat.dtype.name, array.shape, values, part))

    def origin(self, index: int, array: Array, known: Sequence[Array]) -> Origin:
        """Return where an array of the call comes from.

        Args:
            index: Its position among all arrays that the model sent.
            array: Its values.
            known: The arrays that the model had been given until then, in the order of `give`.
        """
        sent = self._sent[index] if index < len(self._sent) else _Sent("", ())
        flat = np.ravel(array)
        if (sent.dtype, sent.shape) != (flat.dtype.name, array.shape):  # a shape can carry a number, too
            return Origin("computed")
        if not array.size:
            return Origin("result")
        words = _bits(flat)
        if sent.part is not None:
            source, begin = sent.part
            same = [_bits(np.ravel(a)[begin : begin + flat.size]) for a in known[source : source + 1]]
            is_same = same and np.array_equal(words, same[0])
            return self._part_of(source, begin, flat.size) if is_same else Origin("computed")
        if sent.values is None:
            return Origin("computed")
        if sent.dtype not in _CODED:
            return self._origin_of_narrow(flat, sent.values, known)
        numbers = self._numbers(sent.values)
        if (numbers < 0).all() and np.array_equal(words, _bits(sent.values)):
            return Origin("constant")
        # An element is one or the other: the choice between a constant and a moved element would carry a bit.
        expected = np.where(numbers < 0, _bits(sent.values), self._gathered(numbers, words, known))
        return Origin("moved" if np.array_equal(words, expected) else "computed")

    def _part_of(self, source: int, begin: int, size: int) -> Origin:
        return Origin(self._sources[source].kind, source, begin, begin + size)

    def _origin_of_narrow(self, flat: Array, others: Array, known: Sequence[Array]) -> Origin:
        """Return where an array of integers or of 16-bit floats comes from; in the second call it had other values.

        Such values are too few to have one for each element: what is not a whole array that the model was given may
        have been chosen by value. It must be the same array in both calls. If it equals several arrays of the second
        call, their arrays of the call itself must be equal, because the choice between them could carry a bit. With
        elements of another size it is a copy.
        """
        pairs = enumerate(zip(known, self._given, strict=False))
        sources = [i for i, (_, other) in pairs if other is not None and _is_equal(others, other)]
        if not sources:
            return Origin("constant" if np.array_equal(_bits(flat), _bits(others)) else "computed")
        if not all(_is_equal(flat, known[source]) for source in sources):
            return Origin("computed")
        own = [source for source in sources if known[source].dtype.itemsize == flat.dtype.itemsize]
        inputs = [source for source in own if self._sources[source].kind == "input"]
        return self._part_of((inputs or own)[-1], 0, flat.size) if own else Origin("moved")

    def _whole(self, flat: Array) -> Array | None:
        """Return the array without numbers that was given and is sent back as it was; the last one is likeliest."""
        same = (given for given in reversed(self._given) if given is not None and given.dtype == flat.dtype)
        return next((np.ravel(given) for given in same if _is_equal(flat, given)), None)

    def _part(self, numbers: Array) -> tuple[int, int] | None:
        """Return index and offset of the source in which the elements lie in one piece; None if they do not."""
        first, last = int(numbers[0]), int(numbers[-1])
        if first < 0 or last - first + 1 != numbers.size or (np.diff(numbers) != 1).any():
            return None
        for index, source in enumerate(self._sources):
            if source.start is not None and source.start <= first and last < source.start + source.size:
                return index, first - source.start
        return None

    def _unlike_others(self, array: Array, result: bool) -> Array:
        """Return drawn values that differ from those of every other array, if a few draws are enough."""
        others = [given for given in self._given if given is not None and given.size == array.size]
        for _ in range(_DRAWS):
            drawn = self._drawn(array, result)
            if not any(_is_equal(np.ravel(drawn), other) for other in others):
                break
        return drawn

    def _drawn(self, array: Array, result: bool) -> Array:
        if array.dtype.kind in "iub" and result:
            return self._rng.integers(0, 2 if array.dtype.kind == "b" else 128, array.shape, array.dtype)
        if array.dtype.kind in "iub" and array.size:  # of the same values: indices stay within their bounds
            return self._rng.choice(np.ravel(array), array.shape)
        return self._rng.uniform(0.5, 1.5, array.shape).astype(array.dtype)

    def _numbers(self, flat: Array) -> Array:
        """Return for each value the number of the element that it stands for; -1 for none."""
        with np.errstate(over="ignore", invalid="ignore"):
            single = flat.astype(np.float32)
        numbers = single.view(np.uint32).astype(np.int64) - self._first
        return np.where((numbers >= 0) & (numbers < self._count) & (single == flat), numbers, -1)

    def _gathered(self, numbers: Array, words: Array, known: Sequence[Array]) -> Array:
        """Return the bits of the elements with these numbers; where there are none, others than `words`."""
        result = ~words
        for source, array in zip(self._sources, known, strict=False):
            if source.start is None or array.dtype.itemsize != words.dtype.itemsize or array.size != source.size:
                continue
            inside = (numbers >= source.start) & (numbers < source.start + source.size)
            if inside.any():
                result[inside] = _bits(np.ravel(array))[numbers[inside] - source.start]
        return result


def _is_equal(flat: Array, array: Array) -> bool:
    """Return whether an array has the same elements; integers may have another type."""
    if array.size != flat.size:
        return False
    if array.dtype.kind in "iub" and flat.dtype.kind in "iub":
        return bool(np.array_equal(_as_integers(flat), _as_integers(np.ravel(array))))
    return array.dtype == flat.dtype and np.array_equal(_bits(flat), _bits(np.ravel(array)))


def _as_integers(flat: Array) -> Array:
    """Return truth values as their bytes: any but 0 is true for numpy, and the kernel reads which one it is."""
    return _bits(flat) if flat.dtype.kind == "b" else flat


def _bits(flat: Array) -> Array:
    return np.ascontiguousarray(flat).view(_WORDS[flat.dtype.itemsize])
