"""Reads the ATen graph of a module into a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Map, Reduce
from kernel_gym.authors.apprentice.frontend.identifiers import tensor_identifier
from kernel_gym.authors.apprentice.frontend.operators import HANDLERS
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Pieces, Plan, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder, Shapes
from kernel_gym.authors.apprentice.frontend.sizes import Size, c_expression
from kernel_gym.authors.apprentice.frontend.workspace import shared
from kernel_gym.tasks.graph import GETITEM, Call, Graph, Result

#: By node, for numbers that differ at another case: the other number and the shapes of the inputs there.
Numbers = dict[str, tuple[float, dict[str, tuple[int, ...]]]]

#: A product that takes more vectors than this is always computed on the cube unit.
HEAVY = 200_000


def read(
    graph: Graph,
    name: str,
    title: str,
    cases: Sequence[Shapes] = (),
    twin: Callable[[], Graph] | None = None,
    inputs: Sequence[str] = (),
    fused: bool = True,
) -> Plan:
    """Return the plan of a module.

    Args:
        graph: The module's graph at the public case.
        name: The name of the plan, from which the kernel's names are made.
        title: The first comment of the kernel.
        cases: The shapes of all inputs at every case of the task.
        twin: Returns the same module's graph at another case; numbers in which the two differ depend on the sizes.
        inputs: The names of the kernel's inputs in order; by default the tensor arguments, then the module's state.
        fused: False to write every operator's result to memory.

    Returns:
        The plan.

    Raises:
        Unsupported: The graph has an operator, or a use of one, that has no handler.
    """
    builder = PlanBuilder(cases)
    numbers = _numbers(graph, twin)
    values: dict[str, Any] = dict(_inputs(graph, builder, inputs))
    for call in graph.calls:
        value = _call(builder, call, values, numbers)
        values[call.name] = value if fused else _in_memory(builder, value)
    for index, (output, tensor) in enumerate(graph.outputs):
        if tensor is None:
            raise Unsupported(f"Unsupported: output {index} is not a tensor")
        label = "out" if len(graph.outputs) == 1 else f"out{index}"
        builder.output(values[output], label, index, tensor.dtype)
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


def _numbers(graph: Graph, twin: Callable[[], Graph] | None) -> Numbers:
    """Return the factors that differ at another case, by node."""
    scaled = ("aten.mul.Scalar", "aten.mul.Tensor", "aten.div.Tensor")
    factors = [call for call in graph.calls if call.operator in scaled and isinstance(call.arguments[1], int | float)]
    if twin is None or not factors:
        return {}
    other = twin()
    theirs = {call.name: call for call in other.calls}
    shapes = {tensor_identifier(item.label): item.tensor.shape for item in other.inputs if item.tensor}
    pairs = [(call, theirs[call.name].arguments[1]) for call in factors if call.name in theirs]
    return {
        call.name: (number, shapes)
        for call, number in pairs
        if isinstance(number, int | float) and number != call.arguments[1]
    }


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


def _inputs(graph: Graph, builder: PlanBuilder, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Declare the inputs in the order of the kernel; return the values of all placeholders by name."""
    tensors = [item.name for item in graph.inputs if item.is_argument and item.tensor]
    order = {name: index for index, name in enumerate(tensors)}
    state = list(names[len(tensors) :] or graph.state)
    for item in graph.inputs:
        if not item.is_argument and item.label in state:
            order[item.name] = len(tensors) + state.index(item.label)
    lifted = len(tensors) + len(state)
    values: list[tuple[str, Any]] = []
    for item in graph.inputs:
        if item.tensor is None:
            values.append((item.name, item.value))
            continue
        if item.name not in order:
            order[item.name] = lifted
            lifted += 1
        label, tensor = tensor_identifier(item.label), item.tensor
        values.append((item.name, builder.input(label, order[item.name], tensor.shape, tensor.dtype)))
    return values


def _call(builder: PlanBuilder, call: Call, values: dict[str, Any], numbers: Numbers) -> Any:
    """Return the value of one call, from the handler of its operator."""

    def resolved(argument: Any) -> Any:
        if isinstance(argument, Result):
            return values[argument.name]
        if isinstance(argument, int | float) and call.name in numbers:
            return builder.sized_number(argument, *numbers[call.name])
        return [resolved(item) for item in argument] if isinstance(argument, list) else argument

    arguments = [resolved(argument) for argument in call.arguments]
    if call.operator == GETITEM:
        source, index = arguments
        return source[index]
    handler = HANDLERS.get(call.operator)
    if handler is None:
        raise Unsupported(f"Unsupported: {call.operator}")
    return handler(builder, *arguments, **{name: resolved(value) for name, value in call.keywords.items()})
