"""A plan under construction: its buffers, its stages and what operators need to add to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isclose, prod
from typing import Any

from sympy import expand, sympify

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Extent, Map, Tensor, Value, contiguous
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace, fuse
from kernel_gym.authors.apprentice.frontend.plan import Buffer, Nest, Scan, Stage, Unsupported
from kernel_gym.authors.apprentice.frontend.sizes import Size, Sizes, c_expression, product, row_major, size
from kernel_gym.authors.apprentice.frontend.workspace import renamed

Shapes = tuple[tuple[int, ...], ...]


@dataclass
class PlanBuilder:
    """Collects the buffers and stages of one plan while its graph is read.

    Operators return lazy values. A value becomes a stage when it has to be in global memory: as an output, or as the
    operand of an operator that reads it there.
    """

    #: Shapes of all inputs at every case of the task.
    cases: Sequence[Shapes] = ()
    sizes: Sizes = field(default_factory=Sizes)
    buffers: list[Buffer] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    spaces: dict[str, IterationSpace] = field(default_factory=dict)
    #: Parts of the workspace that turned out to be outputs.
    moved: dict[str, str] = field(default_factory=dict)
    _held: dict[int, tuple[Value, Tensor]] = field(default_factory=dict)

    def input(self, name: str, index: int, extents: tuple[int, ...], dtype: str) -> Tensor:
        """Declare an input. A dimension that is 1 at every case is broadcast, so it becomes a literal 1."""
        if any(index >= len(shapes) for shapes in self.cases):
            raise Unsupported(f"Unsupported: the constant {name}, which not every case has")
        shapes_seen = [extents, *(shapes[index] for shapes in self.cases)]
        ones = [all(shape[axis] == 1 for shape in shapes_seen) for axis in range(len(extents))]
        shape = tuple(
            size(1) if ones[axis] else self.sizes.atom(f"{name}.shape[{axis}]", n) for axis, n in enumerate(extents)
        )
        self._declare(name, dtype, "input", index, shape)
        return contiguous(name, shape, dtype)

    def _declare(self, name: str, dtype: str, origin: str, index: int, shape: tuple[Size, ...]) -> None:
        self.buffers.append(Buffer(name, dtype, origin, index, c_expression(product(shape)), len(shape)))

    def tensor(self, value: Value) -> Tensor:
        """Return the value in global memory, contiguous; add a stage that computes it if it is not there yet."""
        if isinstance(value, Tensor) and value.contiguous:
            return value
        if id(value) not in self._held:
            self._held[id(value)] = (value, self.computed(value, self.scratch(value.shape)))
        return self._held[id(value)][1]

    def strided(self, value: Value) -> Tensor:
        """Return the value in global memory, viewed through strides."""
        return value if isinstance(value, Tensor) else self.tensor(value)

    def scratch(self, shape: tuple[Size, ...]) -> Tensor:
        """Declare a new part of the workspace."""
        index = sum(buffer.origin == "workspace" for buffer in self.buffers)
        self._declare(f"temp{index}", "float32", "workspace", index, shape)
        return contiguous(f"temp{index}", shape, "float32")

    def computed(self, value: Value, target: Tensor) -> Tensor:
        """Add the stage that computes a value into a target, which may be a part of a larger tensor."""
        self.add(*self.nest(value, target))
        return target

    def padded(
        self, value: Value, before: Sequence[Any], after: Sequence[Any], fill: float, spacing: Sequence[int] = ()
    ) -> Tensor:
        """Return the value padded with `fill` along its last dimensions, elements `spacing` apart."""
        spacing = list(spacing) or [1] * len(before)
        widths = [self.sizes.value(sympify(n)) for n in (*before, *after)]
        if not any(widths) and all(step == 1 for step in spacing):
            return self.tensor(value)
        if min(widths) < 0:
            raise Unsupported("Unsupported: a convolution whose padding is larger than its window")
        lead = len(value.shape) - len(before)
        wide = tuple(
            (extent - 1) * step + 1 + low + high
            for extent, step, low, high in zip(value.shape[lead:], spacing, before, after, strict=True)
        )
        named = tuple(self.sizes.derive(f"padded{len(self.sizes.derived)}", expand(e)) for e in wide)
        whole = self.scratch((*value.shape[:lead], *named))
        self.computed(Broadcast(whole.shape, "float32", fill), whole)
        inner = whole.strides[lead:]
        offset = expand(sum(low * stride for low, stride in zip(before, inner, strict=True)))
        steps = tuple(expand(stride * step) for stride, step in zip(inner, spacing, strict=True))
        self.computed(value, Tensor(value.shape, "float32", whole.buffer, (*whole.strides[:lead], *steps), offset))
        return whole

    def scan(self, value: Value, axis: int, function: str) -> Tensor:
        """Add the stage of a running sum or product along an axis; return its result."""
        source, target = self.tensor(value), self.scratch(value.shape)
        axis %= len(value.shape)
        parts = {
            "rows": product(value.shape[:axis]),
            "axis": value.shape[axis],
            "length": product(value.shape[axis + 1 :]),
        }
        last = parts["length"] == 1
        fields = tuple((name, c_expression(extent)) for name, extent in parts.items() if name != "length" or not last)
        self.add(
            Scan("", function, fields, source.buffer, target.buffer, last),
            IterationSpace(parts["axis" if last else "length"]),
        )
        return target

    def nest(self, value: Value, target: Tensor) -> tuple[Nest, IterationSpace]:
        """Return the loop nest that computes a value into a target, without adding it."""
        return fuse(value, target, self.sizes, self.tensor)

    def copied(self, tensor: Tensor) -> Value:
        """Return a copy of the tensor, as a value that has to be computed."""
        return Map(tensor.shape, tensor.dtype, "same", (tensor,))

    def add(self, stage: Stage, space: IterationSpace) -> None:
        """Append a stage and remember its iteration space."""
        name = f"stage{len(self.stages)}"
        self.stages.append(replace(stage, name=name))
        self.spaces[name] = space

    def sized_number(self, public: float, other: float, shapes: dict[str, tuple[int, ...]]) -> Value:
        """Return a number that depends on a size as a root of the size, or one over the root.

        The number is `public` at the public case and `other` at another case with these shapes.
        """
        for symbol, value in self.sizes.values.items():
            dimension = re.fullmatch(r"(\w+)\.shape\[(\d)\]", str(symbol))
            other_value = shapes[dimension[1]][int(dimension[2])] if dimension else value
            for roots in (0, 1, 2):
                power = 0.5**roots
                for sign in (1, -1):
                    if isclose(public, value ** (sign * power), rel_tol=1e-6) and isclose(
                        other, other_value ** (sign * power), rel_tol=1e-6
                    ):
                        return _rooted(Extent((), "float32", symbol), roots, sign)
        raise Unsupported(f"Unsupported: the number {public:.6g}, which changes with the sizes in an unknown way")

    def view(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the value with another shape, given as numbers at the public case; -1 takes what is left."""
        rest = self.sizes.value(product(value.shape)) // prod(extent for extent in shape if extent != -1)
        return self.reshape(value, self.sizes.regroup(value.shape, [n if n != -1 else rest for n in shape]))

    def reshape(self, value: Value, shape: tuple[Size, ...]) -> Value:
        """Return the value with another shape of the same number of elements."""
        if shape == value.shape:
            return value
        if isinstance(value, Broadcast) and not isinstance(value.argument, Value):
            return Broadcast(shape, value.dtype, value.argument)
        dense = self.tensor(value)
        return Tensor(shape, dense.dtype, dense.buffer, row_major(shape), dense.offset)

    def output(self, value: Value, name: str, index: int, dtype: str) -> None:
        """Make a value the n-th output; a stage that computes it into the workspace writes to the output instead."""
        self._declare(name, dtype, "output", index, value.shape)
        if isinstance(value, Tensor) and value.contiguous and dtype == "float32" and value.buffer not in self.moved:
            held = next(buffer for buffer in self.buffers if buffer.name == value.buffer)
            if held.origin == "workspace":
                self.moved[value.buffer] = name
                return
        self.computed(value, contiguous(name, value.shape, dtype))

    def moved_stages(self) -> list[Stage]:
        """Return the stages, with outputs in place of the parts of the workspace that became outputs."""
        return [renamed(stage, self.moved) for stage in self.stages]


def _rooted(value: Value, roots: int, sign: int) -> Value:
    for _ in range(roots):
        value = Map((), "float32", "sqrt", (value,))
    return value if sign > 0 else Map((), "float32", "div", (1.0, value))
