"""The correctness gate: does the kernel compute what the reference computes?

First a smoke set, so that hopeless kernels cost little. Then two value sets at the public sizes and five at each hidden
case, one at aligned sizes and one at each edge. Then one set again with another poison in the outputs, which must give
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, inf

import numpy as np

from kernel_gym.hardware.device import Build, Device, Inputs, Run
from kernel_gym.tasks.operators import operators
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier.expected import OUTLIER, Expected, wrong_elements
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.patterns import Mismatch, locate, without_numbers
from kernel_gym.verifier.reference import ValueSet, nudged, rounded_either_way, rounded_otherwise, without_near_ties
from kernel_gym.verifier.values import Array

#: Bytes that outputs are filled with before a run: NaN in every float type, so that an output that was never written
#: cannot pass for zero; and a large number.
POISON, OTHER_POISON = 0xFF, 0x7B
#: A device's limit of instructions is enough for this many operations of the reference, even one by one on the scalar
#: unit. A check may take as many limits as the task's work needs, up to a number.
WORK_PER_LIMIT, MOST_LIMITS = 1_000_000, 16
#: A device's limit of elements is enough for this many operations of the reference on vector units, and not for more
#: than this many on cube units.
VECTOR_WORK, CUBE_WORK = 1 << 32, 1 << 36
#: Most instructions that all checks of one kernel may take together, counting 64 bytes of vectors as one.
MOST_EFFORT = 8_000_000_000
#: Rules of a device that stop a run which would have gone on.
STOPPED = ("BUDGET", "WORK_LIMIT")
#: How many tolerances the errors of a sum of terms that cancel, or of a near tie, may have, and the largest relative
#: error, so that no look at rounding lets zeros pass where the tolerance is that of a type of 16 bits.
CANCELLED, MOST_CANCELLED = 64.0, 0.05
#: Operators that make whole numbers of floats.
ROUNDING = ("round", "floor", "ceil", "trunc")
#: What is told of faults at hidden sizes whose words are the author's.
WITHOUT_WORDS = {
    "ASSERT": "an assertion failed",
    "MODEL": "the model fails",
    "BINDING": "the binding refuses the call",
    "HOST": "the tiling function fails or sets what no device accepts",
}
SLOW = "it is too slow, or a loop never ends; work on tiles with vector instructions"
#: Tolerance of the paper's comparison.
PLAIN = 1e-2


@dataclass
class Patience:
    """Whether a kernel has needed more than one limit of instructions: then it gets more of them at once."""

    needed: bool = False

    def run(self, device: Device, build: Build, instance: Instance, inputs: Inputs) -> Run:
        """Run a kernel; if it reaches a limit and the task has much work, with a higher limit."""
        if not self.needed:
            run = device.run(build, inputs)
            if not _may_go_on(run, instance):
                return run
            self.needed = True
        return device.run(build, replace(inputs, effort=_limits(instance)))


def _may_go_on(run: Run, instance: Instance) -> bool:
    """Return whether a run was stopped at a limit that is too low for the work of its task."""
    least = {"BUDGET": WORK_PER_LIMIT, "WORK_LIMIT": VECTOR_WORK}
    return run.fault is not None and instance.work() > least.get(run.fault.rule, inf)


def _limits(instance: Instance) -> int:
    """Return how many limits a check may take."""
    return max(1, min(ceil(instance.work() / WORK_PER_LIMIT), MOST_LIMITS))


@dataclass
class Checked:
    """A kernel that is correct at the check sizes; `plain` is the result of the paper's comparison."""

    plain: bool = True
    warnings: tuple[str, ...] = ()
    patience: Patience = field(default_factory=Patience)


def check(device: Device, build: Build, task: Task, sets: KernelValues) -> Checked | Incorrect:
    """Run the kernel on its value sets and stop at the first failure."""
    checked = Checked()
    first: tuple[ValueSet, Run] | None = None
    effort = 0
    for values in sets.checks():
        if not _is_public(values):
            sets.start_timing()
        run = check_one(device, build, task, values, checked.patience)
        if isinstance(run, Incorrect):
            return replace(run, plain=bool(run.plain and checked.plain)) if run.plain is not None else run
        if values.kind == "normal":
            checked.plain &= is_plainly_close(run.outputs, values.expected)
        effort += _effort(run)
        if effort > MOST_EFFORT:
            text = f"The kernel did not end its checks within the limit of instructions: {SLOW}"
            return Incorrect(text, cause="timeout", rule="BUDGET", case=_public(values), plain=checked.plain)
        warnings = run.warnings if _is_public(values) else tuple(map(without_numbers, run.warnings))
        checked.warnings = distinct(checked.warnings + warnings)
        first = first or (values, run)
    return _repeat(device, build, task, first, checked) if first else checked


