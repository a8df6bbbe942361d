"""Normalisations."""

from __future__ import annotations

from kernel_gym.suites.table import Operator, Sizes

OPERATORS = (
    Operator(
        40,
        "layer_norm",
        "normalization",
        "Layer normalisation over the last three dimensions, with weight and bias.",
        Sizes(
            "batch features height width",
            public=(4, 8, 8, 16),
            hidden=((3, 5, 7, 11), (1, 1, 1, 127), (7, 3, 13, 1)),
            timing=(128, 16, 32, 32),
        ),
        forward="self.norm(x)",
        inputs={"x": "torch.randn(batch, features, height, width)"},
        layers={"norm": "nn.LayerNorm(normalized_shape)"},
        settings={"normalized_shape": "(features, height, width)"},
        init="normalized_shape",
    ),
)
