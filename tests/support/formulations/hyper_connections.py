"""Manifold-constrained hyper-connections."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from formulations.blocks import dense, sigm, soft, steps
from formulations.registry import Module, mhc


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
