"""What a task computes, as trees of lazy values: maps, reductions and views over tensors.

Values do not depend on tiles or cores. `fusion.py` turns trees of them into loop nests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kernel_gym.authors.apprentice.frontend.sizes import ONE, ZERO, Size, row_major

Reduction = Literal["sum", "max", "min", "prod", "argmax", "argmin"]


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph with its shape and element type. Subclasses define how it is computed."""

    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Tensor(Value):
    """A value in global memory: a buffer of the kernel, viewed through strides."""

    buffer: str = ""
    strides: tuple[Size, ...] = ()
    offset: Size = ZERO

    @property
    def contiguous(self) -> bool:
        """True if the elements lie in memory in the order of the shape, without gaps."""
        return self.offset == 0 and self.strides == row_major(self.shape)


@dataclass(frozen=True, eq=False)
class Map(Value):
    """An elementwise function of values (broadcast to the shape) and numbers.

    `idiom` names the piece of know-how behind the function, if there is one. An author who gets the idiom wrong leaves
    the function out and uses its first argument, or writes the idiom's wrong spelling.
    """

    function: str = ""
    arguments: tuple[Value | float, ...] = ()
    idiom: str = ""


@dataclass(frozen=True, eq=False)
class Reduce(Value):
    """A reduction over axes, which remain as dimensions of 1."""

    function: Reduction = "sum"
    argument: Value = field(default_factory=lambda: Value((), "float32"))
    axes: tuple[int, ...] = ()
    idiom: str = ""


@dataclass(frozen=True, eq=False)
class Reorder(Value):
    """A view that permutes dimensions, and drops or adds dimensions of 1.

    Dimension i is dimension `sources[i]` of the argument, or a new 1 where that is None.
    """

    argument: Value = field(default_factory=lambda: Value((), "float32"))
    sources: tuple[int | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Broadcast(Value):
    """A value repeated along dimensions of 1 (right-aligned), or a constant of any shape."""

    argument: Value | float = 0.0


@dataclass(frozen=True, eq=False)
class Extent(Value):
    """A run-time size as a number to compute with."""

    extent: Size = ZERO


@dataclass(frozen=True, eq=False)
class Position(Value):
    """The numbers from `first` in steps of `step`, along the only dimension."""

    first: int = 0
    step: int = 1


@dataclass(frozen=True, eq=False)
class Regrouped(Value):
    """A value with two neighbouring dimensions of its argument, `axis` and the next one, as one dimension."""

    argument: Value = field(default_factory=lambda: Value((), "float32"))
    axis: int = 0


def split(value: Value, axis: int, parts: tuple[Size, Size]) -> Value | None:
    """Return a value with a dimension split in two, without computing it; None if that is not possible."""
    rank, made = len(value.shape), dict[int, Value | None]()

    def walk(node: Value) -> Value | None:
        if id(node) not in made:
            made[id(node)] = apart(node)
        return made[id(node)]

    def apart(node: Value) -> Value | None:
        at = axis - rank + len(node.shape)
        if at < 0:  # parts of fewer dimensions are aligned at the right
            return node
        pair = (ONE, ONE) if node.shape[at] == 1 else parts
        shape = (*node.shape[:at], *pair, *node.shape[at + 1 :])
        match node:
            case Tensor():
                stride = node.strides[at]
                strides = (*node.strides[:at], stride * pair[1], stride, *node.strides[at + 1 :])
                return Tensor(shape, node.dtype, node.buffer, strides, node.offset)
            case Regrouped() if node.argument.shape == shape:
                return node.argument
            case Reduce() if at not in node.axes:
                inner = walk(node.argument)
                axes = tuple(axis + (axis > at) for axis in node.axes)
                return inner and Reduce(shape, node.dtype, node.function, inner, axes, node.idiom)
            case Map():
                arguments = [walk(each) if isinstance(each, Value) else each for each in node.arguments]
                known = tuple(each for each in arguments if each is not None)
                if len(known) == len(arguments):
                    return Map(shape, node.dtype, node.function, known, node.idiom)
        return None

    return walk(value)


def contiguous(buffer: str, shape: tuple[Size, ...], dtype: str) -> Tensor:
    """Return a tensor that fills a buffer."""
    return Tensor(shape, dtype, buffer, row_major(shape))


def reorder(value: Value, sources: tuple[int | None, ...]) -> Value:
    """Return the value with its dimensions permuted, dropped or added; a view of a tensor is a tensor."""
    shape = tuple(ONE if source is None else value.shape[source] for source in sources)
    if isinstance(value, Tensor):
        strides = tuple(ZERO if source is None else value.strides[source] for source in sources)
        return Tensor(shape, value.dtype, value.buffer, strides, value.offset)
    if isinstance(value, Reorder):
        inner = tuple(_through(value, source, sources) for source in sources)
        if inner == tuple(range(len(value.argument.shape))):
            return value.argument
        return Reorder(shape, value.dtype, value.argument, inner)
    return Reorder(shape, value.dtype, value, sources)


def _through(inner: Reorder, source: int | None, sources: tuple[int | None, ...]) -> int | None:
    """Return the dimension of the innermost value that a source means; a 1 that was dropped may be added again."""
    if source is not None:
        return inner.sources[source]
    dropped = set(range(len(inner.argument.shape))) - set(inner.sources)
    return dropped.pop() if len(dropped) == 1 and sources.count(None) == 1 else None
