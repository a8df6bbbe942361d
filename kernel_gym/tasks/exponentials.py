"""Sums of exponentials that leave the range of float32 unless the largest argument is subtracted first."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_gym.tasks.constant_parts import MASKED

_aten = torch.ops.aten
_SUMS = frozenset({_aten._softmax, _aten._safe_softmax, _aten._log_softmax, _aten.logsumexp})
_ATTENTIONS = frozenset({_aten._scaled_dot_product_flash_attention_for_cpu})
#: Arguments beyond this overflow, or vanish, whichever constant is subtracted from all: exp is finite up to 88.
OVERFLOW = 176.0


class Overflows(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells for each softmax, log-softmax and log-sum-exp whether it needs its maximum, in the order of their use."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.overflows = list[bool]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket in _SUMS:
            largest = args[0].amax(args[1])
            self.overflows.append(bool((largest[largest > MASKED].abs() > OVERFLOW).any()))
        elif func.overloadpacket in _ATTENTIONS:
            scores = _scores(*args, **(kwargs or {}))
            self.overflows.append(bool((scores[scores > MASKED].abs() > OVERFLOW).any()))
        return func(*args, **(kwargs or {}))


def _scores(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """Return the largest score of each query."""
    scores = queries @ keys.transpose(-1, -2) * (queries.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), 2 * MASKED)
    return scores.amax(-1)
