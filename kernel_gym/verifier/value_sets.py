"""The value sets that kernels are checked on: how they are drawn, and which of them are kept.

A set is as severe as the reference's own precision can decide. Those of the timing sizes also have outputs that depend
on the arguments, and tolerances that neither the order of the reference's sums nor half precision nor constant weights
of a softmax can hide in.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import prod
from threading import Lock
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.errors import TaskError
from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.rounding import in_half_precision
from kernel_gym.tasks.specs import Case, InputSpec, Signature
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Counts, Trial
from kernel_gym.verifier.expected import (
    BASE,
    UNDEFINED,
    Expected,
    as_rows,
    expected_from,
    is_finite,
    kinds,
    telling,
    telling_of_stress,
    with_noise_at_most,
    wrong_elements,
)
from kernel_gym.verifier.half_precision import is_seen_without_stress_only, seeing, sharpened
from kernel_gym.verifier.overflow import draw_overflowing, showing
from kernel_gym.verifier.reference import (
    ValueSet,
    evaluate,
    expect,
    independent_dimensions,
    rows_are_independent,
    to_torch,
    tried,
    with_fixed,
)
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.values import RUNGS, Array, Kind, Rows, draw, draw_mixed, stressed_input, tilted

#: Least number of weights from which on arguments may fade, and number of draws with which it is tried.
DEEP, FADING_DRAWS = 4, 3
#: Kinds of the timing sizes, draws of each until the best of them is used, and the least share of the elements of an
#: output that depends on the arguments.
TIMED: tuple[Kind, ...] = ("mixed", "ordinary")
TRIES, TELLING = 8, 1 / 16
#: Draws where outputs are few, and the number of parts of the rows each of which they have to show.
MORE_TRIES, PARTS = 12, 8
#: Kinds for which the statistics of a deep network's batch norms are near those of its activations: how many standard
#: deviations the means are off, and the factors of the variances.
SETTLED: tuple[Kind, ...] = (*TIMED, "normal", "quiet", "structured")
NEAR_MEAN, NEAR_VARIANCE = 0.25, (0.5, 2.0)
#: Precision may be lost without a trace where there are this many inputs for each output of a matrix product.
INPUTS_PER_OUTPUT = 64
#: Products with at least this share of the work of all are tried in half precision one at a time, which takes a run of
#: the reference for each.
HEAVY = 1 / 16
#: No power of two: other numbers are rounded up.
OTHER_SCALE = 1.37
#: Softmaxes with at least this share of all weights are tried with constant weights, in tasks that have products.
LARGE_SOFTMAX = 1 / 8
#: Most sets that are drawn again because a product, a large softmax, what is before an activation, or an iteration does
#: not show.
SHOWING_DRAWS = 6
#: Called with the inputs of a value set.
Meanwhile: TypeAlias = Callable[[tuple[Array, ...]], None]
#: Number of value sets that all kernels of a task share, beside the set that is drawn for each.
SHARED = 3


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class References:
    """Draws the value sets that kernels are checked on, and computes the expected outputs.

    Every kernel meets sets of its own, always the same. Sets that all kernels of a task share are cached.

    Args:
        limit_bytes: Size of the cache; by default a sixteenth of the machine's memory, and at least 512 MB.
        secret: The secret of all kernels; by default that of `secret.secret_for`.
    """

    def __init__(self, limit_bytes: int | None = None, secret: bytes | None = None) -> None:
        self._sets: OrderedDict[object, ValueSet] = OrderedDict()
        self._bytes = 0
        self._limit = limit_bytes or max(512 << 20, _memory_bytes() // 16)
        self._lock = Lock()
        self._secret = secret

    def seeds(self, kernel: Kernel, task: Task) -> Seeds:
        """Return the seeds of everything that a kernel meets."""
        return Seeds.of(kernel, task, self._secret)

    def draw(
        self, task: Task, case: Case, kind: Kind, slot: str, kernel: Kernel, meanwhile: Meanwhile | None = None
    ) -> ValueSet:
        """Return the kernel's own value set for one use of it, named by `slot`; see `make` for `meanwhile`."""
        seeds = self.seeds(kernel, task)
        drawn = make(task, case, kind, seeds, slot, meanwhile)
        if case == task.timing:
            drawn = replace(drawn, maxima=showing(task, drawn))
        return replace(drawn, key=seeds.variables(drawn.values))

    def draw_overflowing(self, task: Task, kernel: Kernel, others: list[ValueSet]) -> ValueSet | None:
        """Return the kernel's own values of the timing sizes on which exponentials overflow without a maximum that
        they do not need on the others.

        None is returned if there are none.
        """
        return draw_overflowing(task, self.seeds(kernel, task), others)

    def shared(self, task: Task, case: Case, kind: Kind, slot: str, kernel: Kernel, count: int) -> list[ValueSet]:
        """Return up to `SHARED` sets beside the kernel's own, which large tensors can afford."""
        seeds = self.seeds(kernel, task)
        first = seeds.integer("shared", slot)
        numbers = [(first + step) % SHARED for step in range(count)]
        return [self._shared(task, case, kind, seeds.shared, f"{slot}{number}") for number in numbers]

    def _shared(self, task: Task, case: Case, kind: Kind, seeds: Seeds, slot: str) -> ValueSet:
        key = (seeds, case, kind, slot)
        with self._lock:
            if key in self._sets:
                self._sets.move_to_end(key)
                return self._sets[key]
        values = make(task, case, kind, seeds, slot)
        with self._lock:
            self._keep(key, values)
        return values

    def _keep(self, key: object, values: ValueSet) -> None:
        if key not in self._sets:
            self._sets[key] = values
            self._bytes += values.nbytes
        while self._bytes > self._limit and len(self._sets) > 1:
            self._bytes -= self._sets.popitem(last=False)[1].nbytes


