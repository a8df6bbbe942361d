"""What a module's `forward` does beside returning tensors: what it writes to, and which random numbers it draws."""

from __future__ import annotations

import hashlib
import linecache
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from kernel_gym.errors import TaskError
from kernel_gym.tasks.operator_registry import layer_results

#: Files of problem modules are named so; see `instance.py`.
PROBLEM = "<kernel_gym_problem_"
#: Operators that update running statistics without saying so in their schema: the positions of these and of `training`.
_STATISTICS = {
    "aten.native_batch_norm.default": ((3, 4), 5),
    "aten._native_batch_norm_legit.default": ((3, 4), 5),
    "aten._batch_norm_impl_index.default": ((3, 4), 5),
    "aten._batch_norm_with_update.default": ((3, 4), None),
}
#: Operators that sums of products and clipping at zero cannot compute, by their names without overloads.
_NONLINEAR = frozenset(
    {
        *("sigmoid", "tanh", "gelu", "mish", "softplus", "silu", "hardswish", "elu", "erf"),
        *("exp", "log", "log1p", "logsumexp", "_softmax", "_log_softmax", "sqrt", "rsqrt", "reciprocal", "pow"),
        *("native_group_norm", "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit"),
        "_batch_norm_impl_index",
    }
)
#: Functions that draw a whole tensor, which is drawn once instead.
_DRAWING = ("randn", "rand", "randint", "randperm", "normal")


#: Functions that make a tensor of one number.
_MAKING = ("zeros", "ones", "full", "empty")
#: Functions that run the steps of a recurrent layer.
_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
#: Functions that a constructor calls without values: on fake tensors each takes a hundred times as long.
MOST_CALLS = 1000
#: Operators that return equal elements in any order.
_UNORDERED = (torch.ops.aten.topk, torch.ops.aten.sort, torch.ops.aten.kthvalue, torch.ops.aten.mode)


class ForwardCalls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operators that run within it and the tensors that they write to; refuses those that draw numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._written: set[int] = set()
        self._operators = hashlib.sha256()
        self.unordered = False
        #: True once an operator ran that sums of products and clipping at zero cannot compute.
        self.nonlinear = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = str(func)
        self._operators.update(name.encode())
        self.unordered |= func.overloadpacket in _UNORDERED and not _is_stable(func, args, kwargs or {})
        self.nonlinear |= name.split(".")[1] in _NONLINEAR
        drawn = (kwargs or {}).get("generator") is not None  # by FunctionalForward
        if torch.Tag.nondeterministic_seeded in func.tags and "attention" not in name and not drawn:
            raise TaskError(
                f"forward() draws random numbers with {name}{here()}, which a kernel cannot repeat: "
                "draw them in get_inputs()"
            )
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self._note(args[position] if position < len(args) else (kwargs or {}).get(argument.name))
        positions, training = _STATISTICS.get(name, ((), None))
        if positions and (training is None or args[training]):
            self._note([args[position] for position in positions])
        return func(*args, **(kwargs or {}))

    def note_layer(self, name: str, steps: int) -> None:
        """Record a recurrent layer that did not run step by step."""
        self._operators.update(f"{name} {steps}".encode())
        self.nonlinear = True

    @property
    def structure(self) -> str:
        """A hash of the operators in their order."""
        return self._operators.hexdigest()[:16]

    def changed(self, tensor: torch.Tensor) -> bool:
        """Return whether an operator wrote to the tensor's memory."""
        return _memory(tensor) in self._written

    def _note(self, tree: Any) -> None:
        self._written |= {_memory(leaf) for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)}


class FunctionalForward(TorchFunctionMode):
    """Makes `forward` a function of its tensors.

    `torch.randn` and its like return the same numbers at every run. They depend on `seed`, on the order of the calls
    and on their arguments; `dtype` raises their precision, and that of the tensors of zeros and other numbers that
    `forward` makes. `item()` returns a tensor without dimensions instead of a
    number, so that the graph has what computes it. `calls` is the number of functions that ran: a recurrent layer is
    one, whatever the number of its steps.
    """

    def __init__(self, seed: int, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self._seed, self._dtype = seed, dtype
        self.places: list[str] = []
        self.calls = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, settings = getattr(func, "__name__", ""), dict(kwargs or {})
        self.calls += 1
        if func is torch.Tensor.item and args[0].is_floating_point():
            return args[0].reshape(()).clone()
        base = name.removesuffix("_like")
        if base not in _DRAWING or "generator" in settings:
            result = func(*args, **settings)
            is_made = name in _MAKING and self._dtype is not None and result.dtype == torch.float32
            return result.to(self._dtype) if is_made else result
        self.places.append(f"torch.{name}{here()}")
        kind = settings.get("dtype")
        if name != base:
            kind, args = kind or args[0].dtype, (*args[1:], tuple(int(n) for n in args[0].shape))
        if kind is not None and not kind.is_floating_point:
            settings["dtype"] = kind
        elif "dtype" in settings:  # drawn as floats at any precision, so that the numbers are the same
            del settings["dtype"]
        settings = {key: value for key, value in settings.items() if key in ("dtype", "size", "low", "high")}
        with _disable_current_modes():  # a real tensor, which an export keeps as a constant
            generator = torch.Generator().manual_seed(self._seed + len(self.places))
            drawn = getattr(torch, base)(*args, **settings, generator=generator)
            return drawn.to(self._dtype or kind or drawn.dtype) if drawn.is_floating_point() else drawn


class Layers(TorchFunctionMode):
    """Gives the results of recurrent layers their shapes without running the steps, for tensors without values.

    `calls` is told of each layer; `multiply_adds` counts those of its products.
    """

    def __init__(self, calls: ForwardCalls | None = None) -> None:
        super().__init__()
        self._calls = calls
        self.multiply_adds = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        # With sequences of several lengths, the fourth argument is the list of weights. Dropout draws numbers.
        if name not in _LAYERS or not isinstance(args[3], bool) or (args[5] and args[6]):
            return func(*args, **(kwargs or {}))
        x, first, weights, *_, bidirectional, batch_first = args
        steps, batch = x.shape[1 if batch_first else 0], x.shape[0 if batch_first else 1]
        self.multiply_adds += steps * batch * sum(weight.numel() for weight in weights if weight.dim() == 2)
        if self._calls is not None:
            self._calls.note_layer(name, steps)
        return layer_results(x, first, bidirectional=bidirectional)


class TooManyCalls(Exception):
    """A constructor calls more than `MOST_CALLS` functions."""


class FewCalls(TorchFunctionMode):
    """Raises `TooManyCalls` when more functions than `MOST_CALLS` run within it."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise TooManyCalls
        return func(*args, **(kwargs or {}))


def _is_stable(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a call sorts equal elements as they come."""
    names = [argument.name for argument in func._schema.arguments]
    return bool((dict(zip(names, args, strict=False)) | kwargs).get("stable"))


def same_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two tensors share memory."""
    return _memory(left) == _memory(right)


def here() -> str:
    """Return the line of the problem file that is running, as words; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(PROBLEM):
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else _words(frame.f_code.co_filename, frame.f_lineno)


def line_of(error: BaseException) -> str:
    """Return the line of the problem file that raised an error, as words; empty if none did."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PROBLEM)]
    return _words(frames[-1].filename, frames[-1].lineno or 0) if frames else ""


def _words(file: str, line: int) -> str:
    text = linecache.getline(file, line).strip()
    return f" at line {line} ({text})" if text else f" at line {line}"


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
