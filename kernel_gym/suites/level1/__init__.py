"""KernelBench's level 1: single operators, one file for each family."""

from __future__ import annotations

from kernel_gym.suites.level1 import (
    activations,
    attentions,
    convolutions,
    losses,
    matmuls,
    normalizations,
    poolings,
    reductions,
    scans,
)

_FAMILIES = (activations, attentions, convolutions, losses, matmuls, normalizations, poolings, reductions, scans)

OPERATORS = tuple(
    sorted(
        (operator for family in _FAMILIES for operator in family.OPERATORS), key=lambda operator: operator.number or 0
    )
)
