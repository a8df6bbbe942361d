"""Values on which exponentials overflow, for kernels that leave out the maximum of a softmax at the timing sizes.

Spikes that make every exponential overflow would hide other parts of a network. So kernels meet these values in a run
of their own, and only where a sum of exponentials overflows in none of the other runs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import LOOSE, UNDEFINED, Expected
from kernel_gym.verifier.reference import ValueSet, expect, tried, with_fixed
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.values import RUNGS, Array, draw


def overflowing(task: Task, values: ValueSet) -> frozenset[int]:
    """Return which sums of exponentials overflow unless their maximum is subtracted, in the order of their use."""
    return _overflowing(task.instance(values.case), values.values) if _unbounded(task) else frozenset()


def draw_overflowing(task: Task, seeds: Seeds, others: list[ValueSet]) -> ValueSet | None:
    """Return values of the timing sizes on which the sums of exponentials overflow that do not on the others.

    The spikes are as small as possible. None is returned if there is no such sum, or if none overflows on any values.
    """
    hidden = _unbounded(task).difference(*(values.overflows for values in others))
    if not hidden:
        return None
    case, best, most = task.timing, None, 0
    instance = task.instance(case)
    for rung in range(RUNGS["overflow"]):
        values = _draw(instance, rung, seeds.generator("values", case.name, "overflow", rung))
        shown = len(hidden & _overflowing(instance, values))
        if shown <= most:
            continue
        expected = tuple(map(_loose, expect(instance, values)))
        if all(output.undefined <= UNDEFINED for output in expected):
            best, most = ValueSet(case, "overflow", rung, values, expected), shown
        if most == len(hidden):
            break
    return best and replace(best, key=seeds.variables(best.values))


def _overflowing(instance: Instance, values: tuple[Array, ...]) -> frozenset[int]:
    return _positions(_overflows(instance, values))


def _overflows(instance: Instance, values: tuple[Array, ...]) -> list[bool]:
    return tried(instance, values, Trial(exponentials=True))[1].overflows


def _positions(overflows: list[bool]) -> frozenset[int]:
    return frozenset(position for position, overflow in enumerate(overflows) if overflow)


@lru_cache(maxsize=1024)
def _unbounded(task: Task) -> frozenset[int]:
    """Return which sums of exponentials overflow on some values; those behind a sigmoid do not. It is tried at the
    public sizes."""
    instance, found = task.instance(task.public), frozenset[int]()
    for rung in reversed(range(RUNGS["overflow"])):
        overflows = _overflows(instance, _draw(instance, rung, np.random.default_rng(rung)))
        found |= _positions(overflows)
        if len(found) == len(overflows):
            break
    return found


def _draw(instance: Instance, rung: int, rng: np.random.Generator) -> tuple[Array, ...]:
    return with_fixed(instance, draw(instance.signature, "overflow", rung, rng))


def _loose(expected: Expected) -> Expected:
    """Return the expected output with a tolerance for near ties of large scores, where rounding decides."""
    return expected if expected.truth.dtype.kind != "f" else replace(expected, base=np.maximum(expected.base, LOOSE))
