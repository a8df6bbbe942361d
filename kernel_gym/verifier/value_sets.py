"""The value sets that kernels are checked on: how they are drawn, and which of them are kept.

A set is as severe as the reference's own precision can decide. Those of the timing sizes also have outputs that depend
on the arguments (sensitivity/parameters.py), and tolerances in which neither the order of the reference's sums nor a
part that is left out can hide (sensitivity/parts.py).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import TypeAlias

import numpy as np
import torch

from kernel_gym.errors import TaskError
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.tasks.trials import Trial
from kernel_gym.verifier.expected import (
    UNDEFINED,
    Expected,
    any_wrong,
    expected_from,
    is_finite,
    telling,
    telling_of_stress,
    with_noise_at_most,
)
from kernel_gym.verifier.reference import (
    ValueSet,
    evaluate,
    expect,
    independent_dimensions,
    rows_are_independent,
    tried,
    with_fixed,
)
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.sensitivity import parameters, parts
from kernel_gym.verifier.sensitivity.bounds import draw_reaching
from kernel_gym.verifier.sensitivity.changed_values import LOW, alike, rows_moved, tilted
from kernel_gym.verifier.sensitivity.half_precision import rounded, sharpened
from kernel_gym.verifier.sensitivity.overflow import draw_overflowing, needing_maximum
from kernel_gym.verifier.sensitivity.variances import draw_far
from kernel_gym.verifier.values import (
    RUNGS,
    Array,
    Kind,
    Rows,
    draw,
    draw_mixed,
    stressed_input,
)

#: Kinds of the timing sizes, draws of each until the best of them is used, and the least share of the elements of an
#: output that depends on the arguments.
TIMED: tuple[Kind, ...] = ("mixed", "ordinary")
TRIES, TELLING = 8, 1 / 16
#: Draws where outputs are few, and the number of parts of the rows each of which they have to show.
MORE_TRIES, PARTS = 12, 8
#: Kinds for which the statistics of a deep network's batch norms are near those of its activations.
SETTLED: tuple[Kind, ...] = (*TIMED, "normal", "quiet", "structured")
#: Most sets that are drawn again because a product, a large softmax, what is before an activation, or an iteration does
#: not show.
SHOWING_DRAWS = 6
#: How values are drawn where quarters of products do not show, in turn: whether rows are alike, and how parameters are
#: tilted. It is given up after `FRUITLESS` draws one after another with which no further one does. The rows of a draw
#: are moved on so that each lies in each quarter once.
DRAWS_OF_QUARTERS, FRUITLESS = ((True, 0), (False, LOW - 1), (False, LOW - 4), (True, LOW), (False, LOW - 3)), 8
QUARTERS_OF_ROWS = 4
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
            drawn = replace(drawn, maxima=needing_maximum(task, drawn))
        return replace(drawn, key=seeds.variables(drawn.values))

    def draw_further(self, task: Task, kernel: Kernel, others: Sequence[ValueSet]) -> Iterator[ValueSet]:
        """Yield the kernel's own values of the timing sizes on which parts of the task show that do not on the others.

        On the first ones exponentials overflow or vanish without a maximum, then products show, then bounds are
        reached, then means are large beside deviations.
        """
        seeds, others = self.seeds(kernel, task), list(others)
        yield from draw_overflowing(task, seeds, others)
        yield from draw_for_quarters(task, seeds, others)
        yield from draw_reaching(task, seeds, others)
        yield from draw_far(task, seeds)

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
    values, rows = _draw(task, instance, kind, rung, rng, severe, again if tilt else 0)
    if meanwhile is not None:
        meanwhile(values)
    expected = _expect(instance, kind, values, rows)
    shown, saturated, hidden, unseen = 1.0, False, 0, 0
    timed = kind in TIMED or (kind == "normal" and case == task.timing)  # in place of ordinary values
    if timed:
        expected, saturated, hidden, products = parts.seeing_products(task, instance, values, expected, rows)
        expected, summands = parts.seeing_summands(task, instance, values, expected)
    if timed and (kind != "mixed" or rows_are_independent(task)):
        expected, softmaxes = parts.seeing_softmaxes(task, instance, values, expected)
        hidden, unseen = hidden + softmaxes, products + summands
        # Iterations that are redundant may be left out whatever the values are.
        if not any(flag.startswith("redundant") for flag in task.flags):
            hidden += parts.hides_an_iteration(instance, values, expected)
    if timed and parts.hides_precision(instance):
        shadows = evaluate(instance, tuple(map(rounded, values)))
        depth = parts.sum_length(instance)
        expected = tuple(sharpened(output, shadow, depth) for output, shadow in zip(expected, shadows, strict=True))
        shown = _share_of_rows(instance, values, expected) if any_wrong(shadows, expected) else 0.0
    return ValueSet(case, kind, rung, values, expected, shown, saturated, hidden, unseen, severe=severe)


def _expect(
    instance: Instance, kind: Kind, values: tuple[Array, ...], rows: Rows | None = None
) -> tuple[Expected, ...]:
    expected = expect(instance, values, integral=kind == "integers", rows=rows)
    if kind in TIMED and any(output.noisy for output in expected):
        return _without_noise_of_order(instance, values, expected, rows)
    return expected


def draw_for_quarters(task: Task, seeds: Seeds, others: list[ValueSet]) -> list[ValueSet]:
    """Return sets of the timing sizes in which quarters of heavy products show that do so in none of the others.

    Where outputs are few, one of them may depend on few rows, or the errors of many rows may cancel. Then precision
    that is lost in other rows does not show. There are none if such sets are not found soon.
    """
    instance, every = task.instance(task.timing), parts.heavy_quarters(task, task.timing)
    hidden, found, fruitless = every, list[ValueSet](), 0
    for other in others:
        hidden -= parts.quarters_seen(instance, other.values, other.expected, hidden)
    for number in range(MORE_TRIES):
        if not hidden or fruitless == FRUITLESS:
            break
        before, (are_alike, tilt) = hidden, DRAWS_OF_QUARTERS[number % len(DRAWS_OF_QUARTERS)]
        rng = seeds.generator("values", task.timing.name, "showing", number)
        inputs, _ = _draw(task, instance, "ordinary", 0, rng, severe=False, tilt=tilt)
        # One output may depend on few rows of a quarter: these are moved on to the next one.
        for _ in range(QUARTERS_OF_ROWS):
            values = alike(inputs, instance.signature, rng) if are_alike else inputs
            drawn, shown = _set_with_quarters(task, values, every, seeds)
            if hidden & shown:
                hidden -= shown
                found.append(drawn)
            if not hidden or not any(quarter.of == "rows" for _, quarter in shown):
                break
            inputs = rows_moved(inputs, instance.signature)
        fruitless = fruitless + 1 if hidden == before else 0
    return found


def _set_with_quarters(
    task: Task, values: tuple[Array, ...], quarters: frozenset[parts.HeavyQuarter], seeds: Seeds
) -> tuple[ValueSet, frozenset[parts.HeavyQuarter]]:
    """Return the set of these values, and the quarters that show there."""
    instance = task.instance(task.timing)
    expected, shown = parts.seeing_quarters(instance, values, _expect(instance, "ordinary", values), quarters)
    drawn = ValueSet(task.timing, "ordinary", 0, values, expected, key=seeds.variables(values))
    return drawn, shown if _is_clear(drawn) else frozenset()


def _share_of_rows(instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...]) -> float:
    """Return the share of the rows of the first argument that outputs without such rows depend on.

    A few rows may decide the sum of exponentials of all. Each part of the rows is exchanged for the next one.
    """
    position = stressed_input(instance.signature)
    height = 0 if position is None or not values[position].ndim else len(values[position])
    if position is None or height < PARTS or any(output.truth.shape[:1] == (height,) for output in expected):
        return 1.0
    seen, pieces = 0, np.array_split(np.arange(height), PARTS)
    for part, following in zip(pieces, [*pieces[1:], pieces[0]], strict=True):
        changed = values[position].copy()
        changed[part] = values[position][np.resize(following, part.size)]
        seen += any_wrong(evaluate(instance, (*values[:position], changed, *values[position + 1 :])), expected)
    return seen / PARTS


def _without_noise_of_order(
    instance: Instance, values: tuple[Array, ...], expected: tuple[Expected, ...], rows: Rows | None
) -> tuple[Expected, ...]:
    """Return expected outputs that the order in which the reference adds does not make noisy.

    A kernel that leaves a part of a sum out could hide in this noise. At small sizes noisy sets are drawn again with
    tamer values instead, because their noise may be that of a formula, such as one that subtracts nearly equal numbers.
    """
    rounded, _ = tried(instance, values, Trial(rounded="results"), torch.float64)
    explained = (
        expected_from(output.truth, other, spec.dtype, rows, rounds_once=output.spacing > 0)
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


def _draw(
    task: Task, instance: Instance, kind: Kind, rung: int, rng: np.random.Generator, severe: bool, tilt: int
) -> tuple[tuple[Array, ...], Rows | None]:
    """Return values, with parameters of other magnitudes if `tilt` is not 0, and which rows are stressed."""
    rows: Rows | None = None
    if kind == "mixed":
        independent = independent_dimensions(task)
        values, rows = draw_mixed(instance.signature, rung, rng, independent=independent, severe=severe)
    else:
        values = draw(instance.signature, kind, rung, rng)
    if kind != "integers" and parameters.arguments_fade(task):
        values = parameters.centred(instance.signature, values)
    elif kind in TIMED and not parts.has_softmaxes(task):
        values = parameters.with_small_means(instance.signature, values)
    values = with_fixed(instance, tilted(values, instance.signature, tilt) if tilt else values, rng)
    if kind in SETTLED and parameters.is_deep_and_normalised(instance.signature):
        values = parameters.settled_statistics(instance, values, rows)
    return values, rows


def _spreads(values: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return whether an infinity reaches several outputs: an honest kernel may multiply it by zero for the others."""
    floats = (array for array in values if array.dtype.kind == "f")
    infinite = sum(int(np.isinf(array).sum()) for array in floats if not is_finite(array))
    return infinite > 0 and sum(int((~np.isfinite(output.truth)).sum()) for output in expected) > infinite
