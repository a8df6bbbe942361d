"""What a task computes, as lazy expressions over tensors: maps, reductions and views that have not been placed yet.

Nothing here knows of tiles or cores. `regions` cuts these trees into loop nests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kernel_gym.authors.apprentice.frontend.sizes import ZERO, Size, row_major

Reduction = Literal["sum", "max", "min", "prod", "argmax", "argmin"]


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph with its shape and element type; subclasses say how it comes about."""

    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Tensor(Value):
    """Elements in global memory: a buffer of the kernel seen through strides."""

    buffer: str = ""
    strides: tuple[Size, ...] = ()
    offset: Size = ZERO

    @property
    def contiguous(self) -> bool:
        """True if the elements lie one after another in the order of the shape."""
        return self.offset == 0 and self.strides == row_major(self.shape)


@dataclass(frozen=True, eq=False)
class Map(Value):
    """An elementwise function of values (broadcast to the shape) and numbers.

    `idiom` names a piece of know-how that the step embodies; an author who lacks it leaves the step out (`argument 0`
    passes through) or gets it wrong as the idiom says.
    """

    function: str = ""
    arguments: tuple[Value | float, ...] = ()
    idiom: str = ""


@dataclass(frozen=True, eq=False)
class Reduce(Value):
    """A reduction over axes that stay as dimensions of 1."""

    function: Reduction = "sum"
    argument: Value = field(default_factory=lambda: Value((), "float32"))
    axes: tuple[int, ...] = ()
    idiom: str = ""


@dataclass(frozen=True, eq=False)
class Reorder(Value):
    """A view that only moves, drops and adds dimensions of 1: dimension i is `sources[i]` of the argument, or new."""

    argument: Value = field(default_factory=lambda: Value((), "float32"))
    sources: tuple[int | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Broadcast(Value):
    """A value repeated along dimensions of 1 (right-aligned), or a constant of any shape."""

    argument: Value | float = 0.0


@dataclass(frozen=True, eq=False)
class Extent(Value):
    """A size of the run as a number to calculate with."""

    extent: Size = ZERO


@dataclass(frozen=True, eq=False)
class Position(Value):
    """Numbers from `first` in steps of `step`, along the only dimension."""

    first: int = 0
    step: int = 1


def contiguous(buffer: str, shape: tuple[Size, ...], dtype: str) -> Tensor:
    """A tensor that fills a buffer."""
    return Tensor(shape, dtype, buffer, row_major(shape))


def reorder(value: Value, sources: tuple[int | None, ...]) -> Value:
    """The value with its dimensions moved, dropped or added; views of tensors stay tensors, nested views collapse."""
    from kernel_gym.authors.apprentice.frontend.sizes import ONE

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
    """Which dimension of the innermost value a source means; a dropped 1 that comes back is found again."""
    if source is not None:
        return inner.sources[source]
    dropped = set(range(len(inner.argument.shape))) - set(inner.sources)
    return dropped.pop() if len(dropped) == 1 and sources.count(None) == 1 else None
