"""A plan under construction: its buffers, its stages and what operators need to add to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isclose, log, prod
from typing import Any, NamedTuple

from sympy import expand, fraction, sympify

from kernel_gym.authors.apprentice.frontend.expression import (
    Broadcast,
    Extent,
    Map,
    Reduce,
    Regrouped,
    Reorder,
    Tensor,
    Value,
    contiguous,
    reorder,
    split,
)
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace, fuse, substituted
from kernel_gym.authors.apprentice.frontend.plan import Buffer, Lookup, Nest, Scan, Scatter, Stage, Unsupported
from kernel_gym.authors.apprentice.frontend.sizes import (
    Size,
    Sizes,
    c_expression,
    candidates,
    product,
    row_major,
    same_setting,
    size,
    sized_alone,
    sized_quotient,
    sized_setting,
    sized_whole,
)
from kernel_gym.authors.apprentice.frontend.workspace import renamed
from kernel_gym.hardware.host.tensors import NPU_FACTOR, WORKSPACE_BYTES, WORKSPACE_FACTOR

#: Rows up to this length at all cases are short: the elements of several are looked up together.
SHORT = 2048


class Shapes(NamedTuple):
    """What a kernel knows of a case: the shapes of all inputs, and the whole numbers among its settings."""

    inputs: tuple[tuple[int, ...], ...]
    ints: tuple[int, ...] = ()


def setting_name(place: int) -> str:
    """Return a whole number among the settings as host code writes it."""
    return f"args->ints[{place}]"


@dataclass
class PlanBuilder:
    """Collects the buffers and stages of one plan while its graph is read.

    Operators return lazy values. A value becomes a stage when it has to be in global memory: as an output, or as the
    operand of an operator that reads it there.
    """

    #: Shapes of all inputs at every case of the task.
    cases: Sequence[Shapes] = ()
    #: The dimensions of inputs by name at some other cases, at which the module's numbers are known.
    elsewhere: Sequence[dict[str, int]] = ()
    #: True for a network: results that are in memory are not computed again where other stages use them.
    large: bool = False
    #: True for the plan of an expert, with stages that the apprentice does not know.
    expert: bool = False
    #: True to copy the results of a convolution by taps, so that reductions do not read them row by row.
    compact: bool = False
    sizes: Sizes = field(default_factory=Sizes)
    buffers: list[Buffer] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    spaces: dict[str, IterationSpace] = field(default_factory=dict)
    #: Parts of the workspace that turned out to be outputs.
    moved: dict[str, str] = field(default_factory=dict)
    #: Concatenations along the last axis: by buffer, their parts.
    joined: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    #: Returns the shape that the current call gives its view at other cases, each with the dimensions of inputs there.
    views_elsewhere: Callable[[], Sequence[tuple[list[int], dict[str, int]]]] = tuple
    _held: dict[int, tuple[Value, Tensor]] = field(default_factory=dict)
    _depths: dict[int, tuple[Value, int]] = field(default_factory=dict)
    _inputs: dict[str, Tensor] = field(default_factory=dict)
    _extents: dict[str, Size] = field(default_factory=dict)
    _origin: dict[str, str] = field(default_factory=dict)
    _parts: list[dict[str, int]] = field(default_factory=list)

    def input(self, name: str, index: int, extents: tuple[int, ...], dtype: str) -> Tensor:
        """Declare an input. A dimension that is 1 at every case is broadcast, so it becomes a literal 1."""
        if any(index >= len(shapes.inputs) for shapes in self.cases):
            raise Unsupported(f"Unsupported: the constant {name}, which not every case has")
        shapes_seen = [extents, *(shapes.inputs[index] for shapes in self.cases)]
        ones = [all(shape[axis] == 1 for shape in shapes_seen) for axis in range(len(extents))]
        shape = tuple(
            size(1) if ones[axis] else self.sizes.atom(f"{name}.shape[{axis}]", n) for axis, n in enumerate(extents)
        )
        self._declare(name, dtype, "input", index, shape)
        self._inputs[name] = contiguous(name, shape, dtype)
        return self._inputs[name]

    def settings(self, ints: Sequence[int]) -> None:
        """Declare the whole numbers that change with the sizes; the others are literal in the graph."""
        for place, number in enumerate(ints):
            elsewhere = [shapes.ints[place] for shapes in self.cases if place < len(shapes.ints)]
            if min((number, *elsewhere)) > 0 and any(other != number for other in elsewhere):
                self.sizes.setting(setting_name(place), number)

    @cached_property
    def dimensions_at(self) -> list[dict[str, int]]:
        """The dimensions of all inputs by name, at every case of the task."""
        return self.dimensions(self.cases)

    def dimensions(self, cases: Sequence[Shapes]) -> list[dict[str, int]]:
        """Return the dimensions of all inputs by name at some cases, given by the shapes of the inputs."""
        inputs = [buffer for buffer in self.buffers if buffer.origin == "input"]
        places = {f"{b.name}.shape[{axis}]": (b.index, axis) for b in inputs for axis in range(b.rank)}
        return [
            {name: shapes.inputs[i][axis] for name, (i, axis) in places.items()}
            | {setting_name(place): number for place, number in enumerate(shapes.ints)}
            for shapes in cases
        ]

    def one_or_size(self, extent: Size) -> Size:
        """Return a literal 1 for a size that is 1 at every case, since only that one is broadcast or dropped."""
        if not extent.free_symbols or self.sizes.value(extent) != 1:
            return extent
        return size(1) if all(self.sizes.value_at(extent, at) == 1 for at in self.dimensions_at) else extent

    def largest_elements(self) -> dict[str, int]:
        """Return the most elements of every part of the workspace at any case."""
        return {
            name: max(self.sizes.value_at(extent, at) for at in self.dimensions_at)
            for name, extent in self._extents.items()
            if name not in self.moved and self._origin[name] == "workspace"
        }

    def fits(self) -> bool:
        """Return whether the workspace holds all its parts side by side at every case."""
        parts = [name for name, origin in self._origin.items() if origin == "workspace" and name not in self.moved]
        return self.holds([[name] for name in parts])

    def holds(
        self,
        places: Sequence[Sequence[str]],
        factor: int = WORKSPACE_FACTOR,
        rounds: int = 1,
        batched: Sequence[str] = (),
    ) -> bool:
        """Return whether the workspace holds places at every case, each as large as the largest part that uses it.

        `factor` is how many times the bytes of all tensors it has. With `rounds`, the places hold the results of a part
        of the samples, which the first dimension of the inputs in `batched` counts.
        """
        others = [name for name, origin in self._origin.items() if origin != "workspace"]
        # The least bytes of an element. The apprentice plans with two, whatever the type.
        floats = all(buffer.dtype == "float32" for buffer in self.buffers)
        width = 4 if floats and (self.expert or factor == NPU_FACTOR) else 2
        cut = {f"{name}.shape[0]" for name in batched}
        for at in self.dimensions_at:
            part = at if rounds == 1 else self._kept({n: -(-e // rounds) if n in cut else e for n, e in at.items()})
            need = sum(max(self.sizes.value_at(self._extents[name], part) for name in names) for names in places)
            given = sum(self.sizes.value_at(self._extents[name], at) for name in others)
            if 4 * need + 1024 * len(places) > WORKSPACE_BYTES + factor * width * given:
                return False
        return True

    def _kept(self, shapes: dict[str, int]) -> dict[str, int]:
        """Return shapes that live as long as the builder."""
        self._parts.append(shapes)
        return shapes

    def _declare(self, name: str, dtype: str, origin: str, index: int, shape: tuple[Size, ...]) -> None:
        self._extents[name], self._origin[name] = product(shape), origin
        self.buffers.append(Buffer(name, dtype, origin, index, c_expression(product(shape)), len(shape)))

    def tensor(self, value: Value) -> Tensor:
        """Return the value in global memory, contiguous; add a stage that computes it if it is not there yet."""
        value = self._straight(value)
        if isinstance(value, Tensor) and value.contiguous:
            return value
        if id(value) not in self._held:
            self._held[id(value)] = (value, self.computed(value, self.scratch(value.shape)))
        return self._held[id(value)][1]

    def _straight(self, value: Value) -> Value:
        """Return a view whose elements lie in order as a contiguous tensor, whatever the strides of dimensions of 1."""
        if not self.expert or not isinstance(value, Tensor) or value.contiguous:
            return value
        steps = zip(value.shape, value.strides, row_major(value.shape), strict=True)
        in_order = value.offset == 0 and all(extent == 1 or step == dense for extent, step, dense in steps)
        return contiguous(value.buffer, value.shape, value.dtype) if in_order else value

    def floats(self, value: Value) -> Tensor:
        """Return the value in global memory as contiguous floats; a tensor of another element type is copied."""
        if not isinstance(value, Tensor) or value.dtype == "float32":
            return self.tensor(value)
        if id(value) not in self._held:
            self._held[id(value)] = (value, self.tensor(self.copied(value)))
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
        nest, space = self.nest(value, target)
        store = nest.stores[0]
        apart = not store.access.flat and nest.steps[store.step].inside
        if nest.reductions and not target.contiguous and (apart or (nest.vector_reduced and not nest.rows_join)):
            nest, space = self.nest(self.tensor(value), target)  # rows are written together to contiguous tensors only
        self.add(nest, space)
        return target

    def padded(
        self, value: Value, before: Sequence[Any], after: Sequence[Any], fill: float, spacing: Sequence[int] = ()
    ) -> Tensor:
        """Return the value padded with `fill` along its last dimensions, elements `spacing` apart."""
        spacing = list(spacing) or [1] * len(before)
        widths = [self.sizes.value(sympify(n)) for n in (*before, *after)]
        if not any(widths) and all(step == 1 for step in spacing):
            return self.floats(value)
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
        source, target = self.floats(value), self.scratch(value.shape)
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

    def lookup(self, value: Value, index: Value, lead: int) -> Tensor:
        """Add the stage that picks entries along axis `lead` of a value; return its result.

        `index` is (rows, count), with a literal 1 for rows if all rows use the same indices, or rows equal to the
        product of the value's dimensions before the axis.
        """
        source, places = self.floats(value), self.floats(index)
        fields, length = self._entries(source, places, lead)
        target = self.scratch((*source.shape[:lead], places.shape[1], *source.shape[lead + 1 :]))
        several = length == 1 and places.shape[0] == 1 and product(source.shape[:lead]) != 1
        extents = (source.shape[lead], places.shape[1])
        short = several and all(self.sizes.value_at(e, at) <= SHORT for e in extents for at in self.dimensions_at)
        stage = Lookup("", fields, source.buffer, places.buffer, target.buffer, length == 1, short)
        self.add(stage, IterationSpace(source.shape[lead] if length == 1 else length))
        return target

    def scatter(self, value: Value, index: Value, update: Value, lead: int, *, adds: bool) -> Tensor:
        """Add the stage that writes entries along axis `lead` into a copy of a value; `index` is as for `lookup`."""
        places, entries = self.floats(index), self.floats(update)
        target = self.computed(self.copied(value), self.scratch(value.shape))
        fields, length = self._entries(target, places, lead)
        stage = Scatter("", fields, entries.buffer, places.buffer, target.buffer, length == 1, adds)
        self.add(stage, IterationSpace(target.shape[lead] if length == 1 else length))
        return target

    def _entries(self, tensor: Tensor, index: Tensor, lead: int) -> tuple[tuple[tuple[str, str], ...], Size]:
        length = product(tensor.shape[lead + 1 :])
        parts = {"rows": product(tensor.shape[:lead]), "count": index.shape[1], "axis": tensor.shape[lead]}
        parts |= {"indexRows": index.shape[0]} | ({} if length == 1 else {"length": length})
        return tuple((name, c_expression(extent)) for name, extent in parts.items()), length

    def nest(self, value: Value, target: Tensor) -> tuple[Nest, IterationSpace]:
        """Return the loop nest that computes a value into a target, without adding it."""
        if self.large:
            value = self._with_held(value)
        return fuse(value, target, self.sizes, self.tensor, self._float_buffer)

    def _with_held(self, value: Value) -> Value:
        """Return the value with parts that are in global memory already read from there instead of computed again."""
        held = {key: tensor for key, (_, tensor) in self._held.items() if key != id(value)}
        return substituted(value, held)

    def _float_buffer(self, name: str) -> str:
        """Return the buffer that holds an input's elements as floats."""
        return self.floats(self._inputs[name]).buffer

    def copied(self, tensor: Value) -> Value:
        """Return a copy of the value, as floats that have to be computed."""
        return Map(tensor.shape, "float32", "same", (tensor,))

    def add(self, stage: Stage, space: IterationSpace) -> None:
        """Append a stage and remember its iteration space."""
        name = f"stage{len(self.stages)}"
        self.stages.append(replace(stage, name=name))
        self.spaces[name] = space

    def sized(self, public: float, others: Sequence[float], *, as_value: bool) -> Any:
        """Return a number that depends on the sizes: a size, or a value to compute with.

        The number is `public` at the public case and one of `others` at each of the cases of `elsewhere`.
        """
        ways = (self._rooted_size, self._shifted_size, self._logarithm_of_size) if as_value else ()
        number = next((value for way in ways if (value := way(public, others)) is not None), None)
        if number is None and public == int(public):
            whole = self._sized_whole(int(public), [int(n) for n in others])
            number = Extent((), "float32", whole) if as_value and whole is not None else whole
        if number is None:
            raise Unsupported(f"Unsupported: the number {public:.6g}, which changes with the sizes in an unknown way")
        return number

    def _sized_whole(self, public: int, others: Sequence[int]) -> Size | None:
        """Return a whole number as a size or a setting, or as one step of arithmetic from a size or a setting."""
        ways = (sized_alone, same_setting, sized_whole, sized_setting)
        sizes = (way(self.sizes, public, others, self.elsewhere) for way in ways)
        return next((size for size in sizes if size is not None), None)

    def _rooted_size(self, public: float, others: Sequence[float]) -> Value | None:
        """Return a number as a factor times a size, or a product of two, or a root of it, or one over it."""
        for parts, extents in candidates(self.sizes, self.elsewhere):
            for roots, sign in ((0, 1), (0, -1), (1, 1), (1, -1), (2, 1), (2, -1)):
                power = sign * 0.5**roots
                factors = [n / extent**power for n, extent in zip((public, *others), extents, strict=True)]
                if all(isclose(factor, factors[0], rel_tol=1e-6) for factor in factors):
                    value = _rooted(Extent((), "float32", product(parts)), roots, sign)
                    # The root of a part of a size: the depth of one of several heads.
                    idiom = "attention.head-depth" if roots == 1 else ""
                    return value if isclose(factors[0], 1.0, rel_tol=1e-6) else self._times(value, factors[0], idiom)
        return None

    def _shifted_size(self, public: float, others: Sequence[float]) -> Value | None:
        """Return a number as a size times a factor plus a shift, or one over the size."""
        sizes = candidates(self.sizes, self.elsewhere)
        for parts, extents, sign in ((parts, extents, sign) for parts, extents in sizes for sign in (1, -1)):
            places = [float(extent) ** sign for extent in extents]
            if places[1] == places[0]:
                continue
            factor = (others[0] - public) / (places[1] - places[0])
            shift = round(public - factor * places[0], 6)
            pairs = zip((public, *others), places, strict=True)
            if shift in (-1.0, 1.0, 0.5, -0.5) and all(
                isclose(n, shift + factor * place, rel_tol=1e-6) for n, place in pairs
            ):
                value = self._times(_rooted(Extent((), "float32", product(parts)), 0, sign), factor)
                return Map((), "float32", "add", (value, shift))
        return None

    def _logarithm_of_size(self, public: float, others: Sequence[float]) -> Value | None:
        """Return a number as a factor times the logarithm of a size."""
        for parts, extents in candidates(self.sizes, self.elsewhere):
            if min(extents) < 2:
                continue
            factors = [n / log(extent) for n, extent in zip((public, *others), extents, strict=True)]
            if all(isclose(factor, factors[0], rel_tol=1e-6) for factor in factors):
                value = Map((), "float32", "log", (Extent((), "float32", product(parts)),))
                return value if isclose(factors[0], 1.0, rel_tol=1e-6) else self._times(value, factors[0])
        return None

    def _times(self, value: Value, factor: float, idiom: str = "") -> Value:
        return Map((), "float32", "mul", (value, factor), idiom)

    def view(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the value with another shape, given as numbers at the public case; -1 takes what is left."""
        target = _filled(shape, self.sizes.value(product(value.shape)))
        if self.sizes.value(product(value.shape)) != prod(target):
            raise Unsupported(f"Unsupported: a view as {target} of a size that is not understood")
        shape = self.sizes.regroup(value.shape, target)
        literal = [extent.is_Integer for extent in shape]
        fixed = any(extent != 1 for extent, is_literal in zip(shape, literal, strict=True) if is_literal)
        certain = all(literal) or not (fixed or self.sizes.ambiguous(product(shape), target))
        return self.reshape(value, shape if certain else self._checked(shape, target))

    def _checked(self, shape: tuple[Size, ...], target: Sequence[int]) -> tuple[Size, ...]:
        """Return the shape of a view; where its sizes do not hold at other cases, those that do."""
        views = [(view, at) for view, at in self.views_elsewhere() if len(view) == len(shape)]
        cases = [at for _, at in views]
        filled = [_filled(view, self.sizes.value_at(product(shape), at)) for view, at in views]
        numbers = list(zip(target, *filled, strict=True))
        held = [[self.sizes.value_at(extent, at) for at in cases] for extent in shape]
        sizes = [
            extent if places == others else sized_alone(self.sizes, n, others, cases)
            for extent, places, (n, *others) in zip(shape, held, numbers, strict=True)
        ]
        if sizes.count(None) > 1:
            sizes = [
                sized_whole(self.sizes, n, others, cases) if extent is None else extent
                for extent, (n, *others) in zip(sizes, numbers, strict=True)
            ]
        if sizes.count(None) > 1:
            raise Unsupported(f"Unsupported: a view as {list(target)}, which changes with the sizes in an unknown way")
        rest = product(shape) / product(extent for extent in sizes if extent is not None)
        if None in sizes and fraction(rest)[1].free_symbols:
            known = candidates(self.sizes, cases)
            wanted = list(numbers[sizes.index(None)])
            same = (product(parts) for parts, at in known if at == wanted and rest.free_symbols.issuperset(parts))
            rest = next(same, rest)
        return tuple(rest if extent is None else extent for extent in sizes)

    def repetitions(self, axis: int, public: int) -> Size:
        """Return how often the current call repeats a dimension: a number, or a size if that differs at other cases."""
        views = [] if public == 1 else [(view[axis], at) for view, at in self.views_elsewhere()]
        if not views:
            return self.sizes.named(public)
        numbers, cases = [n for n, _ in views], [at for _, at in views]
        for rule in (sized_alone, sized_quotient, sized_whole):
            if (extent := rule(self.sizes, public, numbers, cases)) is not None:
                return extent
        raise Unsupported(f"Unsupported: {public} repetitions, which change with the sizes in an unknown way")

    def depth(self, value: Value | float) -> int:
        """Return how many reductions have to be computed one after another for a value that is not in memory."""
        if not isinstance(value, Map | Reduce | Regrouped | Reorder | Broadcast):
            return 0
        if id(value) not in self._depths:
            arguments = value.arguments if isinstance(value, Map) else (value.argument,)
            below = max((self.depth(argument) for argument in arguments), default=0)
            self._depths[id(value)] = (value, below + isinstance(value, Reduce))
        return self._depths[id(value)][1]

    def reshape(self, value: Value, shape: tuple[Size, ...]) -> Value:
        """Return the value with another shape of the same number of elements."""
        if shape == value.shape:
            return value
        if isinstance(value, Broadcast) and not isinstance(value.argument, Value):
            return Broadcast(shape, value.dtype, value.argument)
        if self.expert and isinstance(value, Map) and (regrouped := _instances(value, shape)):
            return regrouped
        if isinstance(value, Broadcast) and isinstance(value.argument, Value):
            inner = value.argument.shape
            if inner and len(inner) < len(shape) and shape[-len(inner) :] == inner == value.shape[-len(inner) :]:
                return Broadcast(shape, value.dtype, value.argument)  # only the repetitions are regrouped
        dense = self.tensor(value)
        return Tensor(shape, dense.dtype, dense.buffer, row_major(shape), dense.offset)

    def output(self, value: Value, name: str, index: int, dtype: str) -> None:
        """Make a value the n-th output; a stage that computes it into the workspace writes to the output instead."""
        self._declare(name, dtype, "output", index, value.shape)
        value = self._straight(value)
        if isinstance(value, Tensor) and value.contiguous and dtype == "float32" and value.buffer not in self.moved:
            whole = self.sizes.same(self._extents[value.buffer], product(value.shape))
            if whole and self._origin[value.buffer] == "workspace":
                self.moved[value.buffer] = name
                return
        target = contiguous(name, value.shape, dtype)
        nest, space = self.nest(value, target)
        if dtype != "float32" and nest.stores[0].access.step not in ("0", "1"):
            nest, space = self.nest(self.tensor(value), target)  # only floats are written one by one
        self.add(nest, space)

    def moved_stages(self) -> list[Stage]:
        """Return the stages, with outputs in place of the parts of the workspace that became outputs."""
        return [renamed(stage, self.moved) for stage in self.stages]


def _instances(value: Map, shape: tuple[Size, ...]) -> Value | None:
    """Return the view by which a norm takes the channels of all samples for those of one, or its reverse."""
    if min(len(value.shape), len(shape)) < 2:
        return None
    if shape[0] == 1 and shape[1:] == (product(value.shape[:2]), *value.shape[2:]) and value.shape[0] != 1:
        alone = reorder(value, (None, *range(len(value.shape))))
        return Regrouped(shape, value.dtype, alone, 1)
    if value.shape[0] == 1 and value.shape[1:] == (product(shape[:2]), *shape[2:]):
        several = split(value, 1, (shape[0], shape[1]))
        return several and reorder(several, tuple(range(1, len(shape) + 1)))
    return None


def _filled(shape: Sequence[int], elements: int) -> list[int]:
    """Return a shape with what is left of the elements in place of -1."""
    rest = elements // prod(extent for extent in shape if extent != -1)
    return [rest if extent == -1 else extent for extent in shape]


def _rooted(value: Value, roots: int, sign: int) -> Value:
    for _ in range(roots):
        value = Map((), "float32", "sqrt", (value,))
    return value if sign > 0 else Map((), "float32", "div", (1.0, value))
