"""Fuses trees of values into loop nests.

A loop nest has one set of kept axes and one set of reduced axes. Everything in a tree that fits them is fused into one
nest; a reduction over other axes gets a nest of its own, which runs first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import UnionType

from sympy import Add, sympify

from kernel_gym.authors.apprentice.frontend.expression import (
    Broadcast,
    Extent,
    Map,
    Position,
    Reduce,
    Regrouped,
    Reorder,
    Tensor,
    Value,
    split,
)
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Ref, Step, Store
from kernel_gym.authors.apprentice.frontend.sizes import ONE, ZERO, Size, Sizes, c_expression, product

#: The most vectors that one nest reads: a device has eight flags between copies and vector instructions.
MOST_VECTORS = 8
#: A window has at most so many elements in a row.
WINDOW = 16
#: Reductions that merge vectors element by element.
MERGED = frozenset({"sum", "prod", "max", "min"})


@dataclass(eq=False)
class Axis:
    """One dimension of a loop nest; compared by identity."""

    size: Size
    reduced: bool = False


@dataclass(frozen=True)
class Spread:
    """A dimension of 1 that is broadcast along an axis."""

    axis: Axis


#: What a dimension of a value is in the nest: an axis, a 1 that is broadcast along an axis, or a 1.
Place = Axis | Spread | None


class Misfit(Exception):
    """Raised for a part that does not have the axes of the nest; it has to be computed first."""

    def __init__(self, value: Reduce | Regrouped) -> None:
        super().__init__("a part does not fit the nest")
        self.value = value


@dataclass
class _Draft:
    """A step before axes are merged, with strides by axis."""

    function: str
    arguments: tuple[Ref | float, ...] = ()
    strides: dict[Axis, Size] = field(default_factory=dict)
    tensor: Tensor | None = None
    reduction: Reduce | None = None
    idiom: str = ""
    axes: frozenset[Axis] = frozenset()
    level: int = 0
    boolean: bool = False
    extent: Size | None = None

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for drafts that compute the same."""
        source = (self.tensor.buffer, self.tensor.offset) if self.tensor else None
        walk = frozenset((id(axis), stride) for axis, stride in self.strides.items())
        return (self.function, self.arguments, walk, source, self.reduction is not None, self.idiom, self.extent)


