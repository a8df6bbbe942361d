"""Kernels with mistakes crash nothing on the trusted side: each is refused, faults, ends, or runs into its limits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from tests.support.mutants import corpus, mutants


def judge(count: int, seed: int) -> Counter[str]:
    """What became of each mutant, computed and timed, on one device process that has to live through all of them."""
    signature = Signature((InputSpec((1024,)), InputSpec((1024,))), (TensorSpec((1024,)),), ints=(1, 2, 3, 4))
    values = tuple(np.linspace(0.1, 1, 1024, dtype=np.float32) for _ in range(2))
    outcomes: Counter[str] = Counter()
    with AscendSim(timeout=10, budget=2_000_000) as device:
        first = None
        for text in mutants(count, seed):
            build = device.build(Kernel(text))
            if not build.ok:
                assert build.diagnostics[0].message
                outcomes["uncompilable"] += 1
                continue
            for data in (values, None):
                run = device.run(build, Inputs(signature, data))
                outcomes[run.fault.rule if run.fault else run.status] += 1
            assert device._server is not None
            process = device._server._process
            first = first or process
            assert process is first, "the device process was started again: the one before it died"
        assert first is not None
        assert first.poll() is None
    return outcomes


def test_mutants_are_the_same_for_the_same_seed_and_differ_from_their_originals() -> None:
    some = list(mutants(20, 3))
    assert some == list(mutants(20, 3))
    assert sum(text not in corpus() for text in some) > 15


@pytest.mark.slow
def test_some_mutated_kernels_crash_nothing() -> None:
    outcomes = judge(25, seed=1)
    assert sum(outcomes.values()) >= 25
    assert len(outcomes) > 4, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_mutated_kernels_crash_nothing(seed: int) -> None:
    outcomes = judge(100, seed=100 + seed)
    assert sum(outcomes.values()) >= 100
    assert len(outcomes) > 8, outcomes
