"""KernelBench's level 2: fused chains, one module for each layer that a chain begins with."""

from __future__ import annotations

from kernel_gym.suites.level2 import conv2d, conv3d, conv_transpose2d, conv_transpose3d, gemm

_FAMILIES = (conv2d, conv3d, conv_transpose2d, conv_transpose3d, gemm)

_DEFINITIONS = [definition for family in _FAMILIES for definition in family.DEFINITIONS]
DEFINITIONS = tuple(sorted(_DEFINITIONS, key=lambda definition: definition.number or 0))
