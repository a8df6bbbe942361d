"""How fast verdicts are: figures for `make bench`. Ratios within one run mean more than times: machines are noisy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from kernel_gym.hardware.device import Device, Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.task import Task
from kernel_gym.verifier.verifier import Verifier


def benchmark(device: Device, kernel: Kernel, task: Task, repeats: int = 20, workers: int = 2) -> dict[str, float]:
    """Milliseconds (medians) of building, running and judging `kernel`, and verdicts a second.

    Every verdict is of a kernel that was never seen before: a comment makes each one new.
    """
    figures = _parts(device, kernel, task, repeats)
    broken = Kernel(kernel.source.replace("DataCopyPad", "DataCopyPat"), kernel.language, trusted=True)
    with Verifier(device.fork(), cache=False) as judge:
        judge.verify(_anew(kernel, -1), task)  # the references of the task are computed once
        verdicts = [judge.verify(_anew(kernel, i), task) for i in range(repeats)]
        gates = defaultdict(list)
        for verdict in verdicts:
            for gate, seconds in verdict.seconds.items():
                gates[gate].append(seconds * 1e3)
        figures |= {f"gate_{gate}_ms": median(times) for gate, times in gates.items()}
        figures["verdict_cold_ms"] = _milliseconds(lambda i: judge.verify(_anew(kernel, 1000 + i), task), repeats)
        figures["verdict_uncompilable_ms"] = _milliseconds(lambda i: judge.verify(_anew(broken, i), task), repeats)
    figures["verdicts_per_second"] = _rate(device, kernel, task, repeats, workers)
    figures["cached_verdicts_per_second"] = _cached_rate(device, kernel, task)
    return figures


def _parts(device: Device, kernel: Kernel, task: Task, repeats: int) -> dict[str, float]:
    timing = Inputs(task.instance(task.timing).signature)
    build = device.build(kernel, task)
    return {
        "compile_ms": _milliseconds(lambda i: device.build(_anew(kernel, 2000 + i), task), repeats),
        "timed_run_ms": _milliseconds(lambda i: device.run(build, timing), repeats),
    }


def _rate(device: Device, kernel: Kernel, task: Task, repeats: int, workers: int) -> float:
    with Verifier(device.fork(), cache=False, workers=workers) as judge:
        judge.verify_all([(_anew(kernel, 3000 + i), task) for i in range(workers)])
        started = perf_counter()
        judge.verify_all([(_anew(kernel, 4000 + i), task) for i in range(2 * repeats)])
        return 2 * repeats / (perf_counter() - started)


def _cached_rate(device: Device, kernel: Kernel, task: Task, asked: int = 5000) -> float:
    with TemporaryDirectory() as folder, Verifier(device.fork(), cache=Path(folder)) as judge:
        judge.verify(kernel, task)
        started = perf_counter()
        for _ in range(asked):
            judge.verify(kernel, task)
        return asked / (perf_counter() - started)


def _anew(kernel: Kernel, number: int) -> Kernel:
    """The same kernel with another digest."""
    return Kernel(f"{kernel.source}\n// {number}\n", kernel.language, kernel.trusted)


def _milliseconds(call: Callable[[int], object], repeats: int) -> float:
    times = []
    for i in range(repeats):
        started = perf_counter()
        call(i)
        times.append((perf_counter() - started) * 1e3)
    return median(times)
