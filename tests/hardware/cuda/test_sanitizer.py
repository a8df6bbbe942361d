"""Reports of compute-sanitizer become faults in the author's lines."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.hardware.cuda.sanitizer import parse
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 4 bytes
=========     at k(float *)+0x50 in kernel.cu:12
=========     by thread (3,0,0) in block (0,0,0)
=========     Address 0x1000 is out of bounds
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k(float *)+0x70 in kernel.cu:4
=========     and Read access at k(float *)+0x90 in kernel.cu:5 [124 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OUTSIDE = """#include "kernel_gym.h"
__global__ void k(float *y) {
    __shared__ float s[32];
    s[threadIdx.x + y[0] == 0.0f ? 100000 : 90000] = 1.0f;
    y[threadIdx.x] = s[threadIdx.x];
}
extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    k<<<1, 32>>>((float *)args->outputs[0].ptr);
    return 0;
}
"""


def test_the_first_finding_is_the_fault() -> None:
    fault = parse(MEMCHECK)
    assert fault is not None
    assert (fault.rule, fault.line) == ("INVALID_ACCESS", 12)
    assert "Invalid __shared__ write" in fault.message
    assert "thread (3,0,0)" in fault.message


def test_races_are_named() -> None:
    fault = parse(RACECHECK)
    assert fault is not None
    assert fault.rule == "RACE"


def test_a_clean_log_is_no_fault() -> None:
    assert parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") is None


@pytest.mark.cuda
def test_the_memory_checker_names_the_line() -> None:
    with Cuda(timeout=60.0, sanitizer="memcheck") as device:
        if reason := device.unavailable_reason():
            pytest.skip(reason)
        build = device.build(Kernel(OUTSIDE, "cuda"))
        signature = Signature((InputSpec((32,)),), (TensorSpec((32,)),))
        run = device.run(build, Inputs(signature, (np.ones(32, np.float32),)))
    assert run.status == "fault"
    assert run.fault is not None
    assert run.fault.line == 4
