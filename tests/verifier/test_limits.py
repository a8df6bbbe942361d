"""Limits of instructions: they grow with the work of the reference, and a kernel that reaches them is called slow."""

from dataclasses import replace

import numpy as np
import pytest

from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Build, Fault, Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier import correctness, latency_simulated
from kernel_gym.verifier.correctness import MOST_LIMITS, VECTOR_WORK, WORK_PER_LIMIT, Checked, Patience, check
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.latency_simulated import Timed
from kernel_gym.verifier.value_sets import References

PRODUCT = "x = a.load(0)\na.store(0, x @ x.T)\nreturn 0"


@pytest.fixture
def slow_device(make_device):
    """Return a device on which a kernel needs as many limits as the product has multiply-adds, in millions."""

    class Slow(type(make_device())):
        def __init__(self) -> None:
            super().__init__()
            self.efforts: list[int] = []

        def run(self, build: Build, inputs: Inputs) -> Run:
            rows, columns = inputs.signature.inputs[0].shape
            self.efforts.append(inputs.effort)
            if inputs.effort * WORK_PER_LIMIT < rows * rows * columns:
                return Run("timeout", fault=Fault("BUDGET", "the kernel ran past the limit of 12 instructions"))
            return replace(super().run(build, inputs), spent=1000)

    return Slow()


def product(make_task, rows: int) -> Task:
    task = make_task("x @ x.T")
    sizes = (("rows", rows), ("columns", 256))
    return replace(task, cases=(Case("public", "public", sizes), Case("timing", "timing", sizes)))


def test_a_task_with_much_work_gets_a_higher_limit(slow_device, make_task, python_kernel):
    task, kernel = product(make_task, 160), python_kernel(PRODUCT)
    assert 160 * 160 * 256 <= task.instance(task.public).work() < 2 * 160 * 160 * 256
    assert isinstance(check(slow_device, Build(kernel), task, KernelValues(References(), task, kernel)), Checked)
    assert set(slow_device.efforts) == {1, 7}
    assert slow_device.efforts.count(1) == 1  # the other runs have the higher limit at once


def test_a_kernel_that_needs_a_higher_limit_has_it_at_the_timing_sizes(slow_device, make_task, python_kernel):
    task, kernel = product(make_task, 160), python_kernel(PRODUCT)
    sets = KernelValues(References(), task, kernel)
    checked = check(slow_device, Build(kernel), task, sets)
    slow_device.efforts.clear()
    assert isinstance(latency_simulated.measure(slow_device, Build(kernel), task, checked, sets), Timed)
    assert set(slow_device.efforts) == {7}


def test_a_latency_that_is_extrapolated_grows_with_the_operations(make_device, make_task, python_kernel):
    class Stopping(type(make_device())):
        def run(self, build: Build, inputs: Inputs) -> Run:
            run = replace(super().run(build, inputs), spent=1000, latency_us=10.0)
            if inputs.signature.inputs[0].shape[0] < 64:
                return run
            return replace(run, status="timeout", fault=Fault("BUDGET", "the kernel ran past the limit"))

    public, timing = ((("rows", rows), ("columns", 256)) for rows in (8, 64))
    task, kernel = make_task("x @ x.T"), python_kernel(PRODUCT)
    task = replace(task, cases=(Case("public", "public", public), Case("timing", "timing", timing)))
    sets = KernelValues(References(), task, kernel)
    timed = latency_simulated.measure(Stopping(), Build(kernel), task, Checked(), sets)
    assert isinstance(timed, Timed), timed
    assert timed.latency_us >= 0.9 * 4 * 10  # half of the rows have a quarter of the operations, and half of the bytes


def test_there_is_a_highest_limit_and_a_clear_line(slow_device, make_task, python_kernel):
    task, kernel = product(make_task, 320), python_kernel(PRODUCT)
    verdict = check(slow_device, Build(kernel), task, KernelValues(References(), task, kernel))
    assert isinstance(verdict, Incorrect)
    assert (verdict.cause, verdict.rule) == ("timeout", "BUDGET")
    assert "within the limit of instructions: it is too slow, or a loop never ends" in verdict.feedback
    assert max(slow_device.efforts) == MOST_LIMITS


def test_a_small_task_is_not_run_again(slow_device, relu, python_kernel):
    run = Run("timeout", fault=Fault("BUDGET", "too many"))
    slow_device.run = lambda build, inputs: slow_device.efforts.append(inputs.effort) or run
    instance = relu.instance(relu.public)
    assert Patience().run(slow_device, Build(python_kernel("return 0")), instance, Inputs(instance.signature)) is run
    assert slow_device.efforts == [1]


def test_all_checks_together_have_a_limit(slow_device, relu, python_kernel, monkeypatch):
    monkeypatch.setattr(correctness, "MOST_EFFORT", 2500)
    kernel = python_kernel("a.store(0, np.maximum(a.load(0), 0))\nreturn 0")
    verdict = check(slow_device, Build(kernel), relu, KernelValues(References(), relu, kernel))
    assert isinstance(verdict, Incorrect)
    assert (verdict.cause, verdict.rule) == ("timeout", "BUDGET")
    assert "did not end its checks" in verdict.feedback


def test_the_simulator_multiplies_its_limit():
    task = find_task("level1/relu")
    inputs = Inputs(task.instance(task.public).signature, effort=3)
    with AscendSim(budget=1000) as device:
        request = device._request(Build(Kernel("")), inputs)
    assert "budget 3000\neffort 3\n" in request


@pytest.mark.parametrize(("work", "efforts"), [(VECTOR_WORK, [1]), (VECTOR_WORK + 1, [1, MOST_LIMITS])])
def test_a_task_with_very_much_work_gets_a_higher_limit_of_elements(relu, python_kernel, monkeypatch, work, efforts):
    seen: list[int] = []

    class Stopping:
        def run(self, build: Build, inputs: Inputs) -> Run:
            seen.append(inputs.effort)
            return Run("fault", fault=Fault("WORK_LIMIT", "this run computes more than 12 elements"))

    instance = relu.instance(relu.public)
    monkeypatch.setattr(type(instance), "work", lambda self: work)
    Patience().run(Stopping(), Build(python_kernel("return 0")), instance, Inputs(instance.signature))
    assert seen == efforts


def test_the_limit_of_elements_grows_with_the_effort():
    """What a run has spent is a share of its limit of elements, times a budget that grows, too."""
    task = find_task("level1/square_matrix_multiplication")
    instance = task.instance(replace(task.timing, sizes=(("n", 256),)))
    values = tuple(np.ones(spec.shape, np.float32) for spec in instance.signature.inputs)
    with AscendSim() as device:
        build = device.build(oracle(task))
        runs = [device.run(build, Inputs(instance.signature, values, effort=effort)) for effort in (1, 4)]
    assert [run.status for run in runs] == ["ok", "ok"]
    assert runs[0].spent == runs[1].spent >= 256**3 // 4 // 269


@pytest.mark.parametrize("name", ["attention/simam", "level1/relu", "level2/matmul_subtract_multiply_relu"])
def test_the_sizes_of_an_extrapolation_are_nowhere_larger_than_the_timing_sizes(name):
    """Otherwise a kernel could be faster there, for each of its bytes, than at the timing sizes."""
    task = find_task(name)
    timing = dict(task.timing.sizes)
    cases = list(latency_simulated._cases_below_timing(task))
    assert cases
    for case in cases:
        assert all(size <= timing[dimension] for dimension, size in case.sizes)
        assert case.sizes != task.timing.sizes
