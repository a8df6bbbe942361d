"""Values whose mean is large beside their deviation, for kernels whose variances are wrong there.

The difference between the mean of squares and the square of the mean saves a pass over the values. It is a variance
where the mean is small, and rounding where it is large. The other values of the timing sizes have small means. So an
argument or a bias is moved far from zero, in a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch

from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import UNDEFINED, any_wrong, largest_error, with_noise
from kernel_gym.verifier.reference import ValueSet, expect, tried, with_fixed
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity import parts
from kernel_gym.verifier.values import draw, movable

#: A variance, by its position among all; None for all of them.
Variance: TypeAlias = int | None
#: What is added to all numbers of an input, in turn: the smallest that shows a variance is used.
OFFSETS = (1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
#: Variances have to show beside so many times the noise: every kernel meets other values.
MARGIN = 1.5
#: Relative error of means, and of what is normalised. That of an honest kernel may be `MULTIPLE` times as large: it may
#: add thousands of products to a bias.
LOST = 2.0**-21
#: In networks with more variances than this all are tried together, because each takes a run of the reference.
MOST_VARIANCES = 4
#: Most inputs that are moved in turn, at the public sizes.
MOST_INPUTS = 8


@dataclass(frozen=True)
class Far:
    """How values are drawn that show variances.

    Args:
        variances: Those that they show.
        position: The input that is moved.
        offset: What is added to it, at least.
        noise: The noise of honest kernels in each output, for each unit of the offset.
    """

    variances: frozenset[Variance]
    position: int
    offset: float
    noise: tuple[float, ...]


def draw_far(task: Task, seeds: Seeds) -> Iterator[ValueSet]:
    """Yield values of the timing sizes on which variances are wrong that are computed without subtracting the mean."""
    for number, far in enumerate(far_values(task)):
        for offset in (offset for offset in OFFSETS if offset >= far.offset):
            rng = seeds.generator("values", task.timing.name, "far", number, int(offset))
            values = _draw(task, task.timing, far.position, offset, rng)
            noise = (offset * each for each in far.noise)
            values = replace(values, expected=tuple(map(with_noise, values.expected, noise)))
            if far.variances <= shown_variances(task, values, far.variances):
                yield replace(values, key=seeds.variables(values.values))
                break


@lru_cache(maxsize=1024)
def far_values(task: Task) -> tuple[Far, ...]:
    """Return how values of the timing sizes are drawn that show variances; tried once for all kernels of a task."""
    hidden, found = dict(revealing_inputs(task)), list[Far]()
    for position, least in sorted(set(hidden.values())):
        for offset in (offset for offset in OFFSETS if offset >= least):
            if (position, least) not in hidden.values():
                break
            values = _draw_lossy(task, task.timing, position, offset)
            outputs = tuple(replace(output, noise=MARGIN * output.noise) for output in values.expected)
            if shown := shown_variances(task, replace(values, expected=outputs), hidden):
                hidden = {variance: place for variance, place in hidden.items() if variance not in shown}
                noise = tuple(float(np.max(output.noise)) / offset for output in values.expected)
                found.append(Far(shown, position, offset, noise))
    return tuple(found)


@lru_cache(maxsize=1024)
def revealing_inputs(task: Task) -> dict[Variance, tuple[int, float]]:
    """Return for each variance which input shows it at the public sizes, by its position, and with which offset.

    Variances that none shows, such as those behind a sigmoid, are left out.
    """
    count = parts.variances(task)
    hidden: set[Variance] = {None} if count > MOST_VARIANCES else set(range(count))
    found = dict[Variance, tuple[int, float]]()
    inputs = movable(task.instance(task.public).signature)[:MOST_INPUTS]
    for offset, position in ((offset, position) for offset in OFFSETS for position in inputs):
        if not hidden:
            break
        shown = shown_variances(task, _draw_lossy(task, task.public, position, offset), hidden)
        found |= dict.fromkeys(shown, (position, offset))
        hidden -= shown
    return found


def shown_variances(task: Task, values: ValueSet, variances: Iterable[Variance]) -> frozenset[Variance]:
    """Return which variances give a wrong output on these values if the mean is not subtracted.

    The reference may be noisy there. A wrong output exceeds this noise.
    """
    instance = task.instance(values.case)
    if not all(output.undefined <= UNDEFINED for output in values.expected):
        return frozenset()
    trials = {each: Trial(unstable_variances=None if each is None else [each]) for each in variances}
    outputs = {each: tried(instance, values.values, trial)[0] for each, trial in trials.items()}
    return frozenset(each for each, shadows in outputs.items() if any_wrong(shadows, values.expected))


def _draw_lossy(task: Task, case: Case, position: int, offset: float) -> ValueSet:
    """Draw values with the noise of honest kernels, which lose digits where means are large, too."""
    values = _draw(task, case, position, offset, np.random.default_rng(0))
    outputs, _ = tried(task.instance(case), values.values, Trial(lost_in_variances=LOST), torch.float64)
    noise = (largest_error(*pair) for pair in zip(values.expected, outputs, strict=True))
    return replace(values, expected=tuple(map(with_noise, values.expected, noise)))


def _draw(task: Task, case: Case, position: int, offset: float, rng: np.random.Generator) -> ValueSet:
    instance = task.instance(case)
    values = draw(instance.signature, "ordinary", 0, rng)
    moved = (values[position] + offset).astype(values[position].dtype)
    values = with_fixed(instance, (*values[:position], moved, *values[position + 1 :]), rng)
    return ValueSet(case, "ordinary", 0, values, expect(instance, values))
