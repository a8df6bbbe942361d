"""The hidden sizes of one kernel: drawn near those that the task lists, so that no list of them helps an author.

A task's own hidden cases are patterns: a dimension of 1 stays 1, an odd size stays odd (it leaves a tail), a size that
has a common divisor at all cases of the task keeps it (groups of channels). Everything else is drawn, from the seeds of
the kernel, until the reference works at the sizes.

Odd sizes alone would let a kernel pass that is wrong at all even ones. So one more case has sizes that are multiples of
a power of two, as the public ones are, but others.

Kernels split their work into blocks, and blocks among cores. A mistake there shows only where the parts are uneven,
which sizes at random seldom are. So there are small cases at such edges, too, and a few between these and the larger
ones, at which a kernel may take another path.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, lcm, prod
from typing import Literal, TypeAlias

import numpy as np

from kernel_gym.errors import TaskError
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.secret import Seeds

#: Draws until the pattern itself is used: a reference that works hardly anywhere else.
DRAWS = 40
#: Draws until there is no case of aligned sizes, and the largest power of two that they are multiples of.
ALIGNED_DRAWS, ALIGNED = 4, 64
#: Tensors at drawn sizes may be this many times as large as those of the pattern.
LARGER = 1.5
#: Edges of how work is split: one element, two or three, less than half of a block and more, one element more or less
#: than whole blocks, about one element or one block for each core. Then sizes between those edges and larger cases.
Edge: TypeAlias = Literal["one", "few", "some", "most", "over", "under", "cores", "above", "between", "below"]
EDGES: tuple[Edge, ...] = ("one", "few", "some", "most", "over", "under", "cores", "above", "between", "below")
#: Elements of a block, of which the smaller are tried if the larger do not work, and numbers of cores.
BLOCKS, CORES = (64, 16, 8), (8, 16, 20, 24, 32, 40, 48)
#: Elements of a part of a block: at least, and fewer than.
PARTS: dict[Edge, tuple[int, int]] = {"some": (4, 32), "most": (32, 63)}
#: Elements between those edges and larger cases.
BETWEEN: dict[Edge, tuple[int, int]] = {"above": (2500, 4500), "between": (4500, 8000), "below": (8000, 12000)}


def hidden_cases(task: Task, seeds: Seeds) -> tuple[Case, ...]:
    """Return the hidden cases at which one kernel is checked."""
    return tuple(_drawn(task, pattern, seeds.generator("sizes", pattern.name)) for pattern in task.hidden)


def aligned_case(task: Task, seeds: Seeds) -> Case | None:
    """Return a case near the public one with aligned sizes; None if there are no hidden sizes, or none such works."""
    choices = {name: _aligned_choices(task, name, size) for name, size in task.public.sizes} if task.hidden else {}
    rng = seeds.generator("sizes", "aligned")
    for _ in range(ALIGNED_DRAWS if any(len(sizes) > 1 for sizes in choices.values()) else 0):
        case = Case("aligned", "hidden", tuple((name, int(rng.choice(sizes))) for name, sizes in choices.items()))
        if case.sizes not in (task.public.sizes, task.timing.sizes) and _works(task, task.hidden[0], case, task.public):
            return case
    return None


def edge_cases(task: Task, seeds: Seeds) -> tuple[Case, ...]:
    """Return small cases at the edges of how work is split; fewer of them if the reference does not work there."""
    if not task.hidden:
        return ()
    cases = (_edge_case(task, edge, seeds.generator("sizes", edge)) for edge in EDGES)
    return tuple(case for case in cases if case is not None)


def _edge_case(task: Task, edge: Edge, rng: np.random.Generator) -> Case | None:
    free = [name for name, size in task.public.sizes if _varies(task, name, size)]
    for block in BLOCKS if free else ():
        drawn = _spread_sizes(task, edge, free, rng) if edge in BETWEEN else _edge_sizes(task, edge, block, free, rng)
        if drawn is None:
            break
        sizes = dict(task.public.sizes) | drawn
        case = Case(f"edge_{edge}", "hidden", tuple(sizes.items()))
        if _works(task, task.hidden[0], case, task.public, edge=True):
            return case
    return None


def _varies(task: Task, name: str, size: int) -> bool:
    return any(len(_choices(task, name, dict(pattern.sizes).get(name, size))) > 1 for pattern in task.hidden)


def _edge_sizes(task: Task, edge: Edge, block: int, names: list[str], rng: np.random.Generator) -> dict[str, int]:
    """Return sizes of the constants that vary: small ones, and one of them at the edge.

    The small ones are larger where blocks are smaller, because a reference may need them.
    """
    most, growth = 3 if edge == "cores" else 1, BLOCKS[0] // block
    divisors, public = {name: _divisor(task, name) for name in names}, dict(task.public.sizes)
    sizes = {
        name: min(divisor * growth * int(rng.integers(1, most + 1)), public[name]) for name, divisor in divisors.items()
    }
    if edge == "one":
        return sizes
    name = str(rng.choice(names))
    if edge == "few":
        return sizes | {name: min(sizes[name] * int(rng.integers(2, 4)), public[name])}
    if edge in PARTS:
        return sizes | {name: divisors[name] * max(1, int(rng.integers(*PARTS[edge])) // divisors[name])}
    largest = max(dict(case.sizes).get(name, 0) for case in task.cases)
    if edge == "cores":
        cores = int(rng.choice(CORES))
        blocks = rng.random() < 0.5 and cores * block <= largest
        center, offset = cores * (block if blocks else 1), int(rng.integers(-1, 2))
    else:
        center, offset = block * int(rng.integers(1, max(2, min(8, largest // block) + 1))), 1 if edge == "over" else -1
    return sizes | {name: divisors[name] * (center // divisors[name] + offset)}


def _spread_sizes(task: Task, edge: Edge, names: list[str], rng: np.random.Generator) -> dict[str, int] | None:
    """Return sizes of the constants that vary, whose product is between the edges and larger cases; None if none are.

    None of them is larger than at all cases of the task.
    """
    low, high = BETWEEN[edge]
    limits = {name: max(dict(case.sizes).get(name, 0) for case in task.cases) for name in names}
    for _ in range(DRAWS):
        rest, sizes = int(rng.integers(low, high)), dict[str, int]()
        for name in rng.permutation(names).tolist():
            most, divisor = min(rest, limits[name]), _divisor(task, name)
            size = most if len(sizes) == len(names) - 1 else int(most ** rng.random())
            sizes[name] = divisor * max(1, size // divisor)
            rest = max(1, rest // sizes[name])
        if low <= prod(sizes.values()) < high:
            return sizes
    return None


def held_out(task: Task) -> Task:
    """Return the task with another timing case near its own; the same one for a task that works at no other sizes."""
    timing, rng = task.timing, np.random.default_rng(int(task.digest[:16], 16))
    choices = {name: _choices(task, name, size) for name, size in timing.sizes}
    for _ in range(DRAWS if any(len(sizes) > 1 for sizes in choices.values()) else 0):
        case = replace(timing, sizes=tuple((name, int(rng.choice(sizes))) for name, sizes in choices.items()))
        if case.sizes != timing.sizes and _works(task, timing, case):
            return replace(task, cases=tuple(case if other is timing else other for other in task.cases))
    return task


def _aligned_choices(task: Task, name: str, size: int) -> list[int]:
    """Return the sizes that a constant may have: from half of the public one up to it, nearly as aligned as that."""
    if len(_choices(task, name, size)) == 1:
        return [size]
    step = lcm(_divisor(task, name), max(1, min(ALIGNED, (size & -size) // 4)))
    return [value for value in range(step, size + 1, step) if 2 * value >= size] or [size]


def _drawn(task: Task, pattern: Case, rng: np.random.Generator) -> Case:
    choices = {name: _choices(task, name, size) for name, size in pattern.sizes}
    if all(len(sizes) == 1 for sizes in choices.values()):
        return pattern
    for _ in range(DRAWS):
        sizes = tuple((name, int(rng.choice(options))) for name, options in choices.items())
        case = Case(pattern.name, pattern.role, sizes)
        if _works(task, pattern, case):
            return case
    return pattern


def _choices(task: Task, name: str, size: int) -> list[int]:
    """Return the sizes that a constant may have where the pattern has `size`."""
    public, *others = (dict(case.sizes).get(name, 0) for case in (task.public, *task.hidden))
    if size == 1 or all(other == public for other in others):
        return [size]
    divisor = _divisor(task, name)
    stride = 2 if divisor == 1 else divisor  # of sizes without a divisor, odd ones stay odd
    reach = max(1, size // 3 // stride) * stride
    return [value for value in range(size - reach, size + reach + 1, stride) if value > 1]


def _divisor(task: Task, name: str) -> int:
    """Return the common divisor of a constant's sizes at all cases of the task."""
    return gcd(*(dict(case.sizes).get(name, 0) for case in (task.public, *task.hidden, task.timing)))


