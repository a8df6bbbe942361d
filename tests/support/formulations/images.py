"""Attention over positions, rows, columns and channels of images."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from formulations.blocks import (
    columns_of,
    convolve,
    dense,
    image_of,
    normed,
    online,
    per_head,
    pixelwise,
    shifted,
    soft,
)
from formulations.registry import Module, attention


@attention
def cot_attention(m: Module, x: Tensor) -> Tensor:
    keys = normed(m.key_norm, convolve(m.key, x)).clamp(min=0)
    y = normed(m.mix_norm, pixelwise(m.mix, torch.cat([keys, x], 1))).clamp(min=0)
    weight, values = pixelwise(m.weigh, y), normed(m.value_norm, pixelwise(m.value, x))
    heads = []
    for part, scores in zip(values.chunk(m.heads, 1), weight.chunk(m.heads, 1), strict=True):
        shares = soft(scores, 1)
        windows = [shifted(part, i - 1, j - 1) for i in range(3) for j in range(3)]
        heads.append(sum(shares[:, n : n + 1] * window for n, window in enumerate(windows)))
    return keys + torch.cat(heads, 1)


@attention
def s2_attention(m: Module, x: Tensor) -> Tensor:
    height, width = x.shape[2:]

    def shift(y: Tensor, dy: int, dx: int) -> Tensor:
        rows = [min(max(i - dy, 0), height - 1) for i in range(height)]
        columns = [min(max(j - dx, 0), width - 1) for j in range(width)]
        return y[:, rows][:, :, columns]

    branches = list(dense(m.expand, x.permute(0, 2, 3, 1)).chunk(3, -1))
    moves = [[(1, 0), (-1, 0), (0, 1), (0, -1)], [(0, 1), (0, -1), (1, 0), (-1, 0)]]
    for n, move in enumerate(moves):
        quarters = zip(branches[n].chunk(4, -1), move, strict=True)
        branches[n] = torch.cat([shift(quarter, *by) for quarter, by in quarters], -1)
    total = sum(b.flatten(1, 2).sum(1) for b in branches)
    hidden = dense(m.squeeze, total)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    gates = torch.stack(dense(m.excite, hidden).chunk(3, -1)).softmax(0)
    mixed = sum(b * g[:, None, None] for b, g in zip(branches, gates, strict=True))
    return dense(m.out, mixed).permute(0, 3, 1, 2)


@attention
def acmix(m: Module, x: Tensor) -> Tensor:
    height, width = x.shape[2:]
    q, k, v = (pixelwise(layer, x) for layer in (m.query, m.key, m.value))
    rows = torch.tensor([(2 * i + 1) / height - 1 for i in range(height)], dtype=x.dtype)
    columns = torch.tensor([(2 * j + 1) / width - 1 for j in range(width)], dtype=x.dtype)
    grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))[None]
    place, offsets = pixelwise(m.place, grid), [(i, j) for i in range(-3, 4) for j in range(-3, 4)]
    near = [place - shifted(place, *o) for o in offsets]
    attended, depth = [], x.shape[1] // m.heads
    for a, b, c in zip(*(y.chunk(m.heads, 1) for y in (q, k, v)), strict=True):
        keys = torch.stack([shifted(b, *o) + n for o, n in zip(offsets, near, strict=True)], -2)
        values = torch.stack([shifted(c, *o) for o in offsets], -2)
        keys, values = keys.permute(0, 2, 4, 3, 1), values.permute(0, 2, 4, 3, 1)
        attended.append(online(a.permute(0, 2, 3, 1).unsqueeze(-2), keys, values)[..., 0, :].permute(0, 3, 1, 2))
    mixed = torch.einsum("bndhw,kn->bkdhw", torch.cat([y.unflatten(1, (m.heads, depth)) for y in (q, k, v)], 1),
                         m.features.weight[:, :, 0, 0])  # fmt: skip
    total = 0
    for i in range(3):
        for j in range(3):
            total = total + torch.einsum("bkdhw,dok->bodhw", shifted(mixed, i - 1, j - 1), m.shift[..., 0, 0, i, j])
    return m.rates[0] * torch.cat(attended, 1) + m.rates[1] * total.flatten(1, 2)


@attention
def double_attention(m: Module, x: Tensor) -> Tensor:
    pixels = columns_of(x)
    maps, vectors = soft(dense(m.maps, pixels), 1), soft(dense(m.vectors, pixels), 2)
    return image_of(dense(m.out, torch.einsum("bpd,bpm,bqm->bqd", dense(m.features, pixels), maps, vectors)), x)


def position_attention(m: Module, x: Tensor) -> Tensor:
    pixels = columns_of(x)
    y = online(dense(m.query, pixels), dense(m.key, pixels), dense(m.value, pixels), scale=1.0)
    return m.alpha * image_of(y, x) + x


@attention
def pam(m: Module, x: Tensor) -> Tensor:
    return position_attention(m, x)


@attention
def da_module(m: Module, x: Tensor) -> Tensor:
    y = convolve(m.before_channel, x)
    flat = y.flatten(2)
    channel = m.beta * online(-flat, flat, flat, scale=1.0).view_as(y) + y
    return position_attention(m, convolve(m.before_position, x)) + channel


@attention
def axial_attention(m: Module, x: Tensor) -> Tensor:
    def along(name: str, y: Tensor) -> Tensor:
        q, k, v = (dense(m.get_submodule(f"{name}_{part}"), y) for part in ("query", "key", "value"))
        return dense(m.get_submodule(f"{name}_out"), per_head(q, k, v, m.heads))

    columns = torch.stack([along("column", x[..., j].mT) for j in range(x.shape[3])], 2)
    rows = torch.stack([along("row", x[:, :, i].mT) for i in range(x.shape[2])], 1)
    return (columns + rows).permute(0, 3, 1, 2)


@attention
def criss_cross_attention(m: Module, x: Tensor) -> Tensor:
    height, width = x.shape[2:]
    q, k, v = (columns_of(pixelwise(layer, x)) for layer in (m.query, m.key, m.value))
    row, column = torch.arange(height * width) // width, torch.arange(height * width) % width
    seen = (row[:, None] == row) | (column[:, None] == column)
    return m.gamma * image_of(online(q, k, v, seen, scale=1.0), x) + x
