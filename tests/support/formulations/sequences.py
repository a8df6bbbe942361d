"""Attention over sequences: exact, with kernels, of low rank, sparse."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from formulations.blocks import by_heads, dense, fused, kernelised, online, per_head, places, soft, sparse, three
from formulations.registry import Module, attention


@attention
def scaled_dot_product_attention(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return online(q, k, v)


@attention
def multi_head_attention(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return dense(m.out, per_head(dense(m.query, q), dense(m.key, k), dense(m.value, v), m.heads))


@attention
def self_attention(m: Module, x: Tensor) -> Tensor:
    return fused(m, x)


@attention
def cross_attention(m: Module, x: Tensor, context: Tensor) -> Tensor:
    return multi_head_attention(m, x, context, context)


@attention
def flash_attention(m: Module, x: Tensor) -> Tensor:
    return fused(m, x)


@attention
def flash_attention_v2(m: Module, x: Tensor) -> Tensor:
    return multi_head_attention(m, x, x, x)


@attention
def optimized_flash_attention(m: Module, x: Tensor) -> Tensor:
    return sparse(m, x, lambda i, j: j <= i)


@attention
def grouped_query_attention(m: Module, x: Tensor) -> Tensor:
    k, v = (torch.cat([p for p in dense(y, x).chunk(m.groups, -1) for _ in range(4)], -1) for y in (m.key, m.value))
    return dense(m.out, per_head(dense(m.query, x), k, v, m.heads))


@attention
def multi_query_attention(m: Module, x: Tensor) -> Tensor:
    k, v = (dense(y, x).repeat(1, 1, m.heads) for y in (m.key, m.value))
    return dense(m.out, per_head(dense(m.query, x), k, v, m.heads))


@attention
def adaptive_attention(m: Module, x: Tensor) -> Tensor:
    y = per_head(dense(m.query, x), dense(m.key, x), dense(m.value, x), m.heads)
    routes = soft(dense(m.router, x), -1) * m.heads
    return dense(m.out, y * routes.repeat_interleave(y.shape[-1] // m.heads, -1))


@attention
def linear_attention(m: Module, x: Tensor) -> Tensor:
    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = (torch.where(y > 0, y + 1, y.exp()) for y in (q, k))
        return kernelised(q, k, v, m.epsilon)

    return dense(m.out, by_heads(head, m.heads, *three(m, x)))


@attention
def performer_attention(m: Module, x: Tensor) -> Tensor:
    def feature(y: Tensor) -> Tensor:
        y = y / y.shape[-1] ** 0.25
        return y @ m.features - (y * y).sum(-1, keepdim=True) / 2

    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = feature(q), feature(k)
        q = (q - q.max(-1, keepdim=True).values).exp() + m.epsilon
        k = (k - k.flatten(1).max(1).values[:, None, None]).exp() + m.epsilon
        return kernelised(q, k, v, 0.0)

    return dense(m.out, by_heads(head, m.heads, *three(m, x)))


@attention
def linformer_attention(m: Module, x: Tensor) -> Tensor:
    q, k, v = three(m, x)
    k, v = torch.einsum("rl,blw->brw", m.key_rank, k), torch.einsum("rl,blw->brw", m.value_rank, v)
    return dense(m.out, per_head(q, k, v, m.heads))


@attention
def nystrom_attention(m: Module, x: Tensor) -> Tensor:
    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = q.shape[-1] ** -0.5
        marks = [torch.stack([part.mean(1) for part in y.chunk(m.landmarks, 1)], 1) for y in (q, k)]
        middle = soft(marks[0] @ marks[1].mT * scale, -1)
        inverse = middle.mT / middle.sum(1).max(-1).values[:, None, None]
        identity = torch.eye(m.landmarks, dtype=x.dtype)
        for _ in range(6):
            y = torch.linalg.multi_dot
            error = identity - torch.stack([y([a, z]) for a, z in zip(middle, inverse, strict=True)])
            # 13 - 15 y + 7 y^2 - y^3 with y = 1 - e is 4 + 4 e + 4 e^2 + e^3.
            inverse = inverse @ (identity + error + error @ error + 0.25 * error @ error @ error)
        return soft(q @ marks[1].mT * scale, -1) @ (inverse @ online(marks[0], k, v))

    return dense(m.out, by_heads(head, m.heads, *three(m, x)))


@attention
def cosformer_attention(m: Module, x: Tensor) -> Tensor:
    row, column = places(x.shape[1])
    near = torch.cos((row - column).to(x.dtype) * math.pi / 2 / x.shape[1])

    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weight = (q.clamp(min=0) @ k.clamp(min=0).mT) * near
        return weight @ v / (weight.sum(-1, keepdim=True) + m.epsilon)

    return dense(m.out, by_heads(head, m.heads, *three(m, x)))


@attention
def local_attention(m: Module, x: Tensor) -> Tensor:
    return sparse(m, x, lambda i, j: -4 <= i - j <= 4)


@attention
def block_sparse_attention(m: Module, x: Tensor) -> Tensor:
    return sparse(m, x, lambda i, j: i // 16 == j // 16)


@attention
def strided_attention(m: Module, x: Tensor) -> Tensor:
    return sparse(m, x, lambda i, j: abs(i - j) < 4 or (j - i) % 4 == 0)


@attention
def longformer_attention(m: Module, x: Tensor) -> Tensor:
    return sparse(m, x, lambda i, j: abs(i - j) <= 4 or 0 in (i, j))


@attention
def bigbird_attention(m: Module, x: Tensor) -> Tensor:
    def rule(i: int, j: int) -> bool:
        a, b = i // 16, j // 16
        return abs(a - b) <= 1 or 0 in (a, b) or bool(m.drawn[a, b])

    return sparse(m, x, rule)
