"""Calls in a binding of functions and methods that torch has in Python, too, and of a few of the standard library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tree_sitter import Node

from kernel_gym.hardware.bundles.binding.syntax import unknown
from kernel_gym.hardware.bundles.binding.values import INTEGERS, LISTS, STANDARD, Options, cast, constructed

_MAKING = ("empty", "zeros", "ones", "full", "rand", "randn", "new_empty", "new_zeros")
_UNFILLED = ("empty", "empty_like", "new_empty", "empty_strided")
_CONSTRUCTED = ("optional", "IntArrayRef", "ArrayRef", "vector", "Tensor", "Scalar", "TensorOptions")
#: What a binding asks a tensor, where Python has another name for it.
_ASKED: dict[str, Callable[[torch.Tensor], Any]] = {
    "sizes": lambda tensor: list(tensor.shape),
    "sym_sizes": lambda tensor: list(tensor.shape),
    "strides": lambda tensor: list(tensor.stride()),
    "scalar_type": lambda tensor: tensor.dtype,
    "dtype": lambda tensor: tensor.dtype,
    "options": lambda tensor: Options(tensor.dtype),
    "device": lambda tensor: Options(tensor.dtype),
    "layout": lambda tensor: Options(tensor.dtype),
    "defined": lambda _: True,
    "is_privateuseone": lambda _: True,
    "is_npu": lambda _: True,
}


class TorchCalls:
    """Calls functions and methods; `fill` fills memory that a function leaves unset."""

    def __init__(self, fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._fill = fill

    def function(self, node: Node, name: str, arguments: list[Any]) -> Any:
        """Call a function by its qualified name."""
        bare, _, template = name.partition("<")
        scope, _, short = bare.rpartition("::")
        if short in ("static_cast", "reinterpret_cast"):
            return cast(template.rstrip(">"), arguments[0])
        if short in INTEGERS or short in ("float", "double", "bool", "size_t"):
            return cast(short, arguments[0])
        if scope in ("std", "") and short in STANDARD:
            return STANDARD[short](*arguments)
        if short in _CONSTRUCTED:
            return constructed(short, arguments, node)
        if short == "dtype" and scope in ("at", "torch"):
            return Options(arguments[0])
        if short == "device" or short.endswith("Guard"):
            return Options()
        if short.startswith("apply_tensor"):  # of torch_npu: as a tensor, or of some sizes
            name = "empty_like" if isinstance(arguments[0], torch.Tensor) else "empty"
            return self._torch(getattr(torch, name), name, arguments[:2])
        if scope in ("at", "torch", "at::native") and hasattr(torch, short):
            return self._torch(getattr(torch, short), short, arguments)
        raise unknown(node)

    def method(self, node: Node, owner: Any, name: str, arguments: list[Any]) -> Any:
        """Call a method of a tensor, of options, of a list, of an optional or of a scalar."""
        if name in ("has_value", "value", "value_or"):
            return _of_optional(owner, name, arguments)
        if owner is None and name == "defined":
            return False
        if isinstance(owner, torch.Tensor) and not name.startswith("data_ptr"):
            if name in _ASKED:
                return _ASKED[name](owner)
            if hasattr(owner, name):
                return self._torch(getattr(owner, name), name, arguments)
        elif isinstance(owner, Options):
            return Options(arguments[0]) if name == "dtype" and arguments else owner
        elif isinstance(owner, list | tuple) and name in LISTS:
            return LISTS[name](owner, *arguments)
        elif name in ("toInt", "toLong"):
            return int(owner)
        elif name in ("toDouble", "toFloat", "to", "item"):
            return float(owner)
        raise unknown(node)

    def _torch(self, function: Callable[..., Any], name: str, arguments: list[Any]) -> Any:
        dtypes = [argument.dtype for argument in arguments if isinstance(argument, Options) and argument.dtype]
        plain = [argument for argument in arguments if not isinstance(argument, Options)]
        if name in _MAKING or name.endswith("_like"):
            dtypes += [argument for argument in plain if isinstance(argument, torch.dtype)]
            plain = [argument for argument in plain if not isinstance(argument, torch.dtype)]
        result = function(*plain, dtype=dtypes[-1]) if dtypes else function(*plain)
        return self._fill(result) if name in _UNFILLED else result


def _of_optional(owner: Any, name: str, arguments: list[Any]) -> Any:
    if name == "has_value":
        return owner is not None
    return arguments[0] if owner is None and name == "value_or" else owner
