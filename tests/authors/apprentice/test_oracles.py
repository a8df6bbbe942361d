"""Tests of oracle kernels (all idioms right, best schedule): they pass every gate and beat the naive schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from exhibits import EXHIBITS

from kernel_gym import suites
from kernel_gym.authors.apprentice import lower, naive, oracle
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import BEST, NAIVE, Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.experiments.analysis.oracle_margins import Margin, measure, measure_all
from kernel_gym.experiments.runs.reference_latency import floor_us
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.suites.headroom import exceptions, listed
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier

FOUNDATION = (
    "basics/vector_add",
    "level1/relu",
    "level1/gelu",
    "level1/softmax",
    "level1/layer_norm",
    "level1/sum_reduction_over_a_dimension",
)
#: More tasks, of other families.
OTHERS = (
    "level1/standard_matrix_multiplication",
    "level1/conv_standard_1d",
    "level1/cumsum",
    "level1/instance_norm",
    "level1/sigmoid",
    "level1/max_reduction_over_a_dimension",
    "level1/average_pooling_1d",
    "level1/cross_entropy_loss",
    "level1/argmax_over_a_dimension",
    "level2/gemm_bias_add_hardtanh_mish_group_norm",
)
#: Those that `make test` judges, and those that it compares with the naive schedule: a map and rows.
JUDGED = (
    *FOUNDATION[:2],
    "level1/softmax",
    "level1/layer_norm",
    "level1/standard_matrix_multiplication",
    "level1/cumsum",
)
COMPARED = ("level1/relu", "level1/softmax")


def slow(value: object) -> Any:
    """A parameter for `make test-slow`."""
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


@pytest.mark.parametrize("name", [name if name in JUDGED else slow(name) for name in (*FOUNDATION, *OTHERS)])
def test_oracle_passes_every_gate(name: str, verifier: Verifier) -> None:
    task = suites.find_task(name)
    verdict = verifier.verify(oracle(task), task)
    assert verdict.latency_us is not None, verdict.feedback
    assert verdict.latency_us > floor_us(task, verifier.device)


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, id=task.name, marks=pytest.mark.slow if i % 16 else ()) for i, task in enumerate(EXHIBITS)],
)
def test_oracle_of_an_exhibit_passes_every_gate(task: Task, verifier: Verifier) -> None:
    verdict = verifier.verify(oracle(task), task)
    assert verdict.latency_us is not None, verdict.feedback
    assert verdict.latency_us > floor_us(task, verifier.device)


@pytest.mark.parametrize("name", [name if name in COMPARED else slow(name) for name in FOUNDATION])
def test_oracle_beats_the_naive_schedule(name: str, verifier: Verifier) -> None:
    task = suites.find_task(name)
    slow, fast = verifier.verify(naive(task), task), verifier.verify(oracle(task), task)
    assert slow.latency_us is not None, slow.feedback
    assert fast.latency_us is not None, fast.feedback
    assert slow.latency_us > 2 * fast.latency_us


#: The best schedule with one field changed, for every field.
STEPS = tuple(
    replace(BEST, **change)  # type: ignore[arg-type]
    for change in (
        {"cores": 1},
        {"tile": 256},
        {"buffers": 1},
        {"batch": 1},
        {"resident": False},
        {"vector": False},
        {"cube": False},
        {"fused": False},
        {"bursts": False},
        {"immediate": False},
    )
)


@pytest.mark.parametrize("schedule", [pytest.param(s, id=s.comment()[13:]) for s in (NAIVE, *STEPS)])
@pytest.mark.parametrize("name", ["softmax", slow("elu"), slow("columns")])
@pytest.mark.slow
def test_every_schedule_computes_the_same(name: str, schedule: Schedule, verifier: Verifier) -> None:
    task = next(task for task in EXHIBITS if task.name == name)
    verdict = verifier.verify(Kernel(write_kernel(lower(task), schedule, always_right(idioms())), trusted=True), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize("name", ["level1/min_gpt_new_gelu", "level2/gemm_bias_add_hardtanh_mish_group_norm"])
def test_fused_kernels_are_faster(name: str, verifier: Verifier) -> None:
    task = suites.find_task(name)
    unfused = Kernel(write_kernel(lower(task), replace(BEST, fused=False), always_right(idioms())), trusted=True)
    slow, fast = verifier.verify(unfused, task), verifier.verify(oracle(task), task)
    assert slow.latency_us is not None, slow.feedback
    assert fast.latency_us is not None, fast.feedback
    assert slow.latency_us > 1.2 * fast.latency_us
    assert unfused.source.count("<<<") > oracle(task).source.count("<<<")


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(3))
def test_a_mean_is_rounded_once(draw: int, verifier: Verifier) -> None:
    """A softmax over means magnifies the last bit. A different comment gets different test values."""
    task = suites.find_task("level2/matmul_dropout_mean_softmax")
    verdict = verifier.verify(Kernel(f"{oracle(task).source}// {draw}\n", trusted=True), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.parametrize(
    "name", ["level1/relu", slow("level1/cumsum"), slow("level2/gemm_bias_add_hardtanh_mish_group_norm")]
)
def test_tasks_that_miss_a_requirement_are_listed(name: str, verifier: Verifier) -> None:
    margin = measure(suites.find_task(name), verifier)
    assert margin.lacking().keys() == exceptions(name).keys(), margin


def test_a_margin_has_the_oracle_over_the_floor() -> None:
    assert Margin("level1/relu", "level1", "activation", "feasible", fast_us=3.0, floor_us=2.0).over_floor == 1.5
    assert Margin("level1/relu", "level1", "activation", "unsupported").over_floor is None


def test_a_margin_of_a_gpu_has_the_oracle_over_torch_and_needs_no_headroom() -> None:
    margin = Margin("level1/relu", "level1", "activation", "feasible", "", 3.0, 3.0, 2.0, own_us=3.0)
    assert margin.lacking().keys() == {"spread", "launch"}
    on_gpu = replace(margin, device="cuda", torch_us=6.0, torch_float32_us=4.0)
    assert (on_gpu.over_torch, on_gpu.over_torch_float32) == (0.5, 0.75)
    assert on_gpu.lacking() == {}


@pytest.mark.slow
def test_several_processes_measure_and_an_error_is_the_feedback_of_its_task() -> None:
    tasks = [suites.find_task("level1/relu"), replace(suites.find_task("level1/sigmoid"), source="1 / 0")]
    margins = {margin.task: margin for margin in measure_all(tasks, "strict", quick=True, workers=2)}
    assert margins["level1/relu"].oracle == "feasible"
    assert margins["level1/relu"].over_floor > 1
    assert margins["level1/sigmoid"].oracle == "error"
    assert "1 / 0" in margins["level1/sigmoid"].feedback or "TaskError" in margins["level1/sigmoid"].feedback


def test_exceptions_are_of_tasks_that_exist() -> None:
    task_ids = {task.id for name in suites.SUITES for task in suites.load_suite(name)}
    for promise, reasons in listed().items():
        assert promise in ("spread", "launch")
        assert reasons.keys() <= task_ids
        assert all(reasons.values())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", [pytest.param(t, id=t.id) for name in suites.SUITES for t in suites.load_suite(name)])
def test_every_task_has_an_oracle_and_room_below_it(task: Task, verifier: Verifier) -> None:
    """Run by `make test-suites`."""
    margin = measure(task, verifier)
    assert margin.oracle == "feasible", margin.feedback
    assert margin.slow_us is not None, margin
    assert margin.spread >= 1
    assert margin.lacking().keys() == exceptions(task.id).keys(), margin