@dataclass
class NestBuilder:
    """Builds the loop nest of one value, from the root of its tree to the leaves."""

    sizes: Sizes
    axes: list[Axis] = field(default_factory=list)
    drafts: list[_Draft] = field(default_factory=list)
    seen: dict[tuple[int, tuple[Place, ...]], Ref] = field(default_factory=dict)
    by_key: dict[tuple[object, ...], Ref] = field(default_factory=dict)
    keep_alive: list[Value] = field(default_factory=list)

    def visit(self, value: Value | float, places: tuple[Place, ...]) -> Ref | float:
        """Return the step that computes a value whose dimensions are at `places`."""
        if not isinstance(value, Value):
            return value
        places = tuple(
            None if extent == 1 and isinstance(place, Axis) else place
            for place, extent in zip(places, value.shape, strict=True)
        )
        key = (id(value), places)
        if key not in self.seen:
            self.keep_alive.append(value)
            result = self._visit(value, places)
            if not isinstance(result, Ref):
                return result
            self.seen[key] = result
        return self.seen[key]

    def _visit(self, value: Value, places: tuple[Place, ...]) -> Ref | float:
        match value:
            case Tensor():
                return self._load(value, places)
            case Map():
                return self._map(value, places)
            case Reduce():
                return self._reduce(value, places)
            case Reorder():
                return self.visit(value.argument, _reordered(value, places))
            case Extent():
                return self._add(_Draft("size", extent=self.sizes.canonical(value.extent)))
            case Position():
                return self._position(value, places)
            case Regrouped():
                raise Misfit(value)
            case Broadcast():
                argument = value.argument
                if not isinstance(argument, Value):
                    return argument
                return self.visit(argument, self._aligned(argument, value.shape, places))
        raise TypeError(f"cannot place {type(value).__name__}")

    def _aligned(self, argument: Value, shape: tuple[Size, ...], places: tuple[Place, ...]) -> tuple[Place, ...]:
        """Return the places of an argument's dimensions when it is broadcast to `shape`."""
        shift = len(shape) - len(argument.shape)
        result: list[Place] = []
        for index, extent in enumerate(argument.shape):
            place = places[index + shift]
            repeated = self.sizes.value(extent) == 1 and self.sizes.value(shape[index + shift]) != 1
            result.append(Spread(place) if repeated and isinstance(place, Axis) else place)
        return tuple(result)

    def _load(self, value: Tensor, places: tuple[Place, ...]) -> Ref:
        strides: dict[Axis, Size] = {}
        for place, stride in zip(places, value.strides, strict=True):
            if isinstance(place, Axis) and stride != 0:
                strides[place] = strides.get(place, ZERO) + self.sizes.canonical(stride)
        boolean = value.dtype == "bool"
        return self._add(_Draft("load", (), strides, value, axes=frozenset(strides), boolean=boolean))

    def _position(self, value: Position, places: tuple[Place, ...]) -> Ref:
        strides = {place: sympify(value.step) for place in places if isinstance(place, Axis)}
        walk = Tensor(value.shape, "int32", "", (sympify(value.step),), sympify(value.first))
        return self._add(_Draft("position", (), strides, walk, axes=frozenset(strides)))

    def _map(self, value: Map, places: tuple[Place, ...]) -> Ref:
        arguments = tuple(
            self.visit(argument, self._aligned(argument, value.shape, places))
            if isinstance(argument, Value)
            else argument
            for argument in value.arguments
        )
        used = [self.drafts[argument.step] for argument in arguments if isinstance(argument, Ref)]
        axes = frozenset[Axis]().union(*(draft.axes for draft in used))
        level = max((draft.level for draft in used), default=0)
        boolean = value.dtype == "bool"
        return self._add(_Draft(value.function, arguments, idiom=value.idiom, axes=axes, level=level, boolean=boolean))

    def _reduce(self, value: Reduce, places: tuple[Place, ...]) -> Ref | float:
        inner = list(places)
        reduced = [axis for axis in self.axes if axis.reduced]
        fresh: list[Axis] = []
        axes = tuple(axis for axis in value.axes if value.argument.shape[axis] != 1)
        if not axes and not value.function.startswith("arg"):
            return self.visit(value.argument, places)  # a single element is its own sum and maximum
        for axis in axes:
            place = places[axis]
            extent = value.argument.shape[axis]
            shared = reduced[axes.index(axis)] if len(reduced) == len(axes) else None
            if isinstance(place, Spread) and self.sizes.same(place.axis.size, extent) and place.axis not in places:
                inner[axis] = place.axis
            elif shared is not None and self.sizes.same(shared.size, extent) and shared not in places:
                inner[axis] = shared
            elif not reduced:
                fresh.append(Axis(self.sizes.canonical(extent), reduced=True))
                inner[axis] = fresh[-1]
            else:
                raise Misfit(value)
        chosen = {place for index, place in enumerate(inner) if index in axes}
        if reduced and chosen != set(reduced):
            raise Misfit(value)
        if fresh and any(axis not in places for axis in self.axes if axis.size != 1):
            raise Misfit(value)  # the result is broadcast along an axis that the reduction does not have
        self._adopt(inner, chosen, value)
        argument = self.visit(value.argument, tuple(inner))
        if not isinstance(argument, Ref):
            raise Misfit(value)
        source = self.drafts[argument.step]
        kept = source.axes - {axis for axis in self.axes if axis.reduced}
        return self._add(
            _Draft(value.function, (argument,), reduction=value, idiom=value.idiom, axes=kept, level=source.level + 1)
        )

    def _adopt(self, inner: list[Place], chosen: set[Place], value: Reduce) -> None:
        """Mark the chosen axes as reduced, and order the nest's axes as the argument has them."""
        for place in chosen:
            if not isinstance(place, Axis):
                raise Misfit(value)
            place.reduced = True
        order = [place for place in inner if isinstance(place, Axis)]
        if any(axis not in self.axes for axis in order):
            self.axes = order + [axis for axis in self.axes if axis not in order]

    def _add(self, draft: _Draft) -> Ref:
        """Add a draft, unless there is one that computes the same; return its step."""
        key = draft.key()
        if key not in self.by_key:
            self.drafts.append(draft)
            self.by_key[key] = Ref(len(self.drafts) - 1)
        return self.by_key[key]


def _reordered(value: Reorder, places: tuple[Place, ...]) -> tuple[Place, ...]:
    inner: list[Place] = [None] * len(value.argument.shape)
    for place, source in zip(places, value.sources, strict=True):
        if source is not None:
            inner[source] = place
    return tuple(inner)


@dataclass(frozen=True)
class IterationSpace:
    """The size of a stage: the length of its vector dimension, and how many vectors it works on."""

    length: Size
    vectors: Size = ONE


