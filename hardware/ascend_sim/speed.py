"""How fast the simulator is: compiling, timing records, computing a product; and how much memory it takes."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import numpy as np

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.ascend_sim.calibration import FOLDER
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.task import InputSpec, Signature, TensorSpec

RELU = FOLDER.parent / "examples" / "relu.asc"
#: Elements that are only timed, so many that starting a run does not count.
TIMED = 1 << 26
SIDE = 1024


def benchmark(device: AscendSim, repeats: int = 7) -> dict[str, float]:
    """Figures of this machine; the first of each is left out, since it starts or builds something."""
    source = RELU.read_text()
    compiled = [device.build(Kernel(f"{source}\n// {i}\n")).seconds for i in range(repeats + 1)][1:]
    refused = [device.build(Kernel(f"{source}\nint a = {i} + ;\n")).seconds for i in range(repeats + 1)][1:]
    relu = device.build(Kernel(source))
    timed = [_ran(device.run(relu, Inputs(_elementwise(TIMED)))) for _ in range(repeats)][1:]
    begin = time.perf_counter()
    _ran(device.run(device.build(Kernel((FOLDER / "matmul.cpp").read_text(), trusted=True)), _product()))
    product = time.perf_counter() - begin
    return {
        "compile_p50_ms": 1e3 * median(compiled),
        "refuse_p50_ms": 1e3 * median(refused),
        "records_per_second": median(_records(run) / run.seconds for run in timed),
        "matmul_1024_half_s": product,
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


def _peak_mb(device: AscendSim) -> float:
    """The most memory that the device process ever held."""
    server = device._server
    if server is None or server._process is None:
        return 0.0
    lines = Path(f"/proc/{server._process.pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
