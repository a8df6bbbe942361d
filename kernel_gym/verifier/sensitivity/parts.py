"""Parts of a network that a kernel could leave out, or compute less precisely, without a wrong output.

Each is tried on a value set of the timing sizes, one at a time: a heavy product in half precision, a large softmax with
constant weights, the last of a module's iterations. Tolerances are refined until it is wrong, as far as noise allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.tasks.rounding import QUARTERS, Quarter
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Counts, Trial
from kernel_gym.verifier.expected import Expected, any_wrong, as_rows, kinds, wrong_elements
from kernel_gym.verifier.reference import independent_dimensions, tried, with_fixed
from kernel_gym.verifier.sensitivity.half_precision import is_seen_without_stress_only, seeing, sharpened
from kernel_gym.verifier.values import Array, Rows, stressed_input

#: Precision may be lost without a trace where there are this many inputs for each output of a matrix product.
INPUTS_PER_OUTPUT = 64
#: Products with at least this share of the work of all are tried in half precision one at a time, which takes a run of
#: the reference for each.
HEAVY = 1 / 16
#: No power of two: other numbers are rounded up.
OTHER_SCALE = 1.37
#: Additions of two tensors with at least this share of the elements of all are tried with a summand in half precision.
LARGE_ADDITION = 1 / 8
#: Softmaxes with at least this share of all weights are tried with constant weights, in tasks that have products.
LARGE_SOFTMAX = 1 / 8
#: Least share of the elements that must be wrong if the last iteration is estimated: a kernel may estimate it better.
CLEAR_SHARE = 1e-4
#: A product, by its position among all, and a quarter of its results.
HeavyQuarter: TypeAlias = tuple[int, Quarter]


def seeing_products(
    task: Task, instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...], rows: Rows | None
) -> tuple[tuple[Expected, ...], bool, int, int]:
    """Return expected outputs with tolerances that no product in half precision meets, as far as noise allows it.

    Behind a loud shortcut, or before damped steps, the error of a single product is small beside the outputs. The
    second result says whether one is seen in rows without stress only, because the others are saturated. The third one
    is the number of activations that are the same in all rows without stress, so that the products before them could
    be left out in most rows. The last one is the number of products that are not seen in rows without stress.
    """
    saturated, constant, unseen = False, 0, 0
    usual = _rows_without_stress(instance.signature, values, rows)
    for position in heavy_products(task, instance.case):
        seen = True
        for trial in _trials_in_half_precision(instance, position):
            shadows, counts = tried(instance, values, trial, usual=usual)
            constant = counts.constant_activations
            expected = seeing(expected, shadows, sum_length(instance))
            seen = seen and any(map(_is_wrong_without_stress, shadows, expected))
            if independent_dimensions(task) and not saturated:
                saturated = is_seen_without_stress_only(expected, shadows)
        unseen += not seen
    return expected, saturated, constant, unseen


def heavy_quarters(task: Task, case: Case) -> frozenset[HeavyQuarter]:
    """Return the quarters of heavy products, if outputs are few; none otherwise."""
    if not hides_precision(task.instance(case)):
        return frozenset()
    return frozenset((position, quarter) for position in heavy_products(task, case) for quarter in QUARTERS)


def seeing_quarters(
    instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...], quarters: Iterable[HeavyQuarter]
) -> tuple[tuple[Expected, ...], frozenset[HeavyQuarter]]:
    """Return expected outputs with tolerances that no quarter in half precision meets, as far as noise allows it.

    The second result is the quarters that show: outputs are wrong for every rounding that is tried.
    """
    shadows = {quarter: list(_in_half_precision(instance, values, *quarter)) for quarter in quarters}
    depth = sum_length(instance)
    for outputs in chain(*shadows.values()):
        expected = tuple(sharpened(output, shadow, depth) for output, shadow in zip(expected, outputs, strict=True))
    return expected, _wrong_each_time(shadows, expected)


def quarters_seen(
    instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...], quarters: Iterable[HeavyQuarter]
) -> frozenset[HeavyQuarter]:
    """Return the quarters that show: outputs are wrong for every rounding that is tried."""
    return _wrong_each_time({each: _in_half_precision(instance, values, *each) for each in quarters}, expected)


def _in_half_precision(
    instance: Instance, values: tuple[Array, ...], position: int, quarter: Quarter
) -> Iterator[tuple[Array, ...]]:
    for scale in (1.0, OTHER_SCALE):
        yield tried(instance, values, Trial(half=position, scale=scale, quarter=quarter))[0]


def _wrong_each_time(
    shadows: Mapping[HeavyQuarter, Iterable[tuple[Array, ...]]], expected: tuple[Expected, ...]
) -> frozenset[HeavyQuarter]:
    return frozenset(quarter for quarter, each in shadows.items() if all(any_wrong(one, expected) for one in each))


def _trials_in_half_precision(instance: Instance, position: int) -> list[Trial]:
    """Return trials of one product: where outputs are few, it is chance how far one rounding is off in them."""
    once = Trial(half=position)
    if not hides_precision(instance):
        return [once]
    return [once, replace(once, scale=OTHER_SCALE), *(replace(once, operands=(operand,)) for operand in (0, 1))]


def _rows_without_stress(signature: Signature, values: tuple[Array, ...], rows: Rows | None) -> NDArray[np.bool_]:
    """Return which rows of the first argument have no stress, in the shape of its leading dimensions."""
    if rows is not None:
        return np.asarray(~rows.special.reshape(rows.shape))
    position = stressed_input(signature)
    return np.ones(() if position is None else values[position].shape[:1], bool)


def seeing_summands(
    task: Task, instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]
) -> tuple[tuple[Expected, ...], int]:
    """Return expected outputs with tolerances that no summand in half precision meets, as far as noise allows it.

    A summand that is small beside the other one, such as a branch beside a residual connection, could be stored in half
    precision. The second result is the number of those that do not show in rows without stress.
    """
    unseen = 0
    for position in large_additions(task, instance.case):
        for summand in (0, 1):
            shadows, _ = tried(instance, values, Trial(half_summand=(position, summand)))
            expected = seeing(expected, shadows, sum_length(instance))
            if not any(map(_is_wrong_without_stress, shadows, expected)):
                plain, _ = tried(instance, values, Trial())
                unseen += not all(map(np.array_equal, shadows, plain))  # a mask is the same in half precision
    return expected, unseen


def seeing_softmaxes(
    task: Task, instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]
) -> tuple[tuple[Expected, ...], int]:
    """Return expected outputs with tolerances that no softmax with constant weights meets, as far as noise allows it.

    Where all that it weighs is nearly equal, or where later layers damp it, a softmax could be left out. The second
    result is the number of those that are not seen in rows without stress.
    """
    hidden = 0
    for position in _not_seen_together(task, instance, values, expected):
        shadows, _ = tried(instance, values, Trial(constant_weights={position: None}))
        if not any(map(_is_wrong_without_stress, shadows, expected)):
            expected = seeing(expected, shadows, sum_length(instance))
            hidden += not any(map(_is_wrong_without_stress, shadows, expected))
    return expected, hidden


def hides_an_iteration(instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return whether the last of the module's iterations could be left out: the ones before it have converged.

    What it adds may also be estimated from the two before it, as those of a geometric series.
    """
    count = instance.iterations()
    if count < 2:
        return False
    runs = [tried(instance, values, Trial(fewer_iterations=fewer))[0] for fewer in range(1, min(4, count))]
    if not any(map(_is_wrong_without_stress, runs[0], expected)):
        return True
    estimates = [_extrapolated(*outputs) for outputs in zip(*runs, strict=True)] if len(runs) == 3 else runs[0]
    return max(map(_wrong_share_without_stress, estimates, expected)) < CLEAR_SHARE


