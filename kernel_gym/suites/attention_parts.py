"""Parts of modules of the suite `attention`: what lies between the linear layers and convolutions.

Published kernels for some of these modules compute the part alone, and leave the projections to torch. A part has the
number of its module. The part of plain softmax attention (numbers 2 to 6, 39, 40 and 62) is `attention/1`.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gym.suites import attention
from kernel_gym.suites.attention.efficient import KERNEL, MASKED
from kernel_gym.suites.attention.exact import lines
from kernel_gym.suites.attention.family import Family
from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

_MODULES = {definition.number: definition for definition in attention.DEFINITIONS}
HEADS = Family(
    sizes=CaseSizes(
        "batch heads length depth",
        public=(3, 5, 10, 16),
        hidden=((1, 2, 17, 9), (2, 4, 7, 25), (1, 3, 33, 8)),
        timing=(4, 8, 256, 64),
    ),
    inputs=dict.fromkeys("qkv", "torch.randn(batch, heads, length, depth)"),
    init="",
    published="those of the module",
)
#: Lengths that are multiples of 16.
BLOCKS = CaseSizes(
    "batch heads length depth",
    public=(3, 5, 48, 20),
    hidden=((1, 2, 80, 9), (2, 4, 32, 25), (1, 3, 64, 8)),
    timing=(4, 8, 256, 64),
)
PLACES = """
place = torch.arange(q.shape[2])
apart = place[:, None] - place[None, :]"""
ATTEND = MASKED.replace("x = ", "return ")
FEATURES = KERNEL.replace("x = ", "return ")


def _part(
    number: int, description: str, forward: str, sizes: CaseSizes | None = None, **settings: object
) -> TaskDefinition:
    """Return the part of a module as a task, with the module's name, category and reference."""
    module = _MODULES[number]
    part = HEADS.module(number, module.name, description, module.reference, forward, sizes=sizes, **settings)  # type: ignore[arg-type]
    return replace(part, published=f"those of attention/{module.name} behind its projections")


DEFINITIONS = (
    _part(
        7,
        "Causal attention over projected queries, keys and values.",
        lines(PLACES, "seen = apart >= 0", ATTEND),
    ),
    _part(
        11,
        "Linear attention with the kernel elu(x) + 1 over projected queries, keys and values.",
        lines("q, k = F.elu(q) + 1, F.elu(k) + 1", FEATURES),
        epsilon=1e-6,
    ),
    _part(
        15,
        "Linear attention weighted by the cosine of distances, over projected queries, keys and values.",
        """
angle = (torch.arange(q.shape[2], dtype=q.dtype) * (0.5 * math.pi / q.shape[2])).unsqueeze(-1)
q, k = torch.relu(q), torch.relu(k)
q_cos, q_sin = q * torch.cos(angle), q * torch.sin(angle)
k_cos, k_sin = k * torch.cos(angle), k * torch.sin(angle)
total = q_cos @ (k_cos.transpose(-1, -2) @ v) + q_sin @ (k_sin.transpose(-1, -2) @ v)
weight = q_cos @ k_cos.sum(dim=2).unsqueeze(-1) + q_sin @ k_sin.sum(dim=2).unsqueeze(-1)
return total / (weight + self.epsilon)""",
        epsilon=1e-6,
    ),
    _part(
        16,
        "Attention within a sliding window over projected queries, keys and values.",
        lines(PLACES, "seen = apart.abs() <= self.window // 2", ATTEND),
        window=8,
    ),
    _part(
        17,
        "Attention within blocks over projected queries, keys and values.",
        """
q, k, v = (y.unflatten(2, (-1, self.block)) for y in (q, k, v))
x = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v
return x.flatten(2, 3)""",
        sizes=BLOCKS,
        block=16,
    ),
    _part(
        18,
        "Attention over the nearest and every fourth position, of projected queries, keys and values.",
        lines(PLACES, "seen = (apart.abs() < self.stride) | (apart % self.stride == 0)", ATTEND),
        stride=4,
    ),
    _part(
        19,
        "Attention within a window and over the first position, of projected queries, keys and values.",
        lines(
            PLACES,
            "seen = (apart.abs() <= self.window // 2) | (place[:, None] == 0) | (place[None, :] == 0)",
            ATTEND,
        ),
        window=8,
    ),
    _part(
        46,
        "Normalised keys times values, then normalised queries times the product, after the projections.",
        """
context = k.transpose(-1, -2) @ v
context = context / (context.norm(dim=-1, keepdim=True) + self.epsilon)
return q / (q.norm(dim=-1, keepdim=True) + self.epsilon) @ context""",
        epsilon=1e-6,
    ),
)
