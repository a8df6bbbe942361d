"""The acceptance test for a machine with an NPU: `make test-npu`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend.device import Ascend
from kernel_gym.hardware.ascend_sim import runtime as simulator
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.npu

RELU = (simulator.HERE / "examples" / "relu.asc").read_text()
LINE = "Relu(y, x, count);"
FATES = {
    "good": (LINE, "feasible", ""),
    "wrong": ("Abs(y, x, count);", "incorrect", "mismatch"),
    "uncompilable": ("Maximum(y, x, 0.0f, count);", "uncompilable", ""),
    "hanging": ("while (count > 0) Relu(y, x, count);", "incorrect", "timeout"),
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(Ascend(), cache=False) as verifier:
        yield verifier


@pytest.mark.parametrize("name", FATES)
def test_four_known_kernels_get_their_verdicts(name: str, verifier: Verifier) -> None:
    line, outcome, cause = FATES[name]
    verdict = verifier.verify(Kernel(RELU.replace(LINE, line), trusted=True), suites.find_task("level1/relu"))
    assert (verdict.outcome, getattr(verdict, "cause", "")) == (outcome, cause), verdict.feedback


@pytest.mark.parametrize("name", ["relu", "gelu", "softmax", "layer_norm", "sum_reduction_over_a_dimension", "cumsum"])
def test_an_oracle_passes_every_gate(name: str, verifier: Verifier) -> None:
    task = suites.find_task(f"level1/{name}")
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback
