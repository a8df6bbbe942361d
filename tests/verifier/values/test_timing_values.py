"""The values of the timing sizes: stressed and severe rows, and outputs that depend on them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernel_gym.kernel import Kernel
from kernel_gym.suites import SUITES, find_task, load_suite
from kernel_gym.tasks.specs import Domain, InputSpec, Signature, TensorSpec
from kernel_gym.verifier import reference
from kernel_gym.verifier.audit import fades
from kernel_gym.verifier.expected import (
    telling,
    wrong_elements,
)
from kernel_gym.verifier.reference import (
    evaluate,
    expect,
    independent_dimensions,
    nudged,
    rows_are_independent,
    without_near_ties,
)
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.value_sets import TELLING, References, make
from kernel_gym.verifier.values import EDGE, POOL, RUNGS, SEVERE, SEVERE_VALUES, SMALLEST, draw_mixed

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")
LARGE = (512, 1024)
SLOW = pytest.mark.slow


def mixed(*inputs: InputSpec, rung: int = 0, seed: int = 0):
    return draw_mixed(Signature(inputs, (TensorSpec((1,)),)), rung, np.random.default_rng(seed))


@pytest.mark.parametrize("shape", [LARGE, (8, 3, 64, 32), (2, 4, 128), (70_000,), (5000, 2), (16, 16384), (9, 1)])
def test_a_quarter_of_the_rows_is_stressed(shape):
    (values,), rows = mixed(InputSpec(shape))
    assert rows.shape == shape[: len(rows.shape)]
    assert rows.stressed.size == np.prod(rows.shape)
    assert 0.05 <= rows.stressed.mean() <= 0.5 or values.size <= 1024
    matrix = values.reshape(rows.stressed.size, -1)
    assert np.abs(matrix[~rows.stressed]).max() < 20
    if rows.stressed.any():
        assert 100 < np.abs(matrix[rows.stressed]).max() < 370 or matrix.shape[1] < 64
    assert np.isfinite(values).all()


def test_other_seeds_give_other_values_and_other_rows():
    (first,), rows = mixed(InputSpec(LARGE))
    (again,), same = mixed(InputSpec(LARGE))
    (other,), elsewhere = mixed(InputSpec(LARGE), seed=1)
    assert np.array_equal(first, again)
    assert np.array_equal(rows.stressed, same.stressed)
    assert (first != other).mean() > 0.99
    assert not np.array_equal(rows.stressed, elsewhere.stressed)


def test_large_arguments_come_from_a_pool_and_no_two_rows_are_equal():
    (values,), _ = mixed(InputSpec((1024, 2048)))
    assert values.size > POOL
    assert len(np.unique(values, axis=0)) == len(values)


@pytest.mark.parametrize("stressed", [True, False])
def test_no_piece_of_a_row_is_found_in_another(stressed):
    (values,), rows = mixed(InputSpec((1024, 2048)))
    chosen = values[rows.stressed == stressed]
    seen = np.unique(chosen.view(np.uint32))
    assert seen.size > 0.5 * chosen.size  # pieces of a pool of 262,144 values would have a tenth


@pytest.mark.parametrize("stressed", [True, False])
@pytest.mark.parametrize(
    "domain", [Domain(), Domain("positive"), Domain("unit"), Domain(factors=2048)], ids=lambda each: each.kind
)
def test_no_piece_is_like_another_one(stressed, domain):
    """Scale, offset and power of a row keep the order of its values, and this order does not come twice."""
    (values,), rows = mixed(InputSpec((1024, 2048), domain=domain))
    windows = np.lib.stride_tricks.sliding_window_view(values[rows.stressed == stressed], 14, axis=1)
    orders = np.argsort(windows[:, ::7].reshape(-1, 14), axis=1) @ 14 ** np.arange(14)
    assert np.unique(orders).size > 0.95 * orders.size


def test_domains_are_kept_and_weights_are_ordinary():
    specs = (
        InputSpec(LARGE, "int64", domain=Domain("index", limit=7)),
        InputSpec(LARGE, domain=Domain("positive")),
        InputSpec(LARGE, domain=Domain("unit")),
        InputSpec(LARGE, origin="state"),
    )
    (indices, positive, unit, weights), rows = mixed(*specs)
    assert set(np.unique(indices)) == set(range(7))
    assert positive.min() > 0
    assert positive[rows.stressed].max() > 100
    assert unit.min() >= 0
    assert unit.max() <= 1
    assert np.abs(weights).max() < 1


def test_noise_is_the_largest_of_several_nudges(make_task, monkeypatch):
    task = make_task("torch.softmax(4 * x, dim=1)")
    values = make(task, task.public, "normal", SEEDS, "nudged")
    several = nudged(task.instance(task.public), values)[0].noise
    monkeypatch.setattr(reference, "NUDGES", 1)
    once = nudged(task.instance(task.public), values)[0].noise
    assert (several >= once).all()
    assert (several > once).any()


def test_near_ties_of_large_scores_are_excused_and_other_errors_are_not(make_task):
    task = make_task("torch.softmax(1e4 * x, dim=1)")
    drawn = make(task, task.timing, "ordinary", SEEDS, "ties")
    x = drawn.values[0].copy()
    x[0, 0] = 200.0
    x[0, 1] = np.nextafter(x[0, 0], np.float32(0))
    x[1, 0] = 200.0
    instance = task.instance(task.timing)
    (expected,) = expect(instance, (x,))
    values = replace(drawn, values=(x,), expected=(replace(expected, noise=0.0),))  # the reference was lucky
    truth = expected.truth
    assert 0.1 < truth[0, 0] < 0.9
    for row, excused in ((0, True), (1, False)):
        actual = truth.astype(np.float32)
        actual[row, 0] *= 0.99
        assert wrong_elements(actual, values.expected[0]).sum() == 1
        (expected,) = without_near_ties(instance, values, (actual,))
        assert wrong_elements(actual, expected).any() != excused


def test_a_softmax_without_its_maximum_is_wrong_on_mixed_values(make_task):
    task = make_task("torch.softmax(x, dim=1)")
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    assert values.kind == "mixed"
    with np.errstate(over="ignore", invalid="ignore"):
        exponentials = np.exp(values.values[0].astype(np.float32))
        lazy = exponentials / exponentials.sum(axis=1, keepdims=True)
    wrong = wrong_elements(lazy, values.expected[0]).any(axis=1)
    assert 0.05 < wrong.mean() <= 0.3


def softmax_without_maximum(x):
    exponentials = torch.exp(x)
    return exponentials / exponentials.sum(-1, keepdim=True)


WITHOUT_MAXIMUM = {
    "level1/scaled_dot_product_attention": lambda q, k, v: softmax_without_maximum(q @ k.mT / q.shape[-1] ** 0.5) @ v,
    "level2/matmul_gelu_softmax": lambda x, weight, bias: softmax_without_maximum(
        torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))
    ),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WITHOUT_MAXIMUM)
def test_behind_a_product_exponentials_overflow_in_every_part_of_the_rows(name, seed):
    task = find_task(name)
    values = make(task, task.timing, "mixed", SEEDS, f"timed{seed}")
    (expected,) = values.expected
    assert values.kind == "mixed"
    assert expected.left_out == 0
    assert expected.counts.all()
    lazy = WITHOUT_MAXIMUM[name](*map(torch.from_numpy, values.values)).numpy()
    wrong = wrong_elements(lazy, expected).any(axis=-1).ravel()
    assert all(part.any() for part in np.array_split(wrong, 8))
    assert not np.isfinite(lazy.reshape(wrong.size, -1)[wrong]).all()
    (native,) = evaluate(task.instance(task.timing), values.values)
    assert not wrong_elements(native.astype(np.float32), expected).any()


@pytest.mark.parametrize("shape", [LARGE, (4, 8, 256, 64), (8, 3, 64, 64), (3, 70_000), (70_000,), (1, 9)])
def test_severe_rows_are_few_and_beside_the_stressed_ones(shape):
    signature = Signature((InputSpec(shape),), (TensorSpec((1,)),))
    for rung in range(RUNGS["mixed"]):
        independent = max(1, len(shape) - 1)
        (values,), rows = draw_mixed(signature, rung, np.random.default_rng(0), independent=independent)
        _, others = draw_mixed(signature, rung, np.random.default_rng(0), independent=independent, severe=False)
        assert (others.severe is None) == (rows.severe is None or rows.severe.size < SEVERE)
        if rows.severe is None:
            assert shape[0] == 1
            continue
        assert not (rows.severe & rows.stressed).any()
        assert not (rows.severe | rows.stressed).all()
        assert rows.severe.sum() <= max(1, rows.severe.size // SEVERE)
        matrix = values.reshape(rows.severe.size, -1)
        assert rows.severe.sum() == 1 or matrix[rows.severe].size <= SEVERE_VALUES
        assert np.abs(matrix[rows.severe]).max() > 1e4
        assert np.abs(matrix[~rows.severe]).max() < 400
        assert rows.stressed.any() == (rung < RUNGS["mixed"] - 1)


def test_a_reference_that_overflows_in_severe_rows_leaves_out_these_alone(make_task):
    task = make_task("torch.exp(x) / torch.exp(x).sum(1, keepdim=True)")
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    (expected,) = values.expected
    assert values.kind == "mixed"
    assert values.rung < RUNGS["mixed"] - 1
    assert 0 < expected.left_out <= expected.truth.size / SEVERE


def test_a_noisy_reference_keeps_its_severe_rows(make_task):
    task = make_task("torch.sin(1e4 * x)")
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    assert (values.kind, values.rung) == ("mixed", RUNGS["mixed"] - 1)
    assert np.abs(values.values[0]).max() > 1e4


@pytest.mark.parametrize(
    ("expression", "dimensions"),
    [
        ("torch.softmax(x, dim=-1)", 3),
        ("x - x.mean(1, keepdim=True)", 1),
        ("x - x.mean(2, keepdim=True)", 2),
        ("x.cumsum(0)", 0),
    ],
)
def test_it_is_tried_which_dimensions_count_independent_rows(make_task, expression, dimensions):
    task = make_task(expression, inputs="torch.randn(rows, 4, 2, columns)")
    assert independent_dimensions(task) == dimensions


def stressed_rows(values):
    return np.abs(values.values[0]).max(axis=1) > 15


@pytest.mark.parametrize(
    ("expression", "lazy"),
    [
        ("(x * x).mean()", lambda x, large: (x[large] ** 2).sum() / x.size),
        ("x / (x * x).mean().sqrt()", lambda x, large: x / np.sqrt((x[large] ** 2).sum() / x.size)),
        ("torch.nn.functional.gelu(x)", lambda x, large: np.where(large[:, None], np.maximum(x, 0), 9.0)),
        ("torch.log_softmax(x, dim=1)", lambda x, large: x - x.max(axis=1, keepdims=True)),
    ],
    ids=["sum", "norm", "gelu", "log_softmax"],
)
def test_work_that_is_left_out_in_or_beside_stressed_rows_is_seen(make_task, expression, lazy):
    task = make_task(expression)
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    large = stressed_rows(values)
    assert values.rung <= 1
    assert 0.1 < large.mean() < 0.4
    result = np.asarray(lazy(values.values[0].astype(np.float64), large), np.float32)
    wrong = wrong_elements(result, values.expected[0])
    assert (wrong[large] if wrong.ndim else wrong).any()


@pytest.mark.parametrize("kind", ["mixed", "ordinary"])
@pytest.mark.parametrize(
    "expression",
    [
        "torch.logsumexp(x, dim=1).mean()",
        "torch.sigmoid(x).mean()",
        "torch.nn.functional.cosine_similarity(x, x + 1).mean()",
    ],
)
def test_a_sample_of_the_rows_does_not_stand_for_all(make_task, expression, kind):
    task = make_task(expression)
    values = make(task, task.timing, kind, SEEDS, "timed")
    x = values.values[0]
    large = stressed_rows(values)
    sample = np.flatnonzero(large | (np.arange(len(x)) % 2 == 0))
    weights = np.where(large, 1.0, (~large).sum() / (~large[sample]).sum())[sample]
    instance = task.instance(task.timing)
    rows = [float(instance.evaluate([torch.from_numpy(x[i : i + 1].copy())])[0]) for i in sample]
    lazy = np.array((np.array(rows) * weights).sum() / len(x), np.float32)
    assert wrong_elements(lazy.reshape(values.expected[0].truth.shape), values.expected[0]).any()


@pytest.mark.parametrize(
    ("expression", "sample"),
    [
        ("(x * x).mean()", lambda x, n: (x[:, :n] ** 2).mean(1)),
        (
            "torch.logsumexp(x, dim=1).mean()",
            lambda x, n: np.logaddexp.reduce(x[:, :n], axis=1) + np.log(x.shape[1] / n),
        ),
    ],
    ids=["squares", "exponentials"],
)
def test_a_part_of_light_rows_does_not_stand_for_the_rest_of_them(make_task, expression, sample):
    task = make_task(expression)
    values = make(task, task.timing, "ordinary", SEEDS, "timed")
    assert values.kind == "ordinary"
    x, (expected,) = values.values[0].astype(np.float64), values.expected
    quarter = x.shape[1] // 4
    light = np.abs(x[:, :quarter]).max(axis=1) < 12
    assert light.mean() > 0.3
    lazy = np.where(light, sample(x, quarter), sample(x, x.shape[1])).mean()
    assert np.abs(lazy - expected.truth) > 100 * expected.tolerance


@pytest.mark.parametrize("argument", [0, 1])
@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.nn.functional.smooth_l1_loss(x, y)", "torch.randn(rows, columns)"),
        ("torch.relu(1 - x * y).mean()", "torch.randn(rows, columns)"),
        ("torch.nn.functional.kl_div(torch.log(x), y, reduction='sum')", "torch.rand(rows, columns)"),
    ],
    ids=["huber", "hinge", "divergence"],
)
def test_half_of_each_row_used_twice_is_seen_in_a_loss(make_task, expression, inputs, argument):
    task = make_task(expression, "x, y", f"{inputs}, {inputs}")
    missed = []
    for seed in range(5):
        values = make(task, task.timing, "ordinary", SEEDS, f"timed{seed}")
        assert values.kind == "ordinary"
        lazy, half = list(values.values), values.values[argument].shape[1] // 2
        lazy[argument] = np.concatenate([values.values[argument][:, :half]] * 2, axis=1)
        (result,), (expected,) = evaluate(task.instance(task.timing), tuple(lazy), torch.float64), values.expected
        missed.append(float(np.abs(result - expected.truth) / expected.tolerance))
    assert np.median(missed) > 75


def test_values_in_the_unit_interval_are_never_at_its_edges_without_stress(make_task):
    few, many = "torch.log(x).mean()", "torch.log(x) / x.sum()"
    for expression, least in ((few, 2.0**SMALLEST), (many, EDGE)):
        task = make_task(expression, inputs="torch.rand(rows, columns)")
        values = make(task, task.timing, "ordinary", SEEDS, "timed")
        assert values.kind == "ordinary"
        assert least <= values.values[0].min() < values.values[0].max() <= 1 - EDGE


@pytest.mark.parametrize("kind", ["mixed", "ordinary"])
def test_a_reference_that_adds_in_a_noisy_order_widens_no_tolerance(make_task, kind):
    task = make_task("x / (x * (1 + 1e-3 * (x.dtype == torch.float32))).norm()")
    values = make(task, task.timing, kind, SEEDS, "timed")
    assert (values.kind, values.rung) == (kind, 0)
    assert np.all(values.expected[0].rtol <= 5.1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_outputs_depend_on_the_arguments_whatever_the_parameters_are(make_task, seed):
    task = make_task("torch.relu(self.norm(x).mean(1, keepdim=True))", init="self.norm = nn.LayerNorm(columns)")
    announced = []
    values = make(task, task.timing, "mixed", SEEDS, f"timed{seed}", announced.append)
    (expected,) = values.expected
    assert announced[-1] is values.values
    assert wrong_elements(np.zeros(expected.truth.shape, np.float32), expected).mean() > TELLING
    assert telling(expected, len(expected.truth)) >= TELLING


def test_parameters_for_which_the_reference_is_noisy_are_drawn_again():
    """Where a hardtanh saturates nearly all of a group, the norm behind it magnifies rounding errors."""
    task, kernel = find_task("level2/gemm_bias_add_hardtanh_mish_group_norm"), Kernel("int x; // s2", "ascendc")
    values = References(secret=b"s2").draw(task, task.timing, "mixed", "timed", kernel)
    assert values.kind == "mixed"
    assert all(output.clear for output in values.expected)


NETWORKS = ("mobilenet_v1", "unet_softmax", "mobilenet_v2", "efficientnet_b0")


@SLOW
@pytest.mark.parametrize("name", NETWORKS)
def test_no_image_has_the_result_of_another_in_networks_that_would_damp_what_differs(name):
    task = find_task(f"level3/{name}")
    for seed in range(2):
        values = make(task, task.timing, "mixed", SEEDS, f"timed{seed}")
        (expected,) = values.expected
        assert not values.fades
        for image in expected.truth:
            same = np.broadcast_to(image, expected.truth.shape).astype(np.float32)
            wrong = wrong_elements(same, expected).reshape(len(same), -1).any(axis=1)
            assert wrong.sum() == len(same) - 1


@pytest.mark.parametrize("confined", [False, True])
def test_statistics_of_batch_norms_are_near_those_of_the_activations(make_task, confined):
    layers = "".join(
        f"self.f{i} = nn.Linear(columns, columns); self.n{i} = nn.BatchNorm1d(columns); " for i in range(4)
    )
    deep = "torch.relu(self.n3(self.f3(self.n2(self.f2(self.n1(self.f1(self.n0(self.f0(x)))))))))"
    task = replace(make_task(deep, init=layers), confined=confined)
    instance = task.instance(task.timing)
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    found = instance.statistics([torch.from_numpy(array) for array in values.values])
    assert {instance.signature.inputs[place].name for place in found} == {
        f"n{i}.running_{part}" for i in range(4) for part in ("mean", "var")
    }
    ordinary = np.abs(values.values[0]).max(axis=1) < 15
    x = values.values[0][ordinary] @ values.values[1].T.astype(np.float64) + values.values[2]
    names = [spec.name for spec in instance.signature.inputs]
    mean, variance = (values.values[names.index(f"n0.running_{part}")] for part in ("mean", "var"))
    assert np.all(np.abs(x.mean(axis=0) - mean) < 2 * x.std(axis=0))
    assert np.all((0.4 * x.var(axis=0) < variance) & (variance < 2.5 * x.var(axis=0)))


@pytest.mark.slow
def test_no_stressed_image_has_the_result_of_another():
    """Otherwise a kernel leaves out images that it recognises by a few elements."""
    task = find_task("level2/conv_transpose2d_min_sum_gelu_add")
    for seed in range(4):
        values = make(task, task.timing, "mixed", SEEDS, f"timed{seed}")
        (expected,) = values.expected
        loud = np.flatnonzero(np.abs(values.values[0]).reshape(len(expected.truth), -1).max(axis=1) > 15)
        assert values.kind == "mixed"
        if loud.size:
            others = expected.truth.astype(np.float32)
            others[loud] = others[np.roll(loud, 1)]
            assert wrong_elements(others, expected)[loud].any()


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softplus", "max_reduction_over_a_dimension"])
def test_rows_that_differ_in_a_few_of_many_elements_keep_their_stress(name):
    task = find_task(f"level1/{name}")
    assert all(make(task, task.timing, "mixed", SEEDS, f"timed{seed}").rung == 0 for seed in range(2))


def test_a_set_in_which_nothing_tells_is_marked(make_task):
    task = make_task("torch.relu(x).sign().clamp(2, 3) + 0 * x")
    assert make(task, task.timing, "mixed", SEEDS, "timed").fades
    assert not make(make_task("torch.relu(x)"), task.timing, "mixed", SEEDS, "timed").fades


@pytest.mark.slow
@pytest.mark.parametrize("task", [pytest.param(t, id=t.id) for name in SUITES for t in load_suite(name)])
def test_outputs_of_every_task_depend_on_the_arguments(task):
    """`make test-suites`."""
    assert not any(fades(task, secret) for secret in (b"one secret", b"another"))


@pytest.mark.parametrize(
    ("expression", "independent"),
    [
        ("torch.relu(x)", True),
        ("torch.softmax(x, dim=1)", True),
        ("x.cumsum(dim=1)", True),
        ("x.mean()", False),
        ("x.sum(dim=0)", False),
        ("x / x.norm()", False),
        ("torch.softmax(x, dim=0)", False),
        ("x.flip(0)", False),
    ],
)
def test_it_is_tried_whether_rows_are_independent(make_task, expression, independent):
    assert rows_are_independent(make_task(expression)) is independent


def test_the_last_inputs_that_are_announced_are_those_of_the_set(make_task):
    for expression, draws in {"torch.relu(x)": 1, "torch.sin(x * x)": 2}.items():
        announced = []
        task = make_task(expression)
        values = make(task, task.timing, "mixed", SEEDS, "timed", announced.append)
        assert announced[-1] is values.values
        assert len(announced) >= draws


@pytest.mark.parametrize("name", ["attention/paged_attention_kv_cache", "attention/rope", "level1/cross_entropy_loss"])
def test_indices_have_both_ends_of_their_range(name):
    task = find_task(name)
    specs = task.instance(task.timing).signature.inputs
    values = mixed(*specs, seed=1)[0]
    ends = [(array.min(), array.max() + 1) for array, spec in zip(values, specs, strict=True) if spec.domain.limit > 1]
    assert ends == [(spec.domain.low, spec.domain.limit) for spec in specs if spec.domain.limit > 1]


def test_targets_of_a_divergence_may_be_zero():
    task = find_task("level1/kl_div_loss")
    predictions, targets = make(task, task.timing, "mixed", SEEDS, "timed").values
    assert predictions.min() > 0
    assert 0 < (targets == 0).sum() < 0.01 * targets.size


@pytest.mark.parametrize("name", ["attention/paged_attention_kv_cache", "attention/multi_head_latent_attention"])
def test_a_few_lengths_ask_for_as_much_work_of_every_kernel(name):
    """Otherwise one kernel has another latency for each comment in it."""
    task = find_task(name)
    specs = task.instance(task.timing).signature.inputs
    place = next(i for i, spec in enumerate(specs) if spec.shape == (4,) and spec.dtype == "int32")
    drawn = [mixed(*specs, seed=seed)[0][place] for seed in range(8)]
    assert len({tuple(lengths) for lengths in drawn}) == 8
    assert max(lengths.sum() for lengths in drawn) < 1.15 * min(lengths.sum() for lengths in drawn)
    assert {(lengths.min(), lengths.max()) for lengths in drawn} == {(0, 511)}, "else the ends need not be computed"