def fuse(
    value: Value, target: Tensor, sizes: Sizes, materialise: Callable[[Value], Tensor], floats: Callable[[str], str]
) -> tuple[Nest, IterationSpace]:
    """Return the loop nest that computes `value` into `target`, and its iteration space.

    `materialise` is called for parts that need a nest of their own, and returns the tensor that holds the part.
    `floats` returns a buffer with the same elements as floats.
    """
    replaced: dict[int, Tensor] = {}
    while True:
        value, target = _opened(value, target)
        own = tuple(Axis(sizes.canonical(extent)) for extent in value.shape)
        builder = NestBuilder(sizes, axes=list(own))
        try:
            root = builder.visit(value, own)
        except Misfit as misfit:
            part = _mean(value, misfit.value)
            replaced[id(part)] = materialise(part)
            value = substituted(value, replaced)
            continue
        reduction = _whole_reduction(builder, root)
        if reduction is not None:
            replaced[id(reduction)] = materialise(reduction)
            value = substituted(value, replaced)
            continue
        walk = {axis: sizes.canonical(stride) for axis, stride in zip(own, target.strides, strict=True)}
        nest, space = _finish(builder, root, walk, target)
        large = _part(value) if _vectors(nest) > MOST_VECTORS else None
        if large is not None:
            replaced[id(large)] = materialise(large)
            value = substituted(value, replaced)
            continue
        scattered = _scattered(builder, nest)
        if not scattered:
            return nest, space
        for tensor in scattered:
            replaced[id(tensor)] = replace(tensor, dtype="float32", buffer=floats(tensor.buffer))
        value = substituted(value, replaced)


