"""The domains of input tensors: which values `get_inputs()` may draw for each of them.

While `get_inputs()` runs, a `Recorder` records how each tensor is drawn. For an index tensor it keeps the upper bound,
also when the tensor is fake and holds no values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernel_gym.tasks.specs import Domain

#: Functions that change neither the values nor their meaning: the result has the domain of the argument.
_PRESERVING = frozenset(
    {
        "to",
        "long",
        "int",
        "clone",
        "contiguous",
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "expand",
        "detach",
        "flatten",
    }
)
#: Functions that only move the values of their argument to other places.
_MOVING = _PRESERVING | {"flip", "transpose", "permute", "movedim", "t", "mT", "T"}


class OnHost(TorchFunctionMode):
    """Keeps tensors on the host, whichever device a problem file names, because references run there."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in ("cuda", "npu") and args:
            return args[0]
        moved = [_host(value) for value in args]
        return func(*moved, **{key: _host(value) for key, value in (kwargs or {}).items()})


def _host(value: Any) -> Any:
    """Return the host's device in place of another; any other value unchanged."""
    kind = value.type if isinstance(value, torch.device) else value.partition(":")[0] if isinstance(value, str) else ""
    return torch.device("cpu") if kind in ("cuda", "npu") else value


class Recorder(TorchFunctionMode):
    """Records the domain of every tensor that is drawn within it."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: dict[int, tuple[torch.Tensor, Domain]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            domain = self._domain(getattr(func, "__name__", ""), args, kwargs or {}, result)
            if domain is not None:
                self._drawn[id(result)] = (result, domain)
        return result

    def domain_of(self, tensor: torch.Tensor) -> Domain | None:
        """Return the domain recorded when `tensor` was drawn; None if it was computed from other tensors."""
        return self._drawn[id(tensor)][1] if id(tensor) in self._drawn else None

    def _domain(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> Domain | None:
        if name == "randint":
            return _index(*_bounds(args, kwargs))
        if name == "randperm":
            return Domain("index", int(args[0]), distinct=True)
        if name == "argsort" and isinstance(args[0], torch.Tensor):
            axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
            return Domain("index", int(args[0].shape[axis]), distinct=axis in (-1, args[0].dim() - 1))
        if name == "__getitem__" and (known := self.domain_of(args[0])) is not None and known.kind == "index":
            same = result.dim() == args[0].dim()
            return replace(known, distinct=known.distinct and same)  # a part of the indices
        if name == "rand":
            return Domain("unit")
        if name == "randn":
            return Domain("real")
        if name in _PRESERVING and args and isinstance(args[0], torch.Tensor) and result.dtype != torch.bool:
            domain = self.domain_of(args[0])
            same = result.shape[-1:] == args[0].shape[-1:] and name != "expand"
            return domain if domain is None or same else replace(domain, distinct=False)
        return None


class Products(TorchFunctionMode):
    """Records which tensors a module multiplies along a dimension (`cumprod`, `prod`), and how many values of each."""

    def __init__(self) -> None:
        super().__init__()
        self._factors: dict[int, int] = {}
        self._moved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name, first = getattr(func, "__name__", ""), args[0] if args else (kwargs or {}).get("input")
        if not isinstance(first, torch.Tensor):
            return result
        if name in ("cumprod", "prod"):
            source = self._source(first)
            count = _factor_count(first, args[1] if len(args) > 1 else (kwargs or {}).get("dim"))
            self._factors[id(source)] = max(count, self.factors_of(source))
        elif name in _MOVING and isinstance(result, torch.Tensor):
            self._moved[id(result)] = (result, self._source(first))
        return result

    def factors_of(self, tensor: torch.Tensor) -> int:
        """Return how many values of `tensor` are multiplied with each other; 0 if none are."""
        return self._factors.get(id(tensor), 0)

    def _source(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._moved[id(tensor)][1] if id(tensor) in self._moved else tensor


def _factor_count(tensor: torch.Tensor, dim: Any) -> int:
    """Return how many values a product along `dim` multiplies; all of them if no dimension is named."""
    return int(tensor.shape[dim]) if isinstance(dim, int) and tensor.ndim else tensor.numel()


def observed_domain(values: torch.Tensor) -> Domain:
    """Return the domain that a tensor's values suggest, for tensors that were computed rather than drawn."""
    if values.dtype == torch.bool:
        return Domain("bool")
    if not values.is_floating_point():
        low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
        return Domain("index", max(1, high + 1), low=min(0, low))
    if values.numel() == 0 or not bool((values >= 0).all()):
        return Domain("real")
    return Domain("unit") if bool((values <= 1).all()) else Domain("positive")


def state_domain(name: str, value: torch.Tensor) -> Domain:
    """Return the domain of an entry of `state_dict()`."""
    last = name.rpartition(".")[2]
    if value.dtype == torch.bool:
        return Domain("bool")
    if not value.is_floating_point():
        return Domain("index", 1)
    return Domain("positive") if last == "running_var" else Domain("real")


def _bounds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int]:
    numbers = [int(value) for value in args if isinstance(value, int)]
    low = kwargs.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = kwargs.get("high", numbers[-1] if numbers else 0)
    return int(low), int(high)


def _index(low: int, high: int) -> Domain | None:
    return Domain("index", high, low=min(0, low))
