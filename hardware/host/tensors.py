"""Memory that processes share for tensors, and the values and sizes of a kernel's arguments."""

from __future__ import annotations

import mmap
import os
import weakref
from contextlib import suppress

import numpy as np

from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.tasks.specs import Signature

#: Bytes of workspace: a fixed part, and a part for each byte of the tensors. It is larger on an NPU: if a convolution
#: makes 16 channels of 3 and reduces them, its result is several times as large as all inputs and outputs together.
WORKSPACE_BYTES, WORKSPACE_FACTOR, NPU_FACTOR = 32 << 20, 4, 16
#: Tensors begin at multiples of this.
GRAIN = 512


class SharedMemory:
    """Memory that processes share by its descriptor; freed when nothing refers to it."""

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size)
        self.map = mmap.mmap(self.descriptor, size)
        self.size = size
        weakref.finalize(self, _free, self.map, self.descriptor)

    def bytes(self) -> Array:
        """Return all of it as an array of bytes."""
        return np.frombuffer(self.map, np.uint8)


def _free(memory: mmap.mmap, descriptor: int) -> None:
    os.close(descriptor)
    with suppress(BufferError):  # an array still refers to it; it is freed with the array
        memory.close()


def padded(size: int, grain: int = GRAIN) -> int:
    """Return the bytes that a tensor of `size` bytes takes."""
    return -(-size // grain) * grain


def random_inputs(signature: Signature, seed: int) -> tuple[Array, ...]:
    """Return values for a call whose outputs are not compared."""
    rng = np.random.default_rng(seed & (1 << 63) - 1)
    inputs = []
    for spec in signature.inputs:
        if spec.domain.kind == "index":
            values: Array = rng.integers(0, max(spec.domain.limit, 1), spec.shape)
        elif "float" in spec.dtype:
            values = rng.standard_normal(spec.shape, np.float32)
        else:
            values = rng.integers(0, 2, spec.shape)
        inputs.append(np.asarray(values).astype(numpy_dtype(spec.dtype)))
    return tuple(inputs)


def workspace_bytes(signature: Signature, factor: int = WORKSPACE_FACTOR) -> int:
    """Return the size of a kernel's workspace."""
    tensors = (*signature.inputs, *signature.outputs)
    return WORKSPACE_BYTES + factor * sum(spec.nbytes for spec in tensors)


def npu_workspace_bytes(signature: Signature) -> int:
    """Return the size of a kernel's workspace on an NPU, on the simulator and in a bundle."""
    return workspace_bytes(signature, NPU_FACTOR)
