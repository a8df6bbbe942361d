"""The tensors of calls: sets of inputs and room for outputs in memory that the trusted process shares."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.hardware.host.tensors import GRAIN, SharedMemory, padded
from kernel_gym.tasks.specs import Signature

#: The number of sets of values kept in shared memory, and the minimum size of a kept set.
KEPT_BYTES, WORTH_KEEPING = 2 << 30, 1 << 20


class InputSets:
    """Sets of values in shared memory. Large ones are kept, because all kernels of a task use the same values."""

    def __init__(self, limit_bytes: int = KEPT_BYTES) -> None:
        self._kept: OrderedDict[object, tuple[SharedMemory, object]] = OrderedDict()
        self._limit = limit_bytes
        self._lock = Lock()

    def shared(self, signature: Signature, sets: Sequence[tuple[Array, ...]]) -> SharedMemory:
        """Return the sets, adjacent in shared memory."""
        key = tuple(id(value) for values in sets for value in values)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        memory = _filled(signature, sets)
        if memory.size >= WORTH_KEEPING:
            with self._lock:
                self._kept[key] = memory, sets  # keeps the arrays alive, so that no other array gets their id
                while sum(kept.size for kept, _ in self._kept.values()) > self._limit and len(self._kept) > 1:
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
                words = f"an input has {value.nbytes} bytes where {spec.shape} {spec.dtype} was declared"
                raise InfrastructureError(words)
            whole[at : at + spec.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            at += padded(spec.nbytes)
    return memory


class OutputRoom:
    """Shared memory for the outputs of calls, reused by later calls."""

    def __init__(self) -> None:
        self._memory: SharedMemory | None = None

    def room(self, signature: Signature, count: int) -> SharedMemory:
        """Return memory for the outputs of `count` sets."""
        needed = max(GRAIN, count * sum(padded(spec.nbytes) for spec in signature.outputs))
        if self._memory is None or self._memory.size < needed:
            self._memory = SharedMemory(needed)
        return self._memory

    def outputs(self, signature: Signature, index: int) -> tuple[Array, ...]:
        """Return copies of the outputs on one set."""
        if self._memory is None:
            raise InfrastructureError("no call has left outputs")
        whole, outputs = self._memory.bytes(), []
        at = index * sum(padded(spec.nbytes) for spec in signature.outputs)
        for spec in signature.outputs:
            outputs.append(whole[at : at + spec.nbytes].copy().view(numpy_dtype(spec.dtype)).reshape(spec.shape))
            at += padded(spec.nbytes)
        return tuple(outputs)
