"""Measures the usual evaluation of a CUDA kernel as a torch extension, for comparison with our verifier.

This is what KernelBench and similar suites do: `load_inline` builds the file against torch's headers, the kernel is
compared with the reference on five random inputs at a tolerance of 1e-2, then timed a hundred times with CUDA events,
with the cache flushed in between. Figures: seconds of each part, and the kernel's latency in microseconds. The kernel's
host code runs in this process, so use it for trusted kernels only.
"""

from __future__ import annotations

import time
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.host.runtime import INCLUDE
from kernel_gym.hardware.host.tensors import workspace_bytes
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import DTYPES, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.values import draw

TRIALS, TIMINGS, WARM_UPS = 5, 100, 3
#: Absolute and relative tolerance.
TOLERANCE = 1e-2
_WRAPPER = """
static KernelTensor described(const torch::Tensor &t, int dtype) {
    KernelTensor tensor{};
    tensor.ptr = t.data_ptr();
    tensor.dtype = dtype;
    tensor.ndim = (int)t.dim();
    for (int i = 0; i < t.dim(); ++i) tensor.shape[i] = t.size(i);
    return tensor;
}

int64_t forward(std::vector<torch::Tensor> inputs, std::vector<torch::Tensor> outputs, std::vector<int64_t> dtypes,
                std::vector<int64_t> ints, std::vector<double> floats, torch::Tensor workspace) {
    std::vector<KernelTensor> tensors;
    for (auto &t : inputs) tensors.push_back(described(t, (int)dtypes[tensors.size()]));
    for (auto &t : outputs) tensors.push_back(described(t, (int)dtypes[tensors.size()]));
    KernelArgs args{1, (int)inputs.size(), (int)outputs.size(), (int)ints.size(), (int)floats.size(), tensors.data(),
                    tensors.data() + inputs.size(), ints.data(), floats.data(), workspace.data_ptr(),
                    (uint64_t)workspace.numel()};
    return kernel_launch(&args, at::cuda::getCurrentCUDAStream().stream());
}
"""
_DECLARATION = (
    "int64_t forward(std::vector<torch::Tensor>, std::vector<torch::Tensor>, std::vector<int64_t>, "
    "std::vector<int64_t>, std::vector<double>, torch::Tensor);"
)


def evaluate(kernel: Kernel, task: Task) -> dict[str, float]:
    """Build, check and time a kernel. Importing torch is not measured.

    Args:
        kernel: A trusted CUDA kernel.
        task: Its task.

    Returns:
        Seconds in all and of each part, `latency_us`, and `passed` (1 or 0).

    Raises:
        DeviceUnavailable: If torch has no GPU.
    """
    if not torch.cuda.is_available():
        raise DeviceUnavailable("torch sees no GPU: the comparison needs a torch that was built with CUDA")
    begin = time.perf_counter()
    with TemporaryDirectory() as folder:
        module = _extension(kernel, folder)
    built = time.perf_counter()
    instance = task.instance(task.timing)
    caller = _Caller(module, instance.signature)
    passed = all(_trial(caller, instance, index) for index in range(TRIALS))
    tried = time.perf_counter()
    latency = _latency(caller)
    end = time.perf_counter()
    return {
        "seconds": end - begin,
        "build_seconds": built - begin,
        "trial_seconds": tried - built,
        "timing_seconds": end - tried,
        "latency_us": latency,
        "passed": float(passed),
    }


def _extension(kernel: Kernel, folder: str) -> Any:
    from torch.utils import cpp_extension

    build: Any = cpp_extension.load_inline
    head = "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n"
    source = kernel.source.replace('#include "kernel_gym.h"', "")
    return build(
        name=f"kernel_{kernel.digest[:16]}",
        cpp_sources=_DECLARATION,
        cuda_sources=head + (INCLUDE / "kernel_gym.h").read_text().replace("#pragma once", "") + source + _WRAPPER,
        functions=["forward"],
        build_directory=folder,
    )


class _Caller:
    """Calls the built kernel on fresh inputs at one signature."""

    def __init__(self, module: Any, signature: Signature) -> None:
        self.module, self.signature = module, signature
        self.dtypes = [DTYPES[spec.dtype][0] for spec in (*signature.inputs, *signature.outputs)]
        self.workspace = torch.empty(workspace_bytes(signature), dtype=torch.uint8, device="cuda")
        self.inputs = self.drawn(0)
        self.outputs = self.empty()

    def drawn(self, seed: int) -> list[torch.Tensor]:
        values = draw(self.signature, "normal", 0, np.random.default_rng(seed))
        return [torch.from_numpy(value).cuda() for value in values]

    def empty(self) -> list[torch.Tensor]:
        return [
            torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="cuda") for spec in self.signature.outputs
        ]

    def __call__(self) -> None:
        ints, floats = list(self.signature.ints), list(self.signature.floats)
        self.module.forward(self.inputs, self.outputs, self.dtypes, ints, floats, self.workspace)


def _trial(caller: _Caller, instance: Any, seed: int) -> bool:
    caller.inputs, caller.outputs = caller.drawn(seed + 1), caller.empty()
    caller()
    with torch.no_grad():
        expected = instance.evaluate(caller.inputs)
    pairs = zip(caller.outputs, expected, strict=True)
    return all(torch.allclose(ours.double(), theirs.double(), rtol=TOLERANCE, atol=TOLERANCE) for ours, theirs in pairs)


def _latency(caller: _Caller) -> float:
    mark: Any = torch.cuda.Event
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(WARM_UPS):
        caller()
    latencies: list[float] = []
    for _ in range(TIMINGS):
        flush.zero_()
        begin, end = mark(enable_timing=True), mark(enable_timing=True)
        begin.record()
        caller()
        end.record()
        torch.cuda.synchronize()
        latencies.append(1000.0 * float(begin.elapsed_time(end)))
    return median(latencies)
