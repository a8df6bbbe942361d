"""The tensors of calls: sets of inputs and room for outputs in memory that the trusted process shares."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

import numpy as np

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.task import Signature

#: What a kernel may use beside its tensors, and how much more per byte of them.
WORKSPACE_BYTES, WORKSPACE_FACTOR = 32 << 20, 4
GRAIN = 512


class Tensors:
    """Sets of inputs and room for their outputs, in memory that the worker shares."""

    def __init__(self, signature: Signature, sets: Sequence[tuple[Array, ...]]) -> None:
        self.signature, self.count = signature, len(sets)
        self.set_bytes = sum(_padded(spec.nbytes) for spec in signature.inputs)
        self.output_bytes = sum(_padded(spec.nbytes) for spec in signature.outputs)
        self.descriptor = os.memfd_create("tensors", os.MFD_CLOEXEC)
        size = max(GRAIN, self.count * (self.set_bytes + self.output_bytes))
        os.ftruncate(self.descriptor, size)
        self._map = mmap.mmap(self.descriptor, size)
        whole = np.frombuffer(self._map, np.uint8)
        for index, values in enumerate(sets):
            self._fill(whole, index * self.set_bytes, values)
        del whole

    def _fill(self, whole: Array, at: int, values: tuple[Array, ...]) -> None:
        if len(values) != len(self.signature.inputs):
            raise InfrastructureError(f"{len(values)} inputs for a kernel that takes {len(self.signature.inputs)}")
        for spec, value in zip(self.signature.inputs, values, strict=True):
            if value.nbytes != spec.nbytes:
                raise InfrastructureError(
                    f"an input has {value.nbytes} bytes where {spec.shape} {spec.dtype} was declared"
                )
            whole[at : at + spec.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            at += _padded(spec.nbytes)

    def outputs(self, index: int) -> tuple[Array, ...]:
        """Copies of what came out on one set."""
        whole = np.frombuffer(self._map, np.uint8)
        at, found = self.count * self.set_bytes + index * self.output_bytes, []
        for spec in self.signature.outputs:
            found.append(whole[at : at + spec.nbytes].copy().view(numpy_dtype(spec.dtype)).reshape(spec.shape))
            at += _padded(spec.nbytes)
        del whole
        return tuple(found)

    def __enter__(self) -> Tensors:
        return self

    def __exit__(self, *_: object) -> None:
        self._map.close()
        os.close(self.descriptor)


def _padded(size: int) -> int:
    return -(-size // GRAIN) * GRAIN


def invented(signature: Signature, seed: int) -> tuple[Array, ...]:
    """Values for a call whose results nobody asks for."""
    rng = np.random.default_rng(seed & (1 << 63) - 1)
    found = []
    for spec in signature.inputs:
        if spec.domain.kind == "index":
            drawn: Array = rng.integers(0, max(spec.domain.limit, 1), spec.shape)
        elif "float" in spec.dtype:
            drawn = rng.standard_normal(spec.shape, np.float32)
        else:
            drawn = rng.integers(0, 2, spec.shape)
        found.append(np.asarray(drawn).astype(numpy_dtype(spec.dtype)))
    return tuple(found)


def workspace_bytes(signature: Signature) -> int:
    """How much workspace a kernel is handed."""
    tensors = (*signature.inputs, *signature.outputs)
    return WORKSPACE_BYTES + WORKSPACE_FACTOR * sum(spec.nbytes for spec in tensors)
