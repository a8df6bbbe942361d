"""Value sets of the timing sizes show every large softmax: none may have constant weights."""

import numpy as np
import pytest

from kernel_gym.suites import find_task
from kernel_gym.tasks.constant_parts import ConstantWeights
from kernel_gym.verifier.expected import (
    kinds,
    wrong_elements,
)
from kernel_gym.verifier.reference import evaluate, rows_are_independent
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity.parts import large_softmaxes
from kernel_gym.verifier.value_sets import make

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")


def wrong_rows_with_constant_weights(task, values, softmax):
    """Which rows are wrong if one softmax has constant weights, and which are of the most frequent kind."""
    with ConstantWeights({softmax: slice(None)}):
        (shadow,) = evaluate(task.instance(values.case), values.values, widen=False)
    (expected,) = values.expected
    height = np.size(expected.scale)
    return wrong_elements(shadow, expected).reshape(height, -1).any(axis=1), kinds(expected, height)[0]


@pytest.mark.parametrize("slot", [3, *(pytest.param(slot, marks=pytest.mark.slow) for slot in (20, 23))])
def test_no_attention_may_have_constant_weights(slot):
    """Tokens that are nearly equal have nearly the same mean, whatever their weights: other parameters are drawn."""
    task = find_task("level3/convolutional_vision_transformer")
    values = make(task, task.timing, "mixed", SEEDS, f"timed{slot}")
    assert values.hidden == 0
    assert not wrong_elements(evaluate(task.instance(task.timing), values.values)[0], values.expected[0]).any()
    for softmax in large_softmaxes(task, task.timing):
        wrong, usual = wrong_rows_with_constant_weights(task, values, softmax)
        assert wrong[usual].any()


@pytest.mark.parametrize(("kind", "rows"), [("mixed", "x"), ("ordinary", "x - x.mean()")])
def test_a_softmax_that_fades_is_shown_by_other_parameters(make_task, kind, rows):
    init = "self.layer = nn.Linear(columns, 16); self.gain = nn.Parameter(torch.ones(1))"
    task = make_task(f"x[:, :16] + torch.relu(self.gain) * torch.softmax(self.layer({rows}), 1)", init=init)
    assert rows_are_independent(task) is (kind == "mixed")
    for seed in range(4):
        values = make(task, task.timing, kind, SEEDS, f"timed{seed}")
        wrong, usual = wrong_rows_with_constant_weights(task, values, 0)
        assert values.hidden == 0
        assert wrong[usual].mean() > 0.5


def test_a_tolerance_is_as_fine_as_a_small_softmax_asks_for(make_task):
    init = "self.layer = nn.Linear(columns, 16)"
    task = make_task("x[:, :16] + 1e-4 * torch.softmax(0.3 * self.layer(x), 1)", init=init)
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    wrong, usual = wrong_rows_with_constant_weights(task, values, 0)
    assert wrong[usual].any()
    assert np.min(values.expected[0].rtol) < 5e-5
    assert values.hidden == 0


def test_a_softmax_that_no_parameters_show_is_counted(make_task):
    init = "self.layer = nn.Linear(columns, 16)"
    task = make_task("x + torch.softmax(self.layer(x), 1).sum(1, keepdim=True)", init=init)
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    assert values.hidden == 1
    assert not values.fades


def test_weights_of_one_softmax_are_constant_in_some_rows_but_for_masked_scores(make_task):
    init = "self.first = nn.Linear(columns, 24); self.second = nn.Linear(24, 12)"
    masked = "torch.softmax(self.second(y).tril(2).masked_fill(torch.ones(rows, 12).tril(2) == 0, -torch.inf), 1)"
    task = make_task(f"[y := torch.softmax(self.first(x), 1), {masked}][1]", init=init)
    instance = task.instance(task.public)
    values = make(task, task.public, "normal", SEEDS, "s").values
    results = []
    for chosen in ({}, {0: slice(None)}, {1: [1, 4]}, {1: slice(None)}, {2: slice(None)}):
        with ConstantWeights(chosen) as softmaxes:
            results.append(evaluate(instance, values)[0])
        assert softmaxes.shapes == [(8, 24), (8, 12)]
    plain, first, some, second, neither = results
    assert np.array_equal(plain, neither)
    assert not np.allclose(plain, first, rtol=1e-3)
    assert np.array_equal(np.flatnonzero((plain != some).any(axis=1)), [1, 4])
    assert np.array_equal(second[0], [1 / np.float32(3)] * 3 + [0.0] * 9)
    assert np.array_equal(second[[1, 4]], some[[1, 4]])
    assert list(large_softmaxes(task, task.public)) == [0, 1]


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("torch.softmax(x, 1)", 0),  # no products
        ("torch.softmax(self.layer(x), 1)", 1),
        ("torch.softmax(self.layer(x)[:, :1], 1) + x", 0),  # single weights
        ("torch.softmax(self.layer(x), 1) + torch.softmax(x[:, :1], 0)", 1),  # one is small
        ("F.scaled_dot_product_attention(*[self.layer(x).unflatten(1, (2, 1, 8))] * 3)", 0),  # single keys
        ("F.scaled_dot_product_attention(*[self.layer(x).unflatten(1, (1, 4, 4))] * 3)", 1),
        ("torch.softmax(self.layer(x.half().float()), 1).half()", 0),
    ],
)
def test_softmaxes_are_tried_where_they_are_a_large_share_beside_products(make_task, expression, count):
    expression = expression.replace("F.", "nn.functional.")
    task = make_task(expression, init="self.layer = nn.Linear(columns, 16)")
    assert len(large_softmaxes(task, task.public)) == count
