"""The tensors of calls: sets of inputs and room for outputs in memory that the trusted process shares."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

import numpy as np

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.tasks.specs import Signature

#: What a kernel may use beside its tensors, and how much more per byte of them.
WORKSPACE_BYTES, WORKSPACE_FACTOR = 32 << 20, 4
GRAIN = 512
#: Sets of values that are kept in shared memory, and the smallest that are.
KEPT_BYTES, WORTH_KEEPING = 2 << 30, 1 << 20


class SharedMemory:
    """A piece of memory that processes share by its descriptor; given back when nobody holds it."""

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size)
        self.map = mmap.mmap(self.descriptor, size)
        self.size = size
        weakref.finalize(self, _give_back, self.map, self.descriptor)

    def bytes(self) -> Array:
        """All of it."""
        return np.frombuffer(self.map, np.uint8)


def _give_back(memory: mmap.mmap, descriptor: int) -> None:
    os.close(descriptor)
    with suppress(BufferError):  # an array still looks at it: then it goes with the array
        memory.close()


class InputSets:
    """Sets of values in shared memory. Large ones are kept: every kernel of a task meets the same."""

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._kept: OrderedDict[object, tuple[SharedMemory, object]] = OrderedDict()
        self._limit = limit_bytes
        self._lock = Lock()

    def shared(self, signature: Signature, sets: Sequence[tuple[Array, ...]]) -> SharedMemory:
        """The sets, one behind the other."""
        key = tuple(id(value) for values in sets for value in values)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        memory = _filled(signature, sets)
        if memory.size >= WORTH_KEEPING:
            with self._lock:
                self._kept[key] = memory, sets  # with the arrays, so that no other gets their identity
                while sum(one.size for one, _ in self._kept.values()) > self._limit and len(self._kept) > 1:
                    self._kept.popitem(last=False)
        return memory


def _filled(signature: Signature, sets: Sequence[tuple[Array, ...]]) -> SharedMemory:
    each = sum(padded(spec.nbytes) for spec in signature.inputs)
    memory = SharedMemory(max(GRAIN, len(sets) * each))
    whole = memory.bytes()
    for index, values in enumerate(sets):
        if len(values) != len(signature.inputs):
            raise InfrastructureError(f"{len(values)} inputs for a kernel that takes {len(signature.inputs)}")
        at = index * each
        for spec, value in zip(signature.inputs, values, strict=True):
            if value.nbytes != spec.nbytes:
                given = f"an input has {value.nbytes} bytes"
                raise InfrastructureError(f"{given} where {spec.shape} {spec.dtype} was declared")
            whole[at : at + spec.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            at += padded(spec.nbytes)
    return memory


class OutputRoom:
    """Room for the outputs of calls, used again and again."""

    def __init__(self) -> None:
        self._memory: SharedMemory | None = None

    def room(self, signature: Signature, count: int) -> SharedMemory:
        """Enough for `count` sets."""
        needed = max(GRAIN, count * sum(padded(spec.nbytes) for spec in signature.outputs))
        if self._memory is None or self._memory.size < needed:
            self._memory = SharedMemory(needed)
        return self._memory

    def outputs(self, signature: Signature, index: int) -> tuple[Array, ...]:
        """Copies of what came out on one set."""
        if self._memory is None:
            raise InfrastructureError("no call has left outputs")
        whole, found = self._memory.bytes(), []
        at = index * sum(padded(spec.nbytes) for spec in signature.outputs)
        for spec in signature.outputs:
            found.append(whole[at : at + spec.nbytes].copy().view(numpy_dtype(spec.dtype)).reshape(spec.shape))
            at += padded(spec.nbytes)
        return tuple(found)


def padded(size: int) -> int:
    """Bytes that a tensor takes."""
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
