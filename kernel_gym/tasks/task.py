"""A task: a reference module in KernelBench's format and the sizes at which kernels for it are judged.

`kernel_gym.suites` finds tasks by name. `Task.instance` builds the module at one of the sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from kernel_gym.tasks.specs import Case, Signature

if TYPE_CHECKING:
    import torch

    from kernel_gym.tasks.graph import Graph
    from kernel_gym.tasks.trials import Counts, Trial


class Instance(Protocol):
    """A task at one case: what its module receives and computes there."""

    case: Case
    signature: Signature

    def evaluate(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[torch.Tensor, ...]:
        """Run the reference on `inputs` (ordered as `signature.inputs`); `dtype` raises or lowers its precision."""

    def tried(
        self,
        inputs: Sequence[torch.Tensor],
        trial: Trial,
        dtype: torch.dtype | None = None,
        usual: torch.Tensor | None = None,
    ) -> tuple[tuple[torch.Tensor, ...], Counts]:
        """Run the reference on `inputs` as a trial says, and count its parts.

        `usual` says which rows of the first argument have no stress; its shape is that of the leading dimensions.
        Activations are counted only with it.
        """

    def iterations(self) -> int:
        """Return the number of iterations that the module has; 0 if it does not have such a number."""

    def statistics(self, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        """Return the means and variances of what reaches each batch norm on `inputs`, in float64.

        They have the positions of the layers' running means and variances in `signature.inputs`.
        """

    def fixed_inputs(self) -> dict[int, torch.Tensor]:
        """Return the inputs whose values the module defines, by position in `signature.inputs`."""

    def drawn_inputs(self) -> frozenset[int]:
        """Return which inputs the module's constructor draws at random, besides parameters, as positions.

        They are masks and projections of random numbers that the module keeps as buffers; `own_inputs` draws them.
        """

    def own_inputs(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return inputs as the problem file makes them: `get_inputs()`, and parameters from the module's constructor.

        They are ordered as `signature.inputs` and drawn from `seed`; the same seed gives the same inputs.
        """

    def work(self) -> int:
        """Return about how many operations a plain kernel needs: multiply-adds of products, and elements."""

    def nonlinear(self) -> bool:
        """Return whether `forward` computes what sums of products and clipping at zero cannot."""

    def graph(self, *, layers: bool = False) -> Graph:
        """Return the module's graph of core ATen operators as plain data; `layers` keeps recurrent layers whole."""

    def run_example(self) -> object:
        """Run the module once on its own example; a TaskError says why it does not run."""


@dataclass(frozen=True, eq=False)
class Task:
    """A PyTorch module for which a kernel is written.

    Args:
        id: Suite and name (`level1/relu`), or the path of a problem file.
        category: One of `kernel_gym.suites.definitions.CATEGORIES`.
        source: Text of the module in KernelBench's format: `Model`, `get_inputs()` and `get_init_inputs()`.
        cases: The sizes at which kernels are judged: one public case, hidden cases, one timing case.
        description: One sentence that says what the module computes.
        level: Level of KernelBench, if the task has one.
        number: Number within the suite, if the task has one.
        flags: What a reader must know about the task: `fixed-shape` (no hidden sizes could be derived),
            `repaired: ...` (a broken original was mended), `redundant: ...` (some of its steps do nothing),
            `shrunk: ...` (the sizes of a problem file were reduced), `changes: ...` (the buffers and arguments that
            `forward` changes; their new values are outputs), `seeded: ...` (where `forward` draws random numbers).
        confined: Whether the module is code of somebody else, which runs in a confined process only.
    """

    id: str
    category: str
    source: str
    cases: tuple[Case, ...]
    description: str = ""
    level: int | None = None
    number: int | None = None
    flags: tuple[str, ...] = ()
    confined: bool = False

    @property
    def name(self) -> str:
        """The part of the id after the suite."""
        return self.id.rpartition("/")[2]

    @property
    def suite(self) -> str:
        """The part of the id before the name."""
        return self.id.rpartition("/")[0]

    @cached_property
    def digest(self) -> str:
        """Content address of the task: its module and its cases."""
        return hashlib.sha256(repr((self.source, self.cases)).encode()).hexdigest()

    @property
    def public(self) -> Case:
        """The case that authors may see."""
        return next(case for case in self.cases if case.role == "public")

    @property
    def hidden(self) -> tuple[Case, ...]:
        """The cases that only the verifier sees."""
        return tuple(case for case in self.cases if case.role == "hidden")

    @property
    def timing(self) -> Case:
        """The case whose latency counts."""
        return next(case for case in self.cases if case.role == "timing")

    def instance(self, case: Case) -> Instance:
        """Build the task's module at one case.

        Args:
            case: The sizes to build it at; usually one of `cases`.

        Returns:
            The instance with its signature. Instances are cached by content.

        Raises:
            TaskError: If the module cannot be built or run at these sizes.
        """
        # Both import torch.
        if self.confined:
            from kernel_gym.tasks.confined_instance import confined_instance

            return confined_instance(self.source, self.digest, self.public, case)
        from kernel_gym.tasks.instance import instantiate

        return instantiate(self.source, self.digest, self.public, case)
