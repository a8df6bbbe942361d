"""The figures of the simulator's speed are there and make sense; how large they are is for `make bench` to say."""

from __future__ import annotations

import pytest

from kernel_gym.benchmarks.simulator_speed import benchmark, benchmark_large_runs
from kernel_gym.hardware.ascend_sim.device import AscendSim


@pytest.mark.slow
def test_every_figure_is_measured() -> None:
    with AscendSim() as device:
        figures = benchmark(device, repeats=2)
    assert set(figures) == {
        "compile_p50_ms",
        "compile_cpu_ms",
        "refuse_p50_ms",
        "records_per_second",
        "records_per_cpu_second",
        "matmul_1024_half_s",
        "matmul_1024_half_cpu_s",
        "device_process_mb",
    }
    assert all(value > 0 for value in figures.values())
    assert figures["device_process_mb"] < 1024


def test_large_runs_are_measured_and_right() -> None:
    with AscendSim() as device:
        figures = benchmark_large_runs(device, elements=1 << 14, side=512)
    assert set(figures) == {f"{name}_{unit}" for name in ("elementwise", "scalar", "matmul") for unit in ("s", "cpu_s")}
    assert all(figures[f"{name}_s"] > 0 for name in ("elementwise", "scalar", "matmul"))