def make(task: Task, case: Case, kind: Kind, seeds: Seeds, slot: str, meanwhile: Meanwhile | None = None) -> ValueSet:
    """Draw a value set, as severe as possible while the reference's own precision can decide it.

    At the timing sizes stress is also so mild that the outputs of stressed rows depend on these.

    `meanwhile` is called with the inputs before the expected outputs are computed; the last call has those of the set.
    """
    kept: list[ValueSet] = []
    severe = True
    for rung in range(RUNGS[kind]):
        drawn = _draw_set(task, case, kind, rung, seeds, slot, meanwhile, severe=severe)
        if _is_clear(drawn):
            if kind in TIMED:
                drawn = _more_telling(task, drawn, seeds, slot, meanwhile)
            differ = kind != "mixed" or _stressed_rows_differ(task, drawn)
            if differ and not drawn.saturated and not drawn.hidden:
                return drawn
            kept.append(drawn)
            severe = severe and differ  # the results of a severe row would be saturated as well
    if kept:
        # The most severe of those that hide least.
        best = min(kept, key=lambda values: (values.hidden + values.saturated, values.unseen))
        if meanwhile is not None:
            meanwhile(best.values)
        return best
    if kind in ("normal", "mixed") and all(output.undefined <= UNDEFINED for output in drawn.expected):
        return _less_noisy(task, drawn, seeds, slot, meanwhile) if kind in TIMED else drawn
    if kind != "normal":  # the reference is not defined on this kind: ordinary values instead
        return make(task, case, "normal", seeds, f"{slot} ordinary", meanwhile)
    raise TaskError(f"{task.id}: the reference disagrees with itself in float64 at case {case.name!r}: mend the task")


