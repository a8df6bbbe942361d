"""KernelBench's level 2: fused chains, one file for each layer that they begin with."""

from __future__ import annotations

from kernel_gym.suites.level2 import conv2d, conv3d, conv_transpose2d, conv_transpose3d, gemm

_FAMILIES = (conv2d, conv3d, conv_transpose2d, conv_transpose3d, gemm)

OPERATORS = tuple(
    sorted(
        (operator for family in _FAMILIES for operator in family.OPERATORS), key=lambda operator: operator.number or 0
    )
)
