"""Measures the speed of the Ascend simulator.

Figures: milliseconds to compile a kernel and to refuse one with an error, timed records per second, seconds of a
computed matrix product, and the peak memory of the device process in MB. `benchmark_large_runs` measures runs at large
sizes, with values, as the latency gate makes them. On a busy machine wall-clock times vary, so most figures have one of
processor time (`cpu`) beside them.
"""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

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
#: Elements of tensors of 256 MB, and rows and columns of the matrices, in large runs.
LARGE, LARGE_SIDE = 1 << 26, 2048
#: Basic blocks that suffice for large runs.
LARGE_BUDGET = 10**10
#: ReLU, element by element.
SCALAR_RELU = """#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void scalar_relu(GM_ADDR x, GM_ADDR y, uint32_t count) {
    GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float *)x);
    to.SetGlobalBuffer((__gm__ float *)y);
    const uint32_t part = count / GetBlockNum(), first = part * GetBlockIdx();
    for (uint32_t i = first; i < first + part; ++i) {
        const float value = from.GetValue(i);
        to.SetValue(i, value > 0.0f ? value : 0.0f);
    }
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    scalar_relu<<<32, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, a->inputs[0].shape[0]);
    return 0;
}
"""


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


def benchmark_large_runs(device: AscendSim, elements: int = LARGE, side: int = LARGE_SIDE) -> dict[str, float]:
    """Measure one run each of an elementwise kernel, a scalar loop and a matrix product, and check their values.

    Args:
        device: The simulator, with a budget of at least `LARGE_BUDGET`.
        elements: Elements of the tensors.
        side: Rows and columns of the matrices.

    Returns:
        Seconds, and seconds of processor time of the device and the kernel, by name.

    Raises:
        KernelGymError: If a kernel of the benchmark does not run or computes other values.
    """
    values = np.random.default_rng(0).standard_normal(elements).astype(np.float32)
    inputs, relu = Inputs(_elementwise(elements), (values,)), np.maximum(values, 0)
    _checked(device.run(device.build(Kernel(RELU.read_text())), Inputs(_elementwise(1024))))  # starts the device
    figures = _large_run("elementwise", device, Kernel(RELU.read_text()), inputs, relu)
    figures |= _large_run("scalar", device, Kernel(SCALAR_RELU), inputs, relu)
    matmul = Kernel((FOLDER / "matmul.cpp").read_text(), trusted=True)
    product = np.full((side, side), 0.25 * side, np.float16)
    return figures | _large_run("matmul", device, matmul, _product(side, cores=24), product)


def _large_run(
    name: str, device: AscendSim, kernel: Kernel, inputs: Inputs, expected: NDArray[np.generic]
) -> dict[str, float]:
    build = device.build(kernel)
    begin, before = time.perf_counter(), _family_seconds(device)
    run = _checked(device.run(build, inputs))
    figures = {f"{name}_s": time.perf_counter() - begin, f"{name}_cpu_s": _family_seconds(device) - before}
    if not np.array_equal(run.outputs[0], expected):
        raise KernelGymError(f"the {name} kernel of the benchmark computes other values")
    return figures


def _elementwise(elements: int) -> Signature:
    return Signature((InputSpec((elements,)),), (TensorSpec((elements,)),))


def _product(side: int = SIDE, cores: int = 1) -> Inputs:
    """Return inputs for a product of half-precision matrices."""
    specs = tuple(InputSpec((side, side), "float16") for _ in range(2))
    rows = 8 if cores == 24 else 1
    signature = Signature(specs, (TensorSpec((side, side), "float16"),), ints=(cores, rows, 128, 256, 64, 8, 8))
    return Inputs(signature, tuple(np.full((side, side), 0.5, np.float16) for _ in range(2)))


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


def _family_seconds(device: AscendSim) -> float:
    """Return the processor time of the device process and of all processes below it, those that ended included."""
    times: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            times[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {int(_proc_file(device, "stat").split()[0])}
    while below := {pid for pid, (parent, _) in times.items() if parent in family} - family:
        family |= below
    return sum(times[pid][1] for pid in family if pid in times) / os.sysconf("SC_CLK_TCK")


def _peak_mb(device: AscendSim) -> float:
    """Return the peak memory of the device process in MB."""
    lines = _proc_file(device, "status").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
