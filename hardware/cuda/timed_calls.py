"""Makes calls of a kernel on the GPU: read-only inputs, poisoned outputs between guards, timed by trusted events.

During a kernel's launches only its inputs (read-only), its outputs and its workspace are mapped. Before each call all
memory that it could have written is overwritten, the caches are flushed, and the multiprocessors' state is wiped.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import addressof, create_string_buffer
from typing import Any, TypeAlias

from kernel_gym.hardware.cuda.driver import Gpu, GpuError, Memory, Packed
from kernel_gym.hardware.host.calls import CallSequence, Hang, Layout, Outcome, Sample
from kernel_gym.hardware.host.latency_statistics import is_enough
from kernel_gym.hardware.host.tensors import padded

#: Nanoseconds that the host gets to queue a call, and for each of its launches.
HEAD_START_NS, LAUNCH_NS = 30_000, 8_000
WARM_NS = 5_000_000
_DEFAULT_SHARED = 48 << 10
#: Kilobytes of local memory that the trusted kernels wipe, and bytes of the stack that code has beside its own arrays.
LOCAL_KILOBYTES, STACK_BYTES = (2, 8, 32, 128), 1536
#: The share of the GPU's memory that the local arrays of all threads it can hold may take.
LOCAL_SHARE = 1 / 8


#: Loads a kernel's code and finds its GPU functions.
Functions: TypeAlias = Callable[[], Mapping[str, Any]]


class Trusted:
    """The trusted GPU kernels: wait, warm up, wipe, digest, count changed bytes."""

    def __init__(self, gpu: Gpu, module: Any) -> None:
        self._gpu = gpu
        names = ("wait_ns", "warm_ns", "wipe", "digest", "count_changed", *map("wipe_local_{}".format, LOCAL_KILOBYTES))
        self._functions = {name: gpu.function(module, name) for name in names}
        self._shared = int(gpu.facts["shared_bytes"])
        self._multiprocessors = int(gpu.facts["multiprocessors"])
        gpu.allow_shared(self._functions["wipe"], self._shared)
        # Both fill whole pages, which a kernel could write if it guessed their addresses.
        self._small = gpu.buffer(gpu.grain)
        self._flush_bytes = padded(2 * int(gpu.facts["l2_bytes"]), gpu.grain)
        self._flush = gpu.buffer(self._flush_bytes)

    def _queue(self, name: str, form: str, *values: Any, grid: int = 1, block: int = 1, shared: int = 0) -> None:
        packed = Packed([struct.pack(f"<{letter}", value) for letter, value in zip(form, values, strict=True)])
        self._gpu.launch(self._functions[name], (grid, 1, 1), (block, 1, 1), shared, packed)

    def wait(self, nanoseconds: int) -> None:
        """Block the stream for some time, so that the host can queue more work behind it."""
        self._queue("wait_ns", "Q", nanoseconds)

    def warm(self) -> None:
        """Keep the GPU busy for a few milliseconds, so that its clock reaches full speed."""
        self._queue("warm_ns", "QQ", WARM_NS, self._small, grid=self._multiprocessors, block=256)

    def wipe(self, pattern: int, local: int, reserved: bool = True) -> None:
        """Remove all traces of earlier calls from caches, shared memory and local memory.

        Args:
            pattern: What memory is filled with.
            local: Bytes of local memory that a thread of the kernel has.
            reserved: Whether the shared memory that the system reserves is wiped, too.
        """
        self._gpu.forget_persistence()
        self._wipe_local(pattern, local)
        for address, size in ((self._small, self._gpu.grain), (self._flush, self._flush_bytes)):
            self._gpu.fill(address, pattern & 0xFF, size)
        words, system = self._shared // 4, int(self._gpu.facts["reserved_bytes"]) // 4 if reserved else 0
        values = words, system, pattern, self._small
        self._queue("wipe", "IIIQ", *values, grid=2 * self._multiprocessors, block=1024, shared=self._shared)

    def _wipe_local(self, pattern: int, local: int) -> None:
        """Overwrite the local memory of all threads that the GPU holds at a time, in two blocks a multiprocessor."""
        kilobytes = next((size for size in LOCAL_KILOBYTES if size << 10 >= local + STACK_BYTES), LOCAL_KILOBYTES[-1])
        grid, block = 2 * self._multiprocessors, int(self._gpu.facts["threads"]) // 2
        self._gpu.fill(self._small, 0, 8)
        self._queue(f"wipe_local_{kilobytes}", "IQ", pattern, self._small, grid=grid, block=block)

    def digest(self, address: int, size: int, key: int) -> bytes:
        """Return a digest of sixteen bytes. Without the key, other bytes of the same digest cannot be made up."""
        self._gpu.fill(self._small, 0, 16)
        self._queue("digest", "QQQQ", address, size, key, self._small, grid=4 * self._multiprocessors, block=256)
        return self._answer(16)

    def changed(self, spans: Sequence[tuple[int, int]], pattern: int) -> int:
        """Return the number of bytes that differ from the fill byte."""
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


class Calls(CallSequence):
    """The calls of one request, on code that `load` loads."""

    def __init__(self, gpu: Gpu, trusted: Trusted, load: Functions, request: Mapping[str, Any]) -> None:
        # Memory is allocated in large granules: the last one is filled, and all bytes outside tensors are guarded.
        inputs = Layout.of(request["inputs"], gpu.grain)
        outputs = Layout.of([*request["outputs"], request["workspace"]], gpu.grain)
        # Nothing is mapped before or after a region, so an access far outside of it faults.
        spaces = int(request["input_space"]) + gpu.grain, int(request["output_space"]) + gpu.grain
        super().__init__(request, inputs, outputs, *spaces)
        self.gpu, self.trusted, self.load = gpu, trusted, load
        self.poison = int(request["poison"])
        self.key = int.from_bytes(os.urandom(8), "little")
        self.seconds = float(request["seconds"])
        self.begin, self.end = gpu.event(), gpu.event()
        self.functions: Mapping[str, Any] = {}
        self.launches = self._fresh()
        self.sets: list[Memory] = []
        self.room = 0

    def _fresh(self) -> list[tuple[Any, Any, Any, int, Packed]]:
        """Return the launches on newly loaded code, whose variables have their initial values."""
        self.functions = self.load()
        return [self._prepared(launch) for launch in self.request["launches"]]

    def _prepared(self, launch: Mapping[str, Any]) -> tuple[Any, Any, Any, int, Packed]:
        function, shared = self.functions[launch["kernel"]], int(launch["shared"])
        self._check_local(function)
        if shared > _DEFAULT_SHARED:
            self.gpu.allow_shared(function, shared)
        packed = Packed([self.patched(argument) for argument in launch["arguments"]])
        return function, launch["grid"], launch["block"], shared, packed

    def _local(self) -> int:
        """Return the bytes of local memory that a thread has."""
        return max((self.gpu.figures(function)["local"] for function in self.functions.values()), default=0)

    def _check_local(self, function: Any) -> None:
        """Raise GpuError if local arrays need more memory than others leave: that is a fault of the kernel."""
        facts, local = self.gpu.facts, self.gpu.figures(function)["local"]
        threads = int(facts["threads"]) * int(facts["multiprocessors"])
        largest = (LOCAL_KILOBYTES[-1] << 10) - STACK_BYTES
        if local > min(LOCAL_SHARE * int(facts["memory_bytes"]) / threads, largest):
            raise GpuError("TOO_MUCH_LOCAL_MEMORY")

    def run(self, inputs: int, room: int, exclusive: Any) -> Outcome:
        """Make all calls; `inputs` is the host's address of the sets, `room` that of the room for outputs."""
        self.room = room
        with ExitStack() as stack:
            self.sets = [stack.enter_context(self._filled(inputs, index)) for index in range(self.request["sets"])]
            region = stack.enter_context(self._allocated(self.outputs.size))
            stack.enter_context(self.gpu.mapped(region, self.output_address))
            stack.enter_context(exclusive)
            if self.request["timed"]:
                self.trusted.warm()
            return self.measure()

    @contextmanager
    def _allocated(self, size: int) -> Iterator[Memory]:
        memory = self.gpu.allocate(size)
        yield memory
        self.gpu.release(memory)

    @contextmanager
    def _filled(self, host: int, index: int) -> Iterator[Memory]:
        """Map memory with the inputs of one set, surrounded by NaN."""
        with self._allocated(self.inputs.size) as memory:
            with self.gpu.mapped(memory, self.input_address) as address:
                self.gpu.fill(address, 0xFF, memory.size)
                at = host + index * sum(map(padded, self.inputs.sizes))
                for offset, size in zip(self.inputs.offsets, self.inputs.sizes, strict=True):
                    self.gpu.upload(address + offset, at, size)
                    at += padded(size)
                self._finish()  # before it is unmapped
            yield memory

    def call(self, index: int, order: random.Random) -> float:
        gpu, pattern = self.gpu, order.getrandbits(32)
        if self.request["has_variables"]:
            self.launches = self._fresh()
        with gpu.mapped(self.sets[index], self.input_address, writable=False):
            gpu.fill(self.output_address, self.poison, self.outputs.size)
            self.trusted.wipe(pattern, self._local(), reserved=not self.request["sanitized"])
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

    def check(self, index: int, first: bool, outcome: Outcome) -> None:
        spans = [(self.output_address + offset, size) for offset, size in self.outputs.gaps()]
        outcome.guards += self.trusted.changed(spans, self.poison)

    def digest(self) -> list[bytes]:
        return [self.trusted.digest(address, size, self.key) for address, size in self._output_spans()]

    def keep(self, index: int) -> None:
        at = self.room + index * sum(padded(size) for _, size in self._output_spans())
        for address, size in self._output_spans():
            self.gpu.download(at, address, size)
            at += padded(size)

    def is_certain(self, samples: Sequence[Sample], sets: int, seconds: float) -> bool:
        return is_enough([sample.microseconds for sample in samples], seconds)

    def _output_spans(self) -> Iterator[tuple[int, int]]:
        """Yield address and size of each output; the last tensor of the region is the workspace."""
        for offset, size in zip(self.outputs.offsets[:-1], self.outputs.sizes[:-1], strict=True):
            yield self.output_address + offset, size
