"""The audit of a task, before any kernel is judged: no null kernel may pass it.

Null kernels do not solve the task: they write a constant, copy or permute an input, repeat the outputs for other
values, or keep inputs and outputs in half precision. Their outputs are compared like those of a kernel. If one passes
at every check case, on every kind of values, the task is defective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import torch

from kernel_gym import activity
from kernel_gym.hardware.device import numpy_dtype
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.correctness import POISON, compare
from kernel_gym.verifier.kernel_values import HIDDEN, PUBLIC
from kernel_gym.verifier.reference import ValueSet, evaluate, rows_are_independent
from kernel_gym.verifier.secret import PUBLISHED, Seeds
from kernel_gym.verifier.value_sets import TIMED, make
from kernel_gym.verifier.values import Array, Kind

Outputs = tuple[Array, ...]
FIRST, MEAN, HALF = "first output everywhere", "mean of the output", "half precision"


@dataclass(frozen=True)
class Audit:
    """The result of an audit: the null kernels that pass, and the arguments that make no difference.

    `fades` says that hardly any output depends on the arguments at the timing sizes.
    """

    task: str
    passing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    fades: bool = False

    @property
    def ok(self) -> bool:
        """Whether kernels for the task can be judged."""
        return not (self.passing or self.ignored or self.fades)


def audit(task: Task) -> Audit:
    """Try the null kernels at every check case of a task."""
    passing: set[str] | None = None
    for kind in dict.fromkeys((*PUBLIC, *HIDDEN)):
        for case in (task.public, *task.hidden):
            if passing is None or passing:
                values = _values(task, case, 0, kind)
                survivors = {name for name, outputs in null_kernels(task, values) if _passes(outputs, values)}
                passing = survivors if passing is None else passing & survivors
    defects = (passing or set()) - _vacuous(task)
    return Audit(task.id, tuple(sorted(defects)), tuple(_ignored(task)), fades(task))


def fades(task: Task, secret: bytes = PUBLISHED) -> bool:
    """Return whether a kernel could leave out most of the work at the timing sizes: all rows have the same results."""
    seeds = Seeds(secret, task.digest)
    kinds: tuple[Kind, ...] = ("mixed",) if rows_are_independent(task) else TIMED
    return all(make(task, task.timing, kind, seeds, f"audit {kind}").fades for kind in kinds)


def audit_all(tasks: Sequence[Task], workers: int = 1) -> Iterator[Audit]:
    """Yield the audits of tasks as they are done; several `workers` are processes."""
    if workers == 1:
        for task in tasks:
            activity.prepare(task.id)
            yield audit(task)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        yield from (done.result() for done in as_completed([pool.submit(audit, task) for task in tasks]))


def _vacuous(task: Task) -> set[str]:
    """Return the null kernels that are correct by definition: a single number, or half precision that is asked for."""
    specs = task.instance(task.public).signature.outputs
    single = {FIRST, MEAN} if all(spec.numel == 1 for spec in specs) else set()
    types = {spec.dtype for spec in specs}
    return single | ({HALF} if types & {"float16", "bfloat16"} and not types & {"float32", "float64"} else set())


def null_kernels(task: Task, values: ValueSet) -> Iterator[tuple[str, Outputs]]:
    """Yield name and outputs of every null kernel that the shapes allow."""
    truths = [output.truth for output in values.expected]
    for name, number in (("zeros", 0.0), ("ones", 1.0), ("nan", np.nan)):
        yield name, _filled(task, values, [number] * len(truths))
    yield FIRST, _filled(task, values, [truth.flat[0] for truth in truths])
    with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
        means = [float(np.mean(truth, dtype=np.float64)) for truth in truths]
    yield MEAN, _filled(task, values, means)
    yield "outputs of other values", _truths(task, _values(task, values.case, 1))
    yield HALF, _shadow(task, values)
    for spec, array in zip(task.instance(values.case).signature.inputs, values.values, strict=True):
        if spec.origin == "argument":
            with np.errstate(invalid="ignore"):
                mean = float(array.mean(dtype=np.float64))
            yield f"mean of {spec.name}", _filled(task, values, [mean] * len(truths))
            for name, copied in _copies(array):
                if copied.size == truths[0].size:
                    yield f"{name} of {spec.name}", _with_first(task, values, copied)


def _copies(array: Array) -> Iterator[tuple[str, Array]]:
    yield "copy", array
    yield "reversal", array.ravel()[::-1]
    if array.ndim > 1:
        yield "transposition", np.swapaxes(array, -1, -2)


def _values(task: Task, case: Case, variant: int, kind: Kind = "normal") -> ValueSet:
    return make(task, case, kind, Seeds(PUBLISHED, task.digest), f"audit{variant}")


def _passes(outputs: Outputs, values: ValueSet) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        return compare(outputs, values.expected, POISON) is None


def _truths(task: Task, values: ValueSet) -> Outputs:
    return _typed(task, values.case, tuple(output.truth for output in values.expected))


def _filled(task: Task, values: ValueSet, numbers: list[float]) -> Outputs:
    filled = [np.full(output.truth.shape, number) for output, number in zip(values.expected, numbers, strict=True)]
    return _typed(task, values.case, tuple(filled))


def _with_first(task: Task, values: ValueSet, array: Array) -> Outputs:
    """Return the array as first output and correct other outputs, so that only the first can be wrong."""
    truths = [output.truth for output in values.expected]
    return _typed(task, values.case, (array.reshape(truths[0].shape), *truths[1:]))


def _shadow(task: Task, values: ValueSet) -> Outputs:
    """Return the outputs of a kernel that keeps its inputs and outputs in half precision."""
    half = tuple(_halved(array) for array in values.values)
    outputs = evaluate(task.instance(values.case), half, torch.float32)
    return _typed(task, values.case, tuple(_halved(array) for array in outputs))


def _halved(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(array.astype(np.float16).astype(array.dtype) if array.dtype.kind == "f" else array)


def _typed(task: Task, case: Case, outputs: Outputs) -> Outputs:
    specs = task.instance(case).signature.outputs
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(
            np.nan_to_num(array).astype(numpy_dtype(spec.dtype))
            if "float" not in spec.dtype
            else array.astype(numpy_dtype(spec.dtype))
            for array, spec in zip(outputs, specs, strict=True)
        )


def _ignored(task: Task) -> Iterator[str]:
    """Yield the arguments whose values make no difference at any check case."""
    names = [spec.name for spec in task.instance(task.public).signature.inputs if spec.origin == "argument"]
    for position, name in enumerate(names):
        if not any(_matters(task, case, position) for case in (task.public, *task.hidden)):
            yield name


def _matters(task: Task, case: Case, position: int) -> bool:
    values, others = _values(task, case, 0), _values(task, case, 1)
    swapped = (*values.values[:position], others.values[position], *values.values[position + 1 :])
    outputs = evaluate(task.instance(case), swapped, torch.float64)
    return any(
        not np.array_equal(swapped_output, output.truth, equal_nan=True)
        for swapped_output, output in zip(outputs, values.expected, strict=True)
    )
