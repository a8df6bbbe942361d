"""How fast verdicts are: whole ones, each gate, and known ones."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.task import Task
from kernel_gym.verdict import Verdict
from kernel_gym.verifier.verifier import Verifier


def benchmark(device: Device, kernel: Kernel, task: Task, cold: int = 9, known: int = 4000) -> dict[str, float]:
    """Figures for a kernel that is feasible; it takes over the device's copies, not the device."""
    with TemporaryDirectory() as folder, Verifier(device.fork(), cache=Path(folder)) as verifier:
        fresh = [replace(kernel, source=f"{kernel.source}\n// {index}\n") for index in range(cold + 1)]
        seconds, verdicts = zip(*(_timed(verifier, one, task) for one in fresh), strict=True)
        begin = time.perf_counter()
        for index in range(known):
            verifier.verify(fresh[index % len(fresh)], task)
        per_second = known / (time.perf_counter() - begin)
    warm = verdicts[1:]  # the first one also draws the values and starts the device
    gates = {f"verdict_{gate}_ms": 1000 * median(v.seconds[gate] for v in warm) for gate in warm[0].seconds}
    return {
        "verdict_first_s": seconds[0],
        "verdict_cold_p50_s": median(seconds[1:]),
        "verdicts_cold_per_second": len(warm) / sum(seconds[1:]),
        "verdicts_cached_per_second": per_second,
        **gates,
    }


def _timed(verifier: Verifier, kernel: Kernel, task: Task) -> tuple[float, Verdict]:
    begin = time.perf_counter()
    verdict = verifier.verify(kernel, task)
    if not verdict.feasible:
        raise KernelGymError(f"the kernel to measure with is not feasible: {verdict.feedback}")
    return time.perf_counter() - begin, verdict
