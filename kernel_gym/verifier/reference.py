"""Expected outputs of a kernel, and their tolerances.

The reference runs twice on the same values: in float64 for the truth, and in the task's own precision for the noise
floor. A result passes within a small multiple of that noise, relative to the element and to the root mean square of
the tensor. Neither zeros nor results of half precision pass where the expected values are small.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.errors import TaskError
from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.values import RUNGS, Array, Kind, draw

#: Relative tolerance where the reference has no noise: wide enough for an approximate exp (1e-5) and for other orders
#: of summation, and an order of magnitude below the error of inputs rounded to half precision (5e-4).
BASE = {"float64": 1e-9, "float32": 5e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
#: An honest kernel may be this many times as noisy as the reference in the same precision.
MULTIPLE = 8.0
#: Values on which the reference itself is noisier than this do not tell an honest kernel from one of lower precision.
TOO_NOISY = 4.0
#: Avoids a division by zero in the noise of an all-zero reference.
TINY = 1e-300
#: Share of elements on which the reference may be undefined (its two precisions disagree on what is finite).
UNDEFINED = 0.01
#: Below this a sum of whole numbers is exact in any order of summation.
EXACT = {"float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}
#: Larger shares of infinities leave too little to compare.
MOST_INFINITE = 0.25
#: Number of value sets that all kernels of a task share, beside the set that is drawn for each.
SHARED = 3


@dataclass(frozen=True)
class Expected:
    """One expected output: the truth in float64 (or integers), which elements count, and the tolerance.

    `noise` is the largest error of the reference in the task's own precision, `scale` the truth's root mean square.
    """

    truth: Array
    counts: NDArray[np.bool_]
    base: float = 0.0
    noise: float = 0.0
    scale: float = 0.0
    exact: bool = False

    @property
    def rtol(self) -> float:
        """Relative tolerance."""
        return 0.0 if self.exact else max(self.base, MULTIPLE * self.noise)

    @property
    def tolerance(self) -> Array:
        """Largest error that passes, for each element."""
        return np.asarray(self.rtol * (np.abs(self.truth) + self.scale))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest float32 that pass, for each element: a quick check of large tensors."""
        with np.errstate(invalid="ignore", over="ignore"):
            low, high = self.truth - self.tolerance, self.truth + self.tolerance
            finite = np.isfinite(self.truth)
            exact = [np.where(finite, edge, self.truth) for edge in (low, high)]
            inner = [edge.astype(np.float32) for edge in exact]
            inner[0] = np.where(inner[0] < exact[0], np.nextafter(inner[0], np.float32(np.inf)), inner[0])
            inner[1] = np.where(inner[1] > exact[1], np.nextafter(inner[1], np.float32(-np.inf)), inner[1])
        return inner[0], inner[1]

    @property
    def undefined(self) -> float:
        """Share of elements that the reference does not define."""
        return 1.0 - float(self.counts.mean()) if self.counts.size else 0.0

    @property
    def clear(self) -> bool:
        """Whether an honest kernel, a null kernel and one of lower precision can be distinguished on these values."""
        if self.truth.dtype.kind == "f":
            infinite = float(np.isinf(self.truth).mean()) if self.truth.size else 0.0
            if np.isnan(self.truth).any() or infinite > MOST_INFINITE:
                return False
        return self.undefined <= UNDEFINED and MULTIPLE * self.noise <= TOO_NOISY * self.base


@dataclass(frozen=True)
class ValueSet:
    """Inputs of one run and the expected outputs."""

    case: Case
    kind: Kind
    rung: int
    values: tuple[Array, ...]
    expected: tuple[Expected, ...]

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return sum(a.nbytes for a in self.values) + sum(e.truth.nbytes + e.counts.nbytes for e in self.expected)


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

    def draw(self, task: Task, case: Case, kind: Kind, slot: str, kernel: Kernel) -> ValueSet:
        """Return the kernel's own value set for one use of it, named by `slot`."""
        return make(task, case, kind, self.seeds(kernel, task), slot)

    def several(self, task: Task, case: Case, kind: Kind, slot: str, kernel: Kernel, count: int) -> list[ValueSet]:
        """Return the kernel's own value set and up to `SHARED` others, which large tensors can afford."""
        seeds = self.seeds(kernel, task)
        first = seeds.integer("shared", slot)
        numbers = [(first + step) % SHARED for step in range(count - 1)]
        return [make(task, case, kind, seeds, slot)] + [
            self._shared(task, case, kind, seeds.shared, f"{slot}{number}") for number in numbers
        ]

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


