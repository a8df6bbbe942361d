"""Measures the speed of the Ascend simulator.

Figures: milliseconds to compile a kernel and to refuse one with an error, timed records per second, seconds of a
computed matrix product, and the peak memory of the device process in MB. On a busy machine wall-clock times vary, so
most of them have a figure of processor time (`cpu`) beside them.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from statistics import median

import numpy as np

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.ascend_sim.calibration import FOLDER
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

RELU = FOLDER.parent / "examples" / "relu.asc"
#: Elements of the timed kernel: so many that the start of a run does not matter.
TIMED = 1 << 26
#: Rows and columns of the matrices.
SIDE = 1024


def benchmark(device: AscendSim, repeats: int = 7) -> dict[str, float]:
    """Measure compiling, timing and computing. First runs, which start or build something, are left out.

    Args:
        device: The simulator.
        repeats: Measurements of each figure.

    Returns:
        Figures by name.

    Raises:
        KernelGymError: If a kernel of the benchmark does not run.
    """
    source = RELU.read_text()
    device.build(Kernel(source))
    before = _children_seconds()
    compiled = [device.build(Kernel(f"{source}\n// {i}\n")).seconds for i in range(repeats)]
    compiling = (_children_seconds() - before) / repeats
    refused = [device.build(Kernel(f"{source}\nint a = {i} + ;\n")).seconds for i in range(repeats + 1)][1:]
    relu = device.build(Kernel(source))
    _checked(device.run(relu, Inputs(_elementwise(TIMED))))
    before = _device_seconds(device)
    timed = [_checked(device.run(relu, Inputs(_elementwise(TIMED)))) for _ in range(repeats)]
    timing = _device_seconds(device) - before
    matmul = device.build(Kernel((FOLDER / "matmul.cpp").read_text(), trusted=True))
    begin, before = time.perf_counter(), _device_seconds(device)
    _checked(device.run(matmul, _product()))
    product, multiplied = time.perf_counter() - begin, _device_seconds(device) - before
    return {
        "compile_p50_ms": 1e3 * median(compiled),
        "compile_cpu_ms": 1e3 * compiling,
        "refuse_p50_ms": 1e3 * median(refused),
        "records_per_second": median(_records(run) / run.seconds for run in timed),
        "records_per_cpu_second": sum(map(_records, timed)) / max(timing, 0.01),
        "matmul_1024_half_s": product,
        "matmul_1024_half_cpu_s": multiplied,
        "device_process_mb": _peak_mb(device),
    }


def _elementwise(elements: int) -> Signature:
    return Signature((InputSpec((elements,)),), (TensorSpec((elements,)),))


def _product() -> Inputs:
    """Return inputs for a product of half-precision matrices, computed on one core."""
    specs = tuple(InputSpec((SIDE, SIDE), "float16") for _ in range(2))
    signature = Signature(specs, (TensorSpec((SIDE, SIDE), "float16"),), ints=(1, 1, 128, 256, 64, 8, 8))
    return Inputs(signature, tuple(np.full((SIDE, SIDE), 0.5, np.float16) for _ in range(2)))


def _checked(run: Run) -> Run:
    if run.status != "ok":
        raise KernelGymError(
            f"a kernel of the benchmark does not run: {run.fault.message if run.fault else run.status}"
        )
    return run


def _records(run: Run) -> int:
    return run.profile.counts["records"] if run.profile else 0


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _proc_file(device: AscendSim, name: str) -> str:
    """Read a file of /proc about the device process."""
    server = device._server
    if server is None or server._process is None:
        raise KernelGymError("the device process does not run")
    return Path(f"/proc/{server._process.pid}/{name}").read_text()


def _device_seconds(device: AscendSim) -> float:
    """Return the processor time of the device process; the kernel's own process is not included."""
    user, system = _proc_file(device, "stat").rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _peak_mb(device: AscendSim) -> float:
    """Return the peak memory of the device process in MB."""
    lines = _proc_file(device, "status").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
