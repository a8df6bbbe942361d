"""Values of the timing sizes on which every variance needs the mean: a kernel that does not subtract it is wrong."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.variances import ROUNDING, UnstableVariances
from kernel_gym.verifier.expected import any_wrong
from kernel_gym.verifier.reference import evaluate
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity.changed_values import Move
from kernel_gym.verifier.sensitivity.variances import (
    draw_far,
    far_values,
    revealing_moves,
    shown_variances,
    sources,
)
from kernel_gym.verifier.value_sets import References

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")
NORM = "torch.nn.functional.layer_norm({}, (x.shape[1],))"
LAYER = "self.layer = nn.Linear(columns, columns)"


def normalised(x, dimensions):
    """The values less their mean, by the root of a variance that is off."""
    mean = x.mean(dimensions, keepdim=True)
    variance = x.var(dimensions, keepdim=True, correction=0) + ROUNDING * mean.square()
    return (x - mean) / (variance + 1e-5).sqrt()


def with_parameters(norm):
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm.double()


def layer_norm(norm):
    return lambda x: normalised(x, (2, 3)) * norm.weight + norm.bias


def group_norm(norm):
    weight, bias = norm.weight.reshape(6, 1, 1), norm.bias.reshape(6, 1, 1)
    return lambda x: normalised(x.reshape(4, 3, -1), 2).reshape(x.shape) * weight + bias


def instance_norm(norm):
    weight, bias = norm.weight.reshape(6, 1, 1), norm.bias.reshape(6, 1, 1)
    return lambda x: normalised(x, (2, 3)) * weight + bias


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (nn.LayerNorm([5, 7]), layer_norm),
        (nn.GroupNorm(3, 6), group_norm),
        (nn.InstanceNorm2d(6, affine=True), instance_norm),
    ],
    ids=lambda norm: type(norm).__name__,
)
def test_variances_of_norms_are_off(norm, expected):
    torch.manual_seed(0)
    x, norm = torch.randn(4, 6, 5, 7, dtype=torch.float64) + 100, with_parameters(norm)
    with torch.no_grad(), UnstableVariances(None) as mode:
        result = norm(x)
    assert mode.count == 1
    assert torch.allclose(result, expected(norm)(x), atol=1e-9)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: functional.instance_norm(x), lambda x, e: normalised(x, (2, 3))),
        (lambda x: functional.batch_norm(x, None, None, training=True), lambda x, e: normalised(x, (0, 2, 3))),
        (lambda x: x.var(), lambda x, e: x.var() + e * x.mean().square()),
        (lambda x: x.var((1, 2)), lambda x, e: x.var((1, 2)) + e * x.mean((1, 2)).square()),
        (lambda x: x.std(-1, keepdim=True), lambda x, e: (x.var(-1) + e * x.mean(-1).square()).sqrt()[..., None]),
        (lambda x: x.std(-1, True, True), lambda x, e: (x.var(-1) + e * x.mean(-1).square()).sqrt()[..., None]),
        (lambda x: torch.var_mean(x, 1)[0], lambda x, e: x.var(1) + e * x.mean(1).square()),
        (lambda x: torch.std_mean(x, 1)[0], lambda x, e: (x.var(1) + e * x.mean(1).square()).sqrt()),
    ],
)
def test_other_variances_are_off(function, expected):
    torch.manual_seed(0)
    x = torch.randn(4, 6, 5, 7, dtype=torch.float64) + 100
    with torch.no_grad(), UnstableVariances(None) as mode:
        result = function(x)
    assert mode.count == 1
    assert torch.allclose(result, expected(x, ROUNDING), rtol=1e-9)


def test_variances_are_off_one_by_one():
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)) + 1000
    for chosen in ([], [0], [1], None):
        with torch.no_grad(), UnstableVariances(chosen) as mode:
            results = x.var(1), x.std(1)
        same = [torch.equal(*pair) for pair in zip(results, (x.var(1), x.std(1)), strict=True)]
        assert same == [chosen is not None and position not in chosen for position in range(2)]
        assert mode.count == 2


def test_a_batch_norm_with_statistics_has_no_variance():
    with torch.no_grad(), UnstableVariances(None) as mode:
        nn.BatchNorm2d(6).eval()(torch.randn(4, 6, 5, 7))
        torch.randn(3).mean()
    assert mode.count == 0


def shown_by(found):
    return frozenset().union(*(variances for _, _, variances in found))


def by_squares(x):
    """The norm of rows in float32, with the mean of the squares less the square of the mean."""
    mean = x.mean(1, keepdims=True)
    variance = np.square(x).mean(1, keepdims=True) - np.square(mean)
    return (x - mean) / np.sqrt(np.maximum(variance, 0) + np.float32(1e-5))


def by_neighbours(x):
    """The same with half of the mean squared difference of neighbours, which no large mean disturbs."""
    mean = x.mean(1, keepdims=True)
    variance = np.square(x[:, ::2] - x[:, 1::2]).mean(1, keepdims=True) / 2
    return (x - mean) / np.sqrt(variance + np.float32(1e-5))


def by_a_shift(x):
    """The same with the differences from the first number of each row, as an honest kernel may do it."""
    return by_squares(x - x[:, :1])


def test_a_variance_without_the_mean_is_wrong_and_one_by_a_shift_is_right(make_task):
    task = make_task(NORM.format("x"))
    assert shown_by(revealing_moves(task)) == {0}
    (values,) = draw_far(task, SEEDS)
    (x,) = values.values
    assert any_wrong([by_squares(x)], values.expected)
    assert any_wrong([by_neighbours(x)], values.expected)
    assert not any_wrong([by_a_shift(x)], values.expected)
    assert not any_wrong(evaluate(task.instance(task.timing), values.values, widen=False), values.expected)


def test_behind_a_layer_a_bias_is_moved(make_task):
    task = make_task(NORM.format("self.layer(x)"), init=LAYER)
    names = [spec.name for spec in task.instance(task.timing).signature.inputs]
    move, _, _ = revealing_moves(task)[0]
    assert (names[move.position], move.narrow) == ("layer.bias", True)
    (values,) = draw_far(task, SEEDS)
    assert shown_variances(task, values, [0]) == {0}
    moved = dict(zip(names, values.values, strict=True))
    assert moved["layer.bias"].mean() > 32 * moved["layer.weight"].std()
    assert abs(moved["x"].mean()) < 1


def moved_inputs(task):
    """The names of the inputs that are moved at the timing sizes, each in a value set of its own."""
    names = [spec.name for spec in task.instance(task.timing).signature.inputs]
    return [names[far.move.position] for far in far_values(task)]


def of_channels(norm, x):
    """A norm of each image's channels."""
    return norm(x.reshape(-1, x.shape[2])).reshape(x.shape)


