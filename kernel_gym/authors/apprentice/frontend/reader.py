"""Reads the ATen graph of a module into a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from math import isnan
from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Map, Reduce, Value
from kernel_gym.authors.apprentice.frontend.identifiers import tensor_identifier
from kernel_gym.authors.apprentice.frontend.operators import HANDLERS
from kernel_gym.authors.apprentice.frontend.operators.table import apply
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Pieces, Plan, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder, Shapes, setting_name
from kernel_gym.authors.apprentice.frontend.sizes import Size, c_expression
from kernel_gym.authors.apprentice.frontend.workspace import packed, shared
from kernel_gym.hardware.host.tensors import NPU_FACTOR
from kernel_gym.tasks.graph import GETITEM, Call, Graph, GraphInput, Result

#: By node, for numbers that differ at other cases: by place among the node's numbers, those at the other cases.
Numbers = dict[str, dict[int, tuple[float, ...]]]


#: Operators that only move elements; torch chooses among them by the sizes.
MOVING = frozenset(
    {
        "clone", "view", "_unsafe_view", "reshape", "expand", "permute", "unsqueeze", "squeeze", "alias", "contiguous",
        "copy", "_assert_tensor_metadata", "_to_copy",
    }
)  # fmt: skip
#: Operators of which a number is an operand.
SCALED = frozenset(
    f"aten.{name}.{form}"
    for name in ("add", "sub", "rsub", "mul", "div", "fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge", "clamp")
    for form in ("Tensor", "Scalar", "default")
)
#: Operators with numbers that may depend on sizes, beside those of `SCALED`.
SIZED = frozenset(
    f"aten.{name}"
    for name in (
        "slice.Tensor", "slice_scatter.default", "select.int", "split_with_sizes.default", "full.default",
        "arange.default", "arange.start", "arange.start_step", "constant_pad_nd.default", "repeat.default",
        "upsample_nearest2d.vec", "upsample_bilinear2d.vec", "upsample_bicubic2d.vec", "pow.Tensor_Scalar",
        "scalar_tensor.default", "unfold.default", "avg_pool2d.default", "max_pool2d_with_indices.default",
        "topk.default", "kthvalue.default",
    )
)  # fmt: skip
#: Bounds of slices from the first or to the last element.
OPEN = (0, 1, 2**63 - 1)

#: A module that calls more operators than this is a network.
LARGE = 60

#: A product that takes more vectors than this is always computed on the cube unit.
HEAVY = 200_000
#: How many times an expert's kernel may do its stages, each time for a part of the samples.
ROUNDS = (2, 4, 8, 16, 32)
#: Operators whose second argument is a shape.
VIEWS = frozenset(f"aten.{name}.default" for name in ("view", "reshape", "_unsafe_view", "expand"))
#: A graph with more reductions than this is cut between them.
MANY = 16


@dataclass
class _Views:
    """The shapes of views and repetitions at the other cases; the module is exported there when one is asked for."""

    graph: Graph
    twins: Sequence[Callable[[], Graph]]

    @cached_property
    def _graphs(self) -> list[tuple[dict[str, Call], dict[str, int]]]:
        # At a size of 1 torch may order operators and dimensions in another way; then the same name is another view.
        graphs = [other for twin in self.twins if _arranged(other := twin()) == _arranged(self.graph)]
        return [({call.name: call for call in graph.calls}, _dimensions(graph)) for graph in graphs]

    def of(self, name: str) -> list[tuple[Any, dict[str, int]]]:
        """Return the shape of a view at each case where there is one, with the dimensions of the inputs there."""
        calls_there = [(calls.get(name), dimensions) for calls, dimensions in self._graphs]
        return [(call.arguments[1], at) for call, at in calls_there if call is not None and call.operator in VIEWS]


def read(
    graph: Graph,
    name: str,
    title: str,
    cases: Sequence[Shapes] = (),
    twins: Sequence[Callable[[], Graph]] = (),
    inputs: Sequence[str] = (),
    fused: bool = True,
    steady: bool = True,
    edges: Sequence[Shapes] = (),
    expert: bool = False,
    compact: bool = False,
    saving: bool = False,
    samples: Callable[[], Sequence[int]] = tuple,
) -> Plan:
    """Return the plan of a module.

    Args:
        graph: The module's graph at the public case.
        name: The name of the plan, from which the kernel's names are made.
        title: The first comment of the kernel.
        cases: The shapes of all inputs at every case of the task.
        twins: Each returns the same module's graph at another case; numbers that differ there depend on the sizes.
        inputs: The names of the kernel's inputs in order; by default the tensor arguments, then the module's state.
        fused: False to write every operator's result to memory.
        steady: False if the module's own calls differ from case to case, which the graphs then have to rule out.
        edges: The shapes of all inputs where one size is large and the others are small.
        expert: True for stages that the apprentice does not know.
        compact: True to copy the results of a convolution by taps, so that reductions do not read them row by row.
        saving: True to read results that are in memory instead of what they were computed from, and to pack snugly.
        samples: Returns the places of the inputs whose first dimension counts samples that are computed alone.

    Returns:
        The plan.

    Raises:
        Unsupported: The graph has an operator, or a use of one, that has no handler.
    """
    others = [other for other in _others(graph, twins, steady) if len(other.calls) == len(graph.calls)]
    large = saving or len(graph.calls) > LARGE
    builder = PlanBuilder(cases, [_dimensions(other) for other in others], large, expert, compact)
    numbers = _numbers(graph, others)
    values: dict[str, Any] = dict(_inputs(graph, builder, inputs))
    builder.settings(graph.ints)
    widened, views = _widened(graph), _Views(graph, twins)
    cut = sum(map(_is_reduction, graph.calls)) > MANY
    for call in graph.calls:
        if cut and _is_reduction(call):
            _store_reduced(builder, call, values)
        builder.views_elsewhere = partial(views.of, call.name)
        value = _call(builder, call, values, numbers)
        if call.name in widened and isinstance(value, Value):
            value = apply(builder, f"as_{call.dtype}", value)
        values[call.name] = value if fused else _in_memory(builder, value)
    for index, (output, tensor) in enumerate(graph.outputs):
        if tensor is None:
            raise Unsupported(f"Unsupported: output {index} is not a tensor")
        label = "out" if len(graph.outputs) == 1 else f"out{index}"
        builder.output(values[output], label, index, tensor.dtype)
    at_edges = builder.dimensions(edges)
    stages = tuple(_with_sizes(builder, stage, at_edges) for stage in builder.moved_stages())
    derived = tuple(
        (str(symbol), c_expression(text))
        for symbol, text in builder.sizes.derived.items()
        if symbol not in builder.sizes.local
    )
    buffers = tuple(buffer for buffer in builder.buffers if buffer.name not in builder.moved)
    plan = Plan(name, title, buffers, derived, stages)
    if not fused:
        return shared(plan)
    if builder.fits():
        return plan
    elements = builder.largest_elements()
    try:
        return packed(plan, elements, partial(builder.holds, factor=NPU_FACTOR), snug=saving)
    except Unsupported:
        if expert:
            return _in_rounds(plan, builder, samples())
        if large:
            return packed(plan, elements, lambda places: True)
    return read(graph, name, title, cases, twins, inputs, steady=steady, edges=edges, saving=True)


def _in_rounds(plan: Plan, builder: PlanBuilder, samples: Sequence[int]) -> Plan:
    """Return a plan that computes a part of the samples at a time, so that the workspace holds their results."""
    inputs = [b.name for b in plan.buffers if b.origin == "input" and b.index in samples]
    batched = (*inputs, *(buffer.name for buffer in plan.buffers if buffer.origin == "output"))
    for rounds in ROUNDS if inputs else ():
        holds = partial(builder.holds, factor=NPU_FACTOR, rounds=rounds, batched=batched)
        with suppress(Unsupported):
            return replace(packed(plan, builder.largest_elements(), holds), rounds=rounds, batched=batched)
    raise Unsupported("Unsupported: the workspace does not hold all results of an expert")


def _widened(graph: Graph) -> set[str]:
    """Return the results in a half type that are converted to floats: only there does their rounding show."""
    halves = {call.name for call in graph.calls if call.dtype in ("float16", "bfloat16")}
    floats = [call for call in graph.calls if call.operator == "aten._to_copy.default" and call.dtype == "float32"]
    return halves & {argument.name for call in floats for argument in call.arguments if isinstance(argument, Result)}


def _is_reduction(call: Call) -> bool:
    return any(call.operator.startswith(f"aten.{name}.") for name in ("sum", "amax", "amin"))


def _store_reduced(builder: PlanBuilder, call: Call, values: dict[str, Any]) -> None:
    """Store what a reduction reads if it was reduced twice already: a long chain would be computed again and again."""
    for argument in call.arguments:
        if isinstance(argument, Result) and isinstance(values[argument.name], Value):
            value = values[argument.name]
            values[argument.name] = builder.tensor(value) if builder.depth(value) >= 2 else value


def _in_memory(builder: PlanBuilder, value: Any) -> Any:
    """Return an operator's result in memory, computed by a stage of its own."""
    return builder.tensor(value) if isinstance(value, Map | Reduce) and value.dtype == "float32" else value


