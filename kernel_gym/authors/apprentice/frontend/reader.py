"""From an exported ATen graph to a plan."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isclose
from typing import Any

import torch
from sympy import expand, sympify
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from kernel_gym.authors.apprentice.frontend.expression import Broadcast, Extent, Map, Reduce, Tensor, Value, contiguous
from kernel_gym.authors.apprentice.frontend.operators import HANDLERS, Unsupported
from kernel_gym.authors.apprentice.frontend.operators.products import by_vectors
from kernel_gym.authors.apprentice.frontend.plan import (
    Buffer,
    Either,
    Matrix,
    Nest,
    Pieces,
    Plan,
    Product,
    Scan,
    Stage,
)
from kernel_gym.authors.apprentice.frontend.regions import Reach, cut
from kernel_gym.authors.apprentice.frontend.sizes import Size, Sizes, c_expression, product, row_major, size
from kernel_gym.authors.apprentice.frontend.workspace import renamed, shared

_CODES = {
    torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64",
    torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool",
    torch.float64: "float64",
}  # fmt: skip


Shapes = tuple[tuple[int, ...], ...]

#: A product that takes more vectors than this is left to the cube unit.
HEAVY = 200_000


@dataclass
class Reader:
    """Reads one graph: tensors become values, values that leave the graph become stages."""

    #: Shapes of all inputs at every case of the task.
    cases: Sequence[Shapes] = ()
    sizes: Sizes = field(default_factory=Sizes)
    buffers: list[Buffer] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    reaches: dict[str, Reach] = field(default_factory=dict)
    #: Parts of the workspace that turned out to be outputs.
    moved: dict[str, str] = field(default_factory=dict)
    #: Numbers of the graph that are others at another case.
    twin: dict[str, tuple[float, dict[str, tuple[int, ...]]]] = field(default_factory=dict)
    _held: dict[int, tuple[Value, Tensor]] = field(default_factory=dict)

    def input(self, name: str, index: int, meta: torch.Tensor) -> Tensor:
        """An input of the kernel. A dimension that is 1 at every case is there to be broadcast: a literal."""
        if any(index >= len(shapes) for shapes in self.cases):
            raise Unsupported(f"Unsupported: the constant {name}, which not every case has")
        met = [tuple(meta.shape), *(shapes[index] for shapes in self.cases)]
        ones = [all(shape[axis] == 1 for shape in met) for axis in range(meta.dim())]
        shape = tuple(
            size(1) if ones[axis] else self.sizes.atom(f"{name}.shape[{axis}]", int(n))
            for axis, n in enumerate(meta.shape)
        )
        self._declare(name, _CODES[meta.dtype], "input", index, shape)
        return contiguous(name, shape, _CODES[meta.dtype])

    def _declare(self, name: str, dtype: str, origin: str, index: int, shape: tuple[Size, ...]) -> None:
        self.buffers.append(Buffer(name, dtype, origin, index, c_expression(product(shape)), len(shape)))

    def tensor(self, value: Value) -> Tensor:
        """The value in global memory, contiguous; computed by a stage of its own if it isn't there yet."""
        if isinstance(value, Tensor) and value.contiguous:
            return value
        if id(value) not in self._held:
            self._held[id(value)] = (value, self.computed(value, self.scratch(value.shape)))
        return self._held[id(value)][1]

    def strided(self, value: Value) -> Tensor:
        """The value in global memory, seen through strides."""
        return value if isinstance(value, Tensor) else self.tensor(value)

    def scratch(self, shape: tuple[Size, ...]) -> Tensor:
        """A new part of the workspace."""
        index = sum(buffer.origin == "workspace" for buffer in self.buffers)
        self._declare(f"temp{index}", "float32", "workspace", index, shape)
        return contiguous(f"temp{index}", shape, "float32")

    def computed(self, value: Value, target: Tensor) -> Tensor:
        """Compute a value into a target, which may be a part of a larger tensor."""
        nest, reach = cut(value, target, self.sizes, self.tensor)
        self.add(nest, reach)
        return target

    def padded(
        self, value: Value, before: Sequence[Any], after: Sequence[Any], fill: float, apart: Sequence[int] = ()
    ) -> Tensor:
        """The value with its last dimensions padded by `fill`, and `apart - 1` fills between its elements."""
        apart = list(apart) or [1] * len(before)
        known = [self.sizes.value(sympify(n)) for n in (*before, *after)]
        if not any(known) and all(step == 1 for step in apart):
            return self.tensor(value)
        if min(known) < 0:
            raise Unsupported("Unsupported: a convolution whose padding is larger than its window")
        lead = len(value.shape) - len(before)
        wide = tuple(
            (extent - 1) * step + 1 + low + high
            for extent, step, low, high in zip(value.shape[lead:], apart, before, after, strict=True)
        )
        named = tuple(self.sizes.derive(f"padded{len(self.sizes.derived)}", expand(e)) for e in wide)
        whole = self.scratch((*value.shape[:lead], *named))
        self.computed(Broadcast(whole.shape, "float32", fill), whole)
        inner = whole.strides[lead:]
        offset = expand(sum(low * stride for low, stride in zip(before, inner, strict=True)))
        steps = tuple(expand(stride * step) for stride, step in zip(inner, apart, strict=True))
        self.computed(value, Tensor(value.shape, "float32", whole.buffer, (*whole.strides[:lead], *steps), offset))
        return whole

    def scan(self, value: Value, axis: int, function: str) -> Tensor:
        """A running sum or product along an axis."""
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
            Scan("", function, fields, source.buffer, target.buffer, last), Reach(parts["axis" if last else "length"])
        )
        return target

    def product(self, left: Tensor, right: Tensor, batch: int) -> Tensor:
        """A matrix product over `batch` leading dimensions."""
        left, right = self._dense(left, batch), self._dense(right, batch)
        value = by_vectors(self, left, right, batch)
        target = self.scratch(value.shape)
        nest, reach = cut(value, target, self.sizes, self.tensor)
        count = product(value.shape[:batch])
        times, m, n, k = (c_expression(e) for e in (count, left.shape[-2], right.shape[-1], left.shape[-1]))
        cube = Product("", _matrix(left, batch), _matrix(right, batch), target.buffer, times, m, n, k)
        self.add(Either("", (cube,), nest), reach)
        return target

    def nest(self, value: Value, target: Tensor) -> tuple[Nest, Reach]:
        """The loop nest that computes a value into a target."""
        return cut(value, target, self.sizes, self.tensor)

    def copied(self, tensor: Tensor) -> Value:
        """The tensor as a value that has to be computed: a copy."""
        return Map(tensor.shape, tensor.dtype, "same", (tensor,))

    def add(self, stage: Stage, reach: Reach) -> None:
        """Append a stage and remember its reach."""
        name = f"stage{len(self.stages)}"
        self.stages.append(replace(stage, name=name))
        self.reaches[name] = reach

    def _dense(self, tensor: Tensor, batch: int) -> Tensor:
        """An operand whose matrices lie one behind the other, stored by rows or by columns."""
        rows, columns = tensor.shape[-2:]
        both = [row_major(tensor.shape), (*row_major((*tensor.shape[:batch], columns, rows))[:batch], sympify(1), rows)]
        fits = any(
            all(self._walks(s, t, n) for s, t, n in zip(tensor.strides, walk, tensor.shape, strict=True))
            for walk in both
        )
        return tensor if fits and tensor.offset == 0 else self.tensor(self.copied(tensor))

    def _walks(self, stride: Size, wanted: Size, extent: Size) -> bool:
        return bool(extent == 1 or self.sizes.canonical(stride) == self.sizes.canonical(wanted))

    def sized_number(self, here: float, there: float, shapes: dict[str, tuple[int, ...]]) -> Value:
        """A number that depends on a size: a root of it, or one over that."""
        for symbol, value in self.sizes.values.items():
            found = re.fullmatch(r"(\w+)\.shape\[(\d)\]", str(symbol))
            other = shapes[found[1]][int(found[2])] if found else value
            for roots in (0, 1, 2):
                power = 0.5**roots
                for sign in (1, -1):
                    if isclose(here, value ** (sign * power), rel_tol=1e-6) and isclose(
                        there, other ** (sign * power), rel_tol=1e-6
                    ):
                        return _rooted(Extent((), "float32", symbol), roots, sign)
        raise Unsupported(f"Unsupported: the number {here:.6g}, which changes with the sizes in an unknown way")

    def view(self, value: Value, shape: Sequence[int]) -> Value:
        """The value with another shape of the same number of elements, given at the public case."""
        given = self.sizes.value(product(value.shape))
        known = 1
        for extent in shape:
            known *= extent if extent != -1 else 1
        return self.reshape(value, self.sizes.regroup(value.shape, [n if n != -1 else given // known for n in shape]))

    def reshape(self, value: Value, shape: tuple[Size, ...]) -> Value:
        """The value with another shape of the same number of elements."""
        if shape == value.shape:
            return value
        if isinstance(value, Broadcast) and not isinstance(value.argument, Value):
            return Broadcast(shape, value.dtype, value.argument)
        dense = self.tensor(value)
        return Tensor(shape, dense.dtype, dense.buffer, row_major(shape), dense.offset)

    def output(self, value: Value, name: str, index: int, dtype: str) -> None:
        """Make a value the n-th output; what a stage has computed into the workspace just changes its place."""
        self._declare(name, dtype, "output", index, value.shape)
        if isinstance(value, Tensor) and value.contiguous and dtype == "float32" and value.buffer not in self.moved:
            held = next(buffer for buffer in self.buffers if buffer.name == value.buffer)
            if held.origin == "workspace":
                self.moved[value.buffer] = name
                return
        self.computed(value, contiguous(name, value.shape, dtype))

    def moved_stages(self) -> list[Stage]:
        """The stages, with what became an output in its new place."""
        return [renamed(stage, self.moved) for stage in self.stages]


def _rooted(value: Value, roots: int, sign: int) -> Value:
    for _ in range(roots):
        value = Map((), "float32", "sqrt", (value,))
    return value if sign > 0 else Map((), "float32", "div", (1.0, value))


def _matrix(tensor: Tensor, batch: int) -> Matrix:
    transposed = tensor.strides[-1] != 1 and tensor.shape[-1] != 1
    return Matrix(tensor.buffer, transposed, c_expression(product(tensor.shape[:batch])), "")


def read(
    program: ExportedProgram,
    name: str,
    title: str,
    cases: Sequence[Shapes] = (),
    twin: Callable[[], ExportedProgram] | None = None,
    inputs: Sequence[str] = (),
    fused: bool = True,
) -> Plan:
    """The plan of an exported module; `cases` are shapes of all inputs that the kernel will also meet.

    `twin` gives the same module at another case: numbers in which the two differ depend on the sizes. `inputs` are the
    names of the kernel's inputs in order; without it, tensor arguments come first and then the program's state. Unless
    `fused`, every operator's result goes to memory.
    """
    reader = Reader(cases)
    reader.twin = _numbers(program, twin)
    values: dict[str, Any] = dict(_inputs(program, reader, inputs))
    for node in program.graph.nodes:
        if node.op == "call_function":
            value = _call(reader, node, values)
            values[node.name] = value if fused else _in_memory(reader, value)
    metas = {node.name: node.meta.get("val") for node in program.graph.nodes}
    for index, spec in enumerate(program.graph_signature.output_specs):
        if not isinstance(spec.arg, TensorArgument):
            raise Unsupported(f"Unsupported: output {index} is not a tensor")
        label = "out" if len(program.graph_signature.output_specs) == 1 else f"out{index}"
        reader.output(values[spec.arg.name], label, index, _CODES[metas[spec.arg.name].dtype])
    stages = tuple(_known(reader, stage, cases) for stage in reader.moved_stages())
    derived = tuple(
        (str(symbol), c_expression(text))
        for symbol, text in reader.sizes.derived.items()
        if symbol not in reader.sizes.local
    )
    buffers = tuple(buffer for buffer in reader.buffers if buffer.name not in reader.moved)
    plan = Plan(name, title, buffers, derived, stages)
    return plan if fused else shared(plan)


def _in_memory(reader: Reader, value: Any) -> Any:
    """An operator's result, computed by a stage of its own."""
    return reader.tensor(value) if isinstance(value, Map | Reduce) and value.dtype == "float32" else value


def _numbers(
    program: ExportedProgram, twin: Callable[[], ExportedProgram] | None
) -> dict[str, tuple[float, dict[str, tuple[int, ...]]]]:
    """Factors that differ at another case, by node: the other number, and the shapes of the inputs there."""
    scaled = ("aten.mul.Scalar", "aten.mul.Tensor", "aten.div.Tensor")
    factors = [
        node for node in program.graph.nodes if str(node.target) in scaled and isinstance(node.args[1], int | float)
    ]
    if twin is None or not factors:
        return {}
    other = twin()
    theirs = {node.name: node for node in other.graph.nodes}
    metas = {node.name: node.meta.get("val") for node in other.graph.nodes if node.op == "placeholder"}
    shapes = {
        _identifier(spec.target or spec.arg.name): tuple(int(n) for n in metas[spec.arg.name].shape)
        for spec in other.graph_signature.input_specs
        if isinstance(metas[spec.arg.name], torch.Tensor)
    }
    pairs = [(node, theirs[node.name].args[1]) for node in factors if node.name in theirs]
    return {node.name: (number, shapes) for node, number in pairs if number != node.args[1]}


def _known(reader: Reader, stage: Any, cases: Sequence[Shapes]) -> Any:
    """The stage with what is known about its size at all cases."""
    if isinstance(stage, Pieces):
        return replace(stage, stages=tuple(_known(reader, part, cases) for part in stage.stages))
    if stage.name not in reader.reaches:
        return stage
    reach = reader.reaches[stage.name]
    inputs = [buffer for buffer in reader.buffers if buffer.origin == "input"]
    index = {f"{b.name}.shape[{axis}]": (b.index, axis) for b in inputs for axis in range(b.rank)}
    at = [{name: shapes[i][axis] for name, (i, axis) in index.items()} for shapes in cases]

    def largest(extent: Size) -> int:
        return max([reader.sizes.value(extent), *(reader.sizes.value_at(extent, shapes) for shapes in at)])

    if isinstance(stage, Either):
        cube = tuple(_known(reader, part, cases) for part in stage.cube)
        return replace(stage, cube=cube, longest=largest(reach.length), heavy=largest(reach.vectors) > HEAVY)
    if isinstance(stage, Nest):
        return replace(stage, longest=largest(reach.length), elements=largest(reach.length * reach.vectors))
    return replace(stage, longest=largest(reach.length))


def _inputs(program: ExportedProgram, reader: Reader, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Placeholders by name, with the index each has among the kernel's inputs."""
    metas = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    specs = program.graph_signature.input_specs
    tensors = [
        spec for spec in specs if spec.kind is InputKind.USER_INPUT and isinstance(metas[spec.arg.name], torch.Tensor)
    ]
    order = {spec.arg.name: index for index, spec in enumerate(tensors)}
    state = list(names[len(tensors) :] or program.state_dict)
    for spec in specs:
        if spec.target in state:
            order[spec.arg.name] = len(tensors) + state.index(spec.target)
    lifted = len(tensors) + len(state)
    found: list[tuple[str, Any]] = []
    for spec in specs:
        meta = metas[spec.arg.name]
        if not isinstance(meta, torch.Tensor):
            found.append((spec.arg.name, meta))
            continue
        if spec.arg.name not in order:
            order[spec.arg.name] = lifted
            lifted += 1
        label = _identifier(spec.target or spec.arg.name)
        found.append((spec.arg.name, reader.input(label, order[spec.arg.name], meta)))
    return found


def _identifier(name: str) -> str:
    """A name as a C identifier in camel case."""
    words = [word for word in re.split(r"\W+|_", name) if word]
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def _call(reader: Reader, node: torch.fx.Node, values: dict[str, Any]) -> Any:
    if node.target is operator.getitem:
        source, index = node.args
        return values[str(source)][index]
    handler = HANDLERS.get(str(node.target))
    if handler is None:
        raise Unsupported(f"Unsupported: {node.target}")

    def known(argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return values[argument.name]
        if isinstance(argument, int | float) and node.name in reader.twin:
            return reader.sized_number(argument, *reader.twin[node.name])
        return [known(item) for item in argument] if isinstance(argument, list | tuple) else argument

    return handler(
        reader, *(known(argument) for argument in node.args), **{k: known(v) for k, v in node.kwargs.items()}
    )
