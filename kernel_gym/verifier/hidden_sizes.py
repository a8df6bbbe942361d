"""The hidden sizes of one kernel: drawn near those that the task lists, so that no list of them helps an author.

A task's own hidden cases are patterns: a dimension of 1 stays 1, an odd size stays odd (it leaves a tail), a size that
has a common divisor at all cases of the task keeps it (groups of channels). Everything else is drawn, from the seeds of
the kernel, until the reference works at the sizes.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from kernel_gym.errors import TaskError
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.secret import Seeds

#: Draws until the pattern itself is used: a reference that works hardly anywhere else.
DRAWS = 40
#: Tensors at drawn sizes may be this many times as large as those of the pattern.
LARGER = 1.5


def hidden_cases(task: Task, seeds: Seeds) -> tuple[Case, ...]:
    """Return the hidden cases at which one kernel is checked."""
    return tuple(_drawn(task, pattern, seeds.generator("sizes", pattern.name)) for pattern in task.hidden)


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


def _works(task: Task, pattern: Case, case: Case) -> bool:
    """Return whether the reference works at a case, on tensors like the pattern's."""
    try:
        instance = task.instance(case)
        if _is_like(instance.signature, task.instance(pattern).signature, task.instance(task.public).signature):
            instance.run_example()  # shapes alone do not show an index that is out of range
            return True
    except TaskError:
        pass
    return False


def _is_like(signature: Signature, pattern: Signature, public: Signature) -> bool:
    """Return whether the tensors are neither empty nor much larger; a problem file's parameters stay as they are."""
    filled = all(spec.numel for spec in (*signature.inputs, *signature.outputs))
    fixed = _parameters(pattern) == _parameters(public)
    return (
        filled
        and signature.nbytes <= LARGER * pattern.nbytes
        and (not fixed or _parameters(signature) == _parameters(public))
    )


def _parameters(signature: Signature) -> object:
    kept = [(spec.name, spec.shape) for spec in signature.inputs if spec.origin != "argument"]
    return kept, signature.ints, signature.floats
