"""The oracle kernels of level 1 on the GPU. Run by `make test-cuda`; minutes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import naive, oracle
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier

pytestmark = [pytest.mark.cuda, pytest.mark.slow]
#: Where a beginner's kernel is as good as any, the clock decides who seems faster.
AS_GOOD = 1.1


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(Cuda(), cache=False) as judge:
        yield judge


@pytest.mark.parametrize("task", [pytest.param(task, id=task.name) for task in suites.load_suite("level1")])
def test_an_oracle_passes_every_gate_and_no_beginners_kernel_beats_it(task: Task, verifier: Verifier) -> None:
    fast, slow = (verifier.verify(writer(task, "cuda"), task) for writer in (oracle, naive))
    assert fast.latency_us is not None, fast.feedback
    assert slow.latency_us is not None, slow.feedback
    assert fast.latency_us <= AS_GOOD * slow.latency_us
