"""Copies of modules."""

from __future__ import annotations

import copy
from types import CellType, FunctionType

import torch


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