def _others(graph: Graph, twins: Sequence[Callable[[], Graph]], steady: bool) -> list[Graph]:
    """Return the module's graphs at other cases, if a number of it may change from case to case."""
    shaped = any(_sized(call) and call.operator not in SCALED for call in graph.calls)
    if not twins or not (shaped or not steady or any(_sized(call) for call in graph.calls)):
        return []
    graphs = [twins[0]()]
    open_ = _dimensions(graphs[0]) == _dimensions(graph) or _differing(graph, graphs[0])
    # A network takes long to export. One with the same calls and the same numbers at other sizes is not exported again.
    if (shaped and len(graph.calls) <= LARGE) or not steady or open_:
        graphs += [twin() for twin in twins[1:]]
    # At a size of 1 torch may call other operators that compute the same; all sizes differ at the first and the last.
    if any(_computing(other) != _computing(graph) for other in (graphs[0], graphs[-1])):
        raise Unsupported("Unsupported: a module that calls other operators at other sizes (a loop over a dimension)")
    return graphs


def _differing(graph: Graph, other: Graph) -> bool:
    """Return whether the calls of two graphs differ in number or in their numbers."""
    return len(graph.calls) != len(other.calls) or bool(_numbers(graph, [other]))


def _dimensions(graph: Graph) -> dict[str, int]:
    """Return the dimensions of a graph's inputs and its settings by name."""
    tensors = [(label, item.tensor.shape) for label, item in _labelled(graph) if item.tensor]
    sizes = {f"{label}.shape[{axis}]": extent for label, shape in tensors for axis, extent in enumerate(shape)}
    return sizes | {setting_name(place): number for place, number in enumerate(graph.ints)}


