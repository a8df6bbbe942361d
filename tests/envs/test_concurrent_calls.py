"""Several questions at once."""

import threading

import pytest

from kernel_gym.envs.concurrent_calls import concurrent_calls
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError


@pytest.mark.parametrize("at_once", [1, 2, 7, 50])
def test_replies_are_in_the_order_of_the_requests(at_once: int) -> None:
    assert concurrent_calls(lambda question: question * 2, range(20), at_once) == [2 * i for i in range(20)]
    assert concurrent_calls(str, [], at_once) == []


def test_requests_are_sent_concurrently() -> None:
    together = threading.Barrier(4, timeout=60)
    assert len(concurrent_calls(lambda _: together.wait(), range(8), 4)) == 8


def test_an_error_waits_for_running_requests_and_stops_the_others() -> None:
    begun, answered, failed = list[int](), list[int](), threading.Event()

    def ask(question: int) -> None:
        begun.append(question)
        if question == 0:
            failed.set()
            raise ConfigError("no")
        failed.wait()
        answered.append(question)

    with pytest.raises(ConfigError, match="no"):
        concurrent_calls(ask, range(1000), 2)
    assert sorted(begun) == sorted([0, *answered])
    assert len(begun) < 1000


def test_ctrl_c_does_not_wait_for_running_requests() -> None:
    released = threading.Event()

    def ask(question: int) -> None:
        if question == 0:
            raise KeyboardInterrupt
        released.wait()

    with pytest.raises(KeyboardInterrupt):
        concurrent_calls(ask, range(4), 4)
    assert not released.is_set()
    released.set()


def test_a_negative_number_of_writers_is_refused() -> None:
    with pytest.raises(ConfigError, match="writers"):
        Options(writers=-1)
