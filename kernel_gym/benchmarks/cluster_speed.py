"""What a Ray cluster costs: verdicts a second over several workers, the driver's share, and a shared memory bank.

The nodes are raylets on this machine with a core each. More workers than cores take turns: the figures then show what
waits, not what scales.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.benchmarks.large_memory import median_ms
from kernel_gym.benchmarks.memory_speed import QUERY, VERDICT, RandomEmbedder
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.service.cluster import ClusterVerifier
from kernel_gym.service.local_cluster import local_cluster
from kernel_gym.service.shared_bank import SharedBank, share

#: Verdicts of each measurement, and items of the shared bank.
VERDICTS, ITEMS = 24, 2_000
#: The run whose driver is calculated: tasks in lock-step, devices.
TASKS, DEVICES = 1_000, 64


def benchmark(workers: tuple[int, ...] = (1, 2, 4), verdicts: int = VERDICTS, items: int = ITEMS) -> dict[str, float]:
    """Measure verdicts on clusters of several sizes, and a shared bank.

    Args:
        workers: Numbers of nodes, with one worker each.
        verdicts: Verdicts of each measurement.
        items: Items of the shared bank.

    Returns:
        Verdicts a second, milliseconds of the driver's processor time for a verdict, its share of the time; and
        milliseconds of calls of the shared bank.
    """
    figures: dict[str, float] = {}
    for number in workers:
        with local_cluster(number) as cluster:
            figures |= _verdicts(cluster.address, number, verdicts)
            if number == workers[-1]:
                figures |= _shared_bank(cluster.address, items)
    return figures


def driver_figures(figures: Mapping[str, float], tasks: int = TASKS, devices: int = DEVICES) -> dict[str, float]:
    """Calculate where the driver of a lock-step run saturates.

    In each iteration the driver prepares and commits an attempt at every task, one after the other, and the devices
    judge them in parallel. An attempt costs the driver the time of the attempt without its verdict and that of passing
    its kernel to the cluster.

    Args:
        figures: Measured figures of the parts `attempts` and `cluster`.
        tasks: Tasks in lock-step.
        devices: Devices.

    Returns:
        Seconds of an iteration, the driver's share of them, and the number of devices at which driver and devices take
        the same time: more of them save less than half of the iteration.
    """
    attempt = (figures["attempt_cpu_ms_value"] + figures["cluster_driver_ms_per_verdict"]) / 1e3
    verdict = 1 / figures["cluster_verdicts_per_second_1"]
    driving, judging = tasks * attempt, tasks / devices * verdict
    return {
        f"driver_iteration_s_{tasks}_tasks_{devices}_devices": driving + judging,
        f"driver_share_{tasks}_tasks_{devices}_devices": driving / (driving + judging),
        "driver_devices_at_half": verdict / attempt,
    }


def _verdicts(address: str, workers: int, verdicts: int) -> dict[str, float]:
    task = suites.find_task("level1/relu")
    source = oracle(task).source
    # A comment makes another kernel of it: every verdict is made anew.
    kernels = [(Kernel(f"{source}\n// {uuid4().hex}", trusted=True), task) for _ in range(verdicts + 2 * workers)]
    with ClusterVerifier(address, "ascend-sim", {}, workers=workers) as verifier:
        verifier.verify_all(kernels[verdicts:])  # the actors start
        wall, cpu = time.perf_counter(), time.process_time()
        verifier.verify_all(kernels[:verdicts])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        f"cluster_verdicts_per_second_{workers}": verdicts / wall,
        f"cluster_driver_share_{workers}": cpu / wall,
        "cluster_driver_ms_per_verdict": 1e3 * cpu / verdicts,
    }


def _shared_bank(address: str, items: int) -> dict[str, float]:
    number = count()
    with TemporaryDirectory() as folder:
        path, embedder = Path(folder) / "bank.sqlite", RandomEmbedder(128)
        with MemoryBank(path, embedder) as bank:
            bank.add([MemoryItem(Kind.TRACE, f"{i}", f"text {i}", "", VERDICT) for i in range(items)])
        url = f"ray://{address}/{uuid4().hex}"
        share(url, path, embedder)
        shared = SharedBank(url, embedder)
        calls: dict[str, Callable[[], object]] = {
            "top64": lambda: shared.retrieve(QUERY, 64),
            "add": lambda: shared.add([MemoryItem(Kind.TRACE, "new", f"new {next(number)}", verdict=VERDICT)]),
            "record_8": lambda: shared.record(Stage.DRAFT, range(1, 9), 1.0),
        }
        return {f"shared_bank_{name}_of_{items}_ms": median_ms(call, 50) for name, call in calls.items()}
