"""Carries out calls of a candidate on the GPU: sealed inputs, poisoned outputs between guards, a clock of our own.

During a candidate's launches nothing is mapped but its inputs (read-only), its outputs and its workspace. Before each
call all that it could have written is written over, the caches are flushed, and what multiprocessors keep is wiped.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import addressof, create_string_buffer
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kernel_gym.hardware.cuda.driver import Gpu, Memory, Packed
from kernel_gym.hardware.cuda.profile import measured

#: Tensors begin at multiples of this, and so many bytes before, between and behind them must stay as they were.
GRAIN, GUARD = 512, 1 << 16
#: Nanoseconds that the host gets to queue a call, and for each of its launches.
HEAD_START_NS, LAUNCH_NS = 30_000, 8_000
WARM_NS = 5_000_000
#: Timed calls: at least, at most, and how long they may take together once there are enough.
FEWEST, MOST, PATIENCE = 30, 100, 0.25
#: Or until the interval of the median is no wider than this share of it.
SURE = 0.02
_DEFAULT_SHARED = 48 << 10


#: Loads a candidate's code and finds its kernels.
Functions: TypeAlias = Callable[[], Mapping[str, Any]]


class Hang(Exception):
    """A call did not end in time; the context is lost."""


@dataclass(frozen=True)
class Layout:
    """Where tensors lie in a region: offsets, and the size of the whole with a guard at each end."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, sizes: Sequence[int], whole: int = GRAIN) -> Layout:
        """One behind the other, guards around each; the last one reaches to the next multiple of `whole`."""
        offsets, at = [], GUARD
        for size in sizes:
            offsets.append(at)
            at += _padded(size) + GUARD
        return cls(tuple(offsets), tuple(sizes), _padded(at, whole))

    def gaps(self) -> Iterator[tuple[int, int]]:
        """What lies between the tensors: offset and size."""
        at = 0
        for offset, size in zip(self.offsets, self.sizes, strict=True):
            yield at, offset - at
            at = offset + size
        yield at, self.size - at


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


class Trusted:
    """The trusted kernels, loaded."""

    def __init__(self, gpu: Gpu, module: Any) -> None:
        self._gpu = gpu
        names = ("wait_ns", "warm_ns", "wipe", "digest", "count_changed")
        self._functions = {name: gpu.function(module, name) for name in names}
        self._shared = int(gpu.facts["shared_bytes"])
        self._multiprocessors = int(gpu.facts["multiprocessors"])
        gpu.allow_shared(self._functions["wipe"], self._shared)
        self._small = gpu.buffer(256)
        self._flush_bytes = 2 * int(gpu.facts["l2_bytes"])
        self._flush = gpu.buffer(self._flush_bytes)

    def _queue(self, name: str, form: str, *values: Any, grid: int = 1, block: int = 1, shared: int = 0) -> None:
        packed = Packed([struct.pack(f"<{one}", value) for one, value in zip(form, values, strict=True)])
        self._gpu.launch(self._functions[name], (grid, 1, 1), (block, 1, 1), shared, packed)

    def wait(self, nanoseconds: int) -> None:
        """Hold the stream."""
        self._queue("wait_ns", "Q", nanoseconds)

    def warm(self) -> None:
        """Bring the clocks up."""
        self._queue("warm_ns", "QQ", WARM_NS, self._small, grid=self._multiprocessors, block=256)

    def wipe(self, pattern: int) -> None:
        """Leave nothing of earlier calls in caches, shared memory and stacks."""
        self._gpu.forget_persistence()
        self._gpu.fill(self._flush, pattern & 0xFF, self._flush_bytes)
        words = self._shared // 4
        grid, block = 2 * self._multiprocessors, 1024
        self._queue("wipe", "IIQ", words, pattern, self._small, grid=grid, block=block, shared=self._shared)

    def digest(self, address: int, size: int) -> bytes:
        """Sixteen bytes that stand for what memory holds."""
        self._gpu.fill(self._small, 0, 16)
        self._queue("digest", "QQQ", address, size, self._small, grid=4 * self._multiprocessors, block=256)
        return self._answer(16)

    def changed(self, spans: Sequence[tuple[int, int]], pattern: int) -> int:
        """How many bytes are not what they were filled with."""
        self._gpu.fill(self._small, 0, 8)
        for address, size in spans:
            if size:
                self._queue("count_changed", "QQBQ", address, size, pattern, self._small, grid=64, block=256)
        return int.from_bytes(self._answer(8), "little")

    def _answer(self, size: int) -> bytes:
        while not self._gpu.is_idle():
            time.sleep(2e-5)
        data = create_string_buffer(size)
        self._gpu.download(addressof(data), self._small, size)
        return data.raw


