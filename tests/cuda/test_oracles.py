"""The oracle kernels of level 1 on the GPU. Run by `make test-cuda`; minutes."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from kernel_gym import suites
from kernel_gym.generators.apprentice import oracle
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.verifier import Verifier

#: So many operators' oracles pass at least.
ENOUGH = 60


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_oracles_of_level_1_are_feasible() -> None:
    outcomes: Counter[str] = Counter()
    with Verifier(Cuda(), cache=False, workers=max(1, (os.cpu_count() or 2) // 2)) as verifier:
        kernels = [(oracle(task, "cuda"), task) for task in suites.suite("level1")]
        waiting = [(task, verifier.submit(kernel, task)) for kernel, task in kernels]
        for task, future in waiting:
            verdict = future.result()
            outcomes[verdict.outcome] += 1
            if not verdict.feasible:
                print(task.id, verdict.outcome, verdict.feedback.splitlines()[0], flush=True)
    print(dict(outcomes))
    assert outcomes["feasible"] >= ENOUGH
