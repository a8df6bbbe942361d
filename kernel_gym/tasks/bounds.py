"""Bounds of values: both ends of a clamp, and what makes an activation such as a ReLU differ from a straight line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: A bound; None if there is none.
Bound: TypeAlias = float | torch.Tensor | None


class LeftOutBounds(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Leaves bounds of floats out, and counts all: a clamp with two limits has two of them.

    Args:
        left_out: Which ones, in the order in which they are used; of an operator the lower one comes first.
    """

    def __init__(self, left_out: Collection[int] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left_out, self.count = frozenset(left_out), 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        limits = _limits(name.rstrip("_"), args)
        numbers = [number for number, limit in enumerate(limits) if limit is not None]
        places = dict(zip(numbers, range(self.count, self.count + len(numbers)), strict=True))
        self.count += len(numbers)
        if self.left_out.isdisjoint(places.values()):
            return func(*args, **(kwargs or {}))
        low, high = (None if places.get(i) in self.left_out else limit for i, limit in enumerate(limits))
        second = name in ("maximum", "minimum") and args[0].numel() == 1
        result = _bounded(name.rstrip("_"), args[second], low, high)
        return args[0].copy_(result) if name.endswith("_") else result


def _limits(name: str, args: tuple[Any, ...]) -> tuple[Bound, Bound]:
    """Return the lower and the upper bound of an operator of ATen; None where it has none."""
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return None, None
    if name in ("relu", "leaky_relu", "threshold"):
        return 0.0, None
    if name in ("hardswish", "hardsigmoid"):
        return 0.0, 6.0
    if name == "clamp":
        return _at(args, 1, None), _at(args, 2, None)
    if name == "hardtanh":
        return _at(args, 1, -1.0), _at(args, 2, 1.0)
    if name in ("maximum", "minimum"):
        single = [each for each in args[:2] if each.numel() == 1]
        limit = single[0] if len(single) == 1 else None
        return (limit, None) if name == "maximum" else (None, limit)
    if name in ("clamp_min", "clamp_max"):
        return (args[1], None) if name == "clamp_min" else (None, args[1])
    return None, None


def _at(args: tuple[Any, ...], position: int, default: Bound) -> Bound:
    return args[position] if position < len(args) else default


def _bounded(name: str, argument: torch.Tensor, low: Bound, high: Bound) -> torch.Tensor:
    inside = argument + 3.0 if name.startswith("hard") and name != "hardtanh" else argument.clone()
    if low is not None:
        inside = inside.clamp_min(low)
    if high is not None:
        inside = inside.clamp_max(high)
    if name == "hardsigmoid":
        return inside / 6.0
    return argument * inside / 6.0 if name == "hardswish" else inside
