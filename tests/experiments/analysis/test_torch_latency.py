"""The latency of modules under torch: how many calls are timed, in which order, and on which device they run."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernel_gym.experiments.analysis import torch_latency
from kernel_gym.hardware.host.latency_statistics import FEWEST, MOST, PATIENCE, is_enough
from kernel_gym.suites import find_task
from kernel_gym.tasks.instance import ModuleInstance


def test_calls_are_timed_until_their_median_is_known() -> None:
    assert not is_enough([5.0] * (FEWEST - 1), 10 * PATIENCE)
    assert is_enough([5.0] * FEWEST, 0.0)
    noisy = [5.0, 9.0] * (MOST // 2)
    assert not is_enough(noisy[: MOST - 10], 0.0)
    assert is_enough(noisy[: MOST - 10], 2 * PATIENCE)
    assert is_enough(noisy, 0.0)


def test_every_input_set_is_warm_before_it_is_timed() -> None:
    warm, timed = set[int](), list[int]()

    def clock(call: Callable[[], object]) -> float:
        timed.append(int(str(call())))
        assert warm >= set(timed)
        return 3.0

    def calls_of(number: int) -> Callable[[], object]:
        return lambda: warm.add(number) or number

    samples = torch_latency._samples([calls_of(number) for number in range(3)], clock)
    assert samples == [3.0] * FEWEST
    assert set(timed) == {0, 1, 2}


def test_a_bound_call_computes_what_the_reference_does() -> None:
    task = find_task("level2/conv2d_relu_bias_add")
    instance = task.instance(task.public)
    assert isinstance(instance, ModuleInstance)
    (expected,) = instance.evaluate(instance.own_inputs(1))
    actual = instance.bound(instance.own_inputs(1), torch.device("cpu"))()
    assert isinstance(actual, torch.Tensor)
    torch.testing.assert_close(actual, expected)


def test_without_a_gpu_of_torch_there_is_no_latency(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert torch_latency.torch_latencies_us(find_task("level1/relu")) is None
