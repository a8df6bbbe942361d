"""Kernels in one file, exported as bundles: the round trip through the bundles' own path."""

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice.author import oracle
from kernel_gym.errors import BundleError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.bundles.export import export
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier


@pytest.mark.slow
@pytest.mark.parametrize("name", ["level1/relu", "level1/softmax", "level1/square_matrix_multiplication"])
def test_an_exported_oracle_is_as_feasible_and_as_fast(name):
    """Run by `make test-slow`."""
    task = suites.find_task(name)
    kernel = oracle(task)
    with Verifier(AscendSim(), cache=False, policy="reference", unsafe=True) as verifier:
        before, after = verifier.verify(kernel, task), verifier.verify(Kernel(export(kernel, task)), task)
    assert after.feasible, after.feedback
    assert after.latency_us == pytest.approx(before.latency_us, rel=1e-3)


def test_a_kernel_that_launches_nothing_is_refused():
    with pytest.raises(BundleError, match="launches nothing"):
        export(
            Kernel('extern "C" int kernel_launch(const KernelArgs *a, void *s) { return 0; }'),
            suites.find_task("level1/relu"),
        )