def _nodes(value: Value, through: type[Value] | UnionType) -> Iterator[Value]:
    """Yield a value and all that it is computed from, as far as values of these types are in between."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, through):
            inner = node.arguments if isinstance(node, Map) else (getattr(node, "argument", None),)
            waiting += [each for each in inner if isinstance(each, Value)]


def _opened(value: Value, target: Tensor) -> tuple[Value, Tensor]:
    """Return a value and its target with the dimensions of a regrouped part, if all other parts can have them too."""
    for node in _nodes(value, Map):
        if isinstance(node, Regrouped) and node.shape == value.shape:
            first, second = node.argument.shape[node.axis : node.axis + 2]
            opened, place = (split(each, node.axis, (first, second)) for each in (value, target))
            if opened is not None and isinstance(place, Tensor):
                return _opened(opened, place)
    return value, target


def _vectors(nest: Nest) -> int:
    """Return how many vectors of global memory a nest reads."""
    return sum(step.access is not None and step.access.step != "0" for step in nest.steps)


def _part(value: Value) -> Value | None:
    """Return the largest part of a value that few enough tensors make up; None if there is no smaller part."""
    leaves: dict[int, set[int]] = {}
    parts: list[Map] = []

    def visit(node: Value) -> set[int]:
        if id(node) not in leaves:
            inner = node.arguments if isinstance(node, Map) else (getattr(node, "argument", None),)
            below = [visit(item) for item in inner if isinstance(item, Value)]
            leaves[id(node)] = {id(node)} if isinstance(node, Tensor) else set().union(*below)
            if isinstance(node, Map) and node is not value and node.dtype == "float32":
                parts.append(node)
        return leaves[id(node)]

    visit(value)
    small = [node for node in parts if 1 < len(leaves[id(node)]) <= MOST_VECTORS - 2]
    return max(small, key=lambda node: len(leaves[id(node)]), default=None)


def _scattered(builder: NestBuilder, nest: Nest) -> list[Tensor]:
    """Return the tensors that have to be floats: instructions gather only floats, and bfloat16 is no number in C."""
    pairs = zip(builder.drafts, nest.steps, strict=True)
    loads = [(draft.tensor, step.access) for draft, step in pairs if draft.tensor is not None and step.access]
    return [
        tensor
        for tensor, access in loads
        if access.dtype != "float32"
        and (access.step not in ("0", "1") or (access.step == "0" and access.dtype == "bfloat16"))
    ]


def _mean(value: Value, total: Reduce | Regrouped) -> Value:
    """Return the mean that a sum belongs to, if a further reduction uses it; otherwise the sum.

    Everything that uses such a mean must see the same last bit, so the division is computed only once.
    """
    for node in _nodes(value, Map | Reduce | Regrouped | Reorder | Broadcast) if isinstance(value, Reduce) else ():
        if isinstance(node, Map) and node.idiom == "numeric.mean-divisor" and node.arguments[0] is total:
            return node
    return total


def _whole_reduction(builder: NestBuilder, root: Ref | float) -> Reduce | None:
    """Return a reduction to a single number that a larger nest uses; fused, it would keep that nest on one core."""
    if not isinstance(root, Ref) or not any(axis.reduced for axis in builder.drafts[root.step].axes):
        return None
    if any(not axis.reduced and builder.sizes.value(axis.size) != 1 for axis in builder.axes):
        return None
    return next((draft.reduction for draft in builder.drafts if draft.reduction is not None), None)


def substituted(value: Value, replaced: dict[int, Tensor]) -> Value:
    """Return the tree with some values replaced by tensors that hold them."""
    if not replaced:
        return value
    memo: dict[int, Value] = {}

    def walk(node: Value) -> Value:
        if id(node) in replaced:
            return replaced[id(node)]
        if id(node) not in memo:
            memo[id(node)] = rebuild(node)
        return memo[id(node)]

    def rebuild(node: Value) -> Value:
        match node:
            case Map():
                arguments = tuple(walk(a) if isinstance(a, Value) else a for a in node.arguments)
                return (
                    node
                    if arguments == node.arguments
                    else Map(node.shape, node.dtype, node.function, arguments, node.idiom)
                )
            case Reduce():
                inner = walk(node.argument)
                return (
                    node
                    if inner is node.argument
                    else Reduce(node.shape, node.dtype, node.function, inner, node.axes, node.idiom)
                )
            case Reorder():
                inner = walk(node.argument)
                return node if inner is node.argument else Reorder(node.shape, node.dtype, inner, node.sources)
            case Regrouped():
                inner = walk(node.argument)
                return node if inner is node.argument else Regrouped(node.shape, node.dtype, inner, node.axis)
            case Broadcast() if isinstance(node.argument, Value):
                inner = walk(node.argument)
                return node if inner is node.argument else Broadcast(node.shape, node.dtype, inner)
        return node

    return walk(value)


@dataclass
class _Layout:
    """The loops of a nest after merging, and the names of the tiling's fields."""

    groups: list[list[Axis]]
    fields: dict[str, Size] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vector = self.groups[-1]
        self.kept = [group for group in self.groups[:-1] if not group[0].reduced]
        self.reduced = [group for group in self.groups[:-1] if group[0].reduced]
        self.kept_names = self._named("rows", self.kept)
        self.reduced_names = self._named("axis", self.reduced)
        self.fields["length"] = _extent(self.vector)

    def _named(self, label: str, groups: list[list[Axis]]) -> tuple[str, ...]:
        names = (label,) if len(groups) == 1 else tuple(f"{label}{index}" for index in range(len(groups)))
        self.fields.update({name: _extent(group) for name, group in zip(names, groups, strict=True)})
        return names

    def name(self, extent: Size, label: str) -> str:
        """Return the field that holds a size; add one if there is none."""
        for name, size in self.fields.items():
            if size == extent:
                return name
        fresh = next(name for n in range(99) if (name := f"{label}{n or ''}") not in self.fields)
        self.fields[fresh] = extent
        return fresh

    def stride(self, extent: Size) -> str:
        """Return a stride as device arithmetic: a product of the inner loops' sizes if it is one, otherwise a field."""
        if extent.is_Integer:
            return str(extent)
        if all(term.could_extract_minus_sign() for term in Add.make_args(extent)):
            # Rows that are read backwards: the sign shows that they do not follow each other.
            return f"-{self.stride(-extent)}"
        sizes = [(name, self.fields[name]) for name in self._order()]
        for start in range(len(sizes)):
            if product(size for _, size in sizes[start:]) == extent:
                return " * ".join(f"t.{name}" for name, _ in sizes[start:])
        return f"t.{self.name(extent, 'stride')}"

    def _order(self) -> list[str]:
        kept, reduced = list(self.kept_names), list(self.reduced_names)
        names = [(reduced if group[0].reduced else kept).pop(0) for group in self.groups[:-1]]
        return [*names, "length"]


def _finish(
    builder: NestBuilder, root: Ref | float, output: dict[Axis, Size], target: Tensor
) -> tuple[Nest, IterationSpace]:
    if not isinstance(root, Ref):
        root = builder._add(_Draft("constant", (root,)))
    _put_windows_inside(builder, root, output)
    layout = _Layout(_collapse(builder, output))
    steps = _labelled([_step(draft, layout) for draft in builder.drafts])
    store = Store(root.step, replace(_access(target, output, layout), label=target.buffer))
    fields = tuple((name, c_expression(extent)) for name, extent in layout.fields.items())
    vector_reduced = layout.vector[0].reduced
    nest = Nest("", fields, layout.kept_names, layout.reduced_names, "length", vector_reduced, steps, (store,))
    return nest, IterationSpace(layout.fields["length"], product(_extent(group) for group in layout.groups[:-1]))


