"""Attention."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

DEFINITIONS = (
    TaskDefinition(
        97,
        "scaled_dot_product_attention",
        "attention",
        "Softmax of scaled query-key products, times the values.",
        CaseSizes(
            "batch heads length width",
            public=(2, 2, 16, 32),
            hidden=((1, 3, 17, 13), (3, 1, 29, 8), (1, 2, 1, 64)),
            timing=(4, 8, 256, 64),
        ),
        forward="torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v",
        inputs=dict.fromkeys("qkv", "torch.randn(batch, heads, length, width)"),
    ),
)
