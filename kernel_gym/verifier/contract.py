"""The contract of a verifier, as the environment's options accept it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict

VerifyAll = Callable[[Sequence[tuple[Kernel, Task]]], Sequence[Verdict]]


class KernelVerifier(Protocol):
    """Judges kernels. A verifier may also have `verify_all`, a `VerifyAll` that judges several kernels in parallel."""

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Judge one kernel.

        Args:
            kernel: The kernel to judge.
            task: The task that it was written for.

        Returns:
            The verdict; `Unjudged` if the infrastructure failed.

        Raises:
            InfrastructureError: The infrastructure failed. The environment treats it like `Unjudged`.
        """