def _put_windows_inside(builder: NestBuilder, root: Ref, output: dict[Axis, Size]) -> None:
    """Make a kept axis of neighbours the vector dimension in place of a short window that is reduced.

    Windows overlap, so that their first elements are neighbours as well as the elements of one window.
    """
    window = next((axis for axis in reversed(builder.axes) if axis.size != 1), None)
    if window is None or not window.reduced or not window.size.is_Integer or window.size > WINDOW:
        return
    reductions = {draft.reduction.function for draft in builder.drafts if draft.reduction}
    if not reductions <= MERGED or any(axis.reduced for axis in builder.drafts[root.step].axes):
        return
    if any(draft.function == "position" for draft in builder.drafts):
        return
    walks = [draft.strides for draft in builder.drafts if draft.tensor is not None]
    for axis in reversed(builder.axes):
        even = all(walk.get(axis, ZERO) in (0, 1) for walk in walks) and output.get(axis, ZERO) == 1
        if not axis.reduced and even and builder.sizes.value(axis.size) > window.size:
            builder.axes.remove(axis)
            builder.axes.append(axis)
            return


def _labelled(steps: list[Step]) -> tuple[Step, ...]:
    """Return the steps with a distinct label for every access."""
    seen: dict[str, int] = {}
    buffers = {step.access.buffer for step in steps if step.access}
    result = []
    for step in steps:
        if step.access:
            buffer = step.access.buffer
            number = seen.get(buffer, -1) + 1
            while number and f"{buffer}{number}" in buffers:  # temp11 may be a buffer of its own
                number += 1
            seen[buffer] = number
            step = replace(step, access=replace(step.access, label=f"{buffer}{number or ''}"))
        result.append(step)
    return tuple(result)


def _extent(group: list[Axis]) -> Size:
    return product(axis.size for axis in group)


def _collapse(builder: NestBuilder, output: dict[Axis, Size]) -> list[list[Axis]]:
    """Return the axes in groups: neighbouring axes that every operand walks as one are merged."""
    walks = [draft.strides for draft in builder.drafts if draft.tensor is not None] + [output]
    groups: list[list[Axis]] = []
    for axis in builder.axes:
        if axis.size == 1:
            continue
        if (
            groups
            and groups[-1][-1].reduced == axis.reduced
            and all(_joined(walk, groups[-1][-1], axis) for walk in walks)
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups or [builder.axes[-1:] or [Axis(ONE)]]


def _joined(walk: dict[Axis, Size], outer: Axis, inner: Axis) -> bool:
    return bool(walk.get(outer, ZERO) == walk.get(inner, ZERO) * inner.size)


def _step(draft: _Draft, layout: _Layout) -> Step:
    vector = layout.vector
    in_vector = any(axis in draft.axes for axis in vector)
    inside = any(axis in draft.axes for axis in sum(layout.reduced, vector if vector[0].reduced else []))
    walk = None if draft.tensor is None else _access(draft.tensor, draft.strides, layout)
    access, index = (None, walk) if draft.function == "position" else (walk, None)
    function = draft.reduction.function if draft.reduction else None
    held = "" if draft.extent is None else layout.name(draft.extent, "divisor")
    return Step(
        draft.function,
        draft.arguments,
        access,
        function,
        draft.idiom,
        in_vector,
        inside,
        draft.level,
        draft.boolean,
        held,
        index,
    )


def _access(tensor: Tensor, strides: dict[Axis, Size], layout: _Layout) -> Access:
    walks = [strides.get(group[-1], ZERO) for group in layout.kept]
    pairs = zip(walks, walks[1:], layout.kept[1:], strict=False)
    return Access(
        tensor.buffer,
        tensor.dtype,
        tuple(layout.stride(walk) for walk in walks),
        tuple(layout.stride(strides.get(group[-1], ZERO)) for group in layout.reduced),
        layout.stride(strides.get(layout.vector[-1], ZERO)),
        "0" if tensor.offset == 0 else f"t.{layout.name(tensor.offset, 'offset')}",
        all(outer == inner * _extent(group) for outer, inner, group in pairs),
    )
