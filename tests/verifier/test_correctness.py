"""The correctness gate: value sets, tolerances, comparison and feedback."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.hardware.device import Run, empty_outputs, numpy_dtype
from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task, load_suite
from kernel_gym.tasks.specs import Case, TensorSpec
from kernel_gym.verdict import from_json
from kernel_gym.verifier import correctness
from kernel_gym.verifier.correctness import POISON, Checked, check, compare
from kernel_gym.verifier.expected import Expected, wrong_elements
from kernel_gym.verifier.kernel_values import KernelValues, schedule
from kernel_gym.verifier.reference import ValueSet, evaluate, expect, rounded_otherwise
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.value_sets import References, make
from kernel_gym.verifier.values import RUNGS, draw


def judge(device, task, kernel, references=None):
    with KernelValues(references or References(), task, kernel) as sets:
        return check(device, device.build(kernel, task), task, sets)


KERNEL = Kernel("a kernel")
SEEDS = Seeds(b"a secret of the tests", "a task")
RELU = "a.store(0, np.maximum(a.load(0), 0))\nreturn 0"


def test_an_honest_kernel_is_correct_and_meets_every_set(device, relu, python_kernel):
    checked = judge(device, relu, python_kernel(RELU))
    assert isinstance(checked, Checked)
    assert checked.plain
    assert device.runs == (1 + 2 + 5 * 2) + 1  # every set, and one again over other poison


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 0", "nothing was written"),
        ("a.store(0, 0)\nreturn 0", "wrong"),
        ("a.store(0, 1)\nreturn 0", "same value"),
        ("a.store(0, np.nan)\nreturn 0", "NaN where a number"),
        ("a.store(0, a.load(0))\nreturn 0", "wrong"),
        ("a.store(0, np.maximum(a.load(0), 0).mean())\nreturn 0", "same value"),
        ("a.store(0, 2 * np.maximum(a.load(0), 0))\nreturn 0", "factor of 2"),
        ("a.store(0, 3 + np.maximum(a.load(0), 0))\nreturn 0", "same constant"),
        ("a.store(0, np.maximum(a.load(0), 0))\na.outputs[0].ravel()[-5:] = 9\nreturn 0", "only the tail is wrong"),
        ("a.store(0, np.maximum(a.load(0), 0))\na.outputs[0].ravel()[40:80] = 9\nreturn 0", "one contiguous block"),
        ("a.store(0, np.maximum(a.load(0), 0))\na.outputs[0][:, 33:] = 9\nreturn 0", "end of the rows"),
        ("x = a.load(0)\na.store(0, np.maximum(x, 0).T.reshape(x.shape))\nreturn 0", "transposed"),
        ("a.store(0, np.maximum(a.load(0).astype(np.float16), 0))\nreturn 0", "less precision"),
        ("a.outputs[0].ravel()[:-7] = np.maximum(a.load(0), 0).ravel()[:-7]\nreturn 0", "never written"),
    ],
)
def test_wrong_kernels_are_wrong_and_the_pattern_is_named(device, relu, python_kernel, body, words):
    verdict = judge(device, relu, python_kernel(body))
    assert verdict.cause == "mismatch"
    assert words in verdict.feedback
    assert not verdict.correct


@pytest.mark.parametrize("shadow", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "expression",
    [
        "torch.relu(x)",
        "torch.softmax(x, -1)",
        "torch.sigmoid(x)",
        "x.sum(-1)",
        "x.mean(0)",
        "nn.functional.layer_norm(x, x.shape[-1:])",
    ],
)
def test_a_low_precision_shadow_fails(device, make_task, python_kernel, expression, shadow):
    task = make_task(expression)
    wrong = 0
    for set_ in schedule(References(), task, KERNEL):
        instance = task.instance(set_.case)
        lower = getattr(torch, shadow)
        with torch.no_grad():
            outputs = instance.evaluate([torch.from_numpy(a) for a in set_.values], lower)
        outputs = tuple(o.to(torch.float32).numpy() for o in outputs)
        wrong += compare(outputs, set_.expected, POISON) is not None
    assert wrong >= 3


@pytest.mark.parametrize(
    ("expression", "inputs", "init"),
    [
        ("torch.softmax(x, -1)", "torch.randn(rows, columns)", ""),
        ("x.sum(-1)", "torch.randn(rows, columns)", ""),
        ("torch.log(x)", "torch.rand(rows, columns) + 1.5", ""),
        ("self.f(x)", "torch.randn(rows, columns)", "self.f = nn.LayerNorm(columns)"),
        ("self.f(x)", "torch.randn(rows, columns)", "self.f = nn.Linear(columns, 24)"),
        ("torch.nn.functional.gelu(x)", "torch.randn(rows, columns)", ""),
        ("torch.cumsum(x, -1)", "torch.randn(rows, columns)", ""),
        ("torch.exp(x)", "torch.randn(rows, columns)", ""),
    ],
)
def test_float32_with_another_order_and_an_approximate_device_passes(make_task, expression, inputs, init):
    task = make_task(expression, inputs=inputs, init=init)
    rng = np.random.default_rng(0)
    for set_ in schedule(References(), task, KERNEL):
        instance = task.instance(set_.case)
        native = evaluate(instance, set_.values)
        noisy = tuple((o * (1 + rng.uniform(-1e-5, 1e-5, o.shape))).astype(np.float32) for o in native)
        if any(one.exact for one in set_.expected):
            noisy = tuple(o.astype(np.float32) for o in native)
        assert compare(noisy, set_.expected, POISON) is None, set_.kind


@pytest.mark.parametrize(("expression", "passes"), [("torch.sin(4096.0 * x)", True), ("torch.sin(x)", False)])
def test_small_errors_pass_where_the_reference_has_them_on_inputs_off_in_the_last_place(make_task, expression, passes):
    task = make_task(expression, inputs="torch.randn(rows, columns)")
    values = make(task, task.public, "normal", Seeds(b"", task.digest), "test")
    truth = values.expected[0].truth
    for error, right in ((1e-4, passes), (1e-2, False)):
        run = Run("ok", ((truth + error).astype(np.float32),))
        assert compare(run.outputs, values.expected, POISON) is not None
        assert (correctness.refuse(run, task, values) is None) == right


def sums_in_many_orders(terms: np.ndarray) -> np.ndarray:
    """Return the sums of 200 orders in float32, from left to right."""
    rng = np.random.default_rng(1)
    orders = np.stack([rng.permutation(terms.astype(np.float32)) for _ in range(200)])
    return np.cumsum(orders, axis=1, dtype=np.float32)[:, -1]


def terms_that_cancel(seed: int) -> np.ndarray:
    terms = np.random.default_rng(seed).standard_normal((1, 81)).astype(np.float32)
    terms[0, -1] = np.float32(0.003 - terms[0, :-1].sum(dtype=np.float64))
    return terms


def order_error(terms: np.ndarray) -> float:
    """Return the error of the sum in the order that torch takes on this machine's processor."""
    return abs(torch.from_numpy(terms).sum(-1).item() - terms.sum(dtype=np.float64))


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize(("expression", "function"), [("x.sum(-1)", np.array), ("torch.tanh(x.sum(-1))", np.tanh)])
def test_a_sum_of_terms_that_cancel_passes_in_any_order(make_task, expression, function, confined):
    """All results are small, and the reference's own order has nearly no error."""
    case = Case("public", "public", (("rows", 1), ("columns", 81)))
    task = replace(make_task(expression, inputs="torch.randn(rows, columns)"), cases=(case,), confined=confined)
    terms = min(map(terms_that_cancel, range(100)), key=order_error)
    values = ValueSet(case, "normal", 0, (terms,), expect(task.instance(case), (terms,)))

    def passes(total: np.float32) -> bool:
        return correctness.refuse(Run("ok", (function(total).astype(np.float32).reshape(1),)), task, values) is None

    totals = sums_in_many_orders(terms[0])
    bare = [compare((function(total).reshape(1),), values.expected, POISON) is None for total in totals]
    assert not all(bare)
    assert all(map(passes, totals))
    assert not passes(terms.astype(np.float16).sum(dtype=np.float32))
    assert not passes(terms[0, :-1].sum(dtype=np.float32) + np.float16(terms[0, -1]))
    assert not passes(np.float32(0.0))