def _effort(run: Run) -> int:
    return run.spent + (run.profile.bytes.get("ub", 0) // 64 if run.profile else 0)


def distinct(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the warnings without those that differ from an earlier one only in numbers other than the line."""
    first: dict[str, str] = {}
    for text in warnings:
        first.setdefault(without_numbers(text), text)
    return tuple(first.values())


def check_one(
    device: Device, build: Build, task: Task, values: ValueSet, patience: Patience | None = None
) -> Run | Incorrect:
    """Run the kernel on one value set and compare its outputs."""
    run = _run(device, build, task, values, POISON, patience or Patience())
    return refuse(run, task, values) or run


def refuse(run: Run, task: Task, values: ValueSet) -> Incorrect | None:
    """Return the verdict on a run that did not finish or whose outputs are wrong; None if it is right."""
    if run.status != "ok":
        return failed(run, _sizes(task, values), _public(values))
    mismatch = compare(run.outputs, values.expected, POISON)
    if mismatch is None or _is_undecided(run, task, values):
        return None
    # Only ordinary values at the check sizes are what the plain verdict would have looked at.
    plain = None if values.case.role == "timing" else True
    if values.kind == "normal":
        plain = is_plainly_close(run.outputs, values.expected)
    mistake = mismatch.describe() if _is_public(values) else mismatch.describe_hidden()
    text = f"Wrong result {_sizes(task, values)}: {mistake}."
    if values.kind == "stress":
        text += " These values have large magnitudes, ties and spikes."
    # No value of a hidden case leaves the verifier.
    elements = mismatch.elements if _is_public(values) else ()
    return Incorrect(text, cause="mismatch", case=_public(values), plain=plain, wrong=elements)


def _is_undecided(run: Run, task: Task, values: ValueSet) -> bool:
    """Return whether small errors are those that the reference itself has if it is rounded a little differently.

    A softmax of large scores with a near tie magnifies the last place, and a sum of large terms that cancel magnifies
    the rounding of each; how the reference rounds there is chance. So is the integer to which it rounds a number that
    is half way between two.
    """
    instance = task.instance(values.case)
    if _rounds(task) and compare(run.outputs, rounded_either_way(instance, values, run.outputs), POISON) is None:
        return True
    if _is_within(run, values, OUTLIER) and compare(run.outputs, nudged(instance, values), POISON) is None:
        return True
    return _is_within(run, values, CANCELLED, MOST_CANCELLED) and (
        compare(run.outputs, rounded_otherwise(instance, values), POISON) is None
        or compare(run.outputs, without_near_ties(instance, values, run.outputs), POISON) is None
    )


@lru_cache(maxsize=1024)
def _rounds(task: Task) -> bool:
    """Return whether a task has integers as outputs that are rounded from floats, rather than indices or counts."""
    integers = any("int" in spec.dtype for spec in task.instance(task.public).signature.outputs)
    return integers and any(name.split(".")[1] in ROUNDING for name in operators(task))


def _is_within(run: Run, values: ValueSet, factor: float, most: float = inf) -> bool:
    """Return whether no error is larger than so many tolerances, or than the largest that counts as small."""
    rtols = (np.maximum(output.rtol, np.minimum(factor * output.rtol, most)) for output in values.expected)
    wider = (replace(output, base=rtol, noise=0.0) for output, rtol in zip(values.expected, rtols, strict=True))
    return not any(wrong_elements(actual, output).any() for actual, output in zip(run.outputs, wider, strict=True))


def _run(device: Device, build: Build, task: Task, values: ValueSet, poison: int, patience: Patience) -> Run:
    instance = task.instance(values.case)
    inputs = Inputs(instance.signature, values.values, poison, case=values.case, key=values.key)
    return patience.run(device, build, instance, inputs)


def _repeat(
    device: Device, build: Build, task: Task, first: tuple[ValueSet, Run], checked: Checked
) -> Checked | Incorrect:
    values, before = first
    again = _run(device, build, task, values, OTHER_POISON, checked.patience)
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


def is_plainly_close(outputs: tuple[Array, ...], expected: tuple[Expected, ...]) -> bool:
    """Return the result of the paper's comparison: |error| <= 1e-2 + 1e-2 |truth| everywhere."""
    return all(
        np.allclose(actual.astype(np.float64), reference.truth.astype(np.float64), rtol=PLAIN, atol=PLAIN)
        for actual, reference in zip(outputs, expected, strict=True)
    )


def failed(run: Run, place: str, case: str) -> Incorrect:
    """Return the verdict on a run that did not finish; numbers are told at the public sizes only."""
    public = case not in ("hidden", "timing")
    if run.status == "refused":
        code = run.code if public else "an error"
        text = f"kernel_launch returned {code} {place}: it must support every size and return 0"
        return Incorrect(text, cause="refused", case=case)
    if _rule(run) in STOPPED:
        text = f"The kernel did not end {place} within the limit of instructions: {SLOW}"
        return Incorrect(text, cause="timeout", rule=_rule(run), line=_line(run), case=case)
    message = run.fault.message if run.fault else ""
    if not public:
        message = WITHOUT_WORDS.get(_rule(run)) or without_numbers(message)
    if run.status == "timeout":
        text = f"The kernel did not end {place}: {message or 'an endless loop or a wait'}"
        return Incorrect(text, cause="timeout", rule=_rule(run), line=_line(run), case=case)
    line = f"line {_line(run)}" if _line(run) else ""
    where = (run.fault.place if run.fault else "") or line
    text = f"{_rule(run)}{where and ' ' + where}: {message or 'the kernel ended abnormally'} ({place})"
    return Incorrect(text, cause="fault", rule=_rule(run), line=_line(run), case=case)


def _rule(run: Run) -> str:
    return run.fault.rule if run.fault else ""


def _line(run: Run) -> int | None:
    return run.fault.line if run.fault else None


def _is_public(values: ValueSet) -> bool:
    return values.case.role == "public"


def _public(values: ValueSet) -> str:
    return "hidden" if values.case.role == "hidden" else values.case.name


def _sizes(task: Task, values: ValueSet) -> str:
    if values.case.role == "timing":
        return "at the timing sizes"
    if not _is_public(values):
        return "at sizes other than the public ones"
    inputs = task.instance(values.case).signature.inputs
    return "at " + ", ".join(f"{spec.name or 'input'} [{'x'.join(map(str, spec.shape))}]" for spec in inputs[:4])
