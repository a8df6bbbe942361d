"""Attention over the tokens of images."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from formulations.blocks import columns_of, dense, image_of, layer_norm, online, per_head, sigm, soft
from formulations.gates import gated
from formulations.registry import Module, attention
from formulations.sequences import multi_head_attention


@attention
def scaled_dot_product_attention_modular(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return multi_head_attention(m, q, k, v)


@attention
def simplified_self_attention(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return dense(m.out, per_head(q, k, v, m.heads))


@attention
def external_attention(m: Module, x: Tensor) -> Tensor:
    powers = dense(m.keys, x).exp()
    y = powers / powers.sum(1, keepdim=True)
    return dense(m.values, F.normalize(y, p=1, dim=2))


def polarized_channel(m: Module, x: Tensor) -> Tensor:
    pixels = columns_of(x)
    ones = torch.ones_like(pixels[:, :1, :1])
    y = online(ones, dense(m.channel_query, pixels), dense(m.channel_value, pixels), scale=1.0)[:, 0]
    return gated(x, sigm(layer_norm(m.norm, dense(m.channel_out, y))))


def polarized_spatial(m: Module, x: Tensor) -> Tensor:
    pixels = columns_of(x)
    weight = soft(dense(m.spatial_query, pixels).mean(1), 1)
    gate = sigm(torch.einsum("bc,bpc->bp", weight, dense(m.spatial_value, pixels)))
    return image_of(pixels * gate.unsqueeze(-1), x)


@attention
def parallel_polarized_self_attention(m: Module, x: Tensor) -> Tensor:
    return polarized_channel(m, x) + polarized_spatial(m, x)


@attention
def sequential_polarized_self_attention(m: Module, x: Tensor) -> Tensor:
    return polarized_spatial(m, polarized_channel(m, x))


@attention
def muse_attention(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    values = dense(m.value, v)
    weight, local = soft(m.mix, 0), torch.zeros_like(values)
    for share, layer in zip(weight, (m.conv1, m.conv3, m.conv5), strict=True):
        size = layer.weight.shape[-1]
        padded = F.pad(values, (0, 0, size // 2, size // 2))
        for t in range(size):
            local = local + share * padded[:, t : t + values.shape[1]] * layer.weight[:, 0, t]
        local = local + share * layer.bias
    return dense(m.out, per_head(dense(m.query, q), dense(m.key, k), values, m.heads) + local)


@attention
def aft_full(m: Module, x: Tensor) -> Tensor:
    q, k, v = (dense(layer, x) for layer in (m.query, m.key, m.value))
    rows = []
    for t in range(x.shape[1]):
        weight = soft(k + m.bias[t][:, None], 1)
        rows.append(sigm(q[:, t]) * (weight * v).sum(1))
    return torch.stack(rows, 1)


@attention
def ufo_attention(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    parts = []
    tensors = (dense(layer, y).chunk(m.heads, -1) for layer, y in ((m.query, q), (m.key, k), (m.value, v)))
    for h, (a, b, c) in enumerate(zip(*tensors, strict=True)):
        context, gamma = torch.einsum("bld,ble->bde", b, c), m.gamma[0, h, 0, 0]
        context = gamma * context / ((context**2).sum(-1, keepdim=True).sqrt() + m.epsilon)
        parts.append(gamma * (a / ((a**2).sum(-1, keepdim=True).sqrt() + m.epsilon)) @ context)
    return dense(m.out, torch.cat(parts, -1))
