"""Tasks: the operators that kernels are written for.

A task is a module in KernelBench's format (`Model`, `get_inputs()`, `get_init_inputs()`) together with the sizes it is
judged at. This file holds the types that every part speaks; `kernel_gym.suites` finds tasks by name and
`kernel_gym.tasks.problem` turns a module's text into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import torch

Role = Literal["public", "hidden", "timing"]
Origin = Literal["argument", "state", "constant"]


#: Codes of `KernelTensor.dtype` in kernel_gym.h, with the size of an element in bytes.
DTYPES: dict[str, tuple[int, int]] = {
    "float32": (0, 4),
    "float16": (1, 2),
    "bfloat16": (2, 2),
    "int8": (3, 1),
    "uint8": (4, 1),
    "int16": (5, 2),
    "uint16": (6, 2),
    "int32": (7, 4),
    "uint32": (8, 4),
    "int64": (9, 8),
    "uint64": (10, 8),
    "bool": (11, 1),
    "float64": (12, 8),
}


@dataclass(frozen=True)
class TensorSpec:
    """Shape and element type of a contiguous tensor."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * DTYPES[self.dtype][1]


@dataclass(frozen=True)
class Domain:
    """Which values an input may hold.

    `real`: any float. `positive`: greater than zero. `unit`: in [0, 1]. `index`: whole numbers in [0, limit). `bool`.
    """

    kind: Literal["real", "positive", "unit", "index", "bool"] = "real"
    limit: int = 0


@dataclass(frozen=True)
class InputSpec(TensorSpec):
    """One tensor that a kernel is handed, where it comes from and what it may hold."""

    name: str = ""
    origin: Origin = "argument"
    domain: Domain = Domain()


@dataclass(frozen=True)
class Signature:
    """What `kernel_launch` is handed at one case: tensors in, tensors out, attributes.

    Inputs are the tensor arguments, then the values of `state_dict()`, then constants that export lifts. Attributes are
    the scalars of `get_init_inputs()` and then `get_inputs()`, depth first.
    """

    inputs: tuple[InputSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of all tensors in bytes."""
        return sum(spec.nbytes for spec in (*self.inputs, *self.outputs))


@dataclass(frozen=True)
class Case:
    """One set of sizes: `sizes` overrides the module's size constants by name.

    Kernels are computed and compared at the public and hidden cases; the latency is that of the timing case.
    """

    name: str
    role: Role
    sizes: tuple[tuple[str, int], ...] = ()


class Instance(Protocol):
    """A task at one case: the module built, its signature known."""

    case: Case
    signature: Signature

    def evaluate(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[torch.Tensor, ...]:
        """Run the reference on `inputs` (ordered as `signature.inputs`); `dtype` raises or lowers its precision."""

    def model(self) -> torch.nn.Module:
        """The module in `eval()` with randomised parameters and buffers."""

    def example_arguments(self) -> tuple[object, ...]:
        """Arguments of `forward`, tensors and scalars, as `get_inputs()` gives them."""

    def fixed_inputs(self) -> dict[int, torch.Tensor]:
        """Inputs whose values belong to the operator (masks, tables, constants): position in `signature.inputs`, value.

        Whoever draws values for a check uses these instead of drawing.
        """

    def fake(self) -> tuple[torch.nn.Module, tuple[object, ...]]:
        """Module and arguments of `forward` without memory behind them; cheap at any size."""


@dataclass(frozen=True, eq=False)
class Task:
    """An operator to write a kernel for.

    `flags` says what a reader must know: `fixed-shape` (no hidden shapes could be derived), `repaired: ...` (a broken
    original was mended), `shrunk: ...` (sizes of a file from outside were reduced).
    """

    id: str
    category: str
    source: str
    cases: tuple[Case, ...]
    description: str = ""
    level: int | None = None
    number: int | None = None
    flags: tuple[str, ...] = ()

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
        import hashlib

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
        """The task at one case; cached."""
        from kernel_gym.tasks.problem import instantiate

        return instantiate(self, case)
