"""Timed calls of a kernel on real hardware: their order, the checks after each, the layout of tensors."""

from __future__ import annotations

import random
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kernel_gym.hardware.host.tensors import GRAIN, padded

#: Guard bytes before, between and after tensors, which must stay unchanged.
GUARD = 1 << 16
#: Timed calls over which the first calls on the sets are spread. Every device makes more than these.
SPREAD = 20
#: Seconds of timed calls after which only sets are called that have not been: a slow kernel is timed by fewer calls.
LONG = 10.0


class Hang(Exception):
    """A call did not end in time."""


@dataclass(frozen=True)
class Layout:
    """The layout of tensors in a region: offsets, and the total size with a guard at each end."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, sizes: Sequence[int], whole: int = GRAIN) -> Layout:
        """Return the layout of adjacent tensors with guards around each; the region is a multiple of `whole`."""
        offsets, at = [], GUARD
        for size in sizes:
            offsets.append(at)
            at += padded(size) + GUARD
        return cls(tuple(offsets), tuple(sizes), padded(at, whole))

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Yield offset and size of the guards between the tensors."""
        at = 0
        for offset, size in zip(self.offsets, self.sizes, strict=True):
            yield at, offset - at
            at = offset + size
        yield at, self.size - at


@dataclass
class Sample:
    """One timed call: the set of inputs, its time, and whether it was the kernel's first call on that set."""

    set: int
    microseconds: float
    first: bool


@dataclass
class Outcome:
    """The samples of all calls and what was wrong with them; `guards` counts changed bytes around the outputs."""

    samples: list[Sample] = field(default_factory=list)
    unstable: bool = False
    guards: int = 0
    inputs_changed: bool = False

    @property
    def is_wrong(self) -> bool:
        """True if no further call is needed because the kernel has failed."""
        return bool(self.guards) or self.unstable or self.inputs_changed

    def reply(self) -> dict[str, Any]:
        """Return the answer of the device process."""
        return {"status": "ok"} | asdict(self)


class CallSequence(ABC):
    """The calls of one request: a list of launches, sets of inputs, one region of outputs and workspace.

    `input_address` and `output_address` are those of the regions on the device.
    """

    def __init__(
        self, request: Mapping[str, Any], inputs: Layout, outputs: Layout, input_address: int, output_address: int
    ) -> None:
        self.request, self.inputs, self.outputs = request, inputs, outputs
        self.input_address, self.output_address = input_address, output_address

    def measure(self) -> Outcome:
        """Make all calls, in an order that the kernel cannot predict."""
        sets, timed = int(self.request["sets"]), bool(self.request["timed"])
        order, outcome, digests = random.Random(self.request["seed"]), Outcome(), dict[int, object]()
        begun = time.perf_counter()
        for count, index in enumerate(set_order(sets, order, SPREAD if timed else sets)):
            first = index not in digests
            if timed and not first and outcome.samples and time.perf_counter() - begun > LONG:
                if len(digests) == sets:
                    break
                continue
            microseconds = self.call(index, order)
            self.check(index, first, outcome)
            digest = self.digest()
            outcome.unstable |= digests.setdefault(index, digest) != digest
            if first:
                self.keep(index)
            if count or not timed:  # the first of many also loads the code
                outcome.samples.append(Sample(index, microseconds, first))
            if outcome.is_wrong or self._is_enough(outcome.samples, sets, begun, timed):
                break
        return outcome

    @abstractmethod
    def call(self, index: int, order: random.Random) -> float:
        """Make one call on a set and return its microseconds, from the first launch to the last."""

    @abstractmethod
    def check(self, index: int, first: bool, outcome: Outcome) -> None:
        """Record in `outcome` what the last call changed without permission."""

    @abstractmethod
    def digest(self) -> object:
        """Return a value that is equal for equal outputs of the last call."""

    @abstractmethod
    def keep(self, index: int) -> None:
        """Copy the outputs of the last call to the memory that the client reads."""

    @abstractmethod
    def is_certain(self, samples: Sequence[Sample], sets: int, seconds: float) -> bool:
        """Return True if no more timed calls are needed."""

    def patched(self, argument: Mapping[str, Any]) -> bytes:
        """Return an argument of a launch with its handles replaced by addresses."""
        data = bytearray.fromhex(argument["data"])
        for at, tensor, offset in argument["handles"]:
            struct.pack_into("<Q", data, at, self._address(tensor) + offset)
        return bytes(data)

    def _address(self, tensor: int) -> int:
        count = len(self.inputs.offsets)
        if tensor < count:
            return self.input_address + self.inputs.offsets[tensor]
        return self.output_address + self.outputs.offsets[tensor - count]

    def _is_enough(self, samples: Sequence[Sample], sets: int, begun: float, timed: bool) -> bool:
        if not timed:
            return len(samples) >= sets
        return self.is_certain(samples, sets, time.perf_counter() - begun)


def set_order(sets: int, order: random.Random, spread: int) -> Iterator[int]:
    """Yield indices of sets without end: a new one at a random place in each stretch of calls, known ones between.

    Each of the first `spread` calls belongs to one of as many stretches as there are sets. A slow phase of the machine
    therefore meets calls on new and on known values alike.
    """
    indices, known = list(range(sets)), list[int]()
    order.shuffle(indices)
    length = max(1, spread // sets)
    for index in indices:
        place = order.randrange(length) if known else 0
        for at in range(length):
            yield index if at == place else order.choice(known)
            known += [index] if at == place else []
    while True:
        yield order.choice(known)
