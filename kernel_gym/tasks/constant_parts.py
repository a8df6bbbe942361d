"""Parts of a network that the values may hide.

The rest of a network may hide a softmax: where all that it weighs is nearly equal, its weights do not matter. An
activation may be saturated, such as a ReLU that is zero everywhere, and then what is before it does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Numbers of rows, or a slice of all.
Chosen: TypeAlias = list[int] | slice

_aten = torch.ops.aten
_SOFTMAXES = frozenset({_aten._softmax, _aten._safe_softmax})
_ACTIVATIONS = frozenset(
    getattr(_aten, name)
    for kind in (
        *("relu", "sigmoid", "tanh", "hardtanh", "clamp", "clamp_min", "clamp_max", "hardsigmoid", "hardswish", "gelu"),
        *("silu", "mish", "softplus", "elu", "leaky_relu"),
    )
    for name in (kind, f"{kind}_")
    if hasattr(_aten, name)
)
_ATTENTIONS = frozenset({_aten._scaled_dot_product_flash_attention_for_cpu})
#: Scores below this are masked.
MASKED = -1e8
#: Results of an activation are the same if they differ by no more than this part of their size.
SAME = 5e-5


class ConstantWeights(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gives all that is not masked the same weight in some softmaxes in float32.

    `shapes` has the shape of the weights of each softmax, or (0,) if there is only one weight in a sum.

    Args:
        chosen: The rows, by the first dimension, in which the weights are constant, for each of the softmaxes in the
            order in which they are computed.
    """

    def __init__(self, chosen: Mapping[int, Chosen] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.chosen, self.shapes = chosen or {}, list[tuple[int, ...]]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        packet = func.overloadpacket
        if packet in _SOFTMAXES | _ATTENTIONS and args[0].dtype == torch.float32:
            rows = self.chosen.get(len(self.shapes))
            self.shapes.append(_softmax_shape(args) if packet in _SOFTMAXES else _attention_shape(args))
            if rows is not None:
                args = (_with_equal_scores(args[0], rows, packet in _SOFTMAXES), *args[1:])
        return func(*args, **(kwargs or {}))


class ConstantActivations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the activations whose results are the same in all rows without stress.

    A kernel could compute such a result in a few rows, and use it in the others.

    Args:
        usual: Which rows of the argument have no stress. Its shape is that of the leading dimensions of the argument.
    """

    def __init__(self, usual: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.usual, self.count = usual, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in _ACTIVATIONS:
            self.count += _is_constant(self._rows(result))
        return result

    def _rows(self, result: torch.Tensor) -> torch.Tensor:
        """Return the rows of a result without stress; all of it as one row if it does not have the argument's rows."""
        if result.shape[: self.usual.ndim] == self.usual.shape:
            return result[self.usual]
        if result.shape[:1] == self.usual.shape[:1]:
            return result[self.usual.flatten(1).all(dim=1) if self.usual.ndim > 1 else self.usual]
        return result.unsqueeze(0)


def _is_constant(rows: torch.Tensor) -> bool:
    """Return whether all rows are nearly the same, or a single one is zero."""
    if len(rows) < 2:
        return bool(rows.numel()) and not rows.any()
    first = rows[0]
    if first.numel() < 2:  # such as the norm of normalised rows
        return False
    tolerance = SAME * (first.abs() + first.square().mean().sqrt())
    # Nearly always the first two rows differ.
    return all(bool(((part - first).abs() <= tolerance).all()) for part in (rows[1], rows))


def _softmax_shape(args: tuple[Any, ...]) -> tuple[int, ...]:
    shape = tuple(args[0].shape)
    return shape if shape and shape[args[1]] > 1 else (0,)


def _attention_shape(args: tuple[Any, ...]) -> tuple[int, ...]:
    keys = args[1].shape[-2]
    return (*args[0].shape[:-1], keys) if keys > 1 else (0,)


def _with_equal_scores(tensor: torch.Tensor, rows: Chosen, are_scores: bool) -> torch.Tensor:
    """Return scores, or queries, that make all weights of some rows equal, but those of masked scores."""
    changed = tensor.clone()
    changed[rows] = torch.where(tensor[rows] < MASKED, tensor[rows], 0.0) if are_scores else 0.0
    return changed
