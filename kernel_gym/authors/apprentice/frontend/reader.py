"""From an exported ATen graph to a plan."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from kernel_gym.authors.apprentice.frontend.expression import Map, Reduce
from kernel_gym.authors.apprentice.frontend.operators import HANDLERS
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Pieces, Plan, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder, Shapes
from kernel_gym.authors.apprentice.frontend.sizes import Size, c_expression
from kernel_gym.authors.apprentice.frontend.workspace import shared

_CODES = {
    torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64",
    torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool",
    torch.float64: "float64",
}  # fmt: skip


#: By node, for numbers that differ at another case: the other number and the shapes of the inputs there.
Numbers = dict[str, tuple[float, dict[str, tuple[int, ...]]]]

#: A product that takes more vectors than this is left to the cube unit.
HEAVY = 200_000


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
    builder = PlanBuilder(cases)
    numbers = _numbers(program, twin)
    values: dict[str, Any] = dict(_inputs(program, builder, inputs))
    for node in program.graph.nodes:
        if node.op == "call_function":
            value = _call(builder, node, values, numbers)
            values[node.name] = value if fused else _in_memory(builder, value)
    metas = {node.name: node.meta.get("val") for node in program.graph.nodes}
    for index, spec in enumerate(program.graph_signature.output_specs):
        if not isinstance(spec.arg, TensorArgument):
            raise Unsupported(f"Unsupported: output {index} is not a tensor")
        label = "out" if len(program.graph_signature.output_specs) == 1 else f"out{index}"
        builder.output(values[spec.arg.name], label, index, _CODES[metas[spec.arg.name].dtype])
    stages = tuple(_known(builder, stage, cases) for stage in builder.moved_stages())
    derived = tuple(
        (str(symbol), c_expression(text))
        for symbol, text in builder.sizes.derived.items()
        if symbol not in builder.sizes.local
    )
    buffers = tuple(buffer for buffer in builder.buffers if buffer.name not in builder.moved)
    plan = Plan(name, title, buffers, derived, stages)
    return plan if fused else shared(plan)


def _in_memory(builder: PlanBuilder, value: Any) -> Any:
    """An operator's result, computed by a stage of its own."""
    return builder.tensor(value) if isinstance(value, Map | Reduce) and value.dtype == "float32" else value


def _numbers(program: ExportedProgram, twin: Callable[[], ExportedProgram] | None) -> Numbers:
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


def _known(builder: PlanBuilder, stage: Any, cases: Sequence[Shapes]) -> Any:
    """The stage with what is known about its size at all cases."""
    if isinstance(stage, Pieces):
        return replace(stage, stages=tuple(_known(builder, part, cases) for part in stage.stages))
    if stage.name not in builder.reaches:
        return stage
    reach = builder.reaches[stage.name]
    inputs = [buffer for buffer in builder.buffers if buffer.origin == "input"]
    index = {f"{b.name}.shape[{axis}]": (b.index, axis) for b in inputs for axis in range(b.rank)}
    at = [{name: shapes[i][axis] for name, (i, axis) in index.items()} for shapes in cases]

    def largest(extent: Size) -> int:
        return max([builder.sizes.value(extent), *(builder.sizes.value_at(extent, shapes) for shapes in at)])

    if isinstance(stage, Either):
        cube = tuple(_known(builder, part, cases) for part in stage.cube)
        return replace(stage, cube=cube, longest=largest(reach.length), heavy=largest(reach.vectors) > HEAVY)
    if isinstance(stage, Nest):
        return replace(stage, longest=largest(reach.length), elements=largest(reach.length * reach.vectors))
    return replace(stage, longest=largest(reach.length))


def _inputs(program: ExportedProgram, builder: PlanBuilder, names: Sequence[str]) -> list[tuple[str, Any]]:
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
        label, shape = _identifier(spec.target or spec.arg.name), tuple(int(n) for n in meta.shape)
        found.append((spec.arg.name, builder.input(label, order[spec.arg.name], shape, _CODES[meta.dtype])))
    return found


def _identifier(name: str) -> str:
    """A name as a C identifier in camel case."""
    words = [word for word in re.split(r"\W+|_", name) if word]
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def _call(builder: PlanBuilder, node: torch.fx.Node, values: dict[str, Any], numbers: Numbers) -> Any:
    if node.target is operator.getitem:
        source, index = node.args
        return values[str(source)][index]
    handler = HANDLERS.get(str(node.target))
    if handler is None:
        raise Unsupported(f"Unsupported: {node.target}")

    def known(argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return values[argument.name]
        if isinstance(argument, int | float) and node.name in numbers:
            return builder.sized_number(argument, *numbers[node.name])
        return [known(item) for item in argument] if isinstance(argument, list | tuple) else argument

    return handler(
        builder, *(known(argument) for argument in node.args), **{k: known(v) for k, v in node.kwargs.items()}
    )
