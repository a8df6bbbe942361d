"""Parts of modules, on queries, keys and values of shape (batch, heads, length, depth)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from formulations.blocks import kernelised, online, places
from formulations.registry import PARTS, Module


def pattern(rule: Callable[[int, int], bool]) -> Callable[..., Tensor]:
    """Attention over the pairs of positions that a rule allows."""

    def part(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[2]
        return online(q, k, v, torch.tensor([[rule(i, j) for j in range(length)] for i in range(length)]))

    return part


def linear_part(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k = (torch.where(y > 0, y + 1, y.exp()) for y in (q, k))
    return kernelised(q, k, v, m.epsilon)


def cosine_part(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    row, column = places(q.shape[2])
    weight = (q.clamp(min=0) @ k.clamp(min=0).mT) * torch.cos((row - column).to(q.dtype) * math.pi / 2 / q.shape[2])
    return weight @ v / (weight.sum(-1, keepdim=True) + m.epsilon)


def normalised_part(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    context = torch.einsum("bhld,bhle->bhde", k, v)
    context = context / ((context**2).sum(-1, keepdim=True).sqrt() + m.epsilon)
    return torch.einsum("bhld,bhde->bhle", q / ((q**2).sum(-1, keepdim=True).sqrt() + m.epsilon), context)


PARTS.update(
    optimized_flash_attention=pattern(lambda i, j: j <= i),
    linear_attention=linear_part,
    cosformer_attention=cosine_part,
    local_attention=pattern(lambda i, j: -4 <= i - j <= 4),
    block_sparse_attention=pattern(lambda i, j: i // 16 == j // 16),
    strided_attention=pattern(lambda i, j: abs(i - j) < 4 or (j - i) % 4 == 0),
    longformer_attention=pattern(lambda i, j: abs(i - j) <= 4 or 0 in (i, j)),
    ufo_attention=normalised_part,
)
