"""Expected outputs of a kernel, and their tolerances.

The reference runs twice on the same values: in float64 for the truth, and in the task's own precision for the noise
floor. A result passes within a small multiple of that noise, relative to the element and to the root mean square of
the tensor. Neither zeros nor results of half precision pass where the expected values are small.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.tasks.exponentials import Shortcut
from kernel_gym.tasks.rounding import HALF_UNIT
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Counts, Trial
from kernel_gym.verifier.expected import (
    MULTIPLE,
    OUTLIERS,
    Expected,
    as_rows,
    expected_from,
    with_noise_of,
    wrong_elements,
)
from kernel_gym.verifier.values import Array, Doubles, Kind, Rows, draw, row_dimensions, stressed_input

# Large tensors are kept in huge pages, which saves a tenth of a verdict's time. torch reads the variable once, when it
# first allocates memory.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

#: Sums of exponentials that need their maximum, by their order, and what they need it against.
NeedsMaximum: TypeAlias = frozenset[tuple[int, Shortcut]]
#: Below this a sum of whole numbers is exact in any order of summation.
EXACT = {"float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}
#: Runs of the reference on nudged inputs. The largest error of a single one is chance.
NUDGES = 4


@dataclass(frozen=True)
class ValueSet:
    """Inputs of one run and the expected outputs.

    Where outputs are few, `shown` is the share of the inputs' rows that they depend on, and 0 if they are the same for
    inputs in half precision. A set is `saturated` if the outputs of stressed rows are the same for a product in half
    precision, and `fades` if hardly any of them depends on the arguments. `hidden` is the number of large softmaxes
    whose weights could be constant without a wrong output, of activations that are the same in all rows without
    stress, and of last iterations that could be left out, `unseen` that of heavy products that could be in half
    precision. Few rows have a severe one among them if it is `severe`.
    `maxima` says which sums of exponentials are wrong by which shortcut that leaves out their maximum.
    `key` determines the contents of uninitialised variables.
    """

    case: Case
    kind: Kind
    rung: int
    values: tuple[Array, ...]
    expected: tuple[Expected, ...]
    shown: float = 1.0
    saturated: bool = False
    hidden: int = 0
    unseen: int = 0
    fades: bool = False
    severe: bool = True
    maxima: NeedsMaximum = frozenset()
    key: int = 0

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return sum(a.nbytes for a in self.values) + sum(e.truth.nbytes + e.counts.nbytes for e in self.expected)


def with_fixed(instance: Instance, values: tuple[Array, ...], rng: np.random.Generator) -> tuple[Array, ...]:
    """Return the values with masks, tables and constants replaced by those that the module has.

    Those that its constructor draws at random are drawn by it again: a kernel that knows their values could compute on
    these instead of its argument.
    """
    fixed = instance.fixed_inputs()
    if drawn := instance.drawn_inputs():  # else nothing is taken from the generator
        own = instance.own_inputs(int(rng.integers(2**63)))
        fixed |= {position: own[position] for position in drawn}
    return tuple(
        _to_numpy(fixed[i]).astype(array.dtype).reshape(array.shape) if i in fixed else array
        for i, array in enumerate(values)
    )


def expect(
    instance: Instance, values: tuple[Array, ...], integral: bool = False, rows: Rows | None = None
) -> tuple[Expected, ...]:
    """Return the expected outputs on `values`; with `integral` they are exact where the module is linear."""
    truths = evaluate(instance, values, torch.float64)
    natives = evaluate(instance, values, widen=False)
    rounds_once = _computes_in_float32(instance, values)
    outputs = tuple(
        expected_from(truth, native, spec.dtype, rows, rounds_once=rounds_once)
        for truth, native, spec in zip(truths, natives, instance.signature.outputs, strict=True)
    )
    if instance.signature.unordered:
        outputs = _ordered(instance, values, outputs)
    if integral and all(map(_is_integral, outputs)) and _is_linear(instance, values):
        return tuple(replace(output, exact=True) for output in outputs)
    return outputs


def _computes_in_float32(instance: Instance, values: tuple[Array, ...]) -> bool:
    """Return whether an honest kernel rounds to 16 bits at its end only.

    Arguments in float32 ask for arithmetic in float32. So do those in bfloat16, for which there are products only; a
    kernel may round the operands of these to it.
    """
    inputs, outputs = (
        {spec.dtype for spec in specs} for specs in (instance.signature.inputs, instance.signature.outputs)
    )
    if "float32" in inputs:
        return True
    if "bfloat16" not in outputs or "float16" in inputs:
        return False
    return not tried(instance, values, Trial(wide_products=True))[1].wide_products


def _ordered(instance: Instance, values: tuple[Array, ...], outputs: tuple[Expected, ...]) -> tuple[Expected, ...]:
    """Return the expected outputs without the elements that depend on the order in which equal elements are sorted.

    Ties are broken in one way and in the opposite one, which exchanges every pair, and in a third.
    """
    for seed, sign in ((0, 1.0), (0, -1.0), (1, 1.0)):
        rng = np.random.default_rng(seed)
        broken = tuple(_without_ties(array, sign, rng) if _is_float(array) else array for array in values)
        others = evaluate(instance, broken, torch.float64)
        outputs = tuple(
            replace(output, counts=output.counts & np.isclose(output.truth, other, rtol=1e-6, atol=0.0, equal_nan=True))
            for output, other in zip(outputs, others, strict=True)
        )
    return outputs


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _without_ties(array: Array, sign: float, rng: np.random.Generator) -> Doubles:
    """Return numbers in float64 that are off by so little that only equal ones change their order."""
    wide = array.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(wide + sign * (1e-12 * np.abs(wide) + 1e-30) * rng.uniform(-1.0, 1.0, wide.shape))


def nudged(instance: Instance, values: ValueSet) -> tuple[Expected, ...]:
    """Return the expected outputs with the reference's noise on inputs that are off by half a unit in the last place.

    Where that is larger than its noise on the inputs as they are, these were kind to the order in which it computes.
    """
    expected = values.expected
    for others in _outputs_of_nudged(instance, values):
        expected = tuple(map(with_noise_of, expected, others))
    return expected


def without_near_ties(instance: Instance, values: ValueSet, outputs: tuple[Array, ...]) -> tuple[Expected, ...]:
    """Return the expected outputs without the few wrong elements of `outputs` whose errors nudged inputs explain.

    Behind a softmax of large scores the last place of a score decides the elements of a near tie. How far the reference
    itself is off in each of them is chance.
    """
    errors = [np.zeros(output.truth.shape) for output in values.expected]
    for others in _outputs_of_nudged(instance, values):
        for error, other, output in zip(errors, others, values.expected, strict=True):
            np.fmax(error, np.abs(other - output.truth), out=error)
    return tuple(map(_without_explained, values.expected, outputs, errors))


def _outputs_of_nudged(instance: Instance, values: ValueSet) -> Iterator[tuple[Array, ...]]:
    signs = np.random.default_rng(0)
    for _ in range(NUDGES):
        inputs = tuple(
            (array * (1 + signs.choice((-HALF_UNIT, HALF_UNIT), array.shape))).astype(array.dtype)
            if array.dtype == np.float32
            else array
            for array in values.values
        )
        yield evaluate(instance, inputs)


def _without_explained(expected: Expected, actual: Array, error: Doubles) -> Expected:
    wrong = wrong_elements(actual, expected)
    if expected.truth.dtype.kind != "f" or np.count_nonzero(wrong) > OUTLIERS * wrong.size:
        return expected
    with np.errstate(invalid="ignore"):
        explained = np.abs(actual.astype(np.float64) - expected.truth) <= MULTIPLE * error
    return replace(expected, counts=expected.counts & ~(wrong & explained))


def rounded_otherwise(instance: Instance, values: ValueSet) -> tuple[Expected, ...]:
    """Return the expected outputs with the rounding errors that float32 has in another order of summation.

    Where all results are small, because large terms cancel, those of the reference in its own order are chance.
    """
    others, _ = tried(instance, values.values, Trial(rounded="sums"), torch.float64)
    return tuple(map(with_noise_of, values.expected, others))


def rounded_either_way(instance: Instance, values: ValueSet, outputs: tuple[Array, ...]) -> tuple[Expected, ...]:
    """Return the expected outputs without the integers of `outputs` that are off by one and right for nudged inputs.

    A number half way between two integers is rounded to one or the other, by the order of products that lead to it.
    """
    expected = values.expected
    for sign in (1.0, -1.0):
        rng = np.random.default_rng(0)
        inputs = tuple(_off(array, sign, rng) if _is_float(array) else array for array in values.values)
        others = evaluate(instance, inputs, torch.float64)
        expected = tuple(map(_without_ties_of, expected, others, outputs))
    return expected


def _off(array: Array, sign: float, rng: np.random.Generator) -> Doubles:
    """Return numbers in float64 that are off by up to two units in the last place of float32."""
    return np.asarray(array.astype(np.float64) * (1.0 + sign * 4 * HALF_UNIT * rng.uniform(-1.0, 1.0, array.shape)))


def _without_ties_of(expected: Expected, other: Array, actual: Array) -> Expected:
    if expected.truth.dtype.kind not in "iu":
        return expected
    tie = (actual == other) & (np.abs(expected.truth.astype(np.int64) - other) == 1)
    return replace(expected, counts=expected.counts & ~tie)


def rows_are_independent(task: Task) -> bool:
    """Return whether each row of the outputs depends on one row of the input whose rows are stressed at timing sizes.

    Otherwise large values in some rows may hide the others.
    """
    return stressed_input(task.instance(task.timing).signature) is None or independent_dimensions(task) > 0


@lru_cache(maxsize=1024)
def independent_dimensions(task: Task) -> int:
    """Return how many leading dimensions, at most, count rows that do not depend on each other; 0 if the rows do.

    It is tried at the public sizes, with other values in some rows of the input whose rows are stressed.
    """
    position = stressed_input(task.instance(task.timing).signature)
    if position is None:
        return 0
    shape = task.instance(task.timing).signature.inputs[position].shape
    instance = task.instance(task.public)
    rng = np.random.default_rng(0)
    values, others = (with_fixed(instance, draw(instance.signature, "normal", 0, rng), rng) for _ in range(2))
    outputs = evaluate(instance, values, torch.float64)
    least = row_dimensions(shape)
    for dimensions in range(max(least, len(shape) - 1), least - 1, -1):
        leading = values[position].shape[:dimensions]
        kept = rng.permutation(prod(leading)) % 2 == 0
        if kept.all() or any(output.shape[:dimensions] != leading for output in outputs):  # one row cannot tell
            continue
        mixture = np.where(kept[:, None], as_rows(values[position], kept.size), as_rows(others[position], kept.size))
        mixed = (*values[:position], mixture.reshape(values[position].shape), *values[position + 1 :])
        pairs = zip(outputs, evaluate(instance, mixed, torch.float64), strict=True)
        if all(_same_rows(output, other, kept) for output, other in pairs):
            return dimensions
    return 0


def _same_rows(output: Array, other: Array, rows: NDArray[np.bool_]) -> bool:
    return np.array_equal(as_rows(output, rows.size)[rows], as_rows(other, rows.size)[rows], equal_nan=True)


def evaluate(
    instance: Instance,
    values: tuple[Array, ...],
    dtype: torch.dtype | None = None,
    widen: bool = True,
) -> tuple[Array, ...]:
    """Run the reference on arrays; floats are returned as float64, without `widen` at least as float32."""
    with torch.no_grad():
        outputs = instance.evaluate([to_torch(array) for array in values], dtype)
    return tuple(_to_numpy(tensor, torch.float64 if widen else torch.float32) for tensor in outputs)


def tried(
    instance: Instance,
    values: tuple[Array, ...],
    trial: Trial,
    dtype: torch.dtype | None = None,
    usual: NDArray[np.bool_] | None = None,
) -> tuple[tuple[Array, ...], Counts]:
    """Run the reference on arrays as a trial says; floats are returned at least as `dtype`, and as float32.

    `usual` says which rows of the first argument have no stress: activations that are the same in these are counted.
    """
    rows = None if usual is None else to_torch(usual)
    with torch.no_grad():
        outputs, counts = instance.tried([to_torch(array) for array in values], trial, dtype, rows)
    return tuple(_to_numpy(tensor, dtype or torch.float32) for tensor in outputs), counts


def to_torch(array: Array) -> torch.Tensor:
    """Return an array as a tensor of the same type."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))  # without dimensions, arithmetic gives scalars
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_numpy(tensor: torch.Tensor, least: torch.dtype = torch.float64) -> Array:
    plain = tensor.detach()
    if plain.is_floating_point():
        plain = plain.to(torch.promote_types(plain.dtype, least))
    return np.asarray(plain.contiguous().numpy())


