"""Makes torch's registry of operators quick while a module is exported.

For every module, torch lists the composite operators of all namespaces and replaces about 5,700 of their kernels twice,
most of them by what they already do. This takes three quarters of the time that a small module needs. The functions
here give the same graphs with less work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._export import utils
from torch._ops import OperatorBase, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram, exported_program

#: Gives every composite operator of torch's C++ code its Python object; torch calls it once for each namespace.
_LOADER = "_materialize_cpp_cia_ops"
#: Replaces the kernels of composite operators by rules while a graph is reduced to core operators.
_OVERRIDE = "_override_composite_implicit_decomp"

#: Layers that torch computes step by step, by their names in graphs.
RECURRENT = ("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
#: The keys by which torch finds the steps of a recurrent layer while it traces one that stays whole.
_STEPS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd, DispatchKey.Meta, DispatchKey.CPU)


@contextmanager
def quick_registry() -> Iterator[None]:
    """Replace what is slow in torch's registry; one thread at a time. Names that this torch lacks are left out."""
    with ExitStack() as stack:
        if hasattr(utils, _LOADER):
            getattr(utils, _LOADER)()
            stack.enter_context(_replaced(utils, _LOADER, lambda: None))
        yield


@contextmanager
def few_rules(program: ExportedProgram) -> Iterator[None]:
    """Replace few kernels while a program is reduced to core operators; one thread at a time.

    A rule that is a partial function is torch's own kernel. It is left out if the program does not call the operator.
    """
    if not hasattr(exported_program, _OVERRIDE):
        yield
        return
    override, called = getattr(exported_program, _OVERRIDE), {node.target for node in program.graph.nodes}

    def override_few(rules: dict[OperatorBase, Any]) -> Any:
        return override({op: rule for op, rule in rules.items() if op in called or not isinstance(rule, partial)})

    with _replaced(exported_program, _OVERRIDE, override_few):
        yield


@contextmanager
def whole_layers() -> Iterator[None]:
    """Trace recurrent layers by the shapes of their results; one thread at a time.

    Torch runs all steps on tensors without values, 13 ms each, only to find these shapes.
    """
    operators = [_operator(name) for name in RECURRENT]
    rules = {operator: _shaped(decomposition_table[operator]) for operator in operators}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(decomposition_table, rules))
        for operator in operators:
            stack.callback(operator._dispatch_cache.clear)
            stack.enter_context(patch.dict(operator.py_kernels, dict.fromkeys(_STEPS, rules[operator])))
            operator._dispatch_cache.clear()
        yield


def _operator(name: str) -> OpOverload:
    _, packet, overload = name.split(".")
    operator: OpOverload = getattr(getattr(torch.ops.aten, packet), overload)
    return operator


def _shaped(steps: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives a recurrent layer's results their shapes, and computes those of real tensors."""

    def results(x: torch.Tensor, first: Any, *settings: Any) -> tuple[torch.Tensor, ...]:
        if not isinstance(x, FakeTensor):
            return tuple(steps(x, first, *settings))
        return layer_results(x, first, bidirectional=settings[-2])

    return results


def layer_results(x: torch.Tensor, first: Any, *, bidirectional: bool) -> tuple[torch.Tensor, ...]:
    """Return tensors with the shapes of a recurrent layer's results: the outputs of all steps, then the last states."""
    states = [first] if isinstance(first, torch.Tensor) else list(first)
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return (x.new_empty((*x.shape[:-1], width)), *(state.new_empty(state.shape) for state in states))


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