class Calls:
    """The calls of one request: one plan of launches, sets of inputs, one region of outputs and workspace."""

    def __init__(self, gpu: Gpu, trusted: Trusted, load: Functions, request: Mapping[str, Any]) -> None:
        self.gpu, self.trusted, self.load, self.request = gpu, trusted, load, request
        # Memory comes in large grains: to the end of the last one all is filled, and all that is no tensor is guarded.
        self.inputs = Layout.of(request["inputs"], gpu.grain)
        self.outputs = Layout.of([*request["outputs"], request["workspace"]], gpu.grain)
        self.poison = int(request["poison"])
        self.seconds = float(request["seconds"])
        # Nothing is mapped before or behind a region: what runs far out of it faults.
        self.input_at = int(request["input_space"]) + gpu.grain
        self.output_at = int(request["output_space"]) + gpu.grain
        self.begin, self.end = gpu.event(), gpu.event()
        self.functions: Mapping[str, Any] = {}
        self.launches = self._fresh()

    def _fresh(self) -> list[tuple[Any, Any, Any, int, Packed]]:
        """The launches on code that is loaded now: variables of its own are as the author initialised them."""
        self.functions = self.load()
        return [self._prepared(launch) for launch in self.request["launches"]]

    def _prepared(self, launch: Mapping[str, Any]) -> tuple[Any, Any, Any, int, Packed]:
        function, shared = self.functions[launch["kernel"]], int(launch["shared"])
        if shared > _DEFAULT_SHARED:
            self.gpu.allow_shared(function, shared)
        packed = Packed([self._patched(argument) for argument in launch["arguments"]])
        return function, launch["grid"], launch["block"], shared, packed

    def _patched(self, argument: Mapping[str, Any]) -> bytes:
        data = bytearray.fromhex(argument["data"])
        for at, tensor, offset in argument["handles"]:
            struct.pack_into("<Q", data, at, self._address(tensor) + offset)
        return bytes(data)

    def _address(self, tensor: int) -> int:
        count = len(self.inputs.offsets)
        if tensor < count:
            return self.input_at + self.inputs.offsets[tensor]
        return self.output_at + self.outputs.offsets[tensor - count]

    def run(self, inputs: int, room: int, exclusive: Any) -> Outcome:
        """All calls; `inputs` is the host's address of the sets, `room` that of the room for outputs."""
        with ExitStack() as stack:
            sets = [stack.enter_context(self._filled(inputs, index)) for index in range(self.request["sets"])]
            region = stack.enter_context(self._allocated(self.outputs.size))
            stack.enter_context(self.gpu.mapped(region, self.output_at))
            stack.enter_context(exclusive)
            return self._sequence(sets, room)

    @contextmanager
    def _allocated(self, size: int) -> Iterator[Memory]:
        memory = self.gpu.allocate(size)
        yield memory
        self.gpu.release(memory)

    @contextmanager
    def _filled(self, host: int, index: int) -> Iterator[Memory]:
        """The inputs of one set, with NaN around them."""
        with self._allocated(self.inputs.size) as memory:
            with self.gpu.mapped(memory, self.input_at) as address:
                self.gpu.fill(address, 0xFF, memory.size)
                at = host + index * sum(map(_padded, self.inputs.sizes))
                for offset, size in zip(self.inputs.offsets, self.inputs.sizes, strict=True):
                    self.gpu.upload(address + offset, at, size)
                    at += _padded(size)
                self._finish()  # before it is unmapped
            yield memory

    def _sequence(self, sets: Sequence[Memory], room: int) -> Outcome:
        outcome, digests = Outcome(), dict[int, list[bytes]]()
        timed, order = bool(self.request["timed"]), random.Random(self.request["seed"])
        if timed:
            self.trusted.warm()
        begun = time.perf_counter()
        for count, index in enumerate(_order(len(sets), order)):
            first = index not in digests
            microseconds = self._call(sets[index], order.getrandbits(32))
            outcome.guards += self._guards()
            found = self._digests()
            outcome.unstable |= digests.setdefault(index, found) != found
            if first:
                self._keep(room, index)
            if count or not timed:  # the first of many also loads the code
                outcome.samples.append(Sample(index, microseconds, first))
            if outcome.guards or outcome.unstable or self._is_enough(outcome.samples, len(sets), begun, timed):
                break
        return outcome

    def _is_enough(self, samples: Sequence[Sample], sets: int, begun: float, timed: bool) -> bool:
        if not timed:
            return len(samples) >= sets
        if len(samples) < FEWEST:
            return False
        sure = len(samples) % 10 == 0 and _is_sure([sample.microseconds for sample in samples])
        return sure or len(samples) >= MOST or time.perf_counter() - begun > PATIENCE

    def _call(self, inputs: Memory, pattern: int) -> float:
        """One call, timed from its first launch to its last."""
        gpu = self.gpu
        if self.request["has_variables"]:
            self.launches = self._fresh()
        with gpu.mapped(inputs, self.input_at, writable=False):
            gpu.fill(self.output_at, self.poison, self.outputs.size)
            self.trusted.wipe(pattern)
            self.trusted.wait(HEAD_START_NS + LAUNCH_NS * len(self.launches))
            gpu.mark(self.begin)
            for function, grid, block, shared, packed in self.launches:
                gpu.launch(function, grid, block, shared, packed)
            gpu.mark(self.end)
            self._finish()
        return gpu.microseconds(self.begin, self.end)

    def _finish(self) -> None:
        deadline = time.perf_counter() + self.seconds
        pause = 2e-5
        while not self.gpu.is_idle():
            if time.perf_counter() > deadline:
                raise Hang
            time.sleep(pause)
            pause = min(pause * 1.2, 2e-3)

    def _guards(self) -> int:
        spans = [(self.output_at + offset, size) for offset, size in self.outputs.gaps()]
        return self.trusted.changed(spans, self.poison)

    def _tensors(self) -> Iterator[tuple[int, int]]:
        """Address and size of each output; the workspace is none."""
        for offset, size in zip(self.outputs.offsets[:-1], self.outputs.sizes[:-1], strict=True):
            yield self.output_at + offset, size

    def _digests(self) -> list[bytes]:
        return [self.trusted.digest(address, size) for address, size in self._tensors()]

    def _keep(self, room: int, index: int) -> None:
        at = room + index * sum(_padded(size) for _, size in self._tensors())
        for address, size in self._tensors():
            self.gpu.download(at, address, size)
            at += _padded(size)


def _is_sure(samples: Sequence[float]) -> bool:
    """True if the median is known within one part in a hundred."""
    timing = measured(samples)
    return timing.high_us - timing.low_us <= SURE * timing.latency_us


def _padded(size: int, grain: int = GRAIN) -> int:
    return -(-size // grain) * grain


def _order(sets: int, order: random.Random) -> Iterator[int]:
    """Every set once, in random order, and then any."""
    first = list(range(sets))
    order.shuffle(first)
    yield from first
    while True:
        yield order.randrange(sets)
