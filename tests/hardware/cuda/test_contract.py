"""The CUDA device keeps the contract of devices."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kernel_gym.hardware.conformance import DeviceContract
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.hardware.device import Device

HEAD = """#include "kernel_gym.h"
__global__ void kernel(const float *x, const float *y, float *z, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    long long n = args->outputs[0].shape[0];
    kernel<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)stream>>>((const float *)args->inputs[0].ptr,
        (const float *)args->inputs[1].ptr, (float *)args->outputs[0].ptr, n);
    return CODE;
}
"""


def source(body: str, code: int = 0) -> str:
    return HEAD.replace("BODY", body).replace("CODE", str(code))


@pytest.mark.cuda
class TestCuda(DeviceContract):
    adding: ClassVar[str] = source("if (i < n) z[i] = x[i] + y[i];")
    uncompilable: ClassVar[str] = source("if (i < n) z[i] = x[i] + no_such_name;")
    refusing: ClassVar[str] = source("if (i < n) z[i] = 0.0f;", code=42)
    idle: ClassVar[str] = source("if (i < 0) z[i] = 0.0f;")
    faulting: ClassVar[str] = source("*(volatile float *)(z + (1ll << 36)) = 1.0f;")
    endless: ClassVar[str] = source("while (*(volatile float *)(x + i % n) < 1e30f) {}")

    def make(self) -> Device:
        return Cuda(timeout=2.0)