def _draw_set(
    task: Task,
    case: Case,
    kind: Kind,
    rung: int,
    seeds: Seeds,
    slot: str,
    meanwhile: Meanwhile | None,
    again: int = 0,
    severe: bool = True,
    tilt: bool = True,
) -> ValueSet:
    """Draw one set; those that are drawn again have other parameters, with `tilt` of other magnitudes."""
    instance = task.instance(case)
    rng = seeds.generator("values", case.name, kind, slot, rung, *([again] if again else []))
    drawn, rows = _draw(task, instance, kind, rung, rng, severe)
    if again and tilt:
        drawn = tilted(drawn, instance.signature, again)
    values = with_fixed(instance, drawn)
    if kind in SETTLED and _is_deep_and_normalised(instance.signature):
        values = _settled(instance, values, rows)
    if meanwhile is not None:
        meanwhile(values)
    expected = expect(instance, values, integral=kind == "integers", rows=rows)
    if kind in TIMED and any(output.noisy for output in expected):
        expected = _without_noise_of_order(instance, values, expected, rows)
    shown, saturated, hidden, unseen = 1.0, False, 0, 0
    if kind in TIMED:
        expected, saturated, hidden, products = _seeing_products(task, instance, values, expected, rows)
    if kind == "ordinary" or (kind == "mixed" and rows_are_independent(task)):
        expected, softmaxes = _seeing_softmaxes(task, instance, values, expected)
        hidden, unseen = hidden + softmaxes, products
        # Iterations that are redundant may be left out whatever the values are.
        if not any(flag.startswith("redundant") for flag in task.flags):
            hidden += _hides_an_iteration(instance, values, expected)
    if kind in TIMED and _hides_precision(instance):
        shadows = evaluate(instance, tuple(map(_in_half_precision, values)))
        depth = _depth(instance)
        expected = tuple(sharpened(output, shadow, depth) for output, shadow in zip(expected, shadows, strict=True))
        shown = _share_of_rows(instance, values, expected) if _is_wrong(shadows, expected) else 0.0
    return ValueSet(case, kind, rung, values, expected, shown, saturated, hidden, unseen, severe=severe)


def _is_wrong(outputs: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    return any(wrong_elements(*pair).any() for pair in zip(outputs, expected, strict=True))


def _share_of_rows(instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]) -> float:
    """Return the share of the rows of the first argument that outputs without such rows depend on.

    A few rows may decide the sum of exponentials of all. Each part of the rows is exchanged for the next one.
    """
    position = stressed_input(instance.signature)
    height = 0 if position is None or not values[position].ndim else len(values[position])
    if position is None or height < PARTS or any(output.truth.shape[:1] == (height,) for output in expected):
        return 1.0
    seen, parts = 0, np.array_split(np.arange(height), PARTS)
    for part, following in zip(parts, [*parts[1:], parts[0]], strict=True):
        changed = values[position].copy()
        changed[part] = values[position][np.resize(following, part.size)]
        seen += _is_wrong(evaluate(instance, (*values[:position], changed, *values[position + 1 :])), expected)
    return seen / PARTS


