"""Reads an exported ATen graph into a plan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from kernel_gym.authors.apprentice.frontend.expression import Map, Reduce
from kernel_gym.authors.apprentice.frontend.identifiers import tensor_identifier
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

#: A product that takes more vectors than this is always computed on the cube unit.
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
    """Return the plan of an exported module.

    Args:
        program: The module, exported at the public case.
        name: The name of the plan, from which the kernel's names are made.
        title: The first comment of the kernel.
        cases: The shapes of all inputs at every case of the task.
        twin: Exports the same module at another case; numbers in which the two differ depend on the sizes.
        inputs: The names of the kernel's inputs in order; by default the tensor arguments, then the program's state.
        fused: False to write every operator's result to memory.

    Returns:
        The plan.

    Raises:
        Unsupported: The graph has an operator, or a use of one, that has no handler.
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
    stages = tuple(_with_sizes(builder, stage, cases) for stage in builder.moved_stages())
    derived = tuple(
        (str(symbol), c_expression(text))
        for symbol, text in builder.sizes.derived.items()
        if symbol not in builder.sizes.local
    )
    buffers = tuple(buffer for buffer in builder.buffers if buffer.name not in builder.moved)
    plan = Plan(name, title, buffers, derived, stages)
    return plan if fused else shared(plan)


def _in_memory(builder: PlanBuilder, value: Any) -> Any:
    """Return an operator's result in memory, computed by a stage of its own."""
    return builder.tensor(value) if isinstance(value, Map | Reduce) and value.dtype == "float32" else value


def _numbers(program: ExportedProgram, twin: Callable[[], ExportedProgram] | None) -> Numbers:
    """Return the factors that differ at another case, by node."""
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
        tensor_identifier(spec.target or spec.arg.name): tuple(int(n) for n in metas[spec.arg.name].shape)
        for spec in other.graph_signature.input_specs
        if isinstance(metas[spec.arg.name], torch.Tensor)
    }
    pairs = [(node, theirs[node.name].args[1]) for node in factors if node.name in theirs]
    return {node.name: (number, shapes) for node, number in pairs if number != node.args[1]}


def _with_sizes(builder: PlanBuilder, stage: Any, cases: Sequence[Shapes]) -> Any:
    """Return the stage with its largest sizes over all cases."""
    if isinstance(stage, Pieces):
        return replace(stage, stages=tuple(_with_sizes(builder, part, cases) for part in stage.stages))
    if stage.name not in builder.spaces:
        return stage
    space = builder.spaces[stage.name]
    inputs = [buffer for buffer in builder.buffers if buffer.origin == "input"]
    index = {f"{b.name}.shape[{axis}]": (b.index, axis) for b in inputs for axis in range(b.rank)}
    at = [{name: shapes[i][axis] for name, (i, axis) in index.items()} for shapes in cases]

    def largest(extent: Size) -> int:
        return max([builder.sizes.value(extent), *(builder.sizes.value_at(extent, shapes) for shapes in at)])

    if isinstance(stage, Either):
        cube = tuple(_with_sizes(builder, part, cases) for part in stage.cube)
        return replace(stage, cube=cube, longest=largest(space.length), heavy=largest(space.vectors) > HEAVY)
    if isinstance(stage, Nest):
        return replace(stage, longest=largest(space.length), elements=largest(space.length * space.vectors))
    return replace(stage, longest=largest(space.length))


def _inputs(program: ExportedProgram, builder: PlanBuilder, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Declare the inputs in the order of the kernel; return the values of all placeholders by name."""
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
    values: list[tuple[str, Any]] = []
    for spec in specs:
        meta = metas[spec.arg.name]
        if not isinstance(meta, torch.Tensor):
            values.append((spec.arg.name, meta))
            continue
        if spec.arg.name not in order:
            order[spec.arg.name] = lifted
            lifted += 1
        label, shape = tensor_identifier(spec.target or spec.arg.name), tuple(int(n) for n in meta.shape)
        values.append((spec.arg.name, builder.input(label, order[spec.arg.name], shape, _CODES[meta.dtype])))
    return values


def _call(builder: PlanBuilder, node: torch.fx.Node, values: dict[str, Any], numbers: Numbers) -> Any:
    """Return the value of one node, from the handler of its operator."""
    if node.target is operator.getitem:
        source, index = node.args
        return values[str(source)][index]
    handler = HANDLERS.get(str(node.target))
    if handler is None:
        raise Unsupported(f"Unsupported: {node.target}")

    def resolved(argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return values[argument.name]
        if isinstance(argument, int | float) and node.name in numbers:
            return builder.sized_number(argument, *numbers[node.name])
        return [resolved(item) for item in argument] if isinstance(argument, list | tuple) else argument

    return handler(
        builder, *(resolved(argument) for argument in node.args), **{k: resolved(v) for k, v in node.kwargs.items()}
    )