def _extrapolated(last: Array, second: Array, third: Array) -> Array:
    """Return what follows three terms of a series whose steps shrink by the same ratio."""
    step, before = last - second, second - third
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.nan_to_num(step / before), 0.0, 1.0)
        return np.asarray(last + step * ratio)


def _not_seen_together(
    task: Task, instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]
) -> list[int]:
    """Return the large softmaxes that do not show where each of them is constant in other rows, in one run.

    That run says nothing, and all are returned, if there is one softmax, or if rows depend on each other.
    """
    softmaxes = large_softmaxes(task, instance.case)
    position = stressed_input(instance.signature)
    batch = 0 if position is None or not values[position].ndim else len(values[position])
    usual = _rows_without_stress_of(expected, batch)
    if len(softmaxes) < 2 or len(usual) < len(softmaxes) or any(shape[0] != batch for shape in softmaxes.values()):
        return list(softmaxes)
    rows = {softmax: usual[i :: len(softmaxes)].tolist() for i, softmax in enumerate(softmaxes)}
    shadows, _ = tried(instance, values, Trial(constant_weights=rows))
    wrong = [as_rows(wrong_elements(*pair), batch) for pair in zip(shadows, expected, strict=True)]
    return [softmax for softmax in softmaxes if not any(output[rows[softmax]].any() for output in wrong)]