def _seeing_products(
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
            expected = seeing(expected, shadows, _depth(instance))
            seen = seen and any(map(_is_wrong_without_stress, shadows, expected))
            if independent_dimensions(task) and not saturated:
                saturated = is_seen_without_stress_only(expected, shadows)
        unseen += not seen
    return expected, saturated, constant, unseen


def _trials_in_half_precision(instance: Instance, position: int) -> list[Trial]:
    """Return trials of one product: where outputs are few, it is chance how far one rounding is off in them."""
    once = Trial(half=position)
    if not _hides_precision(instance):
        return [once]
    return [once, replace(once, scale=OTHER_SCALE), *(replace(once, operands=(operand,)) for operand in (0, 1))]


def _rows_without_stress(signature: Signature, values: tuple[Array, ...], rows: Rows | None) -> NDArray[np.bool_]:
    """Return which rows of the first argument have no stress, in the shape of its leading dimensions."""
    if rows is not None:
        return np.asarray(~rows.special.reshape(rows.shape))
    position = stressed_input(signature)
    return np.ones(() if position is None else values[position].shape[:1], bool)


def _seeing_softmaxes(
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
            expected = seeing(expected, shadows, _depth(instance))
            hidden += not any(map(_is_wrong_without_stress, shadows, expected))
    return expected, hidden


def _hides_an_iteration(instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return whether the last of the module's iterations could be left out: the ones before it have converged."""
    if instance.iterations() < 2:
        return False
    shadows, _ = tried(instance, values, Trial(fewer_iterations=True))
    return not any(map(_is_wrong_without_stress, shadows, expected))


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
    rows = _usual(expected)
    return bool(as_rows(wrong_elements(output, expected), rows.size)[rows].any())


def _usual(expected: Expected) -> NDArray[np.bool_]:
    """Return which rows of an output are of the most frequent kind."""
    height = np.size(expected.scale)
    return next(iter(kinds(expected, height)), np.ones(height, bool))


def heavy_products(task: Task, case: Case) -> tuple[int, ...]:
    """Return which products in float32 of the reference, in their order, have a large share of the work."""
    return _large_parts(task, case)[0]


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
    return tried(instance, with_fixed(instance, tuple(zeros)), Trial())[1]


def _returns_float32(instance: Instance) -> bool:
    return any(spec.dtype == "float32" for spec in instance.signature.outputs)


def _has_softmaxes(task: Task) -> bool:
    """Return whether a task has softmaxes, or sums of exponentials; those of 16 bits are not counted."""
    counted = _returns_float32(task.instance(task.timing)) and "logsumexp" not in task.source
    return not counted or bool(_counts(task, task.timing).softmaxes)


def _large(sizes: list[int], share: float) -> tuple[int, ...]:
    return tuple(i for i, size in enumerate(sizes) if size > 0 and size >= share * sum(sizes))


def _depth(instance: Instance) -> int:
    """Return a bound of the number of products in a sum."""
    return max(max(spec.shape, default=1) for spec in instance.signature.inputs)


def _without_noise_of_order(
    instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...], rows: Rows | None
) -> tuple[Expected, ...]:
    """Return expected outputs that the order in which the reference adds does not make noisy.

    A kernel that leaves a part of a sum out could hide in this noise. At small sizes noisy sets are drawn again with
    tamer values instead, because their noise may be that of a formula, such as one that subtracts nearly equal numbers.
    """
    rounded, _ = tried(instance, values, Trial(rounded="results"), torch.float64)
    explained = (
        expected_from(output.truth, other, spec.dtype, rows)
        for output, other, spec in zip(expected, rounded, instance.signature.outputs, strict=True)
    )
    return tuple(map(with_noise_at_most, expected, evaluate(instance, values, widen=False), explained))


def _is_clear(values: ValueSet) -> bool:
    defined = values.kind != "quiet" or all(output.finite for output in values.expected)
    clear = defined and all(output.clear for output in values.expected)
    return clear and not _spreads(values.values, values.expected)


def _less_noisy(task: Task, values: ValueSet, seeds: Seeds, slot: str, meanwhile: Meanwhile | None) -> ValueSet:
    """Return a set itself, or one with other parameters for which the reference is not noisy.

    Parameters may saturate all elements of a norm but a few, whose rounding errors it magnifies.
    """
    parameters = any(spec.origin == "state" for spec in task.instance(values.case).signature.inputs)
    for again in range(1, TRIES if parameters else 0):
        other = _draw_set(task, values.case, values.kind, values.rung, seeds, slot, meanwhile, again, values.severe)
        if _is_clear(other):
            other = _more_telling(task, other, seeds, slot, meanwhile)
            if not other.fades:
                return other
            break  # parameters that saturate everything are not noisy, either
    if meanwhile is not None and parameters:
        meanwhile(values.values)
    return replace(values, fades=_telling(task, values) < TELLING)


def _more_telling(task: Task, values: ValueSet, seeds: Seeds, slot: str, meanwhile: Meanwhile | None) -> ValueSet:
    """Return a set itself, or one with other parameters if hardly any of its outputs depends on the arguments.

    Otherwise a kernel that ignores its arguments, such as one that writes the zeros of a ReLU, would be right there. So
    would one that computes in half precision, or a part of a sum alone, where all terms are the ones of a sigmoid, and
    one that leaves out a softmax that the outputs hide.
    """
    best, most = values, _telling(task, values)
    for again in range(1, TRIES if values.shown == 1.0 or values.kind != "ordinary" else MORE_TRIES):
        if most >= TELLING and (not (best.hidden or best.unseen) or again > SHOWING_DRAWS):
            break
        tilt = most < TELLING
        other = _draw_set(
            task, values.case, values.kind, values.rung, seeds, slot, meanwhile, again, values.severe, tilt
        )
        share = _telling(task, other) if _is_clear(other) else 0.0
        if (min(share, TELLING), -other.hidden, -other.unseen) > (min(most, TELLING), -best.hidden, -best.unseen):
            best, most = other, share
    if meanwhile is not None and best is not values:
        meanwhile(best.values)
    return replace(best, fades=most < TELLING)


def _telling(task: Task, values: ValueSet) -> float:
    if values.shown < 1.0:
        return values.shown * TELLING
    apart = independent_dimensions(task) > 0  # otherwise stress values may hide the rows beside them
    return min((telling(output, _batch(task, values), apart) for output in values.expected), default=1.0)


def _stressed_rows_differ(task: Task, values: ValueSet) -> bool:
    """Return whether the outputs of stressed rows depend on these.

    Where spikes saturate them, a kernel that recognises such rows by a few elements could leave them out.
    """
    if not independent_dimensions(task):
        return True
    shares = (telling_of_stress(output, _batch(task, values)) for output in values.expected)
    return min(shares, default=1.0) >= TELLING


def _batch(task: Task, values: ValueSet) -> int:
    position = stressed_input(task.instance(values.case).signature)
    return 0 if position is None or not values.values[position].ndim else len(values.values[position])


def _hides_precision(instance: Instance) -> bool:
    """Return whether outputs are few beside the inputs of a matrix product: half precision shows hardly in them."""
    inputs, outputs = (
        sum(spec.numel for spec in specs) for specs in (instance.signature.inputs, instance.signature.outputs)
    )
    wide = any(spec.dtype == "float32" for spec in instance.signature.inputs)
    return wide and inputs >= INPUTS_PER_OUTPUT * outputs and instance.work() > 2 * (inputs + outputs)


def _in_half_precision(array: Array) -> Array:
    return in_half_precision(to_torch(array)).numpy() if array.dtype == np.float32 else array


def _draw(
    task: Task, instance: Instance, kind: Kind, rung: int, rng: np.random.Generator, severe: bool
) -> tuple[tuple[Array, ...], Rows | None]:
    rows: Rows | None = None
    if kind == "mixed":
        independent = independent_dimensions(task)
        values, rows = draw_mixed(instance.signature, rung, rng, independent=independent, severe=severe)
    else:
        values = draw(instance.signature, kind, rung, rng)
    if kind != "integers" and arguments_fade(task):
        values = _centred(instance.signature, values)
    elif kind in TIMED and not _has_softmaxes(task):
        values = _with_small_means(instance.signature, values)
    return values, rows


def _with_small_means(signature: Signature, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the values with weights whose mean adds no more to a sum of products than their deviations from it do.

    A larger one saturates activations. It is left where there are softmaxes: their arguments would be too small to show
    a maximum that is not subtracted.
    """
    return tuple(
        (array - (1.0 - (len(array) / array.size) ** 0.5) * array.mean()).astype(array.dtype)
        if is_weight(spec) and array.size
        else array
        for spec, array in zip(signature.inputs, values, strict=True)
    )


def _centred(signature: Signature, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the values with weights of mean zero, and with twice the variance, of which a ReLU leaves half.

    With an offset, which the same layer has everywhere, whole layers behind a ReLU are zero.
    """
    return tuple(
        ((array - array.mean()) * 2**0.5).astype(array.dtype) if is_weight(spec) and array.size else array
        for spec, array in zip(signature.inputs, values, strict=True)
    )


def _is_deep_and_normalised(signature: Signature) -> bool:
    statistics = any(spec.name.endswith("running_mean") for spec in signature.inputs)
    return statistics and sum(map(is_weight, signature.inputs)) >= DEEP


def _settled(instance: Instance, values: tuple[Array, ...], rows: Rows | None) -> tuple[Array, ...]:
    """Return the values with running means and variances near those of the network's activations.

    Those that are drawn without regard to them make activations such as ReLU6 constant, and a deep network's outputs
    no longer depend on its arguments. Statistics are rounded, so that no order of summation shows in them.
    """
    settled = list(values)
    position = stressed_input(instance.signature)
    if rows is not None and position is not None:
        settled[position] = _without_stress(values[position], rows)
    found = instance.statistics([to_torch(array) for array in settled])
    settled[: len(values)] = values
    for mean, variance in _means_and_variances(instance.signature):
        means, variances = (np.asarray(found[place]) for place in (mean, variance))
        spread = np.sqrt(variances)
        means = means + NEAR_MEAN * spread * values[mean]
        variances = variances * np.clip(values[variance], *NEAR_VARIANCE)
        for place, array in ((mean, means), (variance, variances)):
            array = _in_half_precision(array.astype(np.float32))
            settled[place] = np.where(spread > 0, array, values[place]).astype(values[place].dtype)
    return tuple(settled)


def _means_and_variances(signature: Signature) -> list[tuple[int, int]]:
    """Return the positions of the running mean and variance of each batch norm."""
    places = {spec.name: place for place, spec in enumerate(signature.inputs)}
    means = (name for name in places if name.endswith("running_mean"))
    pairs = ((places[name], places.get(name.removesuffix("mean") + "var")) for name in means)
    return [(mean, variance) for mean, variance in pairs if variance is not None]


def _without_stress(array: Array, rows: Rows) -> Array:
    """Return an argument with ordinary rows in place of stressed and severe ones."""
    special = rows.special
    ordinary = np.flatnonzero(~special)
    if not ordinary.size:
        return array
    chosen = np.arange(special.size)
    chosen[special] = np.resize(ordinary, int(special.sum()))
    return np.asarray(array.reshape(special.size, -1)[chosen].reshape(array.shape))


def is_weight(spec: InputSpec) -> bool:
    """Return whether an input is the matrix or the filter of a layer."""
    return spec.origin == "state" and len(spec.shape) > 1 and spec.domain.kind == "real" and "float" in spec.dtype


@lru_cache(maxsize=1024)
def arguments_fade(task: Task) -> bool:
    """Return whether the outputs of a deep network may not depend on its arguments, because a layer's ReLUs are zero.

    It is tried at the public sizes, with other arguments for the same weights.
    """
    instance = task.instance(task.public)
    specs = instance.signature.inputs
    if sum(map(is_weight, specs)) < DEEP or any(spec.name.endswith("running_mean") for spec in specs):
        return False  # normalised activations are never all negative
    rng = np.random.default_rng(0)
    for _ in range(FADING_DRAWS):
        values, others = (with_fixed(instance, draw(instance.signature, "normal", 0, rng)) for _ in range(2))
        mixed = tuple(b if spec.origin == "argument" else a for spec, a, b in zip(specs, values, others, strict=True))
        pairs = zip(evaluate(instance, values), evaluate(instance, mixed), strict=True)
        if all(_nearly_same(left, right) for left, right in pairs):
            return True
    return False


def _nearly_same(left: Array, right: Array) -> bool:
    """Return whether two outputs differ by less than a kernel may err."""
    if left.dtype.kind != "f":
        return np.array_equal(left, right)
    scale = float(np.sqrt(np.mean(np.square(left), where=np.isfinite(left)))) if left.size else 0.0
    return np.allclose(left, right, rtol=BASE["float32"], atol=BASE["float32"] * scale, equal_nan=True)


def _spreads(values: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return whether an infinity reaches several outputs: an honest kernel may multiply it by zero for the others."""
    floats = (array for array in values if array.dtype.kind == "f")
    infinite = sum(int(np.isinf(array).sum()) for array in floats if not is_finite(array))
    return infinite > 0 and sum(int((~np.isfinite(output.truth)).sum()) for output in expected) > infinite
