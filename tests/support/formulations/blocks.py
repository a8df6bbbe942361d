"""Building blocks of second formulations: attention key by key, layers in another form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from formulations.registry import Module


def online(q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None = None, scale: float | None = None) -> Tensor:
    """Softmax attention one key at a time: running maximum, running sum, accumulated values."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    largest = torch.full(q.shape[:-1], -1e300, dtype=q.dtype)
    total = torch.zeros_like(largest)
    result = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for j in range(k.shape[-2]):
        score = (q * k[..., j : j + 1, :]).sum(-1) * scale
        if seen is not None:
            score = score.where(seen[..., :, j], torch.tensor(-math.inf, dtype=q.dtype))
        top = torch.maximum(largest, score)
        keep, new = (largest - top).exp(), (score - top).exp()
        total = total * keep + new
        result = result * keep.unsqueeze(-1) + new.unsqueeze(-1) * v[..., j : j + 1, :]
        largest = top
    return result / total.unsqueeze(-1)


def per_head(q: Tensor, k: Tensor, v: Tensor, heads: int, **settings: Any) -> Tensor:
    """Attention of (..., length, heads * depth), head by head."""
    parts = [tuple(y.chunk(heads, dim=-1)[h] for y in (q, k, v)) for h in range(heads)]
    return torch.cat([online(*part, **settings) for part in parts], dim=-1)


def dense(layer: Any, x: Tensor) -> Tensor:
    """A linear layer as a sum over inputs."""
    total = torch.einsum("...i,oi->...o", x, layer.weight.flatten(1))
    return total if layer.bias is None else total + layer.bias


def pixelwise(layer: Any, x: Tensor) -> Tensor:
    """A 1 x 1 convolution as a linear layer of the channels."""
    return dense(layer, x.movedim(1, -1)).movedim(-1, 1)


def shifted(x: Tensor, dy: int, dx: int) -> Tensor:
    """x[..., i + dy, j + dx], with zeros outside."""
    height, width = x.shape[-2:]
    out = torch.zeros_like(x)
    for i in range(max(0, -dy), min(height, height - dy)):
        for j in range(max(0, -dx), min(width, width - dx)):
            out[..., i, j] = x[..., i + dy, j + dx]
    return out


def moved(x: Tensor, dy: int, dx: int) -> Tensor:
    """The same by rolling and clearing what came round."""
    height, width = x.shape[-2:]
    if abs(dy) >= height or abs(dx) >= width:
        return torch.zeros_like(x)
    out = x.roll((-dy, -dx), (-2, -1)).clone()
    if dy:
        out[..., (height - dy if dy > 0 else 0) : (height if dy > 0 else -dy), :] = 0
    if dx:
        out[..., (width - dx if dx > 0 else 0) : (width if dx > 0 else -dx)] = 0
    return out


def convolve(layer: Any, x: Tensor) -> Tensor:
    """A convolution that keeps the size, as a sum over shifted images."""
    weight, groups = layer.weight, layer.groups
    size, hop = weight.shape[-1], layer.dilation[0]
    centre = size // 2
    x = x.unflatten(1, (groups, -1))
    weight = weight.unflatten(0, (groups, -1))
    total: Any = 0.0
    for i in range(size):
        for j in range(size):
            image = moved(x, (i - centre) * hop, (j - centre) * hop)
            total = total + torch.einsum("bgihw,goi->bgohw", image, weight[..., i, j])
    total = total.flatten(1, 2)
    return total if layer.bias is None else total + layer.bias[:, None, None]


def normed(layer: Any, x: Tensor) -> Tensor:
    """Batch norm as one multiplication and one addition."""
    factor = layer.weight / torch.sqrt(layer.running_var + layer.eps)
    shape = (-1, *(1,) * (x.ndim - 2))
    return x * factor.view(shape) + (layer.bias - layer.running_mean * factor).view(shape)


def layer_norm(layer: Any, x: Tensor) -> Tensor:
    """Layer norm over the last dimension, with the variance as mean of squares minus squared mean."""
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return (x - mean) * (square - mean**2 + layer.eps) ** -0.5 * layer.weight.flatten() + layer.bias.flatten()


def soft(x: Tensor, dim: int) -> Tensor:
    """Softmax by its logarithm."""
    return (x - x.logsumexp(dim, keepdim=True)).exp()


def sigm(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.tanh(x / 2))


def steps(modules: nn.Sequential, x: Tensor) -> Tensor:
    """A sequence of layers, each in its other form."""
    forms: dict[type, Callable[[Any, Tensor], Tensor]] = {
        nn.Linear: dense,
        nn.Conv2d: convolve,
        nn.BatchNorm1d: normed,
        nn.BatchNorm2d: normed,
        nn.LayerNorm: layer_norm,
        nn.ReLU: lambda _, y: y.clamp(min=0),
        nn.Sigmoid: lambda _, y: sigm(y),
    }
    for layer in modules:
        x = forms[type(layer)](layer, x)
    return x


def columns_of(x: Tensor) -> Tensor:
    """Images as rows of pixels: (batch, positions, channels)."""
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, x.shape[1])


def image_of(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(x.shape[0], *like.shape[2:], -1).permute(0, 3, 1, 2)


def places(length: int) -> tuple[Tensor, Tensor]:
    return torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")


def three(m: Module, x: Tensor) -> list[Tensor]:
    """Queries, keys and values of a fused projection."""
    weights = m.qkv.weight.chunk(3)
    biases = m.qkv.bias.chunk(3) if m.qkv.bias is not None else (0.0,) * 3
    return [x @ w.T + b for w, b in zip(weights, biases, strict=True)]


def fused(m: Module, x: Tensor, **settings: Any) -> Tensor:
    return dense(m.out, per_head(*three(m, x), m.heads, **settings))


def sparse(m: Module, x: Tensor, rule: Callable[[int, int], bool]) -> Tensor:
    length = x.shape[1]
    seen = torch.tensor([[rule(i, j) for j in range(length)] for i in range(length)])
    return fused(m, x, seen=seen)


def kernelised(q: Tensor, k: Tensor, v: Tensor, epsilon: float) -> Tensor:
    """Linear attention with the full matrix of weights."""
    weight = torch.einsum("...id,...jd->...ij", q, k)
    return torch.einsum("...ij,...jd->...id", weight, v) / (weight.sum(-1, keepdim=True) + epsilon)


def by_heads(function: Callable[..., Tensor], heads: int, *tensors: Tensor) -> Tensor:
    return torch.cat([function(*part) for part in zip(*(t.chunk(heads, -1) for t in tensors), strict=True)], -1)