def _rows_without_stress_of(expected: tuple[Expected, ...], batch: int) -> NDArray[np.int64]:
    """Return the rows of a batch without stress; none if the outputs do not have the tolerances of such rows."""
    if any(np.size(output.scale) != batch for output in expected):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.all([_usual(output) for output in expected], axis=0))


def _is_wrong_without_stress(output: Array, expected: Expected) -> bool:
    return _wrong_share_without_stress(output, expected) > 0.0


def _wrong_share_without_stress(output: Array, expected: Expected) -> float:
    rows = _usual(expected)
    return float(np.mean(as_rows(wrong_elements(output, expected), rows.size)[rows]))


def _usual(expected: Expected) -> NDArray[np.bool_]:
    """Return which rows of an output are of the most frequent kind."""
    height = np.size(expected.scale)
    return next(iter(kinds(expected, height)), np.ones(height, bool))


def heavy_products(task: Task, case: Case) -> tuple[int, ...]:
    """Return which products in float32 of the reference, in their order, have a large share of the work."""
    return _large_parts(task, case)[0]


def large_additions(task: Task, case: Case) -> tuple[int, ...]:
    """Return which additions of two tensors in float32, in their order, have a large share of the elements of all."""
    instance = task.instance(case)
    return _large(_counts(task, case).additions, LARGE_ADDITION) if _returns_float32(instance) else ()


def large_softmaxes(task: Task, case: Case) -> dict[int, tuple[int, ...]]:
    """Return which softmaxes in float32 have a large share of all weights, in their order, and the shapes of these.

    There are none in a reference without products.
    """
    return _large_parts(task, case)[1]


@lru_cache(maxsize=1024)
def _large_parts(task: Task, case: Case) -> tuple[tuple[int, ...], dict[int, tuple[int, ...]]]:
    """Return the products and the softmaxes that are tried one at a time."""
    if not _returns_float32(task.instance(case)):
        return (), {}
    counts = _counts(task, case)
    shapes = counts.softmaxes if counts.products else []
    large = _large([prod(shape) for shape in shapes], LARGE_SOFTMAX)
    return _large(counts.products, HEAVY), {position: shapes[position] for position in large}


@lru_cache(maxsize=1024)
def _counts(task: Task, case: Case) -> Counts:
    instance = task.instance(case)
    zeros = (np.zeros(spec.shape, numpy_dtype(spec.dtype)) for spec in instance.signature.inputs)
    return tried(instance, with_fixed(instance, tuple(zeros), np.random.default_rng(0)), Trial())[1]


def _returns_float32(instance: Instance) -> bool:
    return any(spec.dtype == "float32" for spec in instance.signature.outputs)


def bounds(task: Task) -> int:
    """Return the number of bounds of floats, such as those of clamps."""
    return _counts(task, task.timing).bounds


def variances(task: Task) -> int:
    """Return the number of variances, those of norms among them."""
    return _counts(task, task.timing).variances


def has_no_products(task: Task) -> bool:
    """Return whether a task computes in float32 and multiplies no matrices."""
    return _returns_float32(task.instance(task.timing)) and not _counts(task, task.timing).products


def has_softmaxes(task: Task) -> bool:
    """Return whether a task has softmaxes, or sums of exponentials; those of 16 bits are not counted."""
    counted = _returns_float32(task.instance(task.timing)) and "logsumexp" not in task.source
    return not counted or bool(_counts(task, task.timing).softmaxes)


def _large(sizes: list[int], share: float) -> tuple[int, ...]:
    return tuple(i for i, size in enumerate(sizes) if size > 0 and size >= share * sum(sizes))


def sum_length(instance: Instance) -> int:
    """Return a bound of the number of products in a sum."""
    return max(max(spec.shape, default=1) for spec in instance.signature.inputs)


def hides_precision(instance: Instance) -> bool:
    """Return whether outputs are few beside the inputs of a matrix product: half precision shows hardly in them."""
    inputs, outputs = (
        sum(spec.numel for spec in specs) for specs in (instance.signature.inputs, instance.signature.outputs)
    )
    wide = any(spec.dtype == "float32" for spec in instance.signature.inputs)
    return wide and inputs >= INPUTS_PER_OUTPUT * outputs and instance.work() > 2 * (inputs + outputs)