def _labelled(graph: Graph) -> list[tuple[str, GraphInput]]:
    """Return the inputs with their names in the kernel; an argument and a buffer may have the same name."""
    labels: list[str] = []
    for item in graph.inputs:
        label = tensor_identifier(item.label)
        labels.append(f"{label}State" if label in labels else label)
    return list(zip(labels, graph.inputs, strict=True))


def _numbers(graph: Graph, twins: Sequence[Graph]) -> Numbers:
    """Return the numbers that differ at other cases, by node."""
    numbers: Numbers = {}
    for call, *others in zip(graph.calls, *(twin.calls for twin in twins), strict=True):
        if not (call.operator in SCALED or call.operator in SIZED) or not others:
            continue
        rows = [_leaves(each) for each in (call, *others)]
        if any(len(row) != len(rows[0]) for row in rows):
            continue
        places = enumerate(zip(*rows, strict=True))
        differing = {
            place: tuple(rest)
            for place, (public, *rest) in places
            if any(n != public for n in rest) and not isnan(public)  # no number equals itself if it is NaN
        }
        if differing:
            numbers[call.name] = differing
    return numbers


def _arranged(graph: Graph) -> list[tuple[str, Any]]:
    """Return the operators of a graph in order, with the dimensions that they exchange."""
    return [(c.operator, c.arguments[1:] if c.operator == "aten.permute.default" else None) for c in graph.calls]


