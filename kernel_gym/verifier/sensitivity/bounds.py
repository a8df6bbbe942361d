"""Values that reach the bounds which no other values of the timing sizes reach, such as the lower end of a clamp.

Whether a ReLU ever sees a negative number, or a clamp one beyond its ends, depends on the biases before it. A kernel
could leave out a bound that no drawn biases reach. So these are shifted, in a run of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import any_wrong
from kernel_gym.verifier.reference import ValueSet, expect, tried, with_fixed
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity import parts
from kernel_gym.verifier.sensitivity.changed_values import has_vectors, shifted
from kernel_gym.verifier.values import draw

#: Bounds that are left out together, by their positions among all.
Bounds: TypeAlias = frozenset[int]
#: What is added to biases, in turn: the smallest shift that reaches a bound is used.
SHIFTS = (0.0, 1.0, -1.0, 4.0, -4.0, 16.0, -16.0)
#: Networks with more bounds than this are not searched: that would take a run of the reference for each of them.
MOST_BOUNDS = 12


def draw_reaching(task: Task, seeds: Seeds, others: list[ValueSet]) -> Iterator[ValueSet]:
    """Yield values of the timing sizes on which bounds are needed that are needed on none of the others."""
    hidden = reachable_bounds(task)
    for other in others:
        hidden -= needed_bounds(task, other, hidden)
    for number, shift in enumerate(SHIFTS):
        if not hidden:
            return
        rng = seeds.generator("values", task.timing.name, "reaching", number)
        values = _draw(task, task.timing, shift, rng)
        if found := needed_bounds(task, values, hidden):
            hidden -= found
            yield replace(values, key=seeds.variables(values.values))


def needed_bounds(task: Task, values: ValueSet, bounds: frozenset[Bounds]) -> frozenset[Bounds]:
    """Return which bounds cannot be left out without a wrong output on these values."""
    instance = task.instance(values.case)
    if not all(output.clear for output in values.expected):
        return frozenset()
    shadows = {each: tried(instance, values.values, Trial(without_bounds=sorted(each)))[0] for each in bounds}
    return frozenset(each for each, outputs in shadows.items() if any_wrong(outputs, values.expected))


@lru_cache(maxsize=1024)
def reachable_bounds(task: Task) -> frozenset[Bounds]:
    """Return the bounds that are needed on some values of the public sizes.

    Those that are needed on none, such as a ReLU behind another one, are one group, because leaving all of them out may
    still be wrong.
    """
    count = parts.bounds(task)
    if count > MOST_BOUNDS or not has_vectors(task.instance(task.public).signature):
        return frozenset()
    every, sets = frozenset(frozenset({position}) for position in range(count)), list[ValueSet]()
    needed = frozenset[Bounds]()
    for shift in SHIFTS if every else ():
        sets.append(_draw(task, task.public, shift, np.random.default_rng(0)))
        needed |= needed_bounds(task, sets[-1], every - needed)
        if needed == every:
            return every
    together = frozenset({frozenset().union(*(every - needed))})
    return needed.union(*(needed_bounds(task, values, together) for values in sets))


def _draw(task: Task, case: Case, shift: float, rng: np.random.Generator) -> ValueSet:
    instance = task.instance(case)
    values = draw(instance.signature, "ordinary", 0, rng)
    values = with_fixed(instance, shifted(values, instance.signature, shift), rng)
    return ValueSet(case, "ordinary", 0, values, expect(instance, values))
