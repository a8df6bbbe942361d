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
    tasks = suites.suite("level1")
    with Verifier(Cuda(), cache=False, workers=max(1, (os.cpu_count() or 2) // 2)) as verifier:
        verdicts = verifier.verify_all([(oracle(task, "cuda"), task) for task in tasks])
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    print(dict(outcomes))
    for task, verdict in zip(tasks, verdicts, strict=True):
        if not verdict.feasible:
            print(task.id, verdict.outcome, verdict.feedback.splitlines()[0])
    assert outcomes["feasible"] >= ENOUGH
