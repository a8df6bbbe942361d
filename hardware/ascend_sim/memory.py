"""The tensors of a run, in memory shared with the device process."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence

import numpy as np

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.tasks.specs import DTYPES, Signature, TensorSpec

#: Global memory is allocated in pieces of this size; kernels may touch the rest of the last one.
GRAIN = 512


class SharedTensors:
    """Anonymous shared memory for the inputs and outputs of one run after another."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._map: mmap.mmap | None = None
        self._signature: Signature | None = None
        self._owner = os.getpid()

    def fill(self, signature: Signature, values: Sequence[Array], outputs: Sequence[Array] = ()) -> int:
        """Copy the inputs in, and what outputs hold before the run; return the descriptor.

        Without `outputs` the device poisons them.
        """
        if len(values) != len(signature.inputs):
            raise InfrastructureError(f"{len(values)} inputs for a kernel that takes {len(signature.inputs)}")
        self._signature = signature
        memory, descriptor = self._room_for(signature)
        specs = (*signature.inputs, *(signature.outputs if outputs else ()))
        for spec, offset, value in zip(specs, offsets(specs), (*values, *outputs), strict=True):
            if value.nbytes != spec.nbytes:
                raise InfrastructureError(
                    f"an input has {value.nbytes} bytes where {spec.shape} {spec.dtype} was declared"
                )
            memory[offset : offset + spec.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return descriptor

    def outputs(self) -> tuple[Array, ...]:
        """Return copies of the outputs of the last run."""
        signature = self._signature
        if signature is None or self._map is None:
            raise InfrastructureError("no run has left outputs")
        whole = np.frombuffer(self._map, np.uint8)
        places = list(offsets((*signature.inputs, *signature.outputs)))[len(signature.inputs) :]
        return tuple(
            whole[offset : offset + spec.nbytes].copy().view(numpy_dtype(spec.dtype)).reshape(spec.shape)
            for spec, offset in zip(signature.outputs, places, strict=True)
        )

    def lines(self, signature: Signature) -> Iterator[str]:
        """Yield the request's lines with the position of each tensor."""
        specs = (*signature.inputs, *signature.outputs)
        roles = ["input"] * len(signature.inputs) + ["output"] * len(signature.outputs)
        for role, spec, offset in zip(roles, specs, offsets(specs), strict=True):
            shape = " ".join(map(str, (len(spec.shape), *spec.shape)))
            yield f"tensor {role} {DTYPES[spec.dtype][0]} {offset} {spec.nbytes} {shape}"

    def close(self) -> None:
        """Free the memory."""
        if self._map is not None:
            self._map.close()
        if self._file is not None:
            os.close(self._file)
        self._map = self._file = self._signature = None

    def _room_for(self, signature: Signature) -> tuple[Array, int]:
        needed = max(GRAIN, sum(padded(spec) for spec in (*signature.inputs, *signature.outputs)))
        if self._owner != os.getpid():  # after a fork the memory belongs to the parent: allocate another
            self._map = self._file = None
            self._owner = os.getpid()
        if self._map is None or self._file is None or len(self._map) < needed:
            self.close()
            self._signature = signature
            self._file = os.memfd_create("tensors", os.MFD_CLOEXEC)
            os.ftruncate(self._file, needed)
            self._map = mmap.mmap(self._file, needed)
        return np.frombuffer(self._map, np.uint8), self._file


def padded(spec: TensorSpec) -> int:
    """Return the bytes that a tensor takes in global memory."""
    return (spec.nbytes + GRAIN - 1) // GRAIN * GRAIN


def offsets(specs: Sequence[TensorSpec]) -> Iterator[int]:
    """Yield the offset of each of the adjacent tensors."""
    position = 0
    for spec in specs:
        yield position
        position += padded(spec)
