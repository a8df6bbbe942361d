"""The graph of a module as plain data: inputs, calls of ATen operators, outputs.

It has the content of an exported program without objects of torch, so that it can be sent to another process as JSON.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from typing_extensions import TypeAliasType

from kernel_gym.tasks.specs import TensorSpec

#: The operator of a call that takes one of several results.
GETITEM = "getitem"

#: Operators that pick entries of their first argument, and those whose results need all of it, by their names without
#: overloads. Results of others are taken to need as much of their arguments as is needed of them.
_PICKING = frozenset({"embedding", "gather", "index", "index_select", "select", "slice", "take"})
_MERGING = frozenset(
    {
        *(
            "addmm",
            "amax",
            "amin",
            "argmax",
            "argmin",
            "bmm",
            "convolution",
            "cumsum",
            "logsumexp",
            "max",
            "mean",
            "min",
        ),
        *("mm", "native_batch_norm", "native_group_norm", "native_layer_norm", "prod", "sum", "var", "_log_softmax"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_softmax"),
    }
)

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Result:
    """An argument of a call: the result of the input or call with this name."""

    name: str


#: An argument of a call. Element types, devices and layouts are texts, such as `torch.float32`.
Argument = TypeAliasType("Argument", "bool | int | float | str | Result | list[Argument] | None")


@dataclass(frozen=True)
class GraphInput:
    """An input of the graph.

    Args:
        name: Its name in the graph.
        label: Its name in the module: the entry of `state_dict()`, the constant, or `name` for an argument.
        is_argument: Whether it is an argument of `forward`.
        tensor: Its shape and element type; None for a scalar.
        value: The value of a scalar.
    """

    name: str
    label: str
    is_argument: bool
    tensor: TensorSpec | None = None
    value: Argument = None


@dataclass(frozen=True)
class Call:
    """A call of an operator, such as `aten.relu.default`. `dtype` is the element type of its result, if it has one."""

    name: str
    operator: str
    arguments: list[Argument]
    keywords: dict[str, Argument]
    dtype: str = ""


@dataclass(frozen=True)
class Graph:
    """The calls of a module in order.

    Args:
        inputs: The arguments, the state and the constants.
        calls: The calls.
        outputs: The names of the outputs with their tensors.
        state: The names of `state_dict()`.
        ints: The whole numbers among the constructor's and the forward's arguments, as a kernel receives them.
    """

    inputs: tuple[GraphInput, ...]
    calls: tuple[Call, ...]
    outputs: tuple[tuple[str, TensorSpec | None], ...]
    state: tuple[str, ...]
    ints: tuple[int, ...] = ()

    def operators(self) -> tuple[str, ...]:
        """Return the distinct operators in the order of their first calls."""
        return tuple(dict.fromkeys(call.operator for call in self.calls))

    def read_whole(self) -> frozenset[str]:
        """Return the names of the inputs of which every element is needed, as far as the operators show it."""
        open_inputs = {item.name: {item.name} for item in self.inputs}
        whole = set[str]()
        for call in self.calls:
            kind = call.operator.split(".")[1] if "." in call.operator else call.operator
            each = [_inputs_of(argument, open_inputs) for argument in (*call.arguments, *call.keywords.values())]
            used = set[str]().union(*each)
            if kind in _MERGING:
                whole |= used
            elif kind in _PICKING:
                whole |= set[str]().union(*each[1:])
            open_inputs[call.name] = set() if kind in _MERGING | _PICKING else used
        return frozenset(whole.union(*(open_inputs.get(name, set()) for name, _ in self.outputs)))


def _inputs_of(argument: Argument, open_inputs: dict[str, set[str]]) -> set[str]:
    """Return the inputs of whose elements an argument is made, one by one."""
    if isinstance(argument, list):
        return set[str]().union(*(_inputs_of(each, open_inputs) for each in argument))
    return open_inputs.get(argument.name, set()) if isinstance(argument, Result) else set()


def graph_of(program: ExportedProgram, changes: Sequence[str] = (), arguments: Sequence[str] = ()) -> Graph:
    """Return an exported program as a graph.

    Args:
        program: The exported module.
        changes: Names of the buffers and arguments whose new values are outputs, behind those that are returned.
        arguments: Names of the tensor arguments.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = []
    for spec in program.graph_signature.input_specs:
        value = nodes[spec.arg.name].meta.get("val")
        tensor = _tensor(value)
        is_argument = spec.kind is InputKind.USER_INPUT
        scalar = None if tensor else _argument(value)
        inputs.append(GraphInput(spec.arg.name, spec.target or spec.arg.name, is_argument, tensor, scalar))
    calls = [
        Call(
            node.name,
            GETITEM if node.target is operator.getitem else str(node.target),
            [_argument(argument) for argument in node.args],
            {name: _argument(argument) for name, argument in node.kwargs.items()},
            tensor.dtype if (tensor := _tensor(node.meta.get("val"))) else "",
        )
        for node in program.graph.nodes
        if node.op == "call_function"
    ]
    names = _outputs(program, changes, arguments)
    outputs = [(name, _tensor(nodes[name].meta.get("val")) if name in nodes else None) for name in names]
    return Graph(tuple(inputs), tuple(calls), tuple(outputs), tuple(program.state_dict))


def _outputs(program: ExportedProgram, changes: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the names of the results: what the module returns, then what it changes."""
    signature = program.graph_signature
    returned, changed = [], {}
    tensors = [spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    labels = dict(zip([t.arg.name for t in tensors if isinstance(t.arg, TensorArgument)], arguments, strict=False))
    for spec in signature.output_specs:
        name = getattr(spec.arg, "name", "")
        if spec.kind is OutputKind.USER_OUTPUT:
            returned.append(name)
        elif spec.target is not None:
            changed[labels.get(spec.target, spec.target)] = name
    return [*returned, *(changed.get(label, "") for label in changes)]


def _tensor(value: Any) -> TensorSpec | None:
    if not isinstance(value, torch.Tensor):
        return None
    return TensorSpec(tuple(int(size) for size in value.shape), str(value.dtype).removeprefix("torch."))


def _argument(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return Result(value.name)
    if isinstance(value, list | tuple):
        return [_argument(item) for item in value]
    return value if isinstance(value, _PLAIN) else str(value)  # a dtype, a device, a layout