COUNTED = "x * (torch.ones_like(x, dtype=torch.float32).cumsum(-1) % 1 == 0)"
SUMMED = "x * (torch.stack([x.float().abs().sum() for _ in range(8)]).diff() == 0).all()"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("expression", [COUNTED, SUMMED])
def test_zeros_do_not_pass_where_a_formula_compares_sums(make_task, expression, dtype):
    """Rounded otherwise, the sums are not equal and the reference is zero itself."""
    case = Case("public", "public", (("rows", 8), ("columns", 32)))
    task = replace(make_task(expression, inputs=f"torch.randn(rows, columns, dtype=torch.{dtype})"), cases=(case,))
    x = np.random.default_rng(0).standard_normal((8, 32)).astype(numpy_dtype(dtype))
    values = ValueSet(case, "normal", 0, (x,), expect(task.instance(case), (x,)))
    assert correctness.refuse(Run("ok", (x,)), task, values) is None
    assert correctness.refuse(Run("ok", (np.zeros_like(x),)), task, values) is not None
    noise = rounded_otherwise(task.instance(case), values)[0].noise
    assert np.max(noise) == 0.0 if expression == COUNTED else np.max(noise) > 0.5


def test_linear_operators_are_asked_for_exact_integers(make_task):
    linear = make_task("self.f(x)", init="self.f = nn.Linear(columns, 24)")
    softmax = make_task("torch.softmax(x, -1)")
    assert all(e.exact for e in make(linear, linear.public, "integers", SEEDS, "s").expected)
    assert not any(e.exact for e in make(softmax, softmax.public, "integers", SEEDS, "s").expected)


