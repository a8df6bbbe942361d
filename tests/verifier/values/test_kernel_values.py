"""Value sets are drawn while the compiler and the device work, and are the same whenever they are drawn."""

from threading import Event

import numpy as np
import pytest

from kernel_gym.verifier import Verifier, kernel_values
from kernel_gym.verifier.kernel_values import KernelValues, schedule
from kernel_gym.verifier.value_sets import References

RELU = "a.store(0, np.maximum(a.load(0), 0))\nreturn 0"
WRONG_AT_LAST = "y = np.maximum(a.load(0), 0)\ny.flat[-1] = 9 if a.large else y.flat[-1]\na.store(0, y)\nreturn 0"


def contents(sets):
    return [(values.case, values.kind, *(array.tobytes() for array in values.values)) for values in sets]


@pytest.mark.parametrize("ahead", [1, 3, 100])
def test_sets_that_are_drawn_ahead_are_those_of_the_schedule(relu, python_kernel, monkeypatch, ahead):
    monkeypatch.setattr(kernel_values, "AHEAD", ahead)
    kernel = python_kernel(RELU)
    with KernelValues(References(), relu, kernel) as sets:
        sets.start()
        assert contents(sets.checks()) == contents(schedule(References(), relu, kernel))


def test_large_sets_wait_one_at_a_time(relu, python_kernel, monkeypatch):
    monkeypatch.setattr(kernel_values, "AHEAD_BYTES", 1)
    with KernelValues(References(), relu, python_kernel(RELU)) as sets:
        sets.start()
        assert len(sets._coming) == 1


@pytest.fixture
def drawn(monkeypatch):
    """Return the names of the sets that were drawn."""
    slots = []
    draw = References.draw

    def recorded(self, task, case, kind, slot, *others):
        slots.append(slot)
        return draw(self, task, case, kind, slot, *others)

    monkeypatch.setattr(References, "draw", recorded)
    return slots


def test_the_first_sets_are_drawn_while_the_compiler_works(relu, python_kernel, make_device, monkeypatch):
    drawn = Event()
    draw = References.draw
    monkeypatch.setattr(References, "draw", lambda *arguments: drawn.set() or draw(*arguments))

    class Compiling(make_device):
        def build(self, kernel, task):
            assert drawn.wait(60), "nothing is drawn during compilation"
            return super().build(kernel, task)

        def fork(self):
            return self

    with Verifier(Compiling(), cache=False) as verifier:
        assert verifier.verify(python_kernel(RELU), relu).feasible


def test_the_timing_set_is_drawn_for_kernels_that_are_right_at_the_public_sizes_alone(
    relu, python_kernel, device, drawn
):
    with Verifier(device, cache=False) as verifier:
        assert verifier.verify(python_kernel("a.store(0, 7)\nreturn 0"), relu).case == "public"
        assert "timed" not in drawn
        assert verifier.verify(python_kernel(RELU), relu).feasible
    assert drawn.count("timed") == 1


def test_nothing_is_drawn_ahead_by_the_policy_reference(relu, python_kernel, device, drawn):
    with Verifier(device, cache=False, policy="reference") as verifier:
        assert verifier.verify(python_kernel(RELU), relu).feasible
    assert drawn == []


@pytest.mark.parametrize(("body", "outcome"), [(RELU, "feasible"), (WRONG_AT_LAST, "incorrect")])
def test_a_run_on_inputs_that_the_reference_is_not_defined_on_does_not_count(
    relu, python_kernel, device, monkeypatch, body, outcome
):
    """The device runs beside the reference; if milder inputs are drawn after all, the kernel runs on those."""
    kernel = python_kernel(body)
    with Verifier(device, cache=False) as verifier:
        before = verifier.verify(kernel, relu)
    announced, ran, draw, run = [], Event(), References.draw, type(device).run

    def severe_first(self, task, case, kind, slot, kernel, meanwhile=None):
        values = draw(self, task, case, kind, slot, kernel)
        if meanwhile is not None:
            announced.append(tuple(np.full_like(array, np.nan) for array in values.values))
            meanwhile(announced[0])
            assert ran.wait(60)
        return values

    def watched(self, build, inputs):
        if announced and inputs.values is announced[0]:
            ran.set()
        return run(self, build, inputs)

    monkeypatch.setattr(References, "draw", severe_first)
    monkeypatch.setattr(type(device), "run", watched)
    with Verifier(device, cache=False) as verifier:
        after = verifier.verify(kernel, relu)
    assert ran.is_set()
    assert (after.outcome, after.feedback, after.latency_us) == (outcome, before.feedback, before.latency_us)
