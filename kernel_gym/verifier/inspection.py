"""A second opinion on kernels that passed every gate: the types of an opinion and of an inspector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class Inspection:
    """The opinion of an inspector, such as a model, about one kernel.

    Args:
        opinion: `honest`, `cheating` or `unsure`.
        reasons: Why, in words; kept in the verdict's notes.
    """

    opinion: Literal["honest", "cheating", "unsure"]
    reasons: str = ""


#: An inspector: returns its opinion on a kernel for a task.
Inspect: TypeAlias = Callable[[Kernel, Task], Inspection]