def test_softmax_without_subtracting_the_maximum_fails(device, make_task, python_kernel):
    body = "e = np.exp(a.load(0).astype(np.float32))\na.store(0, e / e.sum(-1, keepdims=True))\nreturn 0"
    verdict = judge(device, make_task("torch.softmax(x, -1)"), python_kernel(body))
    assert not verdict.correct
    assert verdict.plain  # the plain test on ordinary values would have let it through


def test_integer_outputs_are_exact_and_first_on_ties(device, make_task, python_kernel):
    task = make_task("torch.argmax(x, -1)")
    assert judge(device, task, python_kernel("a.store(0, a.load(0).argmax(-1))\nreturn 0")).plain
    last = "x = a.load(0)\na.store(0, x.shape[-1] - 1 - x[:, ::-1].argmax(-1))\nreturn 0"
    assert not judge(device, task, python_kernel(last)).correct


#: The same quotient in other orders of float32, and three that are wrong.
QUOTIENTS = {
    "by the scale": (lambda y, largest: np.rint(y / (largest / 127)), True),
    "by the scale's reciprocal": (lambda y, largest: np.rint(y * (1 / (largest / 127))), True),
    "by a factor": (lambda y, largest: np.rint(y * (127 / largest)), True),
    "by the reciprocal": (lambda y, largest: np.rint(y * (127 * (1 / largest))), True),
    "cut off": (lambda y, largest: np.trunc(y * 127 / largest), False),
    "off by one": (lambda y, largest: np.clip(np.rint(y * 127 / largest) + 1, -127, 127), False),
    "off by one in a row": (
        lambda y, largest: np.rint(y * 127 / largest) + (np.arange(len(y)) == 9)[:, None, None],
        False,
    ),
}


@pytest.mark.parametrize("order", QUOTIENTS)
def test_numbers_half_way_between_two_integers_are_rounded_to_either(order):
    task, (quotient, right) = find_task("attention/dy_quantize"), QUOTIENTS[order]
    case = Case("many", "hidden", (("tokens", 256), ("groups", 8)))
    values = make(task, case, "normal", SEEDS, "ties")
    y = values.values[0].astype(np.float32).reshape(256, 8, 128)
    largest = np.maximum(np.abs(y).max(axis=2, keepdims=True), np.float32(1e-10))
    integers = quotient(y, largest).astype(np.int8).reshape(256, -1)
    run = Run("ok", (integers, (largest / 127)[:, :, 0]))
    assert compare(run.outputs, values.expected, POISON) is not None
    assert (correctness.refuse(run, task, values) is None) == right


