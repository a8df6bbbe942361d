"""Sets of inputs and space for their outputs, in memory shared with the trusted process."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Array, numpy_dtype
from kernel_gym.hardware.host.tensors import GRAIN, SharedMemory, padded
from kernel_gym.tasks.specs import Signature, TensorSpec


class Tensors:
    """The adjacent sets of inputs, followed by space for the outputs of each set; every tensor is aligned."""

    def __init__(self, signature: Signature, sets: Sequence[tuple[Array, ...]]) -> None:
        self.signature, self.count = signature, len(sets)
        self.set_bytes = sum(padded(spec.nbytes) for spec in signature.inputs)
        self.output_bytes = sum(padded(spec.nbytes) for spec in signature.outputs)
        self.memory = SharedMemory(max(GRAIN, self.count * (self.set_bytes + self.output_bytes)))
        for index, values in enumerate(sets):
            self._fill(index * self.set_bytes, values)

    @property
    def descriptor(self) -> int:
        """The descriptor by which another process maps the memory."""
        return self.memory.descriptor

    def _fill(self, at: int, values: tuple[Array, ...]) -> None:
        if [value.nbytes for value in values] != [spec.nbytes for spec in self.signature.inputs]:
            raise InfrastructureError("values of other sizes than the kernel's inputs")
        whole = self.memory.map
        for spec, value in zip(self.signature.inputs, values, strict=True):
            whole[at : at + spec.nbytes] = value.tobytes()
            at += padded(spec.nbytes)

    def outputs(self, index: int) -> tuple[Array, ...]:
        """Return copies of the outputs on one set."""
        at, outputs = self.count * self.set_bytes + index * self.output_bytes, []
        for spec in self.signature.outputs:
            outputs.append(self._tensor(spec, at))
            at += padded(spec.nbytes)
        return tuple(outputs)

    def _tensor(self, spec: TensorSpec, at: int) -> Array:
        data = self.memory.bytes()[at : at + spec.nbytes].copy()
        return data.view(numpy_dtype(spec.dtype)).reshape(spec.shape)
