"""Plain types that describe what a kernel receives: tensors, signatures and cases. Imports nothing that is slow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod
from typing import Literal

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
    """The values that an input may hold.

    `real`: any float. `positive`: greater than zero. `unit`: in [0, 1]. `index`: whole numbers in [low, limit). `bool`.
    `factors` is how many of the values the module multiplies with each other, along a dimension; 0 if it does not.
    `distinct` says that no index is twice along the last dimension.
    """

    kind: Literal["real", "positive", "unit", "index", "bool"] = "real"
    limit: int = 0
    factors: int = 0
    low: int = 0
    distinct: bool = False


@dataclass(frozen=True)
class InputSpec(TensorSpec):
    """One input tensor of a kernel: its shape and type, its origin in the module and the values that it may hold."""

    name: str = ""
    origin: Origin = "argument"
    domain: Domain = Domain()


@dataclass(frozen=True)
class Signature:
    """What `kernel_launch` receives at one case: input tensors, output tensors and scalar attributes.

    Inputs are the tensor arguments, then the values of `state_dict()`, then constants that export lifts. Attributes are
    the scalars of `get_init_inputs()` and then `get_inputs()`, depth first. Outputs are the tensors that `forward`
    returns, then the new values of the buffers and arguments that it changes (`changes`).

    `draws` says where `forward` draws random numbers; they are the same at every call. `structure` is a hash of the
    operators that it calls, of which one leaves the order of equal elements open if it is `unordered`. `calls` is the
    number of functions that `forward` calls.
    """

    inputs: tuple[InputSpec, ...]
    outputs: tuple[TensorSpec, ...]
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    changes: tuple[str, ...] = ()
    draws: tuple[str, ...] = ()
    structure: str = ""
    calls: int = 0
    unordered: bool = False

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


def model_seed(seed: int) -> int:
    """Return what parameters are drawn from where inputs are drawn from `seed`.

    A bundle's model is built from it, too, and must not learn from it what the inputs are.
    """
    return seed % 2**31


def input_seed(seed: int) -> int:
    """Return what inputs are drawn from: all of `seed`, in the 32 bits that torch's generator uses."""
    return int.from_bytes(hashlib.sha256(f"inputs {seed}".encode()).digest()[:4], "big")
