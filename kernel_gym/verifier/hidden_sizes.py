"""The hidden sizes of one kernel: drawn near those that the task lists, so that no list of them helps an author.

A task's own hidden cases are patterns: a dimension of 1 stays 1, an odd size stays odd (it leaves a tail), a size that
has a common divisor at all cases of the task keeps it (groups of channels). Everything else is drawn, from the seeds of
the kernel, until the reference works at the sizes.

Odd sizes alone would let a kernel pass that is wrong at all even ones. So one more case has sizes that are multiples of
a power of two, as the public ones are, but others.
"""

from __future__ import annotations

from math import gcd, lcm

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


def _aligned_choices(task: Task, name: str, size: int) -> list[int]:
    """Return the sizes that a constant may have: from half of the public one up to it, nearly as aligned as that."""
    if len(_choices(task, name, size)) == 1:
        return [size]
    divisor = gcd(*(dict(case.sizes).get(name, 0) for case in (task.public, *task.hidden, task.timing)))
    step = lcm(divisor, max(1, min(ALIGNED, (size & -size) // 4)))
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
    public, *others = (dict(case.sizes).get(name, 0) for case in (task.public, *task.hidden, task.timing))
    if size == 1 or all(other == public for other in others[:-1]):
        return [size]
    divisor = gcd(public, *others)
    stride = 2 if divisor == 1 else divisor  # of sizes without a divisor, odd ones stay odd
    reach = max(1, size // 3 // stride) * stride
    return [value for value in range(size - reach, size + reach + 1, stride) if value > 1]


def _works(task: Task, pattern: Case, case: Case, largest: Case | None = None) -> bool:
    """Return whether the reference works at a case, on tensors like the pattern's, about as large as at `largest`."""
    try:
        instance, most = task.instance(case), LARGER * task.instance(largest or pattern).signature.nbytes
        if _is_like(instance.signature, task.instance(pattern).signature, task.instance(task.public).signature, most):
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


def _parameters(signature: Signature) -> object:
    kept = [(spec.name, spec.shape) for spec in signature.inputs if spec.origin != "argument"]
    return kept, signature.ints, signature.floats
