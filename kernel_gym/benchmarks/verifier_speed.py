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
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict
from kernel_gym.verifier.verifier import Verifier

#: Workers whose verdicts per second are measured.
SIDE_BY_SIDE = 2


def benchmark(device: Device, kernel: Kernel, task: Task, cold: int = 12, known: int = 4000) -> dict[str, float]:
    """Figures for a kernel that is feasible; it takes over the device's copies, not the device."""
    fresh = [replace(kernel, source=f"{kernel.source}\n// {index}\n") for index in range(cold + 1)]
    with TemporaryDirectory() as folder, Verifier(device.fork(), cache=Path(folder)) as verifier:
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
        f"verdicts_cold_per_second_{SIDE_BY_SIDE}_workers": _side_by_side(device, fresh, task),
        "verdicts_cached_per_second": per_second,
        **gates,
    }


def _side_by_side(device: Device, kernels: list[Kernel], task: Task) -> float:
    """Verdicts per second of several workers, once they have started their devices and drawn their values."""
    with Verifier(device.fork(), cache=False, workers=SIDE_BY_SIDE) as verifier:
        pairs = [(kernel, task) for kernel in kernels]
        verifier.verify_all(pairs[: 2 * SIDE_BY_SIDE])
        begin = time.perf_counter()
        verifier.verify_all(pairs)
        return len(pairs) / (time.perf_counter() - begin)


def _timed(verifier: Verifier, kernel: Kernel, task: Task) -> tuple[float, Verdict]:
    begin = time.perf_counter()
    verdict = verifier.verify(kernel, task)
    if not verdict.feasible:
        raise KernelGymError(f"the kernel to measure with is not feasible: {verdict.feedback}")
    return time.perf_counter() - begin, verdict
