"""The figures of the simulator's speed are there and make sense; how large they are is for `make bench` to say."""

from __future__ import annotations

from kernel_gym.benchmarks.simulator_speed import benchmark
from kernel_gym.hardware.ascend_sim.device import AscendSim


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