def _computing(graph: Graph) -> list[str]:
    """Return the operators of a graph that compute, in order."""
    return [call.operator for call in graph.calls if call.operator.removeprefix("aten.").split(".")[0] not in MOVING]


def _sized(call: Call) -> bool:
    """Return whether a call has a number that may depend on the sizes."""
    if call.operator.startswith("aten.slice"):
        return any(number not in OPEN for number in _leaves(call)[1:])
    return call.operator in SIZED or (call.operator in SCALED and bool(_leaves(call)))


def _leaves(call: Call) -> list[float]:
    """Return the numbers among a call's arguments, in order."""

    def numbers(argument: Any) -> list[float]:
        if isinstance(argument, list):
            return [number for item in argument for number in numbers(item)]
        return [argument] if isinstance(argument, int | float) and not isinstance(argument, bool) else []

    return numbers([*call.arguments, *call.keywords.values()])


def _with_sizes(builder: PlanBuilder, stage: Any, edges: Sequence[dict[str, int]]) -> Any:
    """Return the stage with its largest sizes over all cases, and at the edges."""
    if isinstance(stage, Pieces):
        return replace(stage, stages=tuple(_with_sizes(builder, part, edges) for part in stage.stages))
    if stage.name not in builder.spaces:
        return stage
    space = builder.spaces[stage.name]

    def largest(extent: Size) -> int:
        at = builder.dimensions_at
        return max([builder.sizes.value(extent), *(builder.sizes.value_at(extent, shapes) for shapes in at)])

    if isinstance(stage, Either):
        cube = tuple(_with_sizes(builder, part, edges) for part in stage.cube)
        return replace(stage, cube=cube, longest=largest(space.length), heavy=largest(space.vectors) > HEAVY)
    if isinstance(stage, Nest):
        at_edges = max((builder.sizes.value_at(space.length, at) for at in edges), default=0)
        elements = largest(space.length * space.vectors)
        return replace(stage, longest=largest(space.length), elements=elements, longest_at_edges=at_edges)
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
    for label, item in _labelled(graph):
        if item.tensor is None:
            values.append((item.name, item.value))
            continue
        if item.name not in order:
            order[item.name] = lifted
            lifted += 1
        tensor = item.tensor
        values.append((item.name, builder.input(label, order[item.name], tensor.shape, tensor.dtype)))
    return values


def _call(builder: PlanBuilder, call: Call, values: dict[str, Any], numbers: Numbers) -> Any:
    """Return the value of one call, from the handler of its operator."""

    differing, place = numbers.get(call.name, {}), count()

    def resolved(argument: Any) -> Any:
        if isinstance(argument, Result):
            return values[argument.name]
        if isinstance(argument, int | float) and not isinstance(argument, bool) and (at := next(place)) in differing:
            return builder.sized(argument, differing[at], as_value=call.operator in SCALED)
        return [resolved(item) for item in argument] if isinstance(argument, list) else argument

    arguments = [resolved(argument) for argument in call.arguments]
    if call.operator == GETITEM:
        source, index = arguments
        return source[index]
    handler = HANDLERS.get(call.operator)
    if handler is None:
        raise Unsupported(f"Unsupported: {call.operator}")
    return handler(builder, *arguments, **{name: resolved(value) for name, value in call.keywords.items()})