def _works(task: Task, pattern: Case, case: Case, largest: Case | None = None, edge: bool = False) -> bool:
    """Return whether the reference works at a case, on tensors like the pattern's, about as large as at `largest`.

    At an `edge` its results must be finite, which a variance of one element is not. Arguments and results are not
    larger than at the timing sizes there: in a network that is mostly weights, a large batch would be.
    """
    try:
        instance, most = task.instance(case), LARGER * task.instance(largest or pattern).signature.nbytes
        if _is_like(instance.signature, task.instance(pattern).signature, task.instance(task.public).signature, most):
            if edge:
                if _handled(instance.signature) > _handled(task.instance(task.timing).signature):
                    return False
                return all(bool(output.isfinite().all()) for output in instance.evaluate(instance.own_inputs(0)))
            instance.run_example()  # shapes alone do not show an index that is out of range
            return True
    except TaskError:
        pass
    return False


def _is_like(signature: Signature, pattern: Signature, public: Signature, most: float) -> bool:
    """Return whether the tensors are neither empty nor much larger; a problem file's parameters stay as they are."""
    filled = all(spec.numel for spec in (*signature.inputs, *signature.outputs))
    fixed = _parameters(pattern) == _parameters(public)
    return filled and signature.nbytes <= most and (not fixed or _parameters(signature) == _parameters(public))


def _handled(signature: Signature) -> int:
    """Return the bytes of arguments and results."""
    arguments = (spec for spec in signature.inputs if spec.origin == "argument")
    return sum(spec.nbytes for spec in (*arguments, *signature.outputs))


def _parameters(signature: Signature) -> object:
    kept = [(spec.name, spec.shape) for spec in signature.inputs if spec.origin != "argument"]
    return kept, signature.ints, signature.floats
