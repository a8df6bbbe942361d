"""Value sets of the timing sizes show every large product: none may be computed in half precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.tasks.rounding import QUARTERS, ProductInHalfPrecision, SummandInHalfPrecision, in_half_precision
from kernel_gym.verifier.expected import (
    any_wrong,
    expected_from,
    kinds,
    wrong_elements,
)
from kernel_gym.verifier.reference import evaluate, rows_are_independent
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity.changed_values import alike, rows_moved
from kernel_gym.verifier.sensitivity.half_precision import seeing
from kernel_gym.verifier.sensitivity.parts import heavy_products, heavy_quarters, large_additions, quarters_seen
from kernel_gym.verifier.value_sets import References, draw_for_quarters, make
from kernel_gym.verifier.values import draw

SEEDS = Seeds(b"a secret of the tests", "task", "kernel")


def test_half_precision_is_seen_behind_a_sum(make_task):
    layer = "self.layer = nn.Linear(columns, 128)"
    task = make_task("torch.sigmoid(self.layer(x)).sum(1, keepdim=True)", init=layer)
    values = make(task, task.timing, "mixed", SEEDS, "timed")
    halves = tuple(a.astype(np.float16).astype(np.float32) if np.abs(a).max() < 6e4 else a for a in values.values)
    instance, (expected,) = task.instance(task.timing), values.expected
    (shadow,), (native,) = evaluate(instance, halves), evaluate(instance, values.values)
    assert wrong_elements(shadow.astype(np.float32), expected).mean() > 0.2
    assert not wrong_elements(native.astype(np.float32), expected).any()


@pytest.mark.parametrize("slot", ["one", *(pytest.param(slot, marks=pytest.mark.slow) for slot in ("two", "three"))])
def test_every_row_counts_in_the_sum_of_exponentials_of_all(slot):
    """The sums of the rows differ by hundreds for most weights: then one row decides the result."""
    task = find_task("level2/gemm_sigmoid_sum_log_sum_exp")
    values = make(task, task.timing, "ordinary", SEEDS, slot)
    instance, (rows, *parameters) = task.instance(task.timing), values.values
    assert values.shown == 1.0
    for first in range(0, len(rows), 256):
        left_out = rows.copy()
        left_out[first : first + 256] = rows[(first + 256) % len(rows)]
        assert wrong_elements(evaluate(instance, (left_out, *parameters))[0], values.expected[0]).any()


def test_products_that_are_added_one_after_another_are_precise_enough():
    task = find_task("level1/matmul_with_large_k_dimension")
    values = make(task, task.timing, "mixed", Seeds(b"large sums", "task", "kernel"), "timed0")
    (expected,), (a, b) = values.expected, values.values
    quiet = np.flatnonzero(np.ravel(expected.base) < 0.25)[:16]
    products = a[quiet][:, :, None] * b[None, :, :16]
    one_by_one = np.cumsum(products, axis=1, dtype=np.float32)[:, -1]
    part = replace(
        expected, truth=expected.truth[quiet, :16], counts=expected.counts[quiet, :16], base=expected.base[quiet],
        noise=expected.noise[quiet], scale=expected.scale[quiet],
    )  # fmt: skip
    assert not wrong_elements(one_by_one, part).any()
    assert values.shown == 1.0


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("attention/mobilevit_attention", 0),
        ("attention/da_module", 2),
        ("level2/gemm_subtract_global_avg_pool_log_sum_exp_gelu_residual_add", 0),
        ("level2/conv2d_tanh_scaling_bias_add_max", ""),
    ],
)
def test_no_product_may_be_in_half_precision(name, slot):
    """Beside a loud shortcut, before damped steps, or in one kind of rows alone."""
    task = find_task(name)
    instance = task.instance(task.timing)
    kinds_of_values = ("mixed",) if rows_are_independent(task) else ("mixed", "ordinary")
    sets = [make(task, task.timing, kind, SEEDS, f"timed{slot}") for kind in kinds_of_values]
    natives = [evaluate(instance, values.values, widen=False)[0] for values in sets]
    for values, native in zip(sets, natives, strict=True):
        assert not wrong_elements(native, values.expected[0]).any()
    for position in heavy_products(task, task.timing):
        wrong = []
        for values in sets:
            with ProductInHalfPrecision(position):
                (shadow,) = evaluate(instance, values.values, widen=False)
            (expected,) = values.expected
            by_row = wrong_elements(shadow, expected).reshape(np.size(expected.scale), -1).any(axis=1)
            wrong.append([by_row[rows].any() for rows in kinds(expected, by_row.size) if rows.sum() > 1])
        assert any(map(any, wrong)) if len(sets) > 1 else all(wrong[0])


def test_a_tolerance_is_as_fine_as_a_product_in_half_precision_asks_for_and_as_noise_allows():
    rng = np.random.default_rng(0)
    product, shortcut = rng.standard_normal((64, 256)), 100 * rng.standard_normal((64, 256))
    truth = product + shortcut
    native, shadow = truth.astype(np.float32), (product.astype(np.float16) + shortcut).astype(np.float32)
    expected = expected_from(truth, native, "float32")
    (finer,) = seeing((expected,), (shadow,), 1024)
    assert not wrong_elements(shadow, expected).any()
    assert finer.base == 5e-6
    assert not wrong_elements(native, finer).any()
    shadow = (4 * (product.astype(np.float16) - product) + truth).astype(np.float32)
    assert not wrong_elements(shadow, expected).any()
    assert wrong_elements(shadow, seeing((expected,), (shadow,), 1024)[0]).mean() > 1e-4
    assert seeing((replace(expected, noise=6e-6),), (shadow,), 1024)[0].base == expected.base
    assert seeing((replace(expected, base=2e-3),), (shadow,), 1024)[0].base == 2e-3  # a type of 16 bits


def test_one_product_at_a_time_is_rounded_and_their_work_is_counted(make_task):
    init = "self.first = nn.Linear(columns, 24); self.second = nn.Conv1d(1, 2, 3)"
    task = make_task("self.second(self.first(x)[:, None])", init=init)
    instance = task.instance(task.public)
    values = make(task, task.public, "normal", SEEDS, "s").values
    results = []
    for position in (None, 0, 1, 2):
        with ProductInHalfPrecision(position) as products:
            results.append(evaluate(instance, values)[0])
        assert products.work == [8 * 40 * 24, 8 * 2 * 22 * 3]
    plain, first, second, neither = results
    assert np.array_equal(plain, neither)
    assert all(1e-5 < np.abs(other - plain).max() < 1e-2 for other in (first, second))
    assert heavy_products(task, task.public) == (0, 1)


@pytest.mark.parametrize("slot", range(3))
def test_a_branch_beside_a_residual_connection_may_not_be_in_half_precision(slot):
    task = find_task("level2/conv2d_group_norm_tanh_hard_swish_residual_add_log_sum_exp")
    instance = task.instance(task.timing)
    values = make(task, task.timing, "mixed", SEEDS, f"timed{slot}")
    (native,) = evaluate(instance, values.values, widen=False)
    assert not wrong_elements(native, values.expected[0]).any()
    assert large_additions(task, task.timing) == (0,)
    for summand in (0, 1):
        with SummandInHalfPrecision(0, summand):
            (shadow,) = evaluate(instance, values.values, widen=False)
        assert wrong_elements(shadow, values.expected[0]).any()


def test_one_summand_is_rounded_around_the_middle_of_its_range():
    left, right = 1000 + torch.linspace(0, 1, 64), torch.linspace(-2, 2, 64)
    with SummandInHalfPrecision() as additions:
        plain = [left + right, left - right, left + 1, left[:8] + right[:8]]
    assert additions.sizes == [64, 64, 8]
    for position, summand in [(0, 0), (0, 1), (1, 1)]:
        with SummandInHalfPrecision(position, summand):
            tried = [left + right, left - right, left + 1, left[:8] + right[:8]]
        changed = [not torch.equal(*pair) for pair in zip(plain, tried, strict=True)]
        assert [i for i, differs in enumerate(changed) if differs] == [position]
        errors = torch.cat([(one - other).abs() for one, other in zip(plain, tried, strict=True)])
        assert 1e-5 < errors.max() < 1e-3  # 1,000 itself would be off by 0.25
    with SummandInHalfPrecision(0, 0):
        changed_in_place = left.clone()
        changed_in_place += right
    assert 1e-5 < (changed_in_place - plain[0]).abs().max() < 1e-3
    mask = torch.tensor([0.0, -torch.inf])
    with SummandInHalfPrecision(0, 1):
        assert torch.equal(torch.ones(2) + mask, torch.tensor([1.0, -torch.inf]))


def test_what_the_reference_rounds_to_16_bits_once_a_kernel_rounds_once():
    rng = np.random.default_rng(0)
    weights, rows = (torch.tensor(rng.standard_normal(shape), dtype=torch.float32) for shape in ((4, 4), (4, 4096)))
    truth = (weights.double() @ rows.double()).numpy()
    once = (weights @ rows).bfloat16().double().numpy()
    cut_off = ((weights @ rows).view(torch.int32) & ~0xFFFF).view(torch.float32).double().numpy()
    narrow = (weights.bfloat16().float() @ rows).bfloat16().double().numpy()
    expected = expected_from(truth, once, "bfloat16", rounds_once=True)
    assert not wrong_elements(once, expected).any()
    assert not wrong_elements(cut_off, expected).any()
    assert wrong_elements(narrow, expected).mean() > 0.02
    # Where operands may be of 16 bits as well, and where the reference rounds more often, a kernel may do so, too.
    for wide in (expected_from(truth, once, "bfloat16"), expected_from(truth, narrow, "bfloat16", rounds_once=True)):
        assert wide.spacing == 0
        assert not wrong_elements(narrow, wide).any()


@pytest.mark.parametrize(
    ("name", "spacing"),
    [("gemm", 2**-7), ("unpermute", 2**-7), ("rms_norm", 2**-7), ("flash_attention_fwd", 0), ("self_attention", 0)],
)
def test_bfloat16_is_for_results_and_for_operands_of_products_only(name, spacing):
    """The weights of a softmax may be rounded, because they are multiplied by the values."""
    task = find_task(f"attention/{name}")
    for case in (task.public, *task.hidden):
        (output,) = make(task, case, "normal", SEEDS, "own").expected
        assert output.spacing == spacing


def test_a_mean_of_squares_may_not_be_that_of_a_part_of_the_row():
    task = find_task("attention/rms_norm")
    values = make(task, task.timing, "ordinary", SEEDS, "timed")
    x, weight = (array.astype(np.float64) for array in values.values)
    for part, wrong in ((4096, False), (3072, True), (2048, True)):
        root = np.sqrt(np.square(x[:, :part]).mean(axis=1, keepdims=True) + 1e-6)
        actual = torch.tensor(x / root * weight).bfloat16().double().numpy()
        assert wrong_elements(actual, values.expected[0]).any() == wrong


def test_products_show_in_values_that_stand_in_for_ordinary_ones():
    """The reference is noisy on the ordinary values that are drawn here."""
    task = find_task("attention/self_attention")
    instance, seeds = task.instance(task.timing), Seeds.of(Kernel("x"), task, b"q")
    values = make(task, task.timing, "ordinary", seeds, "timed")
    assert values.kind == "normal"
    for position in heavy_products(task, task.timing):
        with ProductInHalfPrecision(position):
            (shadow,) = evaluate(instance, values.values, widen=False)
        assert wrong_elements(shadow, values.expected[0]).any()


@pytest.mark.parametrize("kind", ["mixed", "ordinary"])
def test_parameters_in_float32_may_not_be_rounded_to_bfloat16(kind):
    task = find_task("mhc/mhc_post_block")
    values = make(task, task.timing, kind, SEEDS, "timed")
    instance = task.instance(task.timing)
    names = [spec.name for spec in instance.signature.inputs]
    (native,) = evaluate(instance, values.values, widen=False)
    assert not wrong_elements(native, values.expected[0]).any()
    for name in ("post", "res"):
        narrow = list(values.values)
        position = names.index(name)
        narrow[position] = torch.tensor(narrow[position]).bfloat16().float().numpy()
        (shadow,) = evaluate(instance, tuple(narrow), widen=False)
        assert wrong_elements(shadow, values.expected[0]).any()


@pytest.mark.parametrize("slot", range(4))
def test_a_set_in_which_a_product_does_not_show_is_drawn_again(slot):
    """All results of these activations are nearly the same on half of the sets that are drawn first."""
    task = find_task("level2/conv2d_min_tanh_tanh")
    values = make(task, task.timing, "mixed", SEEDS, f"timed{slot}")
    with ProductInHalfPrecision(0):
        (shadow,) = evaluate(task.instance(task.timing), values.values, widen=False)
    assert values.unseen == 0
    assert wrong_elements(shadow, values.expected[0]).any()


@pytest.mark.parametrize("slot", range(3))
def test_few_outputs_show_every_rounding_of_a_product(slot):
    """One rounding of both operands may be off by little in 32 outputs by chance."""
    task = find_task("level2/conv3d_hardswish_relu_softmax_mean")
    sets = [make(task, task.timing, kind, SEEDS, f"timed{slot}") for kind in ("mixed", "ordinary")]
    for change in ({}, {"operands": (0,)}, {"operands": (1,)}, {"scale": 1.37}, {"operands": (0,), "scale": 1.7}):
        wrong = []
        for values in sets:
            with ProductInHalfPrecision(0, **change):
                (shadow,) = evaluate(task.instance(task.timing), values.values, widen=False)
            wrong.append(wrong_elements(shadow, values.expected[0]).any())
        assert any(wrong), change


def test_operands_are_scaled_before_they_are_rounded(make_task):
    task = make_task("self.layer(x)", init="self.layer = nn.Linear(columns, 8, bias=False)")
    instance = task.instance(task.public)
    x, weight = values = make(task, task.public, "normal", SEEDS, "s").values
    scaled = in_half_precision(torch.from_numpy(x * np.float32(1.37))).numpy() / np.float32(1.37)
    with ProductInHalfPrecision(0, operands=(0,), scale=1.37):
        (result,) = evaluate(instance, values)
    assert np.abs(result - scaled @ weight.T).max() < 1e-6 < np.abs(result - x @ weight.T).max()


@pytest.mark.parametrize("seed", range(4))
def test_half_precision_is_seen_where_the_largest_sums_are_saturated(make_task, seed):
    layer = "self.layer = nn.Linear(columns, 128)"
    task = make_task("torch.logsumexp(torch.sigmoid(self.layer(x)).sum(1), 0)", init=layer)
    instance, seen = task.instance(task.timing), False
    for kind in ("mixed", "ordinary"):  # a kernel must be right on both
        values = make(task, task.timing, kind, SEEDS, f"timed{seed}")
        halves = tuple(a.astype(np.float16).astype(np.float32) for a in values.values)
        (shadow,), (native,) = evaluate(instance, halves), evaluate(instance, values.values)
        (expected,) = values.expected
        seen |= bool(wrong_elements(shadow, expected).any())
        assert not wrong_elements(native, expected).any()
    assert seen


@pytest.mark.parametrize("text", ["first", *(pytest.param(text, marks=pytest.mark.slow) for text in ("b", "c", "d"))])
@pytest.mark.parametrize(
    "name",
    [
        "conv_transpose2d_multiply_global_avg_pool_global_avg_pool_mean",
        pytest.param("convtranspose2d_globalavgpool_biasadd_logsumexp_sum_multiply", marks=pytest.mark.slow),
        pytest.param("gemm_sigmoid_sum_log_sum_exp", marks=pytest.mark.slow),
    ],
)
def test_every_quarter_of_a_product_shows_in_some_run(name, text):
    """One result may depend on one row of many, or the errors of all may cancel in it; draws end at some time."""
    task, kernel, references = find_task(f"level2/{name}"), Kernel(text), References()
    sets = [references.draw(task, task.timing, "mixed", "timed", kernel)]
    if not rows_are_independent(task):
        sets.append(references.draw(task, task.timing, "ordinary", "ordinary", kernel))
    further = draw_for_quarters(task, references.seeds(kernel, task), sets)
    instance, hidden = task.instance(task.timing), heavy_quarters(task, task.timing)
    assert len(hidden) == 8
    for values in [*sets, *further]:
        assert not any_wrong(evaluate(instance, values.values, widen=False), values.expected)
        hidden -= quarters_seen(instance, values.values, values.expected, hidden)
    allowed = 1 if name == "gemm_sigmoid_sum_log_sum_exp" else 0
    assert len(hidden) <= allowed


def test_nothing_further_is_drawn_where_outputs_are_many():
    assert draw_for_quarters(find_task("level2/gemm_add_relu"), SEEDS, []) == []


@pytest.mark.parametrize("quarter", QUARTERS)
def test_a_quarter_of_a_product_is_rounded(make_task, quarter):
    task = make_task("self.layer(x)", init="self.layer = nn.Linear(columns, 8, bias=False)")
    instance = task.instance(task.public)
    x, weight = values = make(task, task.public, "normal", SEEDS, "s").values
    with ProductInHalfPrecision(0, quarter=quarter):
        (result,) = evaluate(instance, values)
    off = np.abs(result - x @ weight.T) > 1e-6
    axis, height = (0, len(x)) if quarter.of == "rows" else (1, 8)
    within = slice(height * quarter.number // 4, max(1, height * (quarter.number + 1) // 4))
    inside = np.zeros_like(off)
    inside[(within, slice(None)) if axis == 0 else (slice(None), within)] = True
    assert off[inside].any()
    assert not off[~inside].any()


def test_alike_rows_differ_by_less_than_half_precision_rounds(make_task):
    task = make_task("self.layer(x)", init="self.layer = nn.Linear(columns, 8)")
    signature, rng = task.instance(task.public).signature, np.random.default_rng(0)
    values = draw(signature, "normal", 0, rng)
    changed = alike(values, signature, rng)
    assert np.allclose(changed[0], values[0][:1], rtol=1e-3)
    assert len(np.unique(changed[0], axis=0)) == len(values[0])
    assert all(a is b for a, b in zip(changed[1:], values[1:], strict=True))


def test_rows_are_moved_on_by_a_quarter(make_task):
    task = make_task("self.layer(x)", init="self.layer = nn.Linear(columns, 8)")
    signature = task.instance(task.public).signature
    values = draw(signature, "normal", 0, np.random.default_rng(0))
    moved = values
    for _ in range(4):
        moved = rows_moved(moved, signature)
        assert sorted(map(tuple, moved[0])) == sorted(map(tuple, values[0]))
    assert not np.array_equal(rows_moved(values, signature)[0], values[0])
