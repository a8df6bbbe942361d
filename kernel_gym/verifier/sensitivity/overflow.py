"""Values on which exponentials overflow, for kernels that leave out the maximum of a softmax at the timing sizes.

Spikes that make every exponential overflow would hide other parts of a network. So kernels meet these values in a run
of their own, and only where a sum of exponentials may be computed without its maximum in all other runs.

Spikes at random places never lower all numbers of a sum. Behind a sum along the rows, one along the columns needs its
maximum only then, because its exponentials vanish. So a column or a row of an input is lowered in a further run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from kernel_gym.tasks.exponentials import OVERFLOW, SHORTCUTS, Shortcut
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import LOOSE, UNDEFINED, Expected, any_wrong
from kernel_gym.verifier.reference import NeedsMaximum, ValueSet, expect, tried, with_fixed
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity import parts
from kernel_gym.verifier.values import RUNGS, Array, draw, is_float

#: So many sums are tried one by one, more of them together.
FEW_SUMS = 4
#: What a slice is lowered by at least, so that its exponentials vanish beside those of the others, and how many powers
#: of two more it may be. A kernel that limits arguments would catch up with small amounts in several steps.
LOWERED, POWERS = 2 * OVERFLOW, 9
#: Parameters of a module that are tried, beside all arguments.
MOST_PARAMETERS = 8


class Lowering(NamedTuple):
    """An input, the dimension of which one slice is lowered, and the sums whose exponentials vanish by that."""

    position: int
    dimension: int
    sums: frozenset[int]


def needing_maximum(task: Task, values: ValueSet) -> NeedsMaximum:
    """Return which sums of exponentials are wrong on these values if they are computed by which shortcut."""
    instance, unbounded = task.instance(values.case), _unbounded(task)
    overflowing = unbounded & _overflowing(instance, values.values) if unbounded else unbounded
    if not overflowing or parts.has_no_products(task):  # spikes reach the exponentials as they are
        return _with_every_shortcut(overflowing)
    each = [[position] for position in overflowing] if len(overflowing) <= FEW_SUMS else [sorted(overflowing)]
    found = set[tuple[int, Shortcut]]()
    for sums in each:
        for shortcut in SHORTCUTS:
            trial = Trial(exponentials=True, shortcut=shortcut, shortened=sums)
            shadows, _ = tried(instance, values.values, trial)
            if any_wrong(shadows, values.expected):
                found.update((position, shortcut) for position in sums)
    return frozenset(found)


def draw_overflowing(task: Task, seeds: Seeds, others: Iterable[ValueSet]) -> Iterator[ValueSet]:
    """Yield values of the timing sizes on which sums of exponentials need their maximum that need it on no other.

    There is a set with spikes, which are as small as possible, and one for each input of which a slice is lowered.
    """
    hidden = _with_every_shortcut(_unbounded(task)).difference(*(values.maxima for values in others))
    best: ValueSet | None = None
    for rung in range(RUNGS["overflow"]) if hidden else ():
        drawn = _drawn(task, seeds, rung, None)
        if drawn and len(drawn.maxima & hidden) > (len(best.maxima & hidden) if best else 0):
            best = drawn
        if drawn and drawn.maxima >= hidden:
            break
    if best:
        yield best
        hidden -= best.maxima
    for lowering in _lowerings(task) if hidden else ():
        if hidden & _with_every_shortcut(lowering.sums):
            drawn = _drawn(task, seeds, 0, lowering)
            if drawn and hidden & drawn.maxima:
                yield drawn
                hidden -= drawn.maxima


def _drawn(task: Task, seeds: Seeds, rung: int, lowering: Lowering | None) -> ValueSet | None:
    """Draw values of the timing sizes; None if the reference is undefined on them, or no exponential overflows."""
    instance = task.instance(task.timing)
    slot = ("overflow", rung) if lowering is None else ("lowered", *lowering[:2])
    values = _draw(instance, rung, lowering, seeds.generator("values", task.timing.name, *slot))
    if not _overflowing(instance, values):
        return None
    expected = tuple(map(_loose, expect(instance, values)))
    if not all(output.undefined <= UNDEFINED for output in expected):
        return None
    drawn = ValueSet(task.timing, "overflow", rung, values, expected, key=seeds.variables(values))
    return replace(drawn, maxima=needing_maximum(task, drawn))


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
    """Return which sums of exponentials overflow or vanish on some values, at the public sizes.

    Those behind a sigmoid do not.
    """
    instance, found = task.instance(task.public), frozenset[int]()
    for rung in reversed(range(RUNGS["overflow"])):
        overflows = _overflows(instance, _draw(instance, rung, None, np.random.default_rng(rung)))
        found |= _positions(overflows)
        if len(found) == len(overflows):
            break
    return found.union(*(lowering.sums for lowering in _lowerings(task)))


@lru_cache(maxsize=1024)
def _lowerings(task: Task) -> tuple[Lowering, ...]:
    """Return the slices that make the exponentials of a sum behind another one vanish, at the public sizes."""
    instance, found = task.instance(task.public), list[Lowering]()
    if len(_overflows(instance, draw(instance.signature, "normal", 1, np.random.default_rng(0)))) < 2:
        return ()
    inputs = instance.signature.inputs
    real = [i for i, spec in enumerate(inputs) if spec.domain.kind == "real" and is_float(spec.dtype)]
    matrices = [i for i in real if len(inputs[i].shape) > 1]
    arguments = [i for i in matrices if inputs[i].origin == "argument"]
    parameters = [i for i in matrices if i not in arguments][:MOST_PARAMETERS]
    for position, dimension in product(arguments + parameters, (-1, -2)):
        lowering = Lowering(position, dimension, frozenset())
        if sums := _overflowing(instance, _draw(instance, 0, lowering, np.random.default_rng(0))):
            found.append(lowering._replace(sums=sums))
    return tuple(found)


def _draw(instance: Instance, rung: int, lowering: Lowering | None, rng: np.random.Generator) -> tuple[Array, ...]:
    """Draw values with spikes, or tame ones of which a slice of an input is lowered."""
    if lowering is None:
        return with_fixed(instance, draw(instance.signature, "overflow", rung, rng), rng)
    values = draw(instance.signature, "normal", 1, rng)
    slices = np.moveaxis(values[lowering.position], lowering.dimension, 0)
    amounts = np.exp2(rng.uniform(0, POWERS, (slices.shape[1], *[1] * (slices.ndim - 2))))
    slices[rng.integers(len(slices))] -= (LOWERED * amounts).astype(slices.dtype)
    return with_fixed(instance, values, rng)


def _loose(expected: Expected) -> Expected:
    """Return the expected output with a tolerance for near ties of large scores, where rounding decides."""
    return expected if expected.truth.dtype.kind != "f" else replace(expected, base=np.maximum(expected.base, LOOSE))
