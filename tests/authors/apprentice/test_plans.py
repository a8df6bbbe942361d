"""Plans: how a module's graph is cut into stages, without a verdict."""

from __future__ import annotations

from kernel_gym.authors.apprentice import lower
from kernel_gym.authors.apprentice.frontend.plan import Nest
from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.tasks.task import Task

X = {"x": "torch.randn(rows, columns)"}


def made(forward: str, **sizes: tuple[int, int]) -> Task:
    cases = CaseSizes("rows columns", sizes["public"], (sizes["hidden"],), sizes["timing"])
    return TaskDefinition(1, "made", "math", "A task for a plan.", cases, forward, X).task("test")


def test_a_view_has_the_sizes_that_hold_at_every_case() -> None:
    """48 columns are 3 blocks of 16: the number of blocks varies, although it is the smaller number."""
    task = made(
        "torch.softmax(x.unflatten(1, (-1, 16)), dim=2).flatten(1)", public=(5, 48), hidden=(2, 80), timing=(64, 256)
    )
    (stage,) = lower(task).stages
    assert isinstance(stage, Nest)
    assert dict(stage.fields)["length"] == "16"


def test_an_iteration_of_reductions_takes_one_stage_each() -> None:
    steps = """
for _ in range(10):
    x = x - torch.logsumexp(x, dim=0, keepdim=True)
    x = x - torch.logsumexp(x, dim=1, keepdim=True)
return x"""
    task = made(steps, public=(5, 7), hidden=(2, 9), timing=(64, 32))
    assert len(lower(task).stages) == 20


def test_a_mask_and_the_scale_of_a_head_are_idioms() -> None:
    masked = "x.masked_fill(x > 1, -torch.inf) * (x.shape[1] / 4) ** -0.5"
    (stage,) = lower(made(masked, public=(5, 48), hidden=(2, 80), timing=(64, 256))).stages
    assert isinstance(stage, Nest)
    assert {step.idiom for step in stage.steps if step.idiom} == {"attention.mask", "attention.head-depth"}
