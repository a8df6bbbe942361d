"""The ATen graph of a task: what the reference computes, as a list of operators."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import warnings
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from kernel_gym.errors import TaskError
from kernel_gym.tasks.domains import OnHost
from kernel_gym.tasks.task import Instance, Task

# torch's own copying of a tree spec trips over a deprecation of torch; nothing a user could mend.
warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\)", category=FutureWarning)

#: Export replaces entries of torch's dispatch tables while it runs, and fake tensors read them: one thread at a time.
TRACING = RLock()


def export(instance: Instance, *, dynamic: bool = False, decomposed: bool = True) -> ExportedProgram:
    """The instance's module as an ATen graph; `dynamic` lets torch find out which dimensions may vary (`Dim.AUTO`).

    The timing case is exported from fake tensors and costs no memory.
    """
    if instance.case.role == "timing":
        return export_module(*instance.fake(), dynamic=dynamic, decomposed=decomposed)
    # A copy: forward() may keep something in its module, and exporting runs it.
    model = copy.deepcopy(instance.model())
    return export_module(model, instance.example_arguments(), dynamic=dynamic, decomposed=decomposed)


def export_module(
    model: torch.nn.Module, arguments: tuple[object, ...], *, dynamic: bool = False, decomposed: bool = True
) -> ExportedProgram:
    """A module as an ATen graph; `decomposed` to core operators, or as the module calls them."""
    shapes = _free_shapes(arguments) if dynamic else None
    try:
        with TRACING, OnHost(), torch.no_grad():
            program = torch.export.export(model, arguments, dynamic_shapes=shapes, strict=False)
            return cast(ExportedProgram, program.run_decompositions(_decompositions())) if decomposed else program
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise TaskError(f"the module does not export to ATen: {type(error).__name__}: {reason}") from error


def lifted_constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The tensors that the graph needs beside arguments and `state_dict()`, by name, in the graph's order."""
    constants: dict[str, torch.Tensor] = {}
    for spec in program.graph_signature.input_specs:
        loose_buffer = spec.kind is InputKind.BUFFER and not spec.persistent
        if spec.target is not None and (loose_buffer or spec.kind is InputKind.CONSTANT_TENSOR):
            value = program.constants[spec.target]
            assert isinstance(value, torch.Tensor)
            constants[spec.target] = value
    return constants


def operators(task: Task) -> tuple[str, ...]:
    """The distinct ATen operators of the task (`aten.relu.default`), in the graph's order; cached on disk."""
    return _operators(task, _cache_file(task))


@lru_cache(maxsize=1024)
def _operators(task: Task, file: Path) -> tuple[str, ...]:
    if file.is_file():
        return tuple(json.loads(file.read_text()))
    program = export(task.instance(task.public))
    names = dict.fromkeys(str(node.target) for node in program.graph.nodes if node.op == "call_function")
    found = tuple(name for name in names if name.startswith("aten.") and not name.startswith("aten._assert"))
    write_whole(file, json.dumps(found))
    return found


def cache_folder() -> Path:
    """Where things that can be computed again are kept: `$XDG_CACHE_HOME/kernel_gym` or `~/.cache/kernel_gym`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kernel_gym"


def _cache_file(task: Task) -> Path:
    key = hashlib.sha256(f"{task.digest} {torch.__version__}".encode()).hexdigest()
    return cache_folder() / "operators" / f"{key}.json"


def write_whole(file: Path, text: str) -> None:
    """Write so that another process sees all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(text)
    draft.replace(file)


@lru_cache(maxsize=1)
def _decompositions() -> dict[Any, Any]:
    # Built once: torch otherwise makes the whole table anew for every module, which costs more than the export.
    table: Any = torch.export.default_decompositions()
    return dict(table.items())


def _free_shapes(arguments: tuple[object, ...]) -> Any:
    from torch.utils import _pytree as pytree

    def free(leaf: object) -> Any:
        return dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if isinstance(leaf, torch.Tensor) else None

    return pytree.tree_map(free, arguments)