def _is_integral(expected: Expected) -> bool:
    whole = expected.truth.dtype.kind != "f" or bool(np.all(expected.truth == np.rint(expected.truth)))
    return whole and expected.noise == 0.0


def _is_linear(instance: Instance, values: tuple[Array, ...]) -> bool:
    """Return whether the module is affine in each float input, with sums that are exact in any order."""
    floats = [i for i, spec in enumerate(instance.signature.inputs) if "float" in spec.dtype]
    outputs = instance.signature.outputs
    largest = evaluate(instance, tuple(np.abs(a) if i in floats else a for i, a in enumerate(values)), torch.float64)
    if any(np.abs(a).max(initial=0.0) >= EXACT.get(s.dtype, 0) for a, s in zip(largest, outputs, strict=True)):
        return False
    return bool(floats) and all(_is_affine(instance, values, index) for index in floats)


def _is_affine(instance: Instance, values: tuple[Array, ...], index: int) -> bool:
    """Return whether f(a + b) + f(0) = f(a) + f(b) in the input at `index`; exact, with integers in float64."""

    def at(array: Array) -> tuple[Array, ...]:
        return evaluate(instance, (*values[:index], array, *values[index + 1 :]), torch.float64)

    a, zero = values[index], np.zeros_like(values[index])
    b = np.asarray(np.roll(a, 1) * 2 + 1).astype(a.dtype)
    quadruples = zip(at((a + b).astype(a.dtype)), at(zero), at(a), at(b), strict=True)
    return all(np.array_equal(both + none, left + right) for both, none, left, right in quadruples)
