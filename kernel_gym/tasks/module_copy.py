"""Copies of modules."""

from __future__ import annotations

import copy
from collections import OrderedDict
from types import CellType, FunctionType

import torch

#: Types of a module's own tables: parameters, buffers, hooks.
_TABLES = (dict, set, OrderedDict)


def copied(model: torch.nn.Module, memo: dict[int, object] | None = None) -> torch.nn.Module:
    """Return a deep copy of a module.

    `deepcopy` does not copy functions. One that the module keeps, such as `self.mlp = lambda x: layer(x)`, would call
    the layers of the original; in the copy it calls those of the copy. `memo` is that of `deepcopy`.
    """
    memo = {} if memo is None else memo
    twin = copy.deepcopy(model, memo)
    for module in twin.modules():
        held = [(name, value) for name, value in vars(module).items() if isinstance(value, FunctionType)]
        vars(module).update({name: _rebound(function, memo) for name, function in held if function.__closure__})
    return twin


def bound_copy(model: torch.nn.Module, values: dict[str, torch.Tensor], dtype: torch.dtype | None) -> torch.nn.Module:
    """Return a copy for one call, with these tensors by name, that shares nothing that a call could write to."""
    memo: dict[int, object] = {id(tensor): tensor for _, tensor in (*model.named_parameters(), *model.named_buffers())}
    for module in model.modules():  # a dozen empty tables of hooks each, most of a copy's time
        memo |= {id(table): type(table)() for table in vars(module).values() if type(table) in _TABLES and not table}
    bound = copied(model, memo)
    for prefix, module in bound.named_modules(remove_duplicate=False):
        for key, current in _entries(module).items():
            value = values.get(f"{prefix}.{key}" if prefix else key, as_floats(current.detach(), dtype))
            is_parameter = key in module._parameters
            setattr(module, key, torch.nn.Parameter(value, requires_grad=False) if is_parameter else value)
    return bound


def with_fakes(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module with fake tensors of its own; a mode of fake tensors must be active."""
    held = {id(tensor): tensor for module in model.modules() for tensor in _entries(module).values()}
    return copied(model, {key: _clone(tensor) for key, tensor in held.items()})


def tensor_attributes(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors that a module keeps as plain attributes."""
    return {key: value for key, value in vars(module).items() if isinstance(value, torch.Tensor)}


def as_floats(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Return a tensor of floats in another type; any other tensor unchanged."""
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def _entries(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors that a module itself holds, by name."""
    held = {**module._parameters, **module._buffers, **tensor_attributes(module)}
    return {key: tensor for key, tensor in held.items() if tensor is not None}


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    clone = tensor.detach().clone()
    return torch.nn.Parameter(clone, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else clone


def _rebound(function: FunctionType, memo: dict[int, object]) -> FunctionType:
    """Return the function with what it closes over replaced by its copies."""
    cells = tuple(_rebound_cell(cell, memo) for cell in function.__closure__ or ())
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def _rebound_cell(cell: CellType, memo: dict[int, object]) -> CellType:
    """Return a cell with the copy of what this one holds; a variable that has no value yet keeps its cell."""
    try:
        held = cell.cell_contents
    except ValueError:
        return cell
    return CellType(memo.get(id(held), held))