def test_a_bias_that_cancels_does_not_stand_for_the_argument(make_task):
    """Instance norms without the bias and without the mean were feasible, up to 6% faster than honest ones."""
    task = make_task(
        "torch.nn.functional.instance_norm(self.layer(x))",
        inputs="torch.randn(4, 8, rows * 8)",
        init="self.layer = nn.Conv1d(8, 4, 1)",
    )
    assert sorted(moved_inputs(task)) == ["layer.bias", "x"]
    fast, honest, whole = [], [], []
    for values in draw_far(task, SEEDS):
        x, weight, bias = values.values
        sums = np.stack([weight[:, :, 0] @ image for image in x])
        fast.append(any_wrong([of_channels(by_squares, sums)], values.expected))
        honest.append(any_wrong([of_channels(by_a_shift, sums)], values.expected))
        whole.append(any_wrong([of_channels(by_a_shift, sums + bias[:, None])], values.expected))
    assert sorted(fast) == [False, True]
    assert not any(honest + whole)


def test_each_of_two_biases_is_moved(make_task):
    """A kernel may subtract one of them exactly."""
    task = make_task(
        NORM.format("torch.nn.functional.silu(self.layer(x)) + self.bias"),
        init=f"{LAYER}; self.bias = nn.Parameter(torch.randn(columns))",
    )
    assert sorted(moved_inputs(task)) == ["bias", "layer.bias"]
    for values in draw_far(task, SEEDS):
        assert shown_variances(task, values, [0]) == {0}


def test_sums_of_products_with_a_large_argument_are_right(make_task):
    """A kernel that adds one product after the other loses more digits than the reference."""
    task = make_task(
        "torch.nn.functional.instance_norm(self.layer(x))",
        inputs="torch.randn(1, 4096, rows)",
        init="self.layer = nn.Conv1d(4096, 4, 1, bias=False)",
    )
    assert moved_inputs(task) == ["x"]
    (values,) = draw_far(task, SEEDS)
    (x, weight), (expected,) = values.values, values.expected
    sums = np.zeros(expected.truth.shape, np.float32)
    for channel in range(x.shape[1]):
        sums += weight[None, :, channel] * x[:, None, channel]
    assert (np.abs(of_channels(by_a_shift, sums) - expected.truth) < expected.tolerance / 2).all()
    assert any_wrong([of_channels(by_squares, sums)], [expected])


@pytest.mark.parametrize(
    ("revealed", "expected"),
    [
        ([], []),
        ([(None, True, 64), (2, True, 64)], [None]),
        ([(None, True, 256), (1, True, 256), (2, True, 64)], [2, None]),
        ([(None, True, 64), (1, True, 64), (2, True, 64), (0, False, 64), (2, False, 256)], [0, 2, None]),
        ([(1, True, 64), (2, True, 256)], [1, 2]),
    ],
)
def test_a_bias_that_exposes_no_more_than_small_weights_is_no_source(revealed, expected):
    found = [(Move(position, narrow), float(least), frozenset({0})) for position, narrow, least in revealed]
    assert sources(found) == {position: {0} for position in expected}


