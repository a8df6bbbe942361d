"""Operators of inference: caches, experts, norms, quantisation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from formulations.blocks import online, places, soft
from formulations.registry import Module, attention


@attention
def flash_attention_fwd(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    each = q.shape[2] // k.shape[2]
    row, column = places(q.shape[1])
    heads = [online(q[:, :, h], k[:, :, h // each], v[:, :, h // each], column <= row) for h in range(q.shape[2])]
    return torch.stack(heads, 2)


@attention
def flash_attention_bwd(m: Module, grad: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    leaves = [y.clone().requires_grad_() for y in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(flash_attention_fwd(m, *leaves), leaves, grad)


@attention
def paged_attention_kv_cache(
    m: Module, q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, table: Tensor
) -> Tensor:
    out, each = torch.empty_like(q), q.shape[2] // keys.shape[2]
    for b, length in enumerate(lengths.tolist()):
        k, v = (torch.cat([y[page] for page in table[b].tolist()])[: length + 1] for y in (keys, values))
        for h in range(q.shape[2]):
            out[b, :, h] = online(q[b, :, h], k[:, h // each], v[:, h // each])
    return out


@attention
def multi_head_latent_attention(m: Module, q: Tensor, cache: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    rows = []
    for b, length in enumerate(lengths.tolist()):
        latent = torch.cat([cache[page, :, 0] for page in table[b].tolist()])[: length + 1]
        rows.append(online(q[b, 0], latent, latent[:, :-64]))
    return torch.stack(rows).unsqueeze(1)


@attention
def dense_sparse_attention(m: Module, q: Tensor, cache: Tensor, chosen: Tensor) -> Tensor:
    size, rows = cache.shape[1], []
    for b, tokens in enumerate(chosen[:, 0].tolist()):
        latent = torch.stack([cache[token // size, token % size, 0] for token in tokens])
        rows.append(online(q[b, 0], latent, latent[:, :-64]))
    return torch.stack(rows).unsqueeze(1)


@attention
def gemm(m: Module, x: Tensor) -> Tensor:
    return torch.einsum("ri,oi->ro", x, m.weight)


@attention
def grouped_gemm(m: Module, x: Tensor, group: Tensor) -> Tensor:
    return torch.stack([m.weight[g] @ row for row, g in zip(x, group.tolist(), strict=True)])


@attention
def rope(m: Module, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
    half = q.shape[-1] // 2
    angle = positions[:, None] * 10000.0 ** (-torch.arange(half, dtype=q.dtype) / half)
    turn = torch.polar(torch.ones_like(angle), angle).unsqueeze(1)
    turned = [torch.complex(y[..., :half], y[..., half:]) * turn for y in (q, k)]
    return tuple(torch.cat([y.real, y.imag], -1) for y in turned)


@attention
def router(m: Module, x: Tensor) -> tuple[Tensor, Tensor]:
    order = x.sort(dim=-1, descending=True, stable=True).indices[:, :8]
    return soft(x, -1).gather(1, order), order.int()


@attention
def rms_norm(m: Module, x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[1:], m.weight, 1e-6)


@attention
def add_rms_norm(m: Module, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    return F.rms_norm(x + residual, x.shape[1:], m.weight, 1e-6), x + residual


@attention
def permute(m: Module, x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    rows, held = x.new_zeros(16 * 32, x.shape[1]), torch.full((16 * 32,), -1, dtype=torch.int32)
    filled = [0] * 16
    for token, experts in enumerate(chosen.tolist()):
        for expert in experts:
            if filled[expert] < 32:
                rows[expert * 32 + filled[expert]], held[expert * 32 + filled[expert]] = x[token], token
            filled[expert] += 1
    return rows, held


@attention
def unpermute(m: Module, x: Tensor, weights: Tensor, source: Tensor) -> Tensor:
    out = x.new_zeros(weights.shape[0], x.shape[1])
    return out.index_add(0, source // weights.shape[1], x * weights.flatten()[source][:, None])


@attention
def dy_quantize(m: Module, x: Tensor) -> tuple[Tensor, Tensor]:
    groups = torch.stack(x.split(128, dim=1), 1)
    scale = torch.maximum(groups.max(2).values, -groups.min(2).values)
    return torch.round(groups / scale[..., None] * 127).flatten(1).to(torch.int8), scale / 127
