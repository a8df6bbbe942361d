"""KernelBench's level 1: single operators, one module for each family."""

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

_DEFINITIONS = [definition for family in _FAMILIES for definition in family.DEFINITIONS]
DEFINITIONS = tuple(sorted(_DEFINITIONS, key=lambda definition: definition.number or 0))