def test_products_that_are_added_to_a_large_bias_are_right(make_task):
    """An honest kernel loses digits there, more than the reference: group norms behind layers were refused for it."""
    task = make_task(
        NORM.format("self.layer(x)").replace("x.shape[1]", "16"), init="self.layer = nn.Linear(columns, 16)"
    )
    (values,) = draw_far(task, SEEDS)
    names = [spec.name for spec in task.instance(task.timing).signature.inputs]
    x, weight, bias = (
        dict(zip(names, values.values, strict=True))[name] for name in ("x", "layer.weight", "layer.bias")
    )
    sums = np.tile(bias, (len(x), 1))
    for column in range(x.shape[1]):
        sums += x[:, column, None] * weight[None, :, column]
    assert not any_wrong([by_a_shift(sums)], values.expected)
    assert any_wrong([by_squares(sums)], values.expected)


def test_an_activation_before_the_norm_is_no_straight_line_there(make_task):
    """A kernel could recognise biases of a thousand, where a swish leaves numbers as they are, and leave it out."""
    silu = NORM.format("torch.nn.functional.silu(self.layer(x))")
    task = make_task(silu, inputs="torch.randn(rows // 8 + 1, 16)", init="self.layer = nn.Linear(16, 16)")
    (values,) = draw_far(task, SEEDS)
    names = [spec.name for spec in task.instance(task.timing).signature.inputs]
    inputs = dict(zip(names, values.values, strict=True))
    sums = inputs["x"].astype(np.float64) @ inputs["layer.weight"].T.astype(np.float64) + inputs["layer.bias"]
    assert any_wrong([by_a_shift(sums)], values.expected)
    assert not any_wrong([by_a_shift(sums / (1 + np.exp(-sums)))], values.expected)


def test_other_kernels_meet_other_values(make_task):
    task = make_task(NORM.format("x"))
    (first,), (again,), (other,) = (
        draw_far(task, Seeds(b"a secret of the tests", "task", kernel)) for kernel in ("a", "a", "b")
    )
    assert np.array_equal(first.values[0], again.values[0])
    assert not np.array_equal(first.values[0], other.values[0])


def test_many_variances_are_tried_together(make_task):
    task = make_task(f"sum({NORM.format('factor * x')} for factor in range(1, 6))")
    assert shown_by(revealing_moves(task)) == {None}
    (values,) = draw_far(task, SEEDS)
    assert shown_variances(task, values, [None]) == {None}


@pytest.mark.parametrize(
    ("expression", "init"),
    [
        ("torch.relu(x)", ""),
        ("torch.softmax(x, dim=1)", ""),
        ("torch.nn.functional.layer_norm(torch.sigmoid(self.layer(x)) + x.sign(), (x.shape[1],)) * 0", LAYER),
    ],
)
def test_no_values_are_drawn_where_none_shows_a_variance(make_task, expression, init):
    task = make_task(expression, init=init) if init else make_task(expression)
    assert revealing_moves(task) == ()
    assert not list(draw_far(task, SEEDS))


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("level2/conv2d_instance_norm_divide", ["x", "conv.bias"]),
        ("level2/conv3d_multiply_instance_norm_clamp_multiply_max", ["x", "conv.bias"]),
        ("level2/conv_transpose3d_layer_norm_gelu_scaling", ["conv.bias"]),
        pytest.param("level2/matmul_swish_sum_group_norm", ["bias", "gemm.bias"], marks=pytest.mark.slow),
    ],
)
def test_each_input_that_makes_means_large_is_moved(name, inputs):
    task = find_task(name)
    assert moved_inputs(task) == inputs
    assert [shown_variances(task, values, [0]) for values in draw_far(task, SEEDS)] == [{0}] * len(inputs)


@pytest.mark.parametrize("text", ["first", pytest.param("second", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        "level2/conv_transpose3d_swish_group_norm_hard_swish",
        pytest.param("level1/group_norm", marks=pytest.mark.slow),
        pytest.param("level1/layer_norm", marks=pytest.mark.slow),
        pytest.param("level2/conv2d_instance_norm_divide", marks=pytest.mark.slow),
        pytest.param("level2/conv3d_group_norm_mean", marks=pytest.mark.slow),
    ],
)
def test_every_variance_shows_in_a_further_run(name, text):
    """Group norms and layer norms without the mean were feasible at the timing sizes, up to 3% faster."""
    task, kernel, references = find_task(name), Kernel(text), References()
    usual = references.draw(task, task.timing, "mixed", "mixed", kernel)
    assert shown_variances(task, usual, [0]) == frozenset()
    further = list(references.draw_further(task, kernel, [usual]))
    assert frozenset().union(*(shown_variances(task, values, [0]) for values in further)) == {0}
    for values in further:
        assert not any_wrong(evaluate(task.instance(task.timing), values.values, widen=False), values.expected)