def make(task: Task, case: Case, kind: Kind, seeds: Seeds, slot: str) -> ValueSet:
    """Draw a value set, as severe as possible while the reference's own precision can decide it."""
    instance = task.instance(case)
    for rung in range(RUNGS[kind]):
        rng = seeds.generator("values", case.name, kind, slot, rung)
        values = _with_fixed(instance, draw(instance.signature, kind, rung, rng))
        expected = expect(instance, values, integral=kind == "integers")
        if all(output.clear for output in expected) and not _spreads(values, expected):
            return ValueSet(case, kind, rung, values, expected)
    if kind != "normal":  # the reference is not defined on this kind: ordinary values instead
        return make(task, case, "normal", seeds, f"{slot} ordinary")
    if all(output.undefined <= UNDEFINED for output in expected):
        return ValueSet(case, kind, rung, values, expected)
    raise TaskError(f"{task.id}: the reference disagrees with itself in float64 at case {case.name!r}: mend the task")


def _spreads(values: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return whether an infinity reaches many outputs: honest kernels that multiply by zero would produce NaN there."""
    infinite = sum(int(np.isinf(array).sum()) for array in values if array.dtype.kind == "f")
    return sum(int((~np.isfinite(output.truth)).sum()) for output in expected) > 2 * infinite > 0


def _with_fixed(instance: Instance, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the values with masks, tables and constants replaced by those that the module defines."""
    fixed = instance.fixed_inputs()
    return tuple(
        _to_numpy(fixed[i]).astype(array.dtype).reshape(array.shape) if i in fixed else array
        for i, array in enumerate(values)
    )


def expect(instance: Instance, values: tuple[Array, ...], integral: bool = False) -> tuple[Expected, ...]:
    """Return the expected outputs on `values`; with `integral` they are exact where the module is linear."""
    truths = evaluate(instance, values, torch.float64)
    natives = evaluate(instance, values)
    outputs = tuple(
        _expected(truth, native, spec.dtype)
        for truth, native, spec in zip(truths, natives, instance.signature.outputs, strict=True)
    )
    if integral and all(map(_is_integral, outputs)) and _is_linear(instance, values):
        return tuple(replace(output, exact=True) for output in outputs)
    return outputs


def evaluate(instance: Instance, values: tuple[Array, ...], dtype: torch.dtype | None = None) -> tuple[Array, ...]:
    """Run the reference on arrays; floats are returned as float64."""
    with torch.no_grad():
        outputs = instance.evaluate([_to_torch(array) for array in values], dtype)
    return tuple(_to_numpy(tensor) for tensor in outputs)


def _to_torch(array: Array) -> torch.Tensor:
    array = np.ascontiguousarray(array).reshape(np.shape(array))  # without dimensions, arithmetic gives scalars
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_numpy(tensor: torch.Tensor) -> Array:
    plain = tensor.detach().to(torch.float64) if tensor.is_floating_point() else tensor.detach()
    return np.asarray(plain.contiguous().numpy())


def _expected(truth: Array, native: Array, dtype: str) -> Expected:
    if truth.dtype.kind != "f":
        return Expected(truth, np.asarray(truth == native), exact=True)
    with np.errstate(over="ignore"):
        held = truth.astype(numpy_dtype(dtype)).astype(np.float64)
    truth = np.where(np.isinf(held), held, truth)
    counts = np.isfinite(truth) & np.isfinite(native) | (truth == native) | (np.isnan(truth) & np.isnan(native))
    usual = counts & np.isfinite(truth)
    scale = float(np.sqrt(np.mean(np.square(truth[usual])))) if usual.any() else 0.0
    error = (
        np.abs(truth[usual] - native[usual]) / np.maximum(np.abs(truth[usual]) + scale, TINY)
        if usual.any()
        else np.zeros(1)
    )
    noise = float(np.nan_to_num(error).max())
    return Expected(truth, counts, BASE[dtype], noise, scale)


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
