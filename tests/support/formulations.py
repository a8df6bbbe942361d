"""The modules of the suites `attention` and `mhc`, formulated a second time: other algorithms, in float64.

Attention is computed key by key with a running maximum and a running sum, convolutions as sums over shifted images,
sparse patterns from their definition pair by pair, gradients by autograd, Fourier transforms by torch.fft. A function
has the name of its task and gets the module, for its weights, and the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

Module = Any
ATTENTION: dict[str, Callable[..., Any]] = {}
MHC: dict[str, Callable[..., Any]] = {}
#: Parts of modules, on queries, keys and values of shape (batch, heads, length, depth).
PARTS: dict[str, Callable[..., Any]] = {}


def attention(function: Callable[..., Any]) -> Callable[..., Any]:
    ATTENTION[function.__name__.strip("_")] = function
    return function


def mhc(function: Callable[..., Any]) -> Callable[..., Any]:
    MHC[function.__name__] = function
    return function


# ---- building blocks -------------------------------------------------------------------------------------------


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


# ---- exact and efficient attention -----------------------------------------------------------------------------


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


# ---- gates -----------------------------------------------------------------------------------------------------


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


# ---- tokens ----------------------------------------------------------------------------------------------------


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


# ---- images ----------------------------------------------------------------------------------------------------


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


# ---- windows ---------------------------------------------------------------------------------------------------


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


# ---- inference -------------------------------------------------------------------------------------------------


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


# ---- parts -----------------------------------------------------------------------------------------------------


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


# ---- hyper-connections -----------------------------------------------------------------------------------------


def sinkhorn(logits: Tensor, iterations: int) -> Tensor:
    """The same iteration on the matrix itself, scaled so that no power overflows."""
    matrix = (logits - logits.amax((-1, -2), keepdim=True)).exp()
    rows, columns = torch.ones_like(matrix[..., :1]), torch.ones_like(matrix[..., :1, :])
    for _ in range(iterations):
        rows = 1 / (matrix * columns).sum(-1, keepdim=True)
        columns = 1 / (matrix * rows).sum(-2, keepdim=True)
    return rows * matrix * columns


def projected(m: Module, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = F.rms_norm(x.flatten(2), (x.shape[2] * x.shape[3],), eps=m.epsilon)
    logits = [m.scale[n] * torch.einsum("bti,io->bto", flat, phi) for n, phi in enumerate((m.phi_pre, m.phi_post))]
    res = m.scale[2] * torch.einsum("bti,io->bto", flat, m.phi_res) + m.bias_res.flatten()
    mixing = sinkhorn(res.unflatten(2, (4, 4)), m.iterations)
    return sigm(logits[0] + m.bias_pre), 2 * sigm(logits[1] + m.bias_post), mixing


def updated(x: Tensor, post: Tensor, res: Tensor, y: Tensor) -> Tensor:
    return torch.einsum("...ij,...jc->...ic", res, x) + torch.einsum("...i,...c->...ic", post, y)


def all_projections(m: Module, flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    flat = F.rms_norm(flat, flat.shape[-1:], eps=m.epsilon)
    pre, post, res = (flat @ part for part in (m.phi[:, :4], m.phi[:, 4:8], m.phi[:, 8:]))
    mixing = sinkhorn((res + m.bias_res.flatten()).unflatten(2, (4, 4)), m.iterations)
    return sigm(pre + m.bias_pre), 2 * sigm(post + m.bias_post), mixing


@mhc
def sinkhorn_knopp(m: Module, x: Tensor) -> Tensor:
    return sinkhorn(x, 20)


@mhc
def mhc_projector(m: Module, x: Tensor) -> tuple[Tensor, ...]:
    return projected(m, x)


@mhc
def stream_weighted_sum(m: Module, x: Tensor, pre: Tensor) -> Tensor:
    return torch.einsum("btnc,btn->btc", x, pre)


@mhc
def stream_mix(m: Module, x: Tensor, res: Tensor) -> Tensor:
    return torch.einsum("btij,btjc->btic", res, x)


@mhc
def stream_write(m: Module, y: Tensor, post: Tensor) -> Tensor:
    return torch.stack([post[:, :, n, None] * y for n in range(post.shape[2])], 2)


@mhc
def mhc_update(m: Module, x: Tensor, post: Tensor, res: Tensor, y: Tensor) -> Tensor:
    return updated(x, post, res, y)


@mhc
def mhc_module(m: Module, x: Tensor) -> Tensor:
    pre, post, res = projected(m, x)
    return updated(x, post, res, stream_weighted_sum(m, x, pre))


def block(m: Module, x: Tensor) -> Tensor:
    gates = dense(m.gates, dense(m.squeeze, x.flatten(2).mean(2)).clamp(min=0))
    pre, post = sigm(gates[:, :4]), 2 * sigm(gates[:, 4:8])
    res = sinkhorn(gates[:, 8:].unflatten(1, (4, 4)) / m.temperature, m.iterations)
    each = x.shape[1] // 4
    y = steps(m.layer, x * pre.repeat_interleave(each, 1)[:, :, None, None])
    mixed = torch.cat(
        [sum(res[:, i, j, None, None, None] * p for j, p in enumerate(x.chunk(4, 1))) for i in range(4)], 1
    )
    return (mixed + y * post.repeat_interleave(each, 1)[:, :, None, None]).clamp(min=0)


@mhc
def mhc_block2d(m: Module, x: Tensor) -> Tensor:
    return block(m, x)


@mhc
def mhc_block_bottleneck2d(m: Module, x: Tensor) -> Tensor:
    return block(m, x)


@mhc
def orthostochastic_project(m: Module, x: Tensor) -> Tensor:
    left, values, right = torch.linalg.svd(x)
    values = values / (torch.linalg.vector_norm(values) + 1e-7)
    for _ in range(5):
        values = 3.0 * values - 3.2 * values**3 + 1.2 * values**5
    return (left @ values.diag() @ right) ** 2


@mhc
def fused_mhc_kernels(m: Module, x: Tensor) -> tuple[Tensor, ...]:
    return all_projections(m, x)


@mhc
def optimized_mhc_layer_with_fusion(m: Module, x: Tensor) -> Tensor:
    streams = torch.stack([x * scale for scale in m.spread], 2)
    pre, post, res = all_projections(m, torch.cat(streams.unbind(2), -1))
    return updated(streams, post, res, dense(m.layer, stream_weighted_sum(m, streams, pre))).sum(2) / 4


@mhc
def static_mhc_hyper_connections(m: Module, x: Tensor) -> Tensor:
    res, y = sinkhorn(m.logits / 0.05, 10), torch.einsum("n,bnc->bc", soft(m.pre, 0), x)
    return updated(x, m.post.expand(x.shape[:2]), res.expand(x.shape[0], -1, -1), y)


@mhc
def mhc_pre_block(m: Module, x: Tensor, phi: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    flat = F.rms_norm(x.flatten(1), (x.shape[1] * x.shape[2],), eps=1e-6)
    pre, post, res = (
        scale[n] * torch.einsum("ti,oi->to", flat, phi[part]) + bias[part]
        for n, part in enumerate((slice(0, 4), slice(4, 8), slice(8, 24)))
    )
    matrices = []
    for token in res:
        matrix = soft(token.view(4, 4), 1) + 1e-6
        for n in range(19):
            matrix = matrix / (matrix.sum(n % 2, keepdim=True) + 1e-6)
        matrices.append(matrix)
    return torch.einsum("tnc,tn->tc", x, sigm(pre) + 1e-6), sigm(post)[..., None], torch.stack(matrices)


@mhc
def mhc_post_block(m: Module, y: Tensor, x: Tensor, post: Tensor, res: Tensor) -> Tensor:
    return updated(x, post[..., 0], res.mT, y)
