"""Gates on channels and positions of images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from formulations.blocks import columns_of, convolve, dense, layer_norm, normed, online, pixelwise, sigm, steps
from formulations.registry import Module, attention


def gated(x: Tensor, gate: Tensor) -> Tensor:
    return torch.einsum("bchw,bc->bchw", x, gate)


@attention
def se_attention(m: Module, x: Tensor) -> Tensor:
    return gated(x, sigm(dense(m.excite, dense(m.squeeze, F.adaptive_avg_pool2d(x, 1).flatten(1)).clamp(min=0))))


@attention
def eca_attention(m: Module, x: Tensor) -> Tensor:
    mean = F.pad(x.flatten(2).mean(2), (2, 2))
    taps = [m.conv.weight[0, 0, k] * mean[:, k : k + x.shape[1]] for k in range(5)]
    return gated(x, sigm(torch.stack(taps).sum(0)))


@attention
def gct(m: Module, x: Tensor) -> Tensor:
    mean = x.flatten(2).mean(2)
    y = F.layer_norm(mean, mean.shape[1:], eps=m.epsilon)
    return gated(x, torch.exp(-(y**2)))


@attention
def srm(m: Module, x: Tensor) -> Tensor:
    flat, weight = x.flatten(2), m.integrate.weight[:, 0]
    count = flat.shape[2]
    deviation = ((flat**2).sum(2) - flat.sum(2) ** 2 / count).div(count - 1).sqrt()
    return gated(x, sigm(normed(m.norm, flat.mean(2) * weight[:, 0] + deviation * weight[:, 1])))


@attention
def gated_channel_transform(m: Module, x: Tensor) -> Tensor:
    alpha, beta, gamma = (p.flatten() for p in (m.alpha, m.beta, m.gamma))
    y = alpha * (torch.einsum("bchw,bchw->bc", x, x) + m.epsilon) ** 0.5
    y = gamma * y / ((y * y).mean(1, keepdim=True) + m.epsilon) ** 0.5
    return gated(x, 2 * sigm(2 * (y + beta)))


@attention
def gc_module(m: Module, x: Tensor) -> Tensor:
    pixels = columns_of(x)
    context = online(torch.ones_like(pixels[:, :1, :1]), dense(m.mask, pixels), pixels, scale=1.0)[:, 0]
    y = layer_norm(m.norm, dense(m.squeeze, context)).clamp(min=0)
    return x + dense(m.excite, y)[:, :, None, None]


@attention
def lct(m: Module, x: Tensor) -> Tensor:
    y = F.group_norm(x.flatten(2).mean(2), m.groups, m.weight, m.bias, m.epsilon)
    return gated(x, sigm(y))


@attention
def simam(m: Module, x: Tensor) -> Tensor:
    flat = x.flatten(2)
    distance = (flat - flat.mean(2, keepdim=True)) ** 2
    variance = distance.sum(2, keepdim=True) / (flat.shape[2] - 1)
    return (flat * sigm(0.5 + distance / (4 * variance + 4 * m.balance))).view_as(x)


@attention
def coord_att(m: Module, x: Tensor) -> Tensor:
    def middle(y: Tensor) -> Tensor:
        y = normed(m.norm, dense(m.squeeze, y.mT).mT)
        return y * ((y + 3).clamp(0, 6) / 6)

    rows, columns = middle(x.sum(3) / x.shape[3]), middle(x.sum(2) / x.shape[2])
    gates = [sigm(dense(layer, y.mT).mT) for layer, y in ((m.row, rows), (m.column, columns))]
    return torch.einsum("bchw,bch,bcw->bchw", x, *gates)


@attention
def spatial_group_enhance(m: Module, x: Tensor) -> Tensor:
    parts = []
    for group, y in enumerate(x.chunk(m.groups, 1)):
        mean = y.flatten(2).mean(2)
        similar = torch.einsum("bchw,bc->bhw", y, mean).flatten(1)
        similar = similar - similar.mean(1, keepdim=True)
        similar = similar / (similar.std(1, keepdim=True) + m.epsilon)
        gate = sigm(similar * m.weight[0, group] + m.bias[0, group])
        parts.append(y * gate.view(x.shape[0], 1, *x.shape[2:]))
    return torch.cat(parts, 1)


@attention
def cbam_block(m: Module, x: Tensor) -> Tensor:
    pooled = (F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1))
    gates = [dense(m.excite, dense(m.squeeze, y.flatten(1)).clamp(min=0)) for y in pooled]
    x = gated(x, sigm(gates[0] + gates[1]))
    largest = x.sort(1).values[:, -1:]
    return x * sigm(F.conv2d(torch.cat([largest, x.mean(1, True)], 1), m.spatial.weight, m.spatial.bias, padding=24))


@attention
def bam(m: Module, x: Tensor) -> Tensor:
    channel = steps(m.channel, x.flatten(2).mean(2))
    spatial = x
    for layer in m.spatial:
        spatial = steps(layer if isinstance(layer, nn.Sequential) else nn.Sequential(layer), spatial)
    return x + x * sigm(channel[:, :, None, None] + spatial)


@attention
def triplet_attention(m: Module, x: Tensor) -> Tensor:
    def gate(y: Tensor, layers: Any) -> Tensor:
        pooled = torch.stack([y.sort(1).values[:, -1], y.mean(1)], 1)
        return sigm(normed(layers[1], F.conv2d(pooled, layers[0].weight, padding=3)))

    turned = [(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 2, 1)]
    total = 0
    for order, layers in zip(turned, (m.plain, m.rows, m.columns), strict=True):
        total = total + x * gate(x.permute(order), layers).permute(order)
    return total / 3


@attention
def sk_attention(m: Module, x: Tensor) -> Tensor:
    branches = [steps(m.get_submodule(f"conv{k}"), x) for k in (1, 3, 5, 7)]
    z = dense(m.squeeze, sum(b.flatten(2).mean(2) for b in branches))
    powers = [dense(m.get_submodule(f"gate{k}"), z).exp() for k in (1, 3, 5, 7)]
    return sum(gated(b, p) for b, p in zip(branches, powers, strict=True)) / sum(powers)[:, :, None, None]


@attention
def shuffle_attention(m: Module, x: Tensor) -> Tensor:
    channels, half = x.shape[1], x.shape[1] // (2 * m.groups)
    out = torch.empty_like(x)
    for c in range(channels):
        y, place = x[:, c], c % half
        if c // half % 2 == 0:
            value = y.mean((1, 2), keepdim=True) * m.channel_weight[0, place] + m.channel_bias[0, place]
        else:
            value = (y - y.mean((1, 2), keepdim=True)) / (y.var((1, 2), correction=0, keepdim=True) + m.norm.eps).sqrt()
            value = value * m.norm.weight[place] + m.norm.bias[place]
            value = value * m.spatial_weight[0, place] + m.spatial_bias[0, place]
        target = 2 * c if c < channels // 2 else 2 * (c - channels // 2) + 1
        out[:, target] = y * sigm(value)
    return out


@attention
def psa(m: Module, x: Tensor) -> Tensor:
    names = (3, 5, 7, 9)
    parts = [convolve(m.get_submodule(f"conv{k}"), p) for k, p in zip(names, x.chunk(4, 1), strict=True)]
    gates = [steps(m.get_submodule(f"squeeze{k}"), p.flatten(2).mean(2)) for k, p in zip(names, parts, strict=True)]
    total = sum(g.exp() for g in gates)
    return torch.cat([gated(p, g.exp() / total) for p, g in zip(parts, gates, strict=True)], 1)


@attention
def parnet_attention(m: Module, x: Tensor) -> Tensor:
    gate = sigm(dense(m.gate, x.flatten(2).mean(2)))
    y = normed(m.norm1, pixelwise(m.conv1, x)) + normed(m.norm3, convolve(m.conv3, x)) + gated(x, gate)
    return y * sigm(y)


@attention
def residual_attention(m: Module, x: Tensor) -> Tensor:
    scores = dense(m.classify, columns_of(x))
    return scores.sum(1) / scores.shape[1] + m.share * scores.sort(1).values[:, -1]
