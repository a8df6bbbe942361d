"""How many kernels the driver of a cluster gives away at once; with a stand-in for Ray that never answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernel_gym import suites
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster_dispatch import BUILDS_AHEAD, Dispatcher, Request, RequestQueue

RELU = suites.find_task("level1/relu")
#: An actor that is idle and will not answer.
IDLE = SimpleNamespace(judge=SimpleNamespace(remote=lambda *arguments: object()))


class SilentRay:
    """A cluster of `cores` free cores whose tasks do not end."""

    def __init__(self, cores: int) -> None:
        self.cores, self.started = cores, 0

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self.cores}

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores + 1}

    def remote(self, function: Any) -> SilentRay:
        return self

    def options(self, **options: Any) -> Any:
        class Task:
            remote = staticmethod(lambda *arguments: self._start())

        return Task

    def _start(self) -> tuple[object, object]:
        self.started += 1
        return object(), object()


@pytest.mark.parametrize(("cores", "begun"), [(1, 1), (2, 2), (16, 1 + BUILDS_AHEAD), (0, 0)])
def test_no_more_kernels_are_compiled_than_cores_are_free_and_actors_need(
    cores: int, begun: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path))
    ray, queue = SilentRay(cores), RequestQueue()
    dispatcher = Dispatcher(ray, queue, "ascend-sim", {}, "strict", workers=1, patience=1.0)
    for number in range(20):
        queue.put(Request(Kernel(f"// {number}", trusted=True), RELU))
    dispatcher._context, dispatcher._idle = "a device", [IDLE]
    dispatcher._look()
    dispatcher._start_compiling()
    dispatcher._start_compiling()
    assert (ray.started, len(dispatcher._compiling)) == (begun, begun)
    # Without a free core the idle actor compiles one kernel itself; the others wait in the driver.
    assert len(dispatcher._judging) == (0 if cores else 1)
