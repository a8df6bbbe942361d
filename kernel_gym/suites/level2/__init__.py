"""KernelBench's level 2: fused chains."""

from __future__ import annotations

from kernel_gym.suites.table import Operator

OPERATORS: tuple[Operator, ...] = ()
