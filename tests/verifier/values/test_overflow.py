"""Values of the timing sizes on which exponentials overflow: a kernel that leaves out the maximum is wrong there."""

import numpy as np
import pytest
import torch

from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.exponentials import OVERFLOW, SHORTCUTS, SumsOfExponentials
from kernel_gym.verifier.expected import LOOSE, expected_from, wrong_elements
from kernel_gym.verifier.reference import evaluate, rows_are_independent
from kernel_gym.verifier.sensitivity.overflow import draw_overflowing
from kernel_gym.verifier.value_sets import References
from kernel_gym.verifier.values import Rows


def drawn(task, kernel):
    """Return the sets that a kernel meets at the timing sizes, and the one on which exponentials overflow."""
    references = References()
    sets = [references.draw(task, task.timing, "mixed", "timed", kernel)]
    if not rows_are_independent(task):
        sets.append(references.draw(task, task.timing, "ordinary", "ordinary", kernel))
    return sets, next(draw_overflowing(task, references.seeds(kernel, task), sets), None)


EVERY_SHORTCUT = {(0, shortcut) for shortcut in SHORTCUTS}


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
@pytest.mark.slow
def test_every_softmax_needs_its_maximum_in_some_run(name, text):
    task = find_task(f"level2/{name}")
    sets, extra = drawn(task, Kernel(text))
    # Behind a clamp, infinity is right wherever one of 16 biases is small.
    right = {(0, "epsilon")} if "clamp" in name else set()
    assert frozenset().union(*(values.maxima for values in [*sets, extra] if values)) >= EVERY_SHORTCUT - right


def test_a_softmax_without_its_maximum_is_wrong_behind_a_layer_and_an_honest_one_is_right(make_task):
    task = make_task("torch.softmax(self.layer(x) / 8, 0)", init="self.layer = nn.Linear(columns, 16)")
    sets, extra = drawn(task, Kernel("text"))
    x, weight, bias = map(torch.from_numpy, extra.values)
    exponentials = torch.exp(torch.nn.functional.linear(x, weight, bias) / 8)
    lazy = exponentials / exponentials.sum(0, keepdim=True)
    (native,) = evaluate(task.instance(task.timing), extra.values)
    assert not any(values.maxima for values in sets)
    assert extra.maxima == EVERY_SHORTCUT
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
    with torch.no_grad(), SumsOfExponentials() as mode:
        torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, **options)
    assert mode.overflows == overflows


@pytest.mark.parametrize("value", [2 * OVERFLOW, -2 * OVERFLOW])
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax, torch.logsumexp])
def test_arguments_are_looked_at_row_by_row(function, value):
    rows = torch.zeros(3, 4)
    with torch.no_grad(), SumsOfExponentials() as mode:
        function(rows, 1)
        rows[1] = value
        function(rows, 1)
        rows[1, 0] = -torch.inf  # masked
        function(rows, 1)
    assert mode.overflows == [False, True, True]


def attention(x):
    return torch.nn.functional.scaled_dot_product_attention(*[x.reshape(1, 1, 3, 4)] * 3, is_causal=True)


@pytest.mark.parametrize("shortcut", SHORTCUTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, 1),
        lambda x: torch.log_softmax(x, 1),
        lambda x: torch.logsumexp(x, 1),
        lambda x: torch.logsumexp(x, 1, keepdim=True),
        attention,
    ],
)
def test_a_shortcut_changes_sums_that_overflow_alone(function, shortcut):
    x = torch.linspace(-2, 3, 12).reshape(3, 4)
    for scale, same in ((1.0, True), (120.0, False)):
        with torch.no_grad(), SumsOfExponentials(shortcut) as mode:
            shortened = function(x * scale)
        with torch.no_grad(), SumsOfExponentials(shortcut, []):
            plain = function(x * scale)
        assert torch.equal(plain, function(x * scale))
        assert torch.allclose(shortened, plain, rtol=1e-4, atol=1e-6) is same
        assert mode.overflows == [not same]


def test_one_hot_rows_may_not_be_spread_in_severe_rows():
    """They are few of all elements, and four times a tolerance of a quarter would be one."""
    truth = np.zeros((64, 1024))
    truth[:, 5] = 1.0
    severe = np.arange(64) % 32 == 0
    rows = Rows((64,), np.zeros(64, bool), severe)
    expected = expected_from(truth, truth.astype(np.float32), "float32", rows)
    spread = truth.copy()
    spread[severe] = 1 / 1024
    assert wrong_elements(spread, expected).any()


def without_maximum(x, *, behind_the_first):
    """Normalise rows and columns in log space, one of the sums without its maximum."""
    for step, dimension in enumerate((-1, -2, -1, -2)):
        stable = step != 1 if behind_the_first else step < 2
        total = torch.logsumexp(x, dimension, keepdim=True) if stable else x.exp().sum(dimension, keepdim=True).log()
        x = x - total
    return x


def test_a_sum_behind_another_needs_its_maximum_where_a_column_is_low(make_task):
    step = "self.{} = lambda x: x - torch.logsumexp(x, {}, True)"
    steps = "; ".join([step.format("rows", -1), step.format("columns", -2)])
    task = make_task("torch.exp(self.columns(self.rows(self.columns(self.rows(x)))))", init=steps)
    sets, extra = drawn(task, Kernel("text"))
    x = torch.from_numpy(extra.values[0])
    lazy, frugal = (without_maximum(x, behind_the_first=each).exp().numpy() for each in (True, False))
    assert not any((1, shortcut) in values.maxima for values in sets for shortcut in SHORTCUTS)
    assert extra.maxima >= {(1, shortcut) for shortcut in SHORTCUTS}
    assert wrong_elements(lazy, extra.expected[0]).any()
    # Once rows and columns are normalised, no row or column is low any more.
    assert not wrong_elements(frugal, extra.expected[0]).any()


def test_nothing_is_drawn_where_an_exponential_overflows_in_another_run(make_task):
    sets, extra = drawn(make_task("torch.softmax(x, 1)"), Kernel("text"))
    assert sets[0].maxima == EVERY_SHORTCUT
    assert extra is None
