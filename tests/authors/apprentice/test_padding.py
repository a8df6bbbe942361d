"""Images that an expert pads in one pass, and filters that it turns round in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import lower, oracle
from kernel_gym.authors.apprentice.frontend.plan import Nest, Pad, Taps, Turned
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


def small(task: Task) -> Task:
    """Return the task with the sizes of its public case as those of its timing case."""
    timing = replace(task.timing, sizes=task.public.sizes)
    return replace(task, cases=tuple(timing if case.role == "timing" else case for case in task.cases))


def test_a_transposed_convolution_has_a_copy_of_the_image_for_each_shift() -> None:
    plan = lower(suites.find_task("level2/conv_transpose2d_subtract_tanh"), expert=True)
    pad, turned, taps, *_ = plan.stages
    assert isinstance(pad, Pad)
    assert isinstance(turned, Turned)
    assert isinstance(taps, Taps)
    assert (pad.before, pad.shifts) == ((0, 1, 1), (0, 1))
    # The even phase along a row has two places of the window, the odd one has one, each for three places across it.
    assert sorted(turned.groups) == [(1,), (2, 0), (4,), (5, 3), (7,), (8, 6)]
    assert not any(isinstance(stage, Nest) for stage in plan.stages[:3])


@pytest.mark.parametrize(
    "name",
    [
        "level1/conv_transposed_2d_square_input_square_kernel",
        "level1/conv_transposed_3d_square_input_square_kernel_padded_dilated_strided",
        "level1/conv_standard_2d_square_input_asymmetric_kernel_dilated_padded",
    ],
)
@pytest.mark.slow
def test_padded_images_pass_every_gate(name: str, verifier: Verifier) -> None:
    """In two and in three directions, with and without copies, with zeros beyond a copy's own."""
    task = small(suites.find_task(name))
    assert any(isinstance(stage, Pad) for stage in lower(task, expert=True).stages)
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback
