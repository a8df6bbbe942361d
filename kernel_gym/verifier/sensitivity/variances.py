"""Values that expose an unstable variance: the mean of the squares minus the square of the mean.

This formula saves a pass over the values. It is accurate while the mean is small beside the standard deviation, and
cancels where the mean is large. The other values of the timing sizes have small means. So a kernel runs on further
value sets, in which the mean of an argument, or of a sum with a bias, is large beside its standard deviation.

There is one for each input that makes means large, because a kernel may rid a variance of one of them at no cost: a
bias of a channel cancels in an instance norm, and can be left out of its variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, sqrt
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
from kernel_gym.verifier.sensitivity.changed_values import Move, far_from_zero, moves
from kernel_gym.verifier.values import draw

#: A variance, by its position among all; None for all of them.
Variance: TypeAlias = int | None
#: A move, the least ratio at which it exposes variances at the public sizes, and these variances.
Revealed: TypeAlias = tuple[Move, float, frozenset[Variance]]
#: Ratios of mean to standard deviation, about; the smallest one that exposes a variance is used.
RATIOS = (64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0)
#: Factor on the noise while a ratio is chosen: the values of each kernel differ a little.
MARGIN = 1.5
#: Relative error of means and of what is normalised in honest kernels, and how it grows with the root of the number of
#: products in a sum, each of which is rounded beside a large mean or bias. Kernels may be `MULTIPLE` times as noisy.
LOST, LOST_IN_SUMS = 2.0**-24, 2.0**-27
#: In networks with more variances than this all are tried together, because each takes a run of the reference.
MOST_VARIANCES = 4
#: Most biases and the like that are moved in turn, at the public sizes.
MOST_INPUTS = 8


@dataclass(frozen=True)
class Far:
    """How a value set that exposes unstable variances is drawn.

    Args:
        variances: The variances that it exposes.
        move: The input that is moved, and how.
        ratio: The least ratio of mean to standard deviation.
        noise: The noise of honest kernels in each output, divided by the ratio.
    """

    variances: frozenset[Variance]
    move: Move
    ratio: float
    noise: tuple[float, ...]


def draw_far(task: Task, seeds: Seeds) -> Iterator[ValueSet]:
    """Yield the kernel's own value sets at the timing sizes that expose unstable variances."""
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
    """Return how these value sets are drawn; it is searched for once, for all kernels of a task."""
    revealed, found = revealing_moves(task), list[Far]()
    for position, hidden in sources(revealed).items():
        if found and None in hidden:  # one input is enough for variances that are tried together
            break
        if position is None:  # any other set with small weights is enough
            hidden = hidden.difference(*(far.variances for far in found if far.move.narrow))
        for move, least, variances in (each for each in revealed if each[0].position == position):
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


def sources(revealed: Iterable[Revealed]) -> dict[int | None, frozenset[Variance]]:
    """Return the positions of the inputs that make means large, each with the variances that it exposes by that.

    Small weights alone may expose a variance, because all biases are large beside them: this is the last source, with
    the position None. A bias that is moved with them is no source if that needs the same ratio.
    """
    alone = dict[Variance, float]()
    found = dict[int | None, frozenset[Variance]]()
    for move, least, variances in revealed:
        if move.position is None:
            alone |= dict.fromkeys(variances, least)
        elif own := {each for each in variances if not move.narrow or least < alone.get(each, inf)}:
            found[move.position] = found.get(move.position, frozenset()) | own
    return found | ({None: frozenset(alone)} if alone else {})


@lru_cache(maxsize=1024)
def revealing_moves(task: Task) -> tuple[Revealed, ...]:
    """Return the moves that expose variances at the public sizes, each with its least ratio and these variances.

    Variances that no move exposes, such as those of a sigmoid's results, are left out.
    """
    count = parts.variances(task)
    every = frozenset[Variance]({None} if count > MOST_VARIANCES else range(count))
    found = list[Revealed]()
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
    """Return the variances whose unstable form makes an output wrong on these values.

    The reference may be noisy there: an output is wrong only beyond this noise.
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
    products = 0 if parts.has_no_products(task) else parts.sum_length(instance)
    lost = max(LOST, LOST_IN_SUMS * sqrt(products))
    outputs, _ = tried(instance, values.values, Trial(lost_in_variances=lost), torch.float64)
    noise = (largest_error(*pair) for pair in zip(values.expected, outputs, strict=True))
    return replace(values, expected=tuple(map(with_noise, values.expected, noise)))


def _draw(task: Task, case: Case, move: Move, ratio: float, rng: np.random.Generator) -> ValueSet:
    instance = task.instance(case)
    values = far_from_zero(draw(instance.signature, "ordinary", 0, rng), instance.signature, move, ratio, rng)
    values = with_fixed(instance, values, rng)
    return ValueSet(case, "ordinary", 0, values, expect(instance, values))
