"""Authors export while verifiers build: both trace with torch, in threads of one process, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from kernel_gym import suites
from kernel_gym.tasks.exported_graph import TRACING
from kernel_gym.tasks.instance import ModuleInstance

TASK = suites.find_task("level1/relu")
INSTANCE = TASK.instance(TASK.public)


@pytest.mark.parametrize(
    "work",
    [lambda: ModuleInstance(TASK.source, TASK.digest, TASK.timing, ()), lambda: INSTANCE.export()],
    ids=["building", "exporting"],
)
def test_tracing_waits_for_its_turn(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        with TRACING:
            future = pool.submit(work)
            assert not wait([future], timeout=0.3).done
        assert future.result(timeout=120) is not None


def test_a_module_is_built_while_another_thread_waits_for_its_turn() -> None:
    first, second = (ModuleInstance(TASK.source, TASK.digest, TASK.public, ()) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        with TRACING:
            waiting = pool.submit(first.model)
            assert not wait([waiting], timeout=0.3).done
            assert second.model() is not None  # the other thread holds no lock that this one needs
        assert waiting.result(timeout=120) is not None
