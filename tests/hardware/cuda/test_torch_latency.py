"""Modules under torch on the GPU, timed as kernels are. Run by `make test-cuda`."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.experiments.analysis.oracle_margins import measure
from kernel_gym.experiments.analysis.torch_latency import torch_latencies_us
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.suites import find_task
from kernel_gym.verifier import Verifier

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch was not built with CUDA"),
]


def test_a_margin_has_the_module_under_torch_beside_the_oracle() -> None:
    with Verifier(Cuda(), cache=False) as verifier:
        margin = measure(find_task("level1/relu"), verifier, quick=True)
    assert margin.device == "cuda"
    assert margin.launch_us is None
    assert 0.5 < margin.over_torch < 2  # both are limited by the memory
    assert margin.over_torch_float32 is not None


def test_a_longer_chain_takes_longer_and_the_pace_of_the_host_does_not_count() -> None:
    relu, norm = (torch_latencies_us(find_task(f"level1/{name}")) for name in ("relu", "rms_norm"))
    assert relu is not None
    assert norm is not None
    assert 5 < relu[0] < norm[0]  # 32 MB at 4.8 TB/s take 7 us; a launch from Python takes as long
    assert relu[0] == pytest.approx(relu[1], rel=0.2)