def test_wrong_results_beside_integers_are_refused():
    """Not every call in the graph of this task is an operator of torch."""
    task = find_task("attention/router")
    values = make(task, task.public, "normal", SEEDS, "wrong")
    weights, experts = (output.truth for output in values.expected)
    right, wrong = (Run("ok", (weights * factor, experts.astype(np.int32))) for factor in (1.0, 1.05))
    assert correctness.refuse(right, task, values) is None
    assert correctness.refuse(wrong, task, values).cause == "mismatch"


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["level1", "level2", "level3", "attention", "mhc"])
def test_wrong_results_of_every_task_are_refused(suite):
    for task in load_suite(suite):
        values = make(task, task.public, "normal", SEEDS, "wrong")
        truths = [output.truth for output in values.expected]
        outputs = tuple(truth * 1.05 if truth.dtype.kind == "f" else truth for truth in truths)
        verdict = correctness.refuse(Run("ok", outputs), task, values)
        zeros = all(map(np.array_equal, truths, outputs))
        assert (verdict is None) == zeros, task.id


def test_a_result_that_depends_on_poison_is_refused(device, relu, python_kernel):
    body = (
        "a.store(0, np.maximum(a.load(0), 0))\na.outputs[0][...] *= np.float32(1 + 1e-6 * (a.poison == 0x7B))\nreturn 0"
    )
    verdict = judge(device, relu, python_kernel(body))
    assert verdict.rule == "NONDETERMINISTIC"


def test_a_refused_size_is_incorrect(device, relu, python_kernel):
    body = "x = a.load(0)\na.store(0, np.maximum(x, 0))\nreturn 0 if x.shape[0] == 8 else 3"
    verdict = judge(device, relu, python_kernel(body))
    assert verdict.cause == "refused"
    assert verdict.case == "hidden"
    assert "returned an error" in verdict.feedback


def test_faults_and_timeouts_keep_their_reason(device, relu, python_kernel):
    fault = judge(device, relu, python_kernel("raise DeviceError('UB_OVERFLOW', 'line 4: too much', 4)"))
    assert (fault.cause, fault.rule, fault.line) == ("fault", "UB_OVERFLOW", 4)
    assert judge(device, relu, python_kernel("raise TimeoutError")).cause == "timeout"


def test_feedback_does_not_reveal_expected_values(device, relu, python_kernel):
    verdict = judge(device, relu, python_kernel("a.store(0, 7)\nreturn 0"))
    expected = next(schedule(References(), relu, python_kernel("a.store(0, 7)\nreturn 0"))).expected[0].truth
    texts = {f"{v:.{digits}g}" for v in expected.ravel() if v for digits in (3, 4, 5, 6)}
    assert not any(text in verdict.feedback for text in texts if len(text) > 4)


def test_the_first_wrong_elements_are_listed_at_public_sizes_alone(device, relu, python_kernel):
    wrong = "a.store(0, np.maximum(a.load(0), 0))\na.outputs[0].ravel()[1:9] = 77\nreturn 0"
    verdict = judge(device, relu, python_kernel(wrong))
    assert verdict.case == "public"
    assert len(verdict.wrong) == 5
    assert re.fullmatch(r"output 0 \[0, 1\]: expected [\d.e+-]+, got 77", verdict.wrong[0])
    assert "77" not in verdict.feedback
    assert from_json(json.loads(json.dumps(verdict.to_json()))) == verdict
    public = relu.instance(relu.public).signature.outputs[0].shape
    hidden = f"out = np.maximum(a.load(0), 0)\na.store(0, out + 77 * (out.shape != {public}))\nreturn 0"
    verdict = judge(device, relu, python_kernel(hidden))
    assert verdict.case == "hidden"
    assert verdict.wrong == ()


def test_integers_and_truth_values_are_listed_as_they_are(device, make_task, python_kernel):
    for expression, expected in (("torch.argmax(x, -1)", r"\d+"), ("x > 0", "[01]")):
        verdict = judge(device, make_task(expression), python_kernel("a.outputs[0][...] = 1\nreturn 0"))
        assert re.fullmatch(rf"output 0 \[\d+(, \d+)?\]: expected {expected}, got 1", verdict.wrong[0])


def test_references_stay_within_their_memory(relu):
    references = References(limit_bytes=20_000)
    for text in "abcdef":
        assert len(references.shared(relu, relu.public, "normal", "timed", Kernel(text), 3)) == 3
        assert references._bytes <= 20_000


