"""Values on which exponentials overflow, for kernels that leave out the maximum of a softmax at the timing sizes.

Spikes that make every exponential overflow would hide other parts of a network. So kernels meet these values in a run
of their own, and only where a sum of exponentials may be computed without its maximum in all other runs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from kernel_gym.tasks.exponentials import SHORTCUTS, Shortcut
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import LOOSE, UNDEFINED, Expected, any_wrong
from kernel_gym.verifier.reference import NeedsMaximum, ValueSet, expect, tried, with_fixed
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity import parts
from kernel_gym.verifier.values import RUNGS, Array, draw

#: So many sums are tried one by one, more of them together.
FEW_SUMS = 4


def needing_maximum(task: Task, values: ValueSet) -> NeedsMaximum:
    """Return which sums of exponentials are wrong on these values if they are computed by which shortcut."""
    instance, unbounded = task.instance(values.case), _unbounded(task)
    if not unbounded or not unbounded & _overflowing(instance, values.values):
        return frozenset()
    if parts.has_no_products(task):  # spikes reach the exponentials as they are
        return _with_every_shortcut(unbounded)
    each = [[position] for position in unbounded] if len(unbounded) <= FEW_SUMS else [sorted(unbounded)]
    found = set[tuple[int, Shortcut]]()
    for sums in each:
        for shortcut in SHORTCUTS:
            trial = Trial(exponentials=True, shortcut=shortcut, shortened=sums)
            shadows, _ = tried(instance, values.values, trial)
            if any_wrong(shadows, values.expected):
                found.update((position, shortcut) for position in sums)
    return frozenset(found)


def draw_overflowing(task: Task, seeds: Seeds, others: list[ValueSet]) -> ValueSet | None:
    """Return values of the timing sizes on which sums of exponentials need their maximum that need it on no other.

    The spikes are as small as possible. None is returned if there is no such sum, or if none needs it on any values.
    """
    hidden = _with_every_shortcut(_unbounded(task)).difference(*(values.maxima for values in others))
    best: ValueSet | None = None
    instance = task.instance(task.timing)
    for rung in range(RUNGS["overflow"]) if hidden else ():
        values = _draw(instance, rung, seeds.generator("values", task.timing.name, "overflow", rung))
        if not _overflowing(instance, values):
            continue
        expected = tuple(map(_loose, expect(instance, values)))
        if not all(output.undefined <= UNDEFINED for output in expected):
            continue
        drawn = ValueSet(task.timing, "overflow", rung, values, expected, key=seeds.variables(values))
        drawn = replace(drawn, maxima=hidden & needing_maximum(task, drawn))
        if len(drawn.maxima) > (len(best.maxima) if best else 0):
            best = drawn
        if drawn.maxima == hidden:
            break
    return best


def _with_every_shortcut(sums: frozenset[int]) -> NeedsMaximum:
    return frozenset((position, shortcut) for position in sums for shortcut in SHORTCUTS)


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
    return with_fixed(instance, draw(instance.signature, "overflow", rung, rng), rng)


def _loose(expected: Expected) -> Expected:
    """Return the expected output with a tolerance for near ties of large scores, where rounding decides."""
    return expected if expected.truth.dtype.kind != "f" else replace(expected, base=np.maximum(expected.base, LOOSE))
