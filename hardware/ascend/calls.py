"""Carries out calls of a candidate on the NPU: fresh inputs and poisoned outputs between guards, a clock of our own."""

from __future__ import annotations

import ctypes
import hashlib
import random
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

#: Tensors begin at multiples of this, and so many bytes before, between and behind them must stay as they were.
GRAIN, GUARD = 512, 1 << 16
#: Around inputs: NaN in every float type.
AROUND = 0xFF
#: Timed calls: at least, at most, and how many seconds they may take together once there are enough.
FEWEST, MOST, PATIENCE = 21, 101, 0.5


class Hang(Exception):
    """A call did not end in time."""


class Npu(Protocol):
    """What is needed of the NPU; `npu.py` gives it by torch_npu."""

    def buffer(self, size: int) -> Any:
        """Memory of the NPU."""

    def address(self, buffer: Any) -> int:
        """Where it is."""

    def fill(self, buffer: Any, byte: int) -> None:
        """Set every byte."""

    def upload(self, buffer: Any, offset: int, data: bytes) -> None:
        """Copy into it."""

    def download(self, buffer: Any) -> bytes:
        """What it holds, once everything before is done."""

    def stream(self) -> int:
        """The stream that launches go to."""

    def flush(self) -> None:
        """Push everything out of the caches."""

    def mark(self) -> Any:
        """An event behind everything queued so far."""

    def finish(self, event: Any, seconds: float) -> None:
        """Wait for an event; raises Hang after so many seconds."""

    def microseconds(self, begin: Any, end: Any) -> float:
        """Between two events."""


@dataclass
class Sample:
    """One timed call: on which set, how long, and whether the candidate had met the set before."""

    set: int
    microseconds: float
    first: bool


@dataclass
class Outcome:
    """What the calls came to."""

    samples: list[Sample] = field(default_factory=list)
    unstable: bool = False
    guards: int = 0
    inputs_changed: bool = False

    def reply(self) -> dict[str, Any]:
        """As the device process answers."""
        return {"status": "ok"} | asdict(self)


class Region:
    """Tensors one behind the other with guards around each, as one buffer of the NPU."""

    def __init__(self, npu: Npu, sizes: Sequence[int]) -> None:
        self.sizes, self.offsets, at = list(sizes), list[int](), GUARD
        for size in sizes:
            self.offsets.append(at)
            at += -(-size // GRAIN) * GRAIN + GUARD
        self.buffer, self.size = npu.buffer(at), at
        self.base = npu.address(self.buffer)

    def gaps(self) -> Iterator[tuple[int, int]]:
        """What lies between the tensors: first and last offset."""
        at = 0
        for offset, size in zip(self.offsets, self.sizes, strict=True):
            yield at, offset
            at = offset + size
        yield at, self.size

    def touched(self, held: bytes, byte: int) -> int:
        """How many bytes around the tensors are not what they were."""
        return sum(end - begin - held.count(byte, begin, end) for begin, end in self.gaps())


class Calls:
    """The calls of one request: a list of launches, sets of inputs, one region of outputs and workspace."""

    def __init__(self, npu: Npu, library: Any, request: Mapping[str, Any], memory: memoryview) -> None:
        self.npu, self.library, self.request, self.memory = npu, library, request, memory
        self.inputs = Region(npu, request["inputs"])
        self.outputs = Region(npu, [*request["outputs"], request["workspace"]])
        self.launches = [self._prepared(launch) for launch in request["launches"]]

    def run(self) -> Outcome:
        """All calls, in an order that the candidate cannot foresee."""
        timed, sets = bool(self.request["timed"]), int(self.request["sets"])
        order, outcome = random.Random(self.request["seed"]), Outcome()
        known: dict[int, str] = {}
        begun = time.perf_counter()
        for count, index in enumerate(_order(sets, order)):
            first = index not in known
            microseconds = self._call(index)
            held = self.npu.download(self.outputs.buffer)
            outcome.guards += self.outputs.touched(held, int(self.request["poison"]))
            outcome.inputs_changed |= first and self.npu.download(self.inputs.buffer) != self._image(index)
            digest = self._digest(held)
            outcome.unstable |= known.setdefault(index, digest) != digest
            if first:
                self._keep(index, held)
            if count or not timed:  # the first of many also loads the code
                outcome.samples.append(Sample(index, microseconds, first))
            wrong = outcome.guards or outcome.unstable or outcome.inputs_changed
            if wrong or self._is_enough(len(outcome.samples), sets, begun, timed):
                return outcome
        return outcome

    def _is_enough(self, count: int, sets: int, begun: float, timed: bool) -> bool:
        if not timed:
            return count >= sets
        return count >= MOST or (count >= max(FEWEST, sets) and time.perf_counter() - begun > PATIENCE)

    def _call(self, index: int) -> float:
        """One call, timed from its first launch to its last."""
        self.npu.upload(self.inputs.buffer, 0, self._image(index))
        self.npu.fill(self.outputs.buffer, int(self.request["poison"]))
        self.npu.flush()
        stream = ctypes.c_void_p(self.npu.stream())
        begin = self.npu.mark()
        for function, blocks, given, _ in self.launches:
            function(ctypes.c_uint32(blocks), stream, given)
        end = self.npu.mark()
        self.npu.finish(end, float(self.request["seconds"]))
        return self.npu.microseconds(begin, end)

    def _image(self, index: int) -> bytes:
        """The region of inputs as one set fills it."""
        image = bytearray([AROUND]) * self.inputs.size
        at = index * int(self.request["set_bytes"])
        for offset, size in zip(self.inputs.offsets, self.inputs.sizes, strict=True):
            image[offset : offset + size] = self.memory[at : at + size]
            at += -(-size // GRAIN) * GRAIN
        return bytes(image)

    def _digest(self, held: bytes) -> str:
        total = hashlib.sha256()
        for offset, size in list(zip(self.outputs.offsets, self.outputs.sizes, strict=True))[:-1]:
            total.update(held[offset : offset + size])
        return total.hexdigest()

    def _keep(self, index: int, held: bytes) -> None:
        at = self.request["sets"] * self.request["set_bytes"] + index * self.request["output_bytes"]
        for offset, size in list(zip(self.outputs.offsets, self.outputs.sizes, strict=True))[:-1]:
            self.memory[at : at + size] = held[offset : offset + size]
            at += -(-size // GRAIN) * GRAIN

    def _prepared(self, launch: Mapping[str, Any]) -> tuple[Any, int, Any, list[Any]]:
        """The replay function, the number of cores, and the arguments with addresses where the handles were."""
        held = [ctypes.create_string_buffer(self._patched(one)) for one in launch["arguments"]]
        given = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(one) for one in held))
        function = getattr(self.library, f"kernel_gym_replay_{launch['number']}")
        function.restype = None
        return function, int(launch["blocks"]), given, held

    def _patched(self, argument: Mapping[str, Any]) -> bytes:
        data = bytearray.fromhex(argument["data"])
        for at, tensor, offset in argument["handles"]:
            struct.pack_into("<Q", data, at, self._address(tensor) + offset)
        return bytes(data)

    def _address(self, tensor: int) -> int:
        count = len(self.inputs.offsets)
        if tensor < count:
            return self.inputs.base + self.inputs.offsets[tensor]
        return self.outputs.base + self.outputs.offsets[tensor - count]


def _order(sets: int, order: random.Random) -> Iterator[int]:
    """Every set once, then any of them, without end."""
    first = list(range(sets))
    order.shuffle(first)
    yield from first
    while True:
        yield order.randrange(sets)
