"""Makes calls of a kernel on the NPU: new inputs and poisoned outputs between guards, timed by trusted events."""

from __future__ import annotations

import ctypes
import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from kernel_gym.hardware.host.calls import CallSequence, Layout, Outcome, Sample
from kernel_gym.hardware.host.tensors import padded

#: Around inputs: NaN in every float type.
AROUND = 0xFF
#: Timed calls: at least, at most, and how many seconds they may take together once there are enough.
FEWEST, MOST, PATIENCE = 21, 101, 0.5


class Npu(Protocol):
    """The operations that calls need from the NPU; `npu.py` implements them with torch_npu."""

    def buffer(self, size: int) -> Any:
        """Return new memory of the NPU."""

    def address(self, buffer: Any) -> int:
        """Return its address."""

    def fill(self, buffer: Any, byte: int) -> None:
        """Set every byte."""

    def upload(self, buffer: Any, offset: int, data: bytes) -> None:
        """Copy into it."""

    def download(self, buffer: Any) -> bytes:
        """Return its contents once all queued work is done."""

    def stream(self) -> int:
        """Return the stream that launches go to."""

    def flush(self) -> None:
        """Flush the caches."""

    def mark(self) -> Any:
        """Return an event recorded after all work queued so far."""

    def finish(self, event: Any, seconds: float) -> None:
        """Wait for an event; raises Hang after `seconds`."""

    def microseconds(self, begin: Any, end: Any) -> float:
        """Return the time between two events."""


class Calls(CallSequence):
    """The calls of one request; `memory` holds the sets of inputs, then their outputs."""

    def __init__(self, npu: Npu, library: Any, request: Mapping[str, Any], memory: memoryview) -> None:
        inputs, outputs = Layout.of(request["inputs"]), Layout.of([*request["outputs"], request["workspace"]])
        self.npu, self.library, self.memory = npu, library, memory
        self.input_buffer, self.output_buffer = npu.buffer(inputs.size), npu.buffer(outputs.size)
        super().__init__(request, inputs, outputs, npu.address(self.input_buffer), npu.address(self.output_buffer))
        self.poison = int(request["poison"])
        self.launches = [self._prepared(launch) for launch in request["launches"]]
        self.result = b""

    def call(self, index: int, order: random.Random) -> float:
        self.npu.upload(self.input_buffer, 0, self._image(index))
        self.npu.fill(self.output_buffer, self.poison)
        self.npu.flush()
        stream = ctypes.c_void_p(self.npu.stream())
        begin = self.npu.mark()
        for function, blocks, arguments, _ in self.launches:
            function(ctypes.c_uint32(blocks), stream, arguments)
        end = self.npu.mark()
        self.npu.finish(end, float(self.request["seconds"]))
        return self.npu.microseconds(begin, end)

    def check(self, index: int, first: bool, outcome: Outcome) -> None:
        self.result = self.npu.download(self.output_buffer)
        for offset, size in self.outputs.gaps():
            outcome.guards += size - self.result.count(self.poison, offset, offset + size)
        outcome.inputs_changed |= first and self.npu.download(self.input_buffer) != self._image(index)

    def digest(self) -> str:
        total = hashlib.sha256()
        for offset, size in self._output_spans():
            total.update(self.result[offset : offset + size])
        return total.hexdigest()

    def keep(self, index: int) -> None:
        at = self.request["sets"] * self.request["set_bytes"] + index * self.request["output_bytes"]
        for offset, size in self._output_spans():
            self.memory[at : at + size] = self.result[offset : offset + size]
            at += padded(size)

    def is_certain(self, samples: Sequence[Sample], sets: int, seconds: float) -> bool:
        return len(samples) >= MOST or (len(samples) >= max(FEWEST, sets) and seconds > PATIENCE)

    def _output_spans(self) -> Iterator[tuple[int, int]]:
        """Yield offset and size of each output; the last tensor of the region is the workspace."""
        return zip(self.outputs.offsets[:-1], self.outputs.sizes[:-1], strict=True)

    def _image(self, index: int) -> bytes:
        """Return the contents of the input region for one set."""
        image = bytearray([AROUND]) * self.inputs.size
        at = index * int(self.request["set_bytes"])
        for offset, size in zip(self.inputs.offsets, self.inputs.sizes, strict=True):
            image[offset : offset + size] = self.memory[at : at + size]
            at += padded(size)
        return bytes(image)

    def _prepared(self, launch: Mapping[str, Any]) -> tuple[Any, int, Any, list[Any]]:
        """Return the replay function, the number of cores, pointers to the arguments, and the arguments."""
        held = [ctypes.create_string_buffer(self.patched(argument)) for argument in launch["arguments"]]
        arguments = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(buffer) for buffer in held))
        function = getattr(self.library, f"kernel_gym_replay_{launch['number']}")
        function.restype = None
        return function, int(launch["blocks"]), arguments, held
