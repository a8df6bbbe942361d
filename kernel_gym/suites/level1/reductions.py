"""Reductions along one dimension."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

#: Along the middle dimension: the reduced elements lie a row apart.
MIDDLE = CaseSizes(
    "batch rows columns", public=(4, 32, 64), hidden=((1, 61, 37), (3, 1, 257), (2, 128, 1)), timing=(64, 512, 512)
)


def _reduction(number: int, name: str, description: str, forward: str, category: str = "reduce") -> TaskDefinition:
    return TaskDefinition(
        number,
        f"{name}_over_a_dimension",
        category,
        description,
        MIDDLE,
        forward,
        inputs={"x": "torch.randn(batch, rows, columns)"},
        settings={"dim": 1},
        init="dim",
    )


DEFINITIONS = (
    _reduction(
        47, "sum_reduction", "Sum over the middle dimension, kept as 1.", "torch.sum(x, dim=self.dim, keepdim=True)"
    ),
    _reduction(48, "mean_reduction", "Mean over the middle dimension.", "torch.mean(x, dim=self.dim)"),
    _reduction(49, "max_reduction", "Maximum over the middle dimension.", "torch.max(x, dim=self.dim)[0]"),
    _reduction(
        51, "argmax", "Position of the maximum over the middle dimension.", "torch.argmax(x, dim=self.dim)", "index"
    ),
    _reduction(
        52, "argmin", "Position of the minimum over the middle dimension.", "torch.argmin(x, dim=self.dim)", "index"
    ),
    _reduction(53, "min_reduction", "Minimum over the middle dimension.", "torch.min(x, dim=self.dim)[0]"),
)
