"""Problem files in the forms that public collections use: they load, and their plans compute what the modules do."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from plan_values import plan_outputs

from kernel_gym.authors.apprentice import lower
from kernel_gym.authors.apprentice.frontend.plan import Pieces
from kernel_gym.experiments.analysis.file_coverage import cover
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.suites import find_task
from kernel_gym.suites.problem_files import file_order
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier

FORMS = sorted((Path(__file__).parents[2] / "tasks" / "problems" / "forms").glob("*.py"), key=file_order)
#: Those whose numbers or operators are easily wrong at some sizes.
SIZED = (
    "7_BilinearToASize",
    "13_ValueAsANumber",
    "24_BitwiseAnd",
    "27_Remainder",
    "31_PadReflected",
    "33_Patches",
    "53_PatchesOfASetting",
    "35_NoiseAsStart",
    "44_RecurrentWithState",
    "52_RecurrentBothWays",
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


def form(name: str) -> Task:
    return find_task(str(next(path for path in FORMS if path.stem == name)))


@pytest.mark.parametrize(
    "name", ["22_Scatter", "30_PadToAMultiple", *(pytest.param(name, marks=pytest.mark.slow) for name in SIZED)]
)
def test_the_plan_of_a_form_holds_at_other_sizes(name: str) -> None:
    task = form(name)
    plan = lower(task)
    for case in (task.public, *task.hidden):
        instance = task.instance(case)
        tensors = instance.own_inputs(1)
        outputs = plan_outputs(plan, tensors, ints=instance.signature.ints)
        for actual, expected in zip(outputs, instance.evaluate(tensors, torch.float64), strict=True):
            np.testing.assert_allclose(actual, expected.flatten().numpy(), rtol=1e-6, atol=1e-6, err_msg=case.name)


@pytest.mark.slow
def test_steps_of_a_recurrent_layer_are_a_loop_of_the_host() -> None:
    plan = lower(form("44_RecurrentWithState"))
    (loop,) = (stage for stage in plan.stages if isinstance(stage, Pieces))
    assert loop.loops == (("step", "x.shape[0]", "1"),)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FORMS])
def test_a_form_has_an_oracle_that_passes_every_gate(path: Path, verifier: Verifier) -> None:
    """Run by `make test-suites`."""
    if "einops" in path.read_text() and find_spec("einops") is None:
        pytest.skip("needs einops")
    result = cover(path, verifier)
    assert result.feasible, result.reason
