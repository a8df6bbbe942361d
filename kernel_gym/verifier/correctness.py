"""The correctness gate: does the kernel compute what the reference computes?

First a smoke set, so that hopeless kernels cost little. Then two value sets at the public sizes and five at each hidden
case. Then one set again with another poison in the outputs, which must give the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kernel_gym.hardware.device import Build, Device, Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier.hidden_sizes import hidden_cases
from kernel_gym.verifier.patterns import Bools, Mismatch, locate
from kernel_gym.verifier.reference import Expected, References, ValueSet
from kernel_gym.verifier.values import Array, Kind

SMOKE: tuple[Kind, ...] = ("normal",)
PUBLIC: tuple[Kind, ...] = ("normal", "stress")
HIDDEN: tuple[Kind, ...] = ("normal", "normal", "integers", "stress", "structured")
#: Bytes that outputs are filled with before a run: NaN in every float type, so that an output that was never written
#: cannot pass for zero; and a large number.
POISON, OTHER_POISON = 0xFF, 0x7B
#: Tolerance of the paper's comparison.
PLAIN = 1e-2
#: Share of the elements whose error may exceed the tolerance, and by which factor.
OUTLIERS, OUTLIER = 5e-5, 4.0


@dataclass
class Checked:
    """The runs of a correct kernel, for the latency gate; `plain` is the result of the paper's comparison."""

    plain: bool = True
    runs: list[tuple[Signature, Run]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()


def schedule(references: References, task: Task, kernel: Kernel) -> Iterator[ValueSet]:
    """Yield the value sets that a kernel is checked on, in order."""
    hidden = hidden_cases(task, references.seeds(kernel, task))
    slots = [(task.public, kind, f"smoke{i}") for i, kind in enumerate(SMOKE)]
    slots += [(task.public, kind, f"public{i}") for i, kind in enumerate(PUBLIC)]
    slots += [(case, kind, f"hidden{i}") for case in hidden for i, kind in enumerate(HIDDEN)]
    for case, kind, slot in slots:
        yield references.draw(task, case, kind, slot, kernel)


def check(device: Device, build: Build, task: Task, references: References) -> Checked | Incorrect:
    """Run the kernel on its value sets and stop at the first failure."""
    checked = Checked()
    first: tuple[ValueSet, Run] | None = None
    for values in schedule(references, task, build.kernel):
        run = check_one(device, build, task, values)
        if isinstance(run, Incorrect):
            return replace(run, plain=bool(run.plain and checked.plain)) if run.plain is not None else run
        if values.kind == "normal":
            checked.plain &= is_plainly_close(run.outputs, values.expected)
        checked.runs.append((task.instance(values.case).signature, replace(run, outputs=())))
        checked.warnings = distinct(checked.warnings + run.warnings)
        first = first or (values, run)
    return _repeat(device, build, task, first, checked) if first else checked


def distinct(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the warnings without those that differ from an earlier one only in numbers other than the line."""
    first: dict[str, str] = {}
    for text in warnings:
        first.setdefault(re.sub(r"(?<!line )(?<!\w)(0x[0-9a-f]+|\d+)", "#", text), text)
    return tuple(first.values())


def check_one(device: Device, build: Build, task: Task, values: ValueSet) -> Run | Incorrect:
    """Run the kernel on one value set and compare its outputs."""
    run = _run(device, build, task, values, POISON)
    if run.status != "ok":
        return failed(run, _sizes(task, values), _public(values))
    mismatch = compare(run.outputs, values.expected, POISON)
    if mismatch is None:
        return run
    # Only ordinary values are what the plain verdict would have looked at.
    plain = is_plainly_close(run.outputs, values.expected) if values.kind == "normal" else True
    text = f"Wrong result {_sizes(task, values)}: {mismatch.describe()}."
    if values.kind == "stress":
        text += " These values have large magnitudes, ties and spikes."
    return Incorrect(text, cause="mismatch", case=_public(values), plain=plain)


def _run(device: Device, build: Build, task: Task, values: ValueSet, poison: int) -> Run:
    return device.run(build, Inputs(task.instance(values.case).signature, values.values, poison))


def _repeat(
    device: Device, build: Build, task: Task, first: tuple[ValueSet, Run], checked: Checked
) -> Checked | Incorrect:
    values, before = first
    again = _run(device, build, task, values, OTHER_POISON)
    if again.status != "ok":
        return failed(again, _sizes(task, values), _public(values))
    for index, (output, repeated) in enumerate(zip(before.outputs, again.outputs, strict=True)):
        if output.tobytes() != repeated.tobytes():
            changed = int((_bytes(output) != _bytes(repeated)).any(axis=-1).sum())
            text = (
                f"output {index} changes between two runs on the same inputs ({changed} of {output.size} elements): it "
                "depends on memory that the kernel never wrote or on the order of its cores"
            )
            return Incorrect(text, cause="mismatch", rule="NONDETERMINISTIC", case=_public(values), plain=checked.plain)
    return checked


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.size, array.dtype.itemsize)


def compare(outputs: tuple[Array, ...], expected: tuple[Expected, ...], poison: int) -> Mismatch | None:
    """Describe the first wrong output; None if all are correct."""
    for index, (actual, reference) in enumerate(zip(outputs, expected, strict=True)):
        wrong = wrong_elements(actual, reference)
        if wrong.any():
            return locate(index, actual, reference, wrong, poison)
    return None


def wrong_elements(actual: Array, expected: Expected) -> Bools:
    """Return which elements are wrong: errors beyond the tolerance, and any difference in what is finite.

    In large tensors a few elements may exceed the tolerance by a factor of up to `OUTLIER`, because the largest of a
    million honest rounding errors is larger than that of a thousand.
    """
    truth = expected.truth
    if truth.dtype.kind != "f":
        if truth.dtype.kind == "b":  # a kernel may store any byte, numpy would read all but 0 as true
            actual, truth = actual.view(np.uint8), truth.view(np.uint8)
        return np.asarray((actual != truth) & expected.counts)
    values = actual.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error, tolerance = np.abs(values - truth), expected.tolerance
        near = error <= tolerance
        if 0 < (~near & np.isfinite(truth)).sum() <= OUTLIERS * near.size:
            near = error <= OUTLIER * tolerance
    same = (values == truth) | (np.isnan(values) & np.isnan(truth))
    return np.asarray(~(np.where(np.isfinite(truth), near, same)) & expected.counts)


def is_plainly_close(outputs: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return the result of the paper's comparison: |error| <= 1e-2 + 1e-2 |truth| everywhere."""
    return all(
        np.allclose(actual.astype(np.float64), reference.truth.astype(np.float64), rtol=PLAIN, atol=PLAIN)
        for actual, reference in zip(outputs, expected, strict=True)
    )


def failed(run: Run, place: str, case: str) -> Incorrect:
    """Return the verdict on a run that did not finish."""
    if run.status == "refused":
        text = f"kernel_launch returned {run.code} {place}: it must support every size and return 0"
        return Incorrect(text, cause="refused", case=case)
    if run.status == "timeout":
        text = f"The kernel did not end {place}: {run.fault.message if run.fault else 'an endless loop or a wait'}"
        return Incorrect(text, cause="timeout", rule=_rule(run), line=_line(run), case=case)
    message = run.fault.message if run.fault else "the kernel ended abnormally"
    where = f" line {_line(run)}" if _line(run) else ""
    text = f"{_rule(run)}{where}: {message} ({place})"
    return Incorrect(text, cause="fault", rule=_rule(run), line=_line(run), case=case)


def _rule(run: Run) -> str:
    return run.fault.rule if run.fault else ""


def _line(run: Run) -> int | None:
    return run.fault.line if run.fault else None


def _public(values: ValueSet) -> str:
    return values.case.name if values.case.role == "public" else "hidden"


def _sizes(task: Task, values: ValueSet) -> str:
    if values.case.role != "public":
        return "at sizes other than the public ones"
    inputs = task.instance(values.case).signature.inputs
    return "at " + ", ".join(f"{spec.name or 'input'} [{'x'.join(map(str, spec.shape))}]" for spec in inputs[:4])
