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
#: Files without an oracle that passes, and the words of the line that says why.
LACKING = {
    "22_Scatter": "Wrong result",  # the checks draw places that repeat, and torch does not say which value stays
    "41_TopK": "Wrong result",  # torch does not say in which order it returns the places of equal elements
    "27_Remainder": "Wrong result",  # of large magnitudes
    "31_PadReflected": "GM_OUT_OF_BOUNDS",  # height is width at all cases, so that one is taken for the other
    "33_Patches": "GM_OUT_OF_BOUNDS",
    "13_ValueAsANumber": "needs the values of a tensor at line 11",
    "24_BitwiseAnd": "aten.bitwise_and of whole numbers",
    "35_NoiseAsStart": "a loop over a dimension",
}
#: Those whose numbers follow the sizes in a way of their own.
SIZED = ("7_BilinearToASize", "33_Patches", "44_RecurrentWithState", "52_RecurrentBothWays")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


def form(name: str) -> Task:
    return find_task(str(next(path for path in FORMS if path.stem == name)))


@pytest.mark.parametrize("name", ["30_PadToAMultiple", *(pytest.param(name, marks=pytest.mark.slow) for name in SIZED)])
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
    if path.stem in LACKING:
        assert not result.feasible
        assert LACKING[path.stem] in result.reason
    else:
        assert result.feasible, result.reason
