"""The benchmark of verdicts says what a verdict costs by both policies."""

from dataclasses import replace

import pytest

from kernel_gym.benchmarks.verifier_speed import benchmark, processor_seconds
from kernel_gym.errors import KernelGymError
from kernel_gym.verdict import GATES

RELU = "a.store(0, np.maximum(a.load(0), 0))\nreturn 0"


@pytest.fixture
def commented(python_kernel):
    """Return kernels in Python behind which a comment of C++, as the benchmark adds it, is a division."""

    def make(body):
        kernel = python_kernel(body)
        return replace(kernel, source=f"{kernel.source}quotient = lambda: 1 \\")

    return make


def test_seconds_are_measured_for_both_policies_and_every_gate(device, relu, commented):
    figures = benchmark(device, commented(RELU), relu, cold=2, cached=4)
    seconds = {"verdict_first_s", "verdict_cold_p50_s", "verdict_reference_cold_p50_s"}
    assert seconds | {f"verdict_{gate}_ms" for gate in GATES} <= set(figures)
    assert all(figures[name] > 0 for name in seconds)


def test_processor_seconds_are_of_feasible_kernels_alone(device, relu, commented):
    assert processor_seconds(device, commented(RELU), relu, verdicts=1) > 0
    with pytest.raises(KernelGymError, match="needs a feasible kernel"):
        processor_seconds(device, commented("a.store(0, 7)\nreturn 0"), relu, verdicts=1)