@pytest.mark.parametrize("kind", list(RUNGS))
@pytest.mark.parametrize("dtype", ["torch.float16", "torch.bfloat16", "torch.float32"])
def test_every_kind_of_values_fits_every_float_type(make_task, kind, dtype):
    task = make_task("x * 2", inputs=f"torch.randn(rows, columns).to({dtype})")
    values = make(task, task.public, kind, SEEDS, "s")
    assert values.values[0].dtype == numpy_dtype(dtype.removeprefix("torch."))
    doubled = tuple((values.values[0].astype(np.float32) * 2).astype(values.values[0].dtype) for _ in range(1))
    assert compare(doubled, values.expected, POISON) is None


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    scale=st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_comparison_accepts_rounding_and_finds_a_single_wrong_element(shape, scale, seed, data):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(shape) * scale
    expected = Expected(truth, np.ones(shape, bool), base=5e-5, scale=float(np.sqrt(np.mean(truth**2))))
    actual = truth.astype(np.float32)
    assert not wrong_elements(actual, expected).any()
    index = data.draw(st.integers(0, truth.size - 1))
    actual.ravel()[index] += np.float32(expected.tolerance.ravel()[index] * 4)
    assert np.flatnonzero(wrong_elements(actual, expected)).tolist() == [index]
    for bad in (np.nan, np.inf, -np.inf):
        actual.ravel()[index] = bad
        assert np.flatnonzero(wrong_elements(actual, expected)).tolist() == [index]


def test_a_few_of_very_many_elements_may_err_a_little_more():
    truth = np.random.default_rng(0).standard_normal((1000, 100))
    expected = Expected(truth, np.ones(truth.shape, bool), base=5e-5, scale=1.0)
    flat = truth.astype(np.float32)
    flat[:5, 0] += np.float32(2 * 5e-5 * (1 + np.abs(truth[:5, 0])))
    assert not wrong_elements(flat, expected).any()
    flat[5, 0] += np.float32(2 * 5e-5 * (1 + abs(truth[5, 0])))
    assert wrong_elements(flat, expected).sum() == 6
    flat = truth.astype(np.float32)
    flat[7, 7] += np.float32(5 * 5e-5 * (1 + abs(truth[7, 7])))
    assert np.argwhere(wrong_elements(flat, expected)).tolist() == [[7, 7]]


@settings(max_examples=40, deadline=None)
@given(poison=st.integers(0, 255), shape=st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_untouched_outputs_never_pass(poison, shape):
    signature = type("S", (), {"outputs": (TensorSpec(shape),)})
    outputs = empty_outputs(signature, poison)
    truth = np.linspace(1.0, 2.0, outputs[0].size).reshape(shape)
    expected = Expected(truth, np.ones(shape, bool), base=5e-5, scale=1.5)
    mismatch = compare(outputs, (expected,), poison)
    assert mismatch is not None
    assert "nothing was written" in mismatch.pattern


def test_infinities_must_match(make_task):
    task = make_task("torch.relu(x)")
    values = make(task, task.public, "stress", SEEDS, "s 1")
    assert values.rung == 0
    native = evaluate(task.instance(task.public), values.values)[0].astype(np.float32)
    assert compare((native,), values.expected, POISON) is None


def test_tables_of_the_module_are_not_drawn(make_task):
    task = make_task("x * self.mask", init="self.register_buffer('mask', torch.tril(torch.ones(rows, columns)))")
    values = make(task, task.public, "normal", SEEDS, "s")
    assert np.array_equal(values.values[1], np.tril(np.ones((8, 40))))


def test_values_are_tamed_until_the_reference_is_defined(make_task):
    task = make_task("x - x.mean()")
    assert make(task, task.public, "stress", SEEDS, "s").rung > 0
    assert np.isfinite(make(task, task.public, "stress", SEEDS, "s").expected[0].truth).all()


def test_an_infinity_reaches_one_output(make_task):
    """A product with a matrix of weights, most of which are zero, gives NaN for every output in its row."""
    task = make_task("torch.nn.functional.interpolate(x[:, None], size=30, mode='linear', align_corners=True)")
    for slot in range(12):
        values = make(task, task.public, "stress", SEEDS, f"s {slot}")
        assert (~np.isfinite(values.expected[0].truth)).sum() <= np.isinf(values.values[0]).sum()


def test_expectation_of_positive_domains(make_task):
    task = make_task("torch.sqrt(x)", inputs="torch.rand(rows, columns) + 1.5")
    for kind in RUNGS:
        values = draw(task.instance(task.public).signature, kind, 0, np.random.default_rng(0))
        assert np.isfinite(expect(task.instance(task.public), values)[0].truth).all()


@pytest.mark.parametrize(
    ("norm", "lazy"),
    [
        (
            "torch.nn.functional.layer_norm(x, x.shape[1:])",
            lambda x: (x - x.mean(1, keepdims=True)) / x.std(1)[:, None],
        ),
        ("x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)", lambda x: x / np.sqrt((x * x).mean(1))[:, None]),
        (
            "torch.nn.functional.layer_norm(x, x.shape[1:])",
            lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1)[:, None] + 1e-5),
        ),
        ("torch.nn.functional.normalize(x)", lambda x: x / np.sqrt((x * x).sum(1))[:, None]),
    ],
    ids=["layer_norm", "rms_norm", "another epsilon", "normalize"],
)
def test_a_norm_without_its_epsilon_is_wrong_for_every_kernel(make_task, norm, lazy):
    task = make_task(norm)
    for slot in range(8):
        values = make(task, task.public, "quiet", SEEDS, f"s {slot}")
        assert (values.kind, values.rung) == ("quiet", 0)
        with np.errstate(invalid="ignore"):
            outputs = (np.asarray(lazy(values.values[0])),)
        assert compare(outputs, values.expected, POISON) is not None
        native = evaluate(task.instance(task.public), values.values)[0].astype(np.float32)
        assert compare((native,), values.expected, POISON) is None


