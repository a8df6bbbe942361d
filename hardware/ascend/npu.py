"""The NPU through torch_npu: memory, streams, events. Not run on hardware yet."""

from __future__ import annotations

import time
from typing import Any

from kernel_gym.hardware.host.calls import Hang

#: Bytes overwritten before every call: more than twice the L2 cache of any Atlas A2.
FLUSH_BYTES = 512 << 20
PAUSE = 2e-5


class TorchNpu:
    """One NPU."""

    def __init__(self, index: int) -> None:
        import torch
        import torch_npu  # noqa: F401 - its import makes torch.npu

        self._torch: Any = torch
        self._torch.npu.set_device(index)
        self._flushed = self.buffer(FLUSH_BYTES)

    def buffer(self, size: int) -> Any:
        """Return new memory of the NPU."""
        return self._torch.empty(size, dtype=self._torch.uint8, device="npu")

    def address(self, buffer: Any) -> int:
        """Return its address."""
        return int(buffer.data_ptr())

    def fill(self, buffer: Any, byte: int) -> None:
        """Set every byte."""
        buffer.fill_(byte)

    def upload(self, buffer: Any, offset: int, data: bytes) -> None:
        """Copy into it."""
        source = self._torch.frombuffer(bytearray(data), dtype=self._torch.uint8)
        buffer[offset : offset + len(data)].copy_(source)

    def download(self, buffer: Any) -> bytes:
        """Return its contents."""
        return bytes(buffer.cpu().numpy().tobytes())

    def stream(self) -> int:
        """Return the current stream."""
        return int(self._torch.npu.current_stream().npu_stream)

    def flush(self) -> None:
        """Fill a buffer that is larger than the caches."""
        self._flushed.fill_(0)

    def mark(self) -> Any:
        """Return an event that records its time."""
        event = self._torch.npu.Event(enable_timing=True)
        event.record()
        return event

    def finish(self, event: Any, seconds: float) -> None:
        """Wait for an event by polling, because a synchronisation cannot be interrupted."""
        deadline = time.perf_counter() + seconds
        while not event.query():
            if time.perf_counter() > deadline:
                raise Hang
            time.sleep(PAUSE)
        event.synchronize()

    def microseconds(self, begin: Any, end: Any) -> float:
        """Return the time between two events, converted from milliseconds."""
        return float(begin.elapsed_time(end)) * 1e3
