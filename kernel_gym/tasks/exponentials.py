"""Sums of exponentials that are computed without their largest argument, which is subtracted to keep them finite."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_gym.tasks.constant_parts import MASKED

#: What a kernel may do instead: clamp the arguments, or add an epsilon to the sum. Where both are wrong, so is
#: a kernel that does neither, or that subtracts a constant.
Shortcut: TypeAlias = Literal["clamped", "epsilon"]
SHORTCUTS: tuple[Shortcut, ...] = ("clamped", "epsilon")
#: The limit and the epsilon. exp is finite up to 88.
LIMIT, EPSILON = 80.0, 1e-37
#: Arguments beyond this overflow, or vanish, whichever constant is subtracted from all.
OVERFLOW = 176.0

_aten = torch.ops.aten
_SOFTMAXES = frozenset({_aten._softmax, _aten._safe_softmax})
_SUMS = _SOFTMAXES | {_aten._log_softmax, _aten.logsumexp}
_ATTENTIONS = frozenset({_aten._scaled_dot_product_flash_attention_for_cpu})


class SumsOfExponentials(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells for each softmax, log-softmax and log-sum-exp whether its arguments overflow, in the order of their use.

    Args:
        shortcut: How some of them are computed; None for all as they are.
        chosen: Which of them; None for all.
    """

    def __init__(self, shortcut: Shortcut | None = None, chosen: list[int] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shortcut, self.chosen, self.overflows = shortcut, chosen, list[bool]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, packet = kwargs or {}, func.overloadpacket
        if packet not in _SUMS | _ATTENTIONS:
            return func(*args, **kwargs)
        is_chosen = self.shortcut is not None and (self.chosen is None or len(self.overflows) in self.chosen)
        scores, dimension = (_scores(*args, **kwargs), -1) if packet in _ATTENTIONS else (args[0], args[1])
        largest = scores.amax(dimension)
        self.overflows.append(bool((largest[largest > MASKED].abs() > OVERFLOW).any()))
        if not is_chosen:
            return func(*args, **kwargs)
        if packet in _ATTENTIONS:
            return self._softmax(scores, -1) @ args[2], torch.zeros(scores.shape[:-1])
        if packet in _SOFTMAXES:
            return self._softmax(scores, dimension)
        kept = packet is _aten._log_softmax or (len(args) > 2 and args[2])
        logarithm = torch.log(self._sum(self._exponentials(scores), dimension, kept))
        return scores - logarithm if packet is _aten._log_softmax else logarithm

    def _softmax(self, scores: torch.Tensor, dimension: int) -> torch.Tensor:
        exponentials = self._exponentials(scores)
        return exponentials / self._sum(exponentials, dimension, True)

    def _exponentials(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.exp(scores.clamp(max=LIMIT) if self.shortcut == "clamped" else scores)

    def _sum(self, exponentials: torch.Tensor, dimension: Any, kept: bool) -> torch.Tensor:
        return exponentials.sum(dimension, keepdim=kept) + (EPSILON if self.shortcut == "epsilon" else 0.0)


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
    """Return the scores of an attention; those that are masked are very low."""
    scores = queries @ keys.transpose(-1, -2) * (queries.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), 2 * MASKED)
    return scores
