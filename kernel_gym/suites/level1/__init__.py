"""KernelBench's level 1: single operators."""

from __future__ import annotations

from kernel_gym.suites.level1 import activations, normalizations, reductions

OPERATORS = tuple(
    sorted(
        (*activations.OPERATORS, *normalizations.OPERATORS, *reductions.OPERATORS),
        key=lambda operator: operator.number or 0,
    )
)