def test_slices_are_not_zero_where_the_reference_is_not_finite_there(make_task):
    for expression, rung in {"x / x.norm(dim=1, keepdim=True)": 1, "torch.topk(x, 3, dim=-1)[1]": 0}.items():
        task = make_task(expression)
        values = make(task, task.public, "quiet", SEEDS, "s")
        largest = np.abs(values.values[0]).max(axis=1)
        assert (values.kind, values.rung) == ("quiet", rung)
        assert np.count_nonzero(largest) == len(largest)
        assert np.count_nonzero(largest < 0.1) == 1


def test_the_same_warning_of_several_runs_is_reported_once():
    warnings = (
        "DATA_CACHE line 12: cores 1 and 2 write the same cache line (3 times)",
        "DATA_CACHE line 12: cores 5 and 7 write the same cache line (40 times)",
        "DATA_CACHE line 13: cores 1 and 2 write the same cache line (3 times)",
    )
    assert correctness.distinct(warnings) == (warnings[0], warnings[2])


@pytest.mark.parametrize("kind", RUNGS)
def test_running_products_stay_finite_at_the_timing_sizes(kind):
    task = find_task("level1/cumprod")
    values = make(task, task.timing, kind, SEEDS, "products")
    assert values.kind == kind
    with np.errstate(over="raise", invalid="raise"):
        for factors in (values.values[0], values.values[0][:, ::-1]):
            assert np.isfinite(np.cumprod(factors, axis=1, dtype=np.float32)).all()
    truth = np.abs(values.expected[0].truth)
    assert np.isfinite(truth).all()
    assert np.median(truth[:, -1]) > 1e-3  # the last products of the rows are compared, too


def test_places_of_equal_elements_do_not_count(make_task):
    task = make_task("torch.topk(x, 3, dim=-1)[1]", inputs="torch.randn(rows, columns)")
    instance = task.instance(task.public)
    values = np.random.default_rng(0).standard_normal(instance.signature.inputs[0].shape).astype(np.float32)
    values[0, 4:6], values[1, 7] = 5.0, 9.0
    (expected,) = expect(instance, (values,))
    assert expected.counts[0].tolist() == [False, False, True]
    assert expected.counts[1:].all()


def test_indices_that_are_distinct_are_drawn_so(make_task):
    inputs = "torch.randn(rows, columns), torch.argsort(torch.rand(rows, columns), dim=1)[:, :3]"
    task = make_task("x.gather(1, at)", inputs=inputs, arguments="x, at")
    for kind in RUNGS:
        at = draw(task.instance(task.public).signature, kind, 0, np.random.default_rng(0))[1]
        assert all(len(set(row)) == 3 for row in at.tolist())
