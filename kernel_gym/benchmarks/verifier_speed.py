"""Measures the speed of verdicts on a device.

Figures: seconds of the first verdict and of a later one (median), the latter by policy `reference` too, verdicts per
second of one and of several workers, verdicts per second from the cache, and milliseconds of each gate (median).
`processor_seconds` does not depend on what else the machine does.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Verdict
from kernel_gym.verifier.verifier import Verifier

#: Workers of the measurement with several workers.
SIDE_BY_SIDE = 2


def benchmark(device: Device, kernel: Kernel, task: Task, cold: int = 12, cached: int = 4000) -> dict[str, float]:
    """Measure verdicts on one kernel.

    Args:
        device: The device; the benchmark uses and closes copies of it.
        kernel: A feasible kernel.
        task: Its task.
        cold: Verdicts that are not in the cache.
        cached: Verdicts from the cache.

    Returns:
        Figures by name; the names end in their unit.

    Raises:
        KernelGymError: If the kernel is not feasible.
    """
    variants = [replace(kernel, source=f"{kernel.source}\n// {index}\n") for index in range(cold + 1)]
    with TemporaryDirectory() as folder, Verifier(device.fork(), cache=Path(folder)) as verifier:
        seconds, verdicts = zip(*(_timed(verifier, variant, task) for variant in variants), strict=True)
        begin = time.perf_counter()
        for index in range(cached):
            verifier.verify(variants[index % len(variants)], task)
        per_second = cached / (time.perf_counter() - begin)
    warm = verdicts[1:]  # the first one also draws the inputs and starts the device
    gates = {f"verdict_{gate}_ms": 1000 * median(verdict.seconds[gate] for verdict in warm) for gate in warm[0].seconds}
    return {
        "verdict_first_s": seconds[0],
        "verdict_cold_p50_s": median(seconds[1:]),
        "verdicts_cold_per_second": len(warm) / sum(seconds[1:]),
        f"verdicts_cold_per_second_{SIDE_BY_SIDE}_workers": _side_by_side(device, variants, task),
        "verdicts_cached_per_second": per_second,
        "verdict_reference_cold_p50_s": _by_reference(device, variants, task),
        **gates,
    }


def _by_reference(device: Device, kernels: list[Kernel], task: Task) -> float:
    """Return the seconds of a verdict by policy `reference` (median), after a first one that starts the device."""
    with Verifier(device.fork(), cache=False, policy="reference") as verifier:
        return median([_timed(verifier, kernel, task)[0] for kernel in kernels][1:])


def processor_seconds(
    device: Device, kernel: Kernel, task: Task, verdicts: int = 3, policy: Policy = "strict"
) -> float:
    """Measure the processor time of a verdict that is not in the cache, of all processes together.

    Imports, the suite and the build of the simulator are not part of it: a first verdict comes before. The start of the
    device's process is, divided by the number of verdicts.

    Args:
        device: The device; the benchmark uses and closes copies of it.
        kernel: A feasible kernel.
        task: Its task.
        verdicts: Number of verdicts whose mean is returned, after a first one that is not counted.
        policy: The policy by which they are judged.

    Returns:
        Seconds.

    Raises:
        KernelGymError: If the kernel is not feasible.
    """
    variants = [replace(kernel, source=f"{kernel.source}\n// {index}\n") for index in range(verdicts + 1)]
    _judge_all(device, variants[:1], task, policy)
    begin = _spent()
    _judge_all(device, variants[1:], task, policy)
    return (_spent() - begin) / verdicts


def _judge_all(device: Device, kernels: list[Kernel], task: Task, policy: Policy) -> None:
    with Verifier(device.fork(), cache=False, policy=policy) as verifier:
        for kernel in kernels:
            _timed(verifier, kernel, task)


def _spent() -> float:
    """Return the processor time of this process and of the processes that it has ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _side_by_side(device: Device, kernels: list[Kernel], task: Task) -> float:
    """Return verdicts per second of several workers, after they have started their devices and drawn their inputs."""
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
        raise KernelGymError(f"the benchmark needs a feasible kernel: {verdict.feedback}")
    return time.perf_counter() - begin, verdict
