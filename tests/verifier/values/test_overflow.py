"""Values of the timing sizes on which exponentials overflow: a kernel that leaves out the maximum is wrong there."""

import numpy as np
import pytest
import torch

from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.exponentials import OVERFLOW, Overflows
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import LOOSE, wrong_elements
from kernel_gym.verifier.reference import evaluate, rows_are_independent, tried
from kernel_gym.verifier.value_sets import References


def drawn(task, kernel):
    """Return the sets that a kernel meets at the timing sizes, and the one on which exponentials overflow."""
    references = References()
    sets = [references.draw(task, task.timing, "mixed", "timed", kernel)]
    if not rows_are_independent(task):
        sets.append(references.draw(task, task.timing, "ordinary", "ordinary", kernel))
    return sets, references.draw_overflowing(task, kernel, sets)


def overflows(task, values):
    return tried(task.instance(values.case), values.values, Trial(exponentials=True))[1].overflows


@pytest.mark.parametrize("text", ["first", "second"])
@pytest.mark.parametrize(
    "name",
    [
        "conv3d_min_softmax",
        "convtranspose3d_mean_add_softmax_tanh_scaling",
        "conv_transpose3d_softmax_sigmoid",
        "conv_transpose3d_log_sum_exp_hard_swish_subtract_clamp_max",
        "conv3d_max_log_sum_exp_relu",
    ],
)
def test_every_softmax_needs_its_maximum_in_some_run(name, text):
    task = find_task(f"level2/{name}")
    sets, extra = drawn(task, Kernel(text))
    assert any(overflows(task, values) == [True] for values in [*sets, extra] if values)


def test_a_softmax_without_its_maximum_is_wrong_behind_a_layer_and_an_honest_one_is_right(make_task):
    task = make_task("torch.softmax(self.layer(x) / 8, 0)", init="self.layer = nn.Linear(columns, 16)")
    sets, extra = drawn(task, Kernel("text"))
    x, weight, bias = map(torch.from_numpy, extra.values)
    exponentials = torch.exp(torch.nn.functional.linear(x, weight, bias) / 8)
    lazy = exponentials / exponentials.sum(0, keepdim=True)
    (native,) = evaluate(task.instance(task.timing), extra.values)
    assert not any(any(overflows(task, values)) for values in sets)
    assert wrong_elements(lazy.numpy(), extra.expected[0]).any()
    assert not wrong_elements(native, extra.expected[0]).any()
    assert np.all(extra.expected[0].base == LOOSE)


@pytest.mark.parametrize(
    "expression", ["torch.relu(x)", "torch.softmax(torch.sigmoid(x), 1)", "torch.softmax(x.clamp(-9, 9), 1)"]
)
def test_nothing_is_drawn_where_no_exponential_can_overflow(make_task, expression):
    _, extra = drawn(make_task(expression), Kernel("text"))
    assert extra is None


@pytest.mark.parametrize(
    ("options", "overflows"),
    [
        ({}, [True]),
        ({"is_causal": True}, [False]),
        ({"attn_mask": torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])}, [False]),
        ({"scale": 1e-3}, [False]),
    ],
)
def test_scores_of_an_attention_are_those_that_its_mask_leaves(options, overflows):
    queries = torch.tensor([[1.0], [0.0]]).expand(1, 1, 2, 1)
    keys = torch.tensor([[0.0], [2 * OVERFLOW]]).expand(1, 1, 2, 1)
    with torch.no_grad(), Overflows() as mode:
        torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, **options)
    assert mode.overflows == overflows


@pytest.mark.parametrize("value", [2 * OVERFLOW, -2 * OVERFLOW])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax, torch.logsumexp])
def test_arguments_are_looked_at_row_by_row(function, value):
    rows = torch.zeros(3, 4)
    with torch.no_grad(), Overflows() as mode:
        function(rows, 1)
        rows[1] = value
        function(rows, 1)
        rows[1, 0] = -torch.inf  # masked
        function(rows, 1)
    assert mode.overflows == [False, True, True]


def test_nothing_is_drawn_where_an_exponential_overflows_in_another_run(make_task):
    sets, extra = drawn(make_task("torch.softmax(x, 1)"), Kernel("text"))
    assert sets[0].overflows == {0}
    assert extra is None
