"""Multilayer perceptrons."""

from __future__ import annotations

from itertools import pairwise

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.suites.level3.network import network

ROWS = CaseSizes("batch", public=(6,), hidden=((11,), (1,)), timing=(128,))
REFERENCE = "Rumelhart, Hinton and Williams, Learning representations by back-propagating errors, 1986"


def _perceptron(number: int, name: str, description: str, widths: list[int], published: str) -> TaskDefinition:
    pairs = ", ".join(
        f"nn.Linear({before}, {after})" + (", nn.ReLU()" if place < len(widths) - 2 else "")
        for place, (before, after) in enumerate(pairwise(widths))
    )
    return network(
        number,
        name,
        description,
        REFERENCE,
        "self.layers(x)",
        {"layers": f"nn.Sequential({pairs})"},
        inputs={"x": f"torch.randn(batch, {widths[0]})"},
        sizes=ROWS,
        published=published,
    )


DEFINITIONS = (
    _perceptron(
        1, "mlp", "A perceptron with two hidden layers.", [192, 256, 128, 64],
        "batch 128, 16384 to 8192 with hidden layers of 16384 and 16384",
    ),
    _perceptron(
        2, "shallow_wide_mlp", "A perceptron with two wide hidden layers.", [96, 512, 512, 80],
        "batch 128, 16384 to 16384 with hidden layers of 32768 and 32768",
    ),
    _perceptron(
        3, "deep_narrow_mlp", "A perceptron with sixteen narrow hidden layers.", [128, *[48] * 16, 64],
        "batch 1024, 8192 to 8192 with sixteen hidden layers of 1024",
    ),
)  # fmt: skip
