"""Values of the timing sizes on which every bound is needed: a kernel that leaves one out is wrong there."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.bounds import LeftOutBounds
from kernel_gym.verifier.expected import any_wrong
from kernel_gym.verifier.reference import evaluate
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity.bounds import draw_reaching, needed_bounds, reachable_bounds
from kernel_gym.verifier.value_sets import References

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")
LAYER = "self.layer = nn.Linear(columns, 16)"
LIMIT = torch.tensor(1.0)


@pytest.mark.parametrize(
    ("function", "without"),
    [
        (torch.relu, [lambda x: x]),
        (functional.leaky_relu, [lambda x: x]),
        (nn.Threshold(0.5, 0.0), [lambda x: x]),
        (functional.relu6, [lambda x: x.clamp(max=6), lambda x: x.clamp(min=0)]),
        (functional.hardtanh, [lambda x: x.clamp(max=1), lambda x: x.clamp(min=-1)]),
        (lambda x: x.clamp(-2, 2), [lambda x: x.clamp(max=2), lambda x: x.clamp(min=-2)]),
        (lambda x: x.clamp(min=-2), [lambda x: x]),
        (lambda x: x.clamp(max=2), [lambda x: x]),
        (lambda x: x.clamp(LIMIT, 3 * LIMIT), [lambda x: x.clamp(max=3), lambda x: x.clamp(min=1)]),
        (lambda x: x.clamp_min(LIMIT), [lambda x: x]),
        (lambda x: torch.minimum(x, LIMIT), [lambda x: x]),
        (lambda x: torch.maximum(LIMIT, x), [lambda x: x]),
        (functional.hardswish, [lambda x: x * (x + 3).clamp(max=6) / 6, lambda x: x * (x + 3).clamp(min=0) / 6]),
        (functional.hardsigmoid, [lambda x: (x + 3).clamp(max=6) / 6, lambda x: (x + 3).clamp(min=0) / 6]),
        (lambda x: torch.maximum(x, x.flip(0)), []),
        (lambda x: x.int().clamp(0, 1), []),
        (torch.tanh, []),
    ],
)
def test_bounds_are_left_out_one_by_one(function, without):
    x = torch.linspace(-8, 8, 33)
    with torch.no_grad(), LeftOutBounds() as mode:
        assert torch.equal(function(x.clone()), function(x))
    assert mode.count == 2 * len(without)
    for number, expected in enumerate(without):
        with torch.no_grad(), LeftOutBounds([number]):
            assert torch.allclose(function(x), expected(x))


def test_bounds_are_left_out_in_place_too():
    x = torch.linspace(-8, 8, 33)
    for function in (torch.relu_, lambda y: y.clamp_(min=-1), lambda y: functional.hardtanh(y, -1, 9, inplace=True)):
        y = x.clone()
        with torch.no_grad(), LeftOutBounds([0]):
            assert function(y) is y
        assert torch.equal(y, x)


def test_both_bounds_may_be_left_out_together():
    x = torch.linspace(-8, 8, 33)
    with torch.no_grad(), LeftOutBounds([1, 2]) as mode:
        results = torch.relu(x), x.clamp(-1, 1)
    assert mode.count == 3
    assert torch.equal(results[0], torch.relu(x))
    assert torch.equal(results[1], x)


@pytest.mark.parametrize("text", ["first", pytest.param("second", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        "conv_transpose3d_log_sum_exp_hard_swish_subtract_clamp_max",
        pytest.param("gemm_batch_norm_gelu_group_norm_mean_relu", marks=pytest.mark.slow),
        pytest.param("gemm_log_sum_exp_leaky_relu_leaky_relu_gelu_gelu", marks=pytest.mark.slow),
        pytest.param("conv_transpose3d_multiply_max_global_avg_pool_clamp", marks=pytest.mark.slow),
    ],
)
def test_every_bound_is_needed_in_some_run(name, text):
    """One of these clamps acts only if every bias is large, and no other run has such biases."""
    task, kernel, references = find_task(f"level2/{name}"), Kernel(text), References()
    usual = [references.draw(task, task.timing, kind, kind, kernel) for kind in ("mixed", "ordinary")]
    further = list(draw_reaching(task, references.seeds(kernel, task), usual))
    bounds = reachable_bounds(task)
    assert bounds
    assert frozenset().union(*(needed_bounds(task, values, bounds) for values in [*usual, *further])) == bounds
    for values in further:
        assert not any_wrong(evaluate(task.instance(task.timing), values.values, widen=False), values.expected)


def test_no_values_are_drawn_where_all_bounds_are_needed_on_the_others(make_task):
    task = make_task("torch.relu(self.layer(x))", init=LAYER)
    (values,) = draw_reaching(task, SEEDS, [])
    assert reachable_bounds(task) == needed_bounds(task, values, reachable_bounds(task)) == {frozenset({0})}
    assert not list(draw_reaching(task, SEEDS, [values]))


def test_bounds_of_which_one_makes_the_other_superfluous_are_tried_together(make_task):
    task = make_task("torch.relu(torch.relu(self.layer(x)))", init=LAYER)
    assert reachable_bounds(task) == {frozenset({0, 1})}


@pytest.mark.parametrize("expression", ["torch.tanh(self.layer(x)).clamp(-2, 2)", "torch.tanh(self.layer(x))"])
def test_bounds_that_nothing_reaches_are_not_searched_for(make_task, expression):
    task = make_task(expression, init=LAYER)
    assert reachable_bounds(task) == frozenset()
    assert not list(draw_reaching(task, SEEDS, []))


def test_bounds_are_not_searched_for_without_biases_and_in_large_networks(make_task):
    assert reachable_bounds(make_task("torch.relu(x)")) == frozenset()
    many = "[x := torch.relu(self.layer(x)[:, :1] + x) for _ in range(13)][-1]"
    assert reachable_bounds(make_task(many, init=LAYER)) == frozenset()
