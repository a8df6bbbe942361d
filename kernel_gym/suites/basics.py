"""The simplest tasks, for a first kernel or a smoke test."""

from __future__ import annotations

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition

VECTOR = CaseSizes("length", public=(4096,), hidden=((1,), (10007,), (2049,)), timing=(1 << 22,))

DEFINITIONS = (
    TaskDefinition(
        1,
        "vector_add",
        "broadcast",
        "Sum of two vectors.",
        VECTOR,
        forward="a + b",
        inputs={"a": "torch.randn(length)", "b": "torch.randn(length)"},
    ),
)
