"""Attention within windows and mixers of tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from formulations.blocks import (
    convolve,
    dense,
    fused,
    layer_norm,
    online,
    per_head,
    pixelwise,
    sigm,
    soft,
    steps,
    three,
)
from formulations.registry import Module, attention


@attention
def halo_attention(m: Module, x: Tensor) -> Tensor:
    height, width = x.shape[2:]
    tokens = x.permute(0, 2, 3, 1)
    q, (k, v) = dense(m.query, tokens), dense(m.key_value, tokens).chunk(2, -1)
    out = torch.zeros_like(q)
    depth = q.shape[-1] // m.heads
    for i in range(height):
        for j in range(width):
            top, left = i // 2 * 2 - 1, j // 2 * 2 - 1
            near = [(a, b) for a in range(top, top + 4) for b in range(left, left + 4)]
            near = [(a, b) for a, b in near if 0 <= a < height and 0 <= b < width]
            bias = torch.stack([m.rows[a - i + 2] + m.columns[b - j + 2] for a, b in near])
            keys, values = (torch.stack([y[:, a, b] for a, b in near], 1) for y in (k, v))
            for h in range(m.heads):
                part = slice(h * depth, (h + 1) * depth)
                out[:, i, j, part] = online(q[:, i, j, None, part], keys[..., part] + bias, values[..., part])[:, 0]
    return dense(m.out, out).permute(0, 3, 1, 2)


@attention
def outlook_attention(m: Module, x: Tensor) -> Tensor:
    batch, height, width, channels = x.shape
    v = F.unfold(dense(m.value, x).permute(0, 3, 1, 2), 3, padding=1).view(batch, channels, 9, height * width)
    weight = soft(dense(m.weigh, x).view(batch, height * width, 9, 9) / math.sqrt(channels), -1)
    y = torch.einsum("bpij,bcjp->bcip", weight, v)
    y = F.fold(y.reshape(batch, channels * 9, -1), (height, width), 3, padding=1)
    return dense(m.out, y.permute(0, 2, 3, 1))


@attention
def mobilevit_attention(m: Module, x: Tensor) -> Tensor:
    y = pixelwise(m.project, convolve(m.local, x)).permute(0, 2, 3, 1).clone()
    for n in range(m.stages):
        z, delta = layer_norm(m.norm1[n], y), torch.empty_like(y)
        for i in range(m.patch):
            for j in range(m.patch):
                tokens = z[:, i :: m.patch, j :: m.patch]
                q, k, v = dense(m.qkv[n], tokens.flatten(1, 2)).chunk(3, -1)
                attended = dense(m.attended[n], per_head(q, k, v, m.heads))
                delta[:, i :: m.patch, j :: m.patch] = attended.view_as(tokens)
        y = y + delta
        hidden = dense(m.up[n], layer_norm(m.norm2[n], y))
        y = y + dense(m.down[n], hidden * sigm(hidden))
    restored = dense(m.restore, y).permute(0, 3, 1, 2)
    return convolve(m.fuse, torch.cat([x, restored], 1))


@attention
def mobilevitv2_attention(m: Module, x: Tensor) -> Tensor:
    ones = torch.ones_like(x[:, :1, :1])
    context = online(ones, dense(m.score, x), dense(m.key, x), scale=1.0)
    return dense(m.out, dense(m.value, x).clamp(min=0) * context)


@attention
def emsa(m: Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    def reduced(y: Tensor) -> Tensor:
        image = F.pad(y.mT.unflatten(2, (-1, m.columns)), (1, 1, 1, 1))
        rows, columns = range(0, image.shape[2] - 3, 3), range(0, image.shape[3] - 3, 3)
        windows = [image[:, :, i : i + 4, j : j + 4] * m.reduce.weight[:, 0] for i in rows for j in columns]
        return layer_norm(m.norm, torch.stack([w.sum((2, 3)) + m.reduce.bias for w in windows], 1))

    a, b, c = (dense(layer, y) for layer, y in ((m.query, q), (m.key, reduced(k)), (m.value, reduced(v))))
    parts = list(zip(*(y.chunk(m.heads, -1) for y in (a, b, c)), strict=True))
    scores = [x @ y.mT / math.sqrt(x.shape[-1]) for x, y, _ in parts]
    heads = []
    for h, (_, _, values) in enumerate(parts):
        mixed = sum(m.mix.weight[h, g, 0, 0] * scores[g] for g in range(m.heads)) + m.mix.bias[h]
        weight = soft(mixed, -1)
        mean = weight.mean((1, 2), keepdim=True)
        weight = (weight - mean) / (weight.var((1, 2), correction=0, keepdim=True) + m.scale.eps).sqrt()
        heads.append(weight @ values)
    return dense(m.out, torch.cat(heads, -1))


@attention
def dattention_baseline(m: Module, x: Tensor) -> Tensor:
    batch, channels, height, width = x.shape

    def sampled(image: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """Bilinear interpolation by hat functions: (..., rows, columns) at points in [-1, 1]."""
        rows, columns = image.shape[-2:]
        y, z = (row + 1) / 2 * (rows - 1), (column + 1) / 2 * (columns - 1)
        hat_rows = (1 - (y[..., None] - torch.arange(rows)).abs()).clamp(min=0)
        hat_columns = (1 - (z[..., None] - torch.arange(columns)).abs()).clamp(min=0)
        return torch.einsum("chw,...h,...w->c...", image, hat_rows, hat_columns)

    rows = torch.tensor([(2 * i + 1) / height - 1 for i in range(height)], dtype=x.dtype)
    columns = torch.tensor([(2 * j + 1) / width - 1 for j in range(width)], dtype=x.dtype)
    row, column = (y.flatten() for y in torch.meshgrid(rows, columns, indexing="ij"))
    q, out = pixelwise(m.query, x), torch.empty(batch, channels, height * width, dtype=x.dtype)
    per_group = m.heads // m.groups
    for b in range(batch):
        keys, values, points = [], [], []
        for g in range(m.groups):
            y = convolve(m.depthwise, q[b : b + 1].chunk(m.groups, 1)[g])
            y = pixelwise(m.point, F.gelu(layer_norm(m.norm, y.movedim(1, -1)).movedim(-1, 1)))[0].flatten(1)
            points.append((row + 2 * torch.tanh(y[0]) / height, column + 2 * torch.tanh(y[1]) / width))
            keys.append(sampled(x[b].chunk(m.groups)[g], *points[-1]))
        features = torch.cat(keys)
        keys, values = (dense(layer, features.T).T.chunk(m.heads) for layer in (m.key, m.value))
        for h in range(m.heads):
            down, right = points[h // per_group]
            bias = sampled(m.table[h : h + 1], (row[:, None] - down) / 2, (column[:, None] - right) / 2)[0]
            queries = q[b].flatten(1).chunk(m.heads)[h]
            weight = soft(queries.T @ keys[h] / math.sqrt(queries.shape[0]) + bias, -1)
            out[b].view(m.heads, -1, height * width)[h] = values[h] @ weight.T
    return pixelwise(m.out, out.view_as(x))


@attention
def weighted_permute_mlp(m: Module, x: Tensor) -> Tensor:
    size = x.shape[-1] // m.segments
    rows, columns = torch.empty_like(x), torch.empty_like(x)
    for s in range(m.segments):
        part = x[..., s * size : (s + 1) * size]
        for n in range(8):
            rows[:, :, n, s * size : (s + 1) * size] = dense(m.rows, part[:, :, n].flatten(1)).view(-1, 8, size)
            columns[:, n, :, s * size : (s + 1) * size] = dense(m.columns, part[:, n].flatten(1)).view(-1, 8, size)
    branches = (rows, columns, dense(m.channels, x))
    hidden = dense(m.squeeze, sum(branches).flatten(1, 2).mean(1))
    gates = dense(m.excite, hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2))))
    shares = soft(torch.stack([gates[:, n::3] for n in range(3)]), 0)
    return dense(m.out, sum(b * s[:, None, None] for b, s in zip(branches, shares, strict=True)))


@attention
def vit_attention(m: Module, x: Tensor) -> Tensor:
    return fused(m, x)


def relative(m: Module, x: Tensor, table: Tensor) -> Tensor:
    index = torch.tensor([[(i // 7 - j // 7 + 6) * 13 + i % 7 - j % 7 + 6 for j in range(49)] for i in range(49)])
    parts = list(zip(*(y.chunk(m.heads, -1) for y in three(m, x)), strict=True))
    heads = [soft(q @ k.mT * q.shape[-1] ** -0.5 + table[:, h][index], -1) @ v for h, (q, k, v) in enumerate(parts)]
    return dense(m.out, torch.cat(heads, -1))


@attention
def crossformer_attention(m: Module, x: Tensor) -> Tensor:
    distances = torch.tensor([[float(a), float(b)] for a in range(-6, 7) for b in range(-6, 7)], dtype=x.dtype)
    return relative(m, x, steps(m.bias, distances))


@attention
def window_attention(m: Module, x: Tensor) -> Tensor:
    return relative(m, x, m.bias.flatten(0, 1))


@attention
def global_filter(m: Module, x: Tensor) -> Tensor:
    image = x.unflatten(1, (7, 7))
    spectrum = torch.fft.rfft2(image, dim=(1, 2), norm="ortho") * torch.view_as_complex(m.filter.contiguous())
    return torch.fft.irfft2(spectrum, s=(7, 7), dim=(1, 2), norm="ortho").flatten(1, 2)
