"""The latency of a task's module under torch on an NVIDIA GPU, measured as the device `cuda` measures kernels.

Calls run on several sets of inputs in a random order. Before each call the L2 cache is overwritten. Events around the
call are queued behind a waiting GPU, so that the pace of the host does not count. The number of calls follows the same
rule as for kernels, and no other process of ours uses the GPU meanwhile.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from kernel_gym.confinement.building import cache_folder
from kernel_gym.hardware.host.latency_statistics import is_enough, measured
from kernel_gym.tasks.instance import ModuleInstance
from kernel_gym.tasks.task import Task

#: Number of input sets, and number above this many bytes, as in the latency gate.
SETS, FEWER, LARGE_BYTES = 3, 2, 16 << 20
WARM_SECONDS = 0.005
#: Cycles that the GPU waits before a call, at first and at most; doubled until the host is ahead.
FIRST_WAIT, LAST_WAIT = 1 << 16, 1 << 28


def torch_latencies_us(task: Task) -> tuple[float, float] | None:
    """Return the median latencies of the module in eager mode at the timing sizes, in microseconds.

    Args:
        task: The task. Its file must be trusted, because its code runs in this process.

    Returns:
        The latency of torch as it comes, whose convolutions may round their operands to TF32, and that without TF32;
        None if torch has no GPU, or if the file is not trusted.
    """
    instance = task.instance(task.timing)
    if not isinstance(instance, ModuleInstance) or not torch.cuda.is_available():
        return None
    instance.model()
    count = FEWER if instance.signature.nbytes > LARGE_BYTES else SETS
    sets = [instance.own_inputs(seed) for seed in range(count)]
    with _gpu_alone():
        calls = [instance.bound(inputs, torch.device("cuda")) for inputs in sets]
        usual, exact = (_latency_us(calls, tf32) for tf32 in (True, False))
    del calls
    torch.cuda.empty_cache()
    return usual, exact


def _latency_us(calls: list[Callable[[], object]], tf32: bool) -> float:
    with _convolutions(tf32):
        return measured(_samples(calls, GpuClock())).latency_us


def _samples(calls: list[Callable[[], object]], clock: Callable[[Callable[[], object]], float]) -> list[float]:
    """Time calls in a random order until there are enough; each has been made before."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_SECONDS:
        for call in calls:
            call()
    samples, order, begin = list[float](), random.Random(), time.perf_counter()
    while not is_enough(samples, time.perf_counter() - begin):
        samples.append(clock(order.choice(calls)))
    return samples


class GpuClock:
    """Times single calls by events, on an empty cache and ahead of the GPU."""

    def __init__(self) -> None:
        mark: Any = torch.cuda.Event
        self._begin, self._end = mark(enable_timing=True), mark(enable_timing=True)
        cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
        self._flush = torch.empty(2 * cache, dtype=torch.uint8, device="cuda")
        self._wait = FIRST_WAIT

    def __call__(self, call: Callable[[], object]) -> float:
        """Return the microseconds of a call. A call that the GPU did not have to wait for is made again."""
        while True:
            torch.cuda.synchronize()
            self._flush.fill_(random.getrandbits(8))
            sleep: Any = torch.cuda._sleep
            sleep(self._wait)
            self._begin.record()
            outputs = call()
            self._end.record()
            was_ahead = not self._begin.query()
            torch.cuda.synchronize()
            del outputs
            if was_ahead or self._wait >= LAST_WAIT:
                return 1000.0 * float(self._begin.elapsed_time(self._end))
            self._wait *= 2


@contextmanager
def _convolutions(tf32: bool) -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def _gpu_alone() -> Iterator[None]:
    """Hold the lock that the device's workers take for timing."""
    from kernel_gym.hardware.cuda.machine import facts
    from kernel_gym.hardware.cuda.worker import Turn

    with Turn(cache_folder() / f"gpu-{facts()['uuid']}").taken(alone=True):
        yield
