"""Export of a module to an ATen graph: what the reference computes, as a list of operators."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import lru_cache
from threading import RLock
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from kernel_gym.errors import TaskError
from kernel_gym.tasks.forward_calls import line_of
from kernel_gym.tasks.operator_registry import RECURRENT, few_rules, quick_registry, whole_layers
from kernel_gym.tasks.value_domains import OnHost

# torch's own copying of a tree spec uses a deprecated part of torch; a user can do nothing about it.
warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\)", category=FutureWarning)
# Recurrent layers hold their weights in a list as well.
warnings.filterwarnings("ignore", message=r"The tensor attributes? .*assigned during export", category=UserWarning)

#: Export replaces entries of torch's dispatch tables while it runs, and fake tensors read them: one thread at a time.
TRACING = RLock()

#: What torch says of a tensor that is neither a parameter nor a buffer, and that `forward` changes in place.
CHANGED = "is mutated in the forward method"

#: Operators that stay whole: what they compute is clearer than the indices that torch would compute it by.
KEPT = ("aten.upsample_", "aten._upsample_", "aten.grid_sampler")


def export_module(
    model: torch.nn.Module,
    arguments: tuple[object, ...],
    *,
    dynamic: bool = False,
    decomposed: bool = True,
    layers: bool = False,
) -> ExportedProgram:
    """Export a module to an ATen graph.

    `dynamic` lets torch find out which dimensions may vary (`Dim.AUTO`). `decomposed` reduces the graph to core
    operators; otherwise it has the operators that the module calls. `layers` keeps recurrent layers whole.
    """
    shapes = _free_shapes(arguments) if dynamic else None
    try:
        with TRACING, quick_registry(), OnHost(), torch.no_grad():
            with whole_layers():
                program = torch.export.export(model, arguments, dynamic_shapes=shapes, strict=False)
            if not decomposed:
                return program
            with whole_layers() if layers else nullcontext(), few_rules(program):
                rules = decompositions(KEPT + RECURRENT if layers else KEPT)
                return cast(ExportedProgram, program.run_decompositions(rules))
    except GuardOnDataDependentSymNode as error:
        raise TaskError(data_dependent(error)) from error
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        if CHANGED in reason and _hold_tensors(model):
            return export_module(model, arguments, dynamic=dynamic, decomposed=decomposed, layers=layers)
        raise TaskError(f"the module does not export to ATen: {type(error).__name__}: {reason}") from error


def _hold_tensors(model: torch.nn.Module) -> bool:
    """Make buffers of the tensors that modules keep as plain attributes; return whether there are any."""
    loose = [(m, name, held) for m in model.modules() for name, held in vars(m).items() if torch.is_tensor(held)]
    for module, name, held in loose:
        delattr(module, name)
        module.register_buffer(name, held, persistent=False)
    return bool(loose)


def data_dependent(error: Exception) -> str:
    """Return the message for a module whose shapes or branches depend on values."""
    return f"forward() needs the values of a tensor{line_of(error)}: shapes and branches must not depend on values"


def lifted_constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Return the tensors that the graph needs beside arguments and `state_dict()`, by name, in the graph's order."""
    constants: dict[str, torch.Tensor] = {}
    for spec in program.graph_signature.input_specs:
        loose_buffer = spec.kind is InputKind.BUFFER and not spec.persistent
        if spec.target is not None and (loose_buffer or spec.kind is InputKind.CONSTANT_TENSOR):
            value = program.constants[spec.target]
            assert isinstance(value, torch.Tensor)
            constants[spec.target] = value
    return constants


@lru_cache(maxsize=2)
def decompositions(kept: tuple[str, ...] = KEPT) -> dict[Any, Any]:
    """Return the rules that reduce operators to core operators, but for those that are `kept`.

    Built once: torch otherwise builds the whole table for every module, which costs more than the export.
    """
    table: Any = torch.export.default_decompositions()
    return {operator: rule for operator, rule in table.items() if not str(operator).startswith(kept)}


def _free_shapes(arguments: tuple[object, ...]) -> Any:
    def free(leaf: object) -> Any:
        return dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if isinstance(leaf, torch.Tensor) else None

    return pytree.tree_map(free, arguments)
