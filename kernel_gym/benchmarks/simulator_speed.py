"""How fast the simulator is: compiling, timing records, computing a product; and how much memory it takes.

Where others use the machine too, wall-clock figures say little: beside them stand such of processor time.
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
#: Elements that are only timed, so many that starting a run does not count.
TIMED = 1 << 26
SIDE = 1024


def benchmark(device: AscendSim, repeats: int = 7) -> dict[str, float]:
    """Figures of this machine; the first of each is left out, since it starts or builds something."""
    source = RELU.read_text()
    device.build(Kernel(source))
    before = _children_seconds()
    compiled = [device.build(Kernel(f"{source}\n// {i}\n")).seconds for i in range(repeats)]
    compiling = (_children_seconds() - before) / repeats
    refused = [device.build(Kernel(f"{source}\nint a = {i} + ;\n")).seconds for i in range(repeats + 1)][1:]
    relu = device.build(Kernel(source))
    _ran(device.run(relu, Inputs(_elementwise(TIMED))))
    before = _device_seconds(device)
    timed = [_ran(device.run(relu, Inputs(_elementwise(TIMED)))) for _ in range(repeats)]
    worked = _device_seconds(device) - before
    matmul = device.build(Kernel((FOLDER / "matmul.cpp").read_text(), trusted=True))
    begin, before = time.perf_counter(), _device_seconds(device)
    _ran(device.run(matmul, _product()))
    product, multiplied = time.perf_counter() - begin, _device_seconds(device) - before
    return {
        "compile_p50_ms": 1e3 * median(compiled),
        "compile_cpu_ms": 1e3 * compiling,
        "refuse_p50_ms": 1e3 * median(refused),
        "records_per_second": median(_records(run) / run.seconds for run in timed),
        "records_per_cpu_second": sum(map(_records, timed)) / max(worked, 0.01),
        "matmul_1024_half_s": product,
        "matmul_1024_half_cpu_s": multiplied,
        "device_process_mb": _peak_mb(device),
    }


def _elementwise(elements: int) -> Signature:
    return Signature((InputSpec((elements,)),), (TensorSpec((elements,)),))


def _product() -> Inputs:
    """A product of half matrices, computed, on one core."""
    specs = tuple(InputSpec((SIDE, SIDE), "float16") for _ in range(2))
    signature = Signature(specs, (TensorSpec((SIDE, SIDE), "float16"),), ints=(1, 1, 128, 256, 64, 8, 8))
    return Inputs(signature, tuple(np.full((SIDE, SIDE), 0.5, np.float16) for _ in range(2)))


def _ran(run: Run) -> Run:
    if run.status != "ok":
        raise KernelGymError(
            f"the kernel to measure with does not run: {run.fault.message if run.fault else run.status}"
        )
    return run


def _records(run: Run) -> int:
    return run.profile.counts["records"] if run.profile else 0


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _about(device: AscendSim, what: str) -> str:
    """A file of /proc about the device process."""
    server = device._server
    if server is None or server._process is None:
        raise KernelGymError("the device process does not run")
    return Path(f"/proc/{server._process.pid}/{what}").read_text()


def _device_seconds(device: AscendSim) -> float:
    """Processor time of the device process; the kernel's own process is another one, and works at the same time."""
    user, system = _about(device, "stat").rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _peak_mb(device: AscendSim) -> float:
    """The most memory that the device process ever held."""
    lines = _about(device, "status").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
