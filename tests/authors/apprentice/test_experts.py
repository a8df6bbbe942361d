"""Tests of the expert's kernels, which are the oracles: one launch, convolutions by taps, transposed ones by phases."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, fluent, lower, oracle
from kernel_gym.authors.apprentice.ascendc.expert.columns import suits_columns
from kernel_gym.authors.apprentice.ascendc.expert.rows import LONGEST, kinds_of
from kernel_gym.authors.apprentice.frontend.operators.taps import _against, _along
from kernel_gym.authors.apprentice.frontend.plan import Interleave, Nest, Ref, Taps
from kernel_gym.cli.commands import author
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "hop", "extra"), [(3, 2, 1, 1, 1), (4, 3, 0, 1, 0), (3, 2, 1, 2, 0)]
)
def test_the_phases_of_a_transposed_convolution_hold_every_place_once(
    kernel: int, stride: int, pad: int, hop: int, extra: int
) -> None:
    """One direction, computed by its phases and by the definition: every element adds to the places of its window."""
    x, w = np.random.default_rng(0).normal(size=7), np.random.default_rng(1).normal(size=kernel)
    direction = _against(kernel, stride, pad, hop, extra)
    assert sorted(place for phase in direction.phases for place, _ in phase) == list(range(kernel))
    padded = np.pad(x, (direction.before, direction.after))
    count = len(x) + direction.more
    whole = np.zeros(count * stride)
    for rest, phase in enumerate(direction.phases):
        whole[rest::stride] = sum((w[place] * padded[shift : shift + count] for place, shift in phase), np.zeros(count))
    spread = np.zeros((len(x) - 1) * stride + hop * (kernel - 1) + 1 + extra)
    for i, value in enumerate(x):
        spread[i * stride : i * stride + hop * (kernel - 1) + 1 : hop] += value * w
    expected = spread[pad : len(spread) - pad]
    assert len(x) * stride + direction.wider == len(expected)
    np.testing.assert_allclose(whole[direction.crop :][: len(expected)], expected)


def test_a_direction_of_stride_1_has_one_phase() -> None:
    direction = _along(3, 1, 2)
    assert direction.phases == (((0, 0), (1, 2), (2, 4)),)
    assert (direction.before, direction.more, direction.even) == (1, -2, True)


def test_an_oracle_of_several_stages_is_one_launch_and_the_apprentice_s_is_not() -> None:
    task = suites.find_task("level2/conv2d_relu_bias_add")
    expert, own = oracle(task).source, fluent(task).source
    assert expert.count("<<<") == 1
    assert own.count("<<<") == 3
    # Filters and rows are arranged at the same time; then the cores meet twice.
    assert expert.count("AscendC::SyncAll();") == 2
    assert expert.count("AscendC::PipeBarrier<PIPE_ALL>();") == 1


def test_stages_on_the_cube_unit_share_the_pipe_of_the_next_one() -> None:
    """A pipe costs a microsecond. The stages that arrange filters and rows have one each."""
    assert oracle(suites.find_task("level2/gemm_add_relu")).source.count("AscendC::TPipe pipe;") == 1
    assert oracle(suites.find_task("level2/conv2d_relu_bias_add")).source.count("AscendC::TPipe pipe;") == 3


def test_rows_are_reduced_together_where_every_step_goes_with_that() -> None:
    softmax = lower(suites.find_task("level1/softmax"), expert=True).stages[0]
    assert isinstance(softmax, Nest)
    kinds = kinds_of(softmax)
    assert kinds is not None
    assert {"tile", "row"} <= {*kinds}
    assert kinds_of(replace(softmax, longest=LONGEST + 1)) is None
    assert kinds_of(replace(softmax, kept=())) is None
    # A comparison with one number for each row has no instruction.
    mixed = next(
        n
        for n, step in enumerate(softmax.steps)
        if {kinds[a.step] for a in step.arguments if isinstance(a, Ref)} == {"tile", "row"}
    )
    steps = tuple(replace(step, function="gt") if n == mixed else step for n, step in enumerate(softmax.steps))
    assert kinds_of(replace(softmax, steps=steps)) is None


def test_windows_that_overlap_are_not_columns_to_reduce_together() -> None:
    """The elements of a window are a few elements apart, not a row."""
    windows = lower(suites.find_task("level1/average_pooling_1d"), expert=True).stages[-1]
    rows = lower(suites.find_task("level1/sum_reduction_over_a_dimension"), expert=True).stages[-1]
    assert isinstance(windows, Nest)
    assert isinstance(rows, Nest)
    assert windows.reduced
    assert not suits_columns(windows)
    assert suits_columns(rows)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("level1/softmax", "BlockReduceMax"), ("level1/sum_reduction_over_a_dimension", "EvenColumns")],
)
def test_reductions_of_tiles_pass_every_gate_and_the_apprentice_does_not_write_them(
    name: str, instruction: str, verifier: Verifier
) -> None:
    task = small(suites.find_task(name))
    kernel = oracle(task)
    assert instruction in kernel.source
    assert instruction not in fluent(task).source
    verdict = verifier.verify(kernel, task)
    assert verdict.feasible, verdict.feedback


def test_an_oracle_of_one_vector_stage_is_the_apprentice_s_kernel() -> None:
    task = suites.find_task("level1/relu")
    assert oracle(task) == fluent(task)


def test_no_simulated_author_writes_an_expert_s_kernel() -> None:
    task = suites.find_task("level2/conv2d_relu_bias_add")
    kernel = Apprentice("oracle").write(task, (), None, np.random.default_rng(0))
    assert kernel.source.count("<<<") == fluent(task).source.count("<<<")
    assert not any(isinstance(stage, Taps | Interleave) for stage in lower(task).stages)


def test_no_zeros_of_a_transposed_convolution_are_multiplied() -> None:
    """Every place of the window is in one phase: nine products of three channels in all, instead of nine for each."""
    plan = lower(suites.find_task("level2/conv_transpose2d_subtract_tanh"), expert=True)
    (taps,) = (stage for stage in plan.stages if isinstance(stage, Taps))
    assert len(taps.phases) == 4
    columns = [int(match[1]) if (match := re.match(r"(\d+) \*", phase.k)) else 1 for phase in taps.phases]
    assert sum(n * len(phase.taps) for n, phase in zip(columns, taps.phases, strict=True)) == 9


def test_the_command_prints_an_expert_s_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    author.add_arguments(parser)
    name = "level2/conv2d_relu_bias_add"
    assert author.run(parser.parse_args(["--task", name, "--expert"])) == 0
    assert capsys.readouterr().out == oracle(suites.find_task(name)).source


def small(task: Task) -> Task:
    """Return the task with the sizes of its public case as those of its timing case."""
    timing = replace(task.timing, sizes=task.public.sizes)
    return replace(task, cases=tuple(timing if case.role == "timing" else case for case in task.cases))


def test_an_expert_s_kernel_passes_every_gate(verifier: Verifier) -> None:
    task = small(suites.find_task("level2/conv_transpose2d_subtract_tanh"))
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "level1/conv_standard_1d",
        "level1/conv_standard_2d_square_input_asymmetric_kernel_dilated_padded",
        "level1/conv_transposed_1d_asymmetric_input_square_kernel_padded_strided_dilated",
        "level1/conv_transposed_3d_square_input_square_kernel_padded_dilated_strided",
        "level2/conv2d_relu_bias_add",
        "level2/conv_transpose3d_softmax_sigmoid",
        "level2/gemm_add_relu",
        "level1/softmax",
        "level1/rms_norm",
        "level1/sum_reduction_over_a_dimension",
    ],
)
def test_an_expert_is_faster_than_the_apprentice(name: str, verifier: Verifier) -> None:
    """Run by `make test-slow`."""
    task = suites.find_task(name)
    expert, own = (verifier.verify(kernel, task).latency_us for kernel in (oracle(task), fluent(task)))
    assert expert is not None
    assert own is not None
    assert expert < 0.9 * own
