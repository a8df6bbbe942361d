"""Sets of the timing sizes that hide a part of a network are drawn again."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernel_gym.suites import find_task
from kernel_gym.tasks.constant_parts import ConstantActivations
from kernel_gym.verifier import value_sets
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.value_sets import make

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")


@pytest.mark.parametrize(
    "name",
    [
        "attention/cbam_block",
        *(pytest.param(f"mhc/mhc_{n}", marks=pytest.mark.slow) for n in ("module", "block_bottleneck2d")),
    ],
)
def test_no_branch_and_no_iteration_may_be_left_out(name):
    """A ReLU that is zero everywhere hides the branch before it, and iterations that have converged hide the rest."""
    task = find_task(name)
    sets = [make(task, task.timing, "mixed", SEEDS, f"timed{slot}") for slot in range(4)]
    assert [values.hidden for values in sets] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("step", "is_hidden"),
    [
        ("0.9 ** i", True),
        ("0.9 ** i * torch.cos(3.0 * i + x)", False),
        pytest.param("1e-9**i", True, marks=pytest.mark.slow),
    ],
)
def test_a_last_iteration_that_can_be_estimated_is_hidden(make_task, step, is_hidden):
    """The last term of a geometric series follows from the two before it."""
    expression = f"sum((x.sin() * {step} for i in range(self.iterations)), x * 0)"
    task = make_task(expression, init="self.iterations = 9")
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    assert bool(values.hidden) is is_hidden


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("torch.relu(x - 9)", 1),
        ("torch.relu(x)", 0),
        ("torch.sigmoid(x + 99) + torch.tanh(x - 99) + x.clamp(9, 99) + x.clamp(-9, 99)", 3),
        ("torch.relu(x.mean(dim=0, keepdim=True) - 9)", 1),
        ("torch.relu(x.mean(dim=0, keepdim=True) + 9)", 0),
    ],
)
def test_activations_that_are_the_same_in_all_rows_without_stress_count(code, count):
    usual = np.arange(8) % 4 != 0
    x = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, (8, 16)).astype(np.float32))
    if "mean" not in code:
        x[::4] *= 1e3
    with ConstantActivations(torch.from_numpy(usual)) as activations:
        eval(code)
    assert activations.count == count


@pytest.mark.parametrize(
    ("hidden", "rung"), [((0, 0, 0, 0), 0), ((1, 0, 0, 0), 1), ((2, 1, 1, 2), 1), ((1, 1, 1, 1), 0)]
)
def test_a_set_that_hides_a_part_gives_way_to_milder_stress(make_task, monkeypatch, hidden, rung):
    task = make_task("torch.relu(x)")
    drawn = make(task, task.timing, "mixed", SEEDS, "timed")

    def draw_set(task, case, kind, rung, *_, **__):
        return replace(drawn, rung=rung, hidden=hidden[rung])

    monkeypatch.setattr(value_sets, "_draw_set", draw_set)
    monkeypatch.setattr(value_sets, "_more_telling", lambda task, values, *_: values)
    assert make(task, task.timing, "mixed", SEEDS, "timed").rung == rung
