"""The benchmark of verdicts says what a verdict costs by both policies."""

import pytest

from kernel_gym.benchmarks.verifier_speed import benchmark, processor_seconds
from kernel_gym.errors import KernelGymError
from kernel_gym.verdict import GATES

RELU = "a.store(0, np.maximum(a.load(0), 0))\nreturn 0"


def test_seconds_are_measured_for_both_policies_and_every_gate(device, relu, python_kernel):
    figures = benchmark(device, python_kernel(RELU), relu, cold=2, cached=4)
    seconds = {"verdict_first_s", "verdict_cold_p50_s", "verdict_reference_cold_p50_s"}
    assert seconds | {f"verdict_{gate}_ms" for gate in GATES} <= set(figures)
    assert all(figures[name] > 0 for name in seconds)


def test_processor_seconds_are_of_feasible_kernels_alone(device, relu, python_kernel):
    assert processor_seconds(device, python_kernel(RELU), relu, verdicts=1) > 0
    with pytest.raises(KernelGymError, match="needs a feasible kernel"):
        processor_seconds(device, python_kernel("a.store(0, 7)\nreturn 0"), relu, verdicts=1)
