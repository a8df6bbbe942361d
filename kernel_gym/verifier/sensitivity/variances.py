"""Values whose mean is large beside their deviation, for kernels whose variances are wrong there.

The difference between the mean of squares and the square of the mean saves a pass over the values. It is a variance
where the mean is small, and rounding where it is large. The other values of the timing sizes have small means. In a run
of its own those of an argument, or of what a bias is added to, are large beside the deviation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
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
from kernel_gym.verifier.values import Move, draw, far_from_zero, moves

#: A variance, by its position among all; None for all of them.
Variance: TypeAlias = int | None
#: Means in deviations, about, in turn: the smallest that shows a variance is used.
RATIOS = (64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)
#: Variances have to show beside so many times the noise: every kernel meets other values.
MARGIN = 1.5
#: Relative error of means and of what is normalised in honest kernels, and how it grows with the root of the number of
#: products that are added to a bias, each of which is rounded. Kernels may be `MULTIPLE` times as noisy.
LOST, LOST_IN_SUMS = 2.0**-24, 2.0**-27
#: In networks with more variances than this all are tried together, because each takes a run of the reference.
MOST_VARIANCES = 4
#: Most biases and the like that are moved in turn, at the public sizes.
MOST_INPUTS = 8


@dataclass(frozen=True)
class Far:
    """How values are drawn that show variances.

    Args:
        variances: Those that they show.
        move: The input that is moved, and how.
        ratio: The mean in deviations, at least.
        noise: The noise of honest kernels in each output, for each unit of the ratio.
    """

    variances: frozenset[Variance]
    move: Move
    ratio: float
    noise: tuple[float, ...]


def draw_far(task: Task, seeds: Seeds) -> Iterator[ValueSet]:
    """Yield values of the timing sizes on which variances are wrong that are computed without subtracting the mean."""
    for number, far in enumerate(far_values(task)):
        for ratio in (ratio for ratio in RATIOS if ratio >= far.ratio):
            rng = seeds.generator("values", task.timing.name, "far", number, int(ratio))
            values = _draw(task, task.timing, far.move, ratio, rng)
            noise = (ratio * each for each in far.noise)
            values = replace(values, expected=tuple(map(with_noise, values.expected, noise)))
            if far.variances <= shown_variances(task, values, far.variances):
                yield replace(values, key=seeds.variables(values.values))
                break


@lru_cache(maxsize=1024)
def far_values(task: Task) -> tuple[Far, ...]:
    """Return how values of the timing sizes are drawn that show variances; tried once for all kernels of a task."""
    revealed, found = revealing_moves(task), list[Far]()
    hidden = frozenset[Variance]().union(*(variances for _, _, variances in revealed))
    for move, least, variances in revealed:
        for ratio in (ratio for ratio in RATIOS if ratio >= least):
            if not hidden & variances:
                break
            values = _draw_lossy(task, task.timing, move, ratio)
            outputs = tuple(replace(output, noise=MARGIN * output.noise) for output in values.expected)
            if shown := shown_variances(task, replace(values, expected=outputs), hidden):
                hidden -= shown
                noise = tuple(float(np.max(output.noise)) / ratio for output in values.expected)
                found.append(Far(shown, move, ratio, noise))
    return tuple(found)


@lru_cache(maxsize=1024)
def revealing_moves(task: Task) -> tuple[tuple[Move, float, frozenset[Variance]], ...]:
    """Return what shows variances at the public sizes, from which ratio on, and which ones.

    Variances that nothing shows, such as those behind a sigmoid, are left out.
    """
    count = parts.variances(task)
    every = frozenset[Variance]({None} if count > MOST_VARIANCES else range(count))
    found = list[tuple[Move, float, frozenset[Variance]]]()
    for move in moves(task.instance(task.public).signature, MOST_INPUTS) if every else ():
        hidden = every
        for ratio in RATIOS[::2]:
            if shown := shown_variances(task, _draw_lossy(task, task.public, move, ratio), hidden):
                hidden -= shown
                found.append((move, ratio, shown))
            if not hidden:
                break
    return tuple(found)


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


def _draw_lossy(task: Task, case: Case, move: Move, ratio: float) -> ValueSet:
    """Draw values with the noise of honest kernels, which lose digits where means are large, too."""
    instance = task.instance(case)
    values = _draw(task, case, move, ratio, np.random.default_rng(0))
    is_bias = instance.signature.inputs[move.position].origin == "state"
    lost = max(LOST, LOST_IN_SUMS * sqrt(parts.sum_length(instance)) if is_bias else 0.0)
    outputs, _ = tried(instance, values.values, Trial(lost_in_variances=lost), torch.float64)
    noise = (largest_error(*pair) for pair in zip(values.expected, outputs, strict=True))
    return replace(values, expected=tuple(map(with_noise, values.expected, noise)))


def _draw(task: Task, case: Case, move: Move, ratio: float, rng: np.random.Generator) -> ValueSet:
    instance = task.instance(case)
    values = far_from_zero(draw(instance.signature, "ordinary", 0, rng), instance.signature, move, ratio, rng)
    values = with_fixed(instance, values, rng)
    return ValueSet(case, "ordinary", 0, values, expect(instance, values))
