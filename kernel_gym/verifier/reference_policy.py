"""The policy `reference`: kernels are judged as KernelBench, MultiKernelBench and EvoKernel judge them.

A kernel is run at the reference's own shapes, those of the timing case, on what `get_inputs()` draws, with parameters
as the module's constructor makes them. It passes if all outputs are within atol = rtol = 1e-2 of the reference's in its
own precision. The latency is that of the same runs. The gates before correctness are those of the policy `strict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import TypeAlias

import numpy as np
import torch

from kernel_gym.hardware.device import Build, Clocked, Device, Fault, Inputs, Run, Timing, numpy_dtype
from kernel_gym.tasks.specs import Signature, model_seed
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Incorrect, Profile
from kernel_gym.verifier.correctness import CUBE_WORK, OTHER_POISON, PLAIN, POISON, Checked, Patience, distinct, failed
from kernel_gym.verifier.expected import Expected
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.latency_clocked import UNSTABLE, bounded_us, is_below_new_values
from kernel_gym.verifier.latency_simulated import Outcome, Timed, cheated
from kernel_gym.verifier.patterns import Mismatch, locate
from kernel_gym.verifier.reference import evaluate
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.values import Array

#: Number of value sets, and number for tensors of more than this many bytes or references of more than this many
#: operations, where a run takes seconds.
TRIALS, FEWER, LARGE_BYTES, LARGE_WORK = 5, 2, 16 << 20, 100_000_000
#: How verdicts name the case, and how feedback does.
CASE, PLACE = "reference", "at the reference's shapes"
#: The note on a task whose outputs vary less than this policy tolerates.
CONSTANT = "a constant would pass, too: the outputs vary less than this policy tolerates"
#: For each output the numbers that could stand for all of its elements: from, to.
Ranges: TypeAlias = list[tuple[float, float]]


def measure(device: Device, build: Build, task: Task, checked: Checked, sets: KernelValues) -> Outcome:
    """Run, compare and time a kernel at the reference's own shapes; `checked` takes its warnings."""
    signature = task.instance(task.timing).signature
    seeds = sets.references.seeds(build.kernel, task)
    large = signature.nbytes > LARGE_BYTES or task.instance(task.timing).work() > LARGE_WORK
    count = FEWER if large else TRIALS
    trials = [_trial(task, seeds, number) for number in range(count)]
    runs: list[Run] = []
    allowed: list[Ranges] = []
    for run, values, poison in _runs(device, build, task, trials, seeds):
        if run.status != "ok":
            return failed(run, PLACE, CASE)
        truths = evaluate(task.instance(task.timing), values)
        refused = _refuse(run, truths, poison)
        if refused is not None:
            return refused
        checked.warnings = distinct(checked.warnings + run.warnings)
        runs.append(replace(run, outputs=()))
        allowed.append([_constants(truth) for truth in truths])
    return _timed(device, task, signature, runs, allowed)


def _runs(
    device: Device, build: Build, task: Task, trials: list[tuple[Array, ...]], seeds: Seeds
) -> Iterator[tuple[Run, tuple[Array, ...], int]]:
    """Yield a run for each set of inputs, with the inputs and the poison that outputs were filled with."""
    instance = task.instance(task.timing)
    if isinstance(device, Clocked):
        timing = device.time(build, instance.signature, trials, POISON)
        yield from _timed_runs(timing, trials)
        if is_below_new_values(timing):  # it may keep answers: what counts is how long it takes on other values
            others = [_trial(task, seeds, number) for number in range(len(trials), 2 * len(trials))]
            again = device.time(build, instance.signature, others, POISON)
            for run, values, poison in _timed_runs(again, others):
                yield replace(run, latency_us=bounded_us(again)), values, poison
        return
    patience = Patience(instance.work() > CUBE_WORK)
    for number, (values, poison) in enumerate(zip(trials, cycle((POISON, OTHER_POISON)))):
        seed, key = model_seed(_trial_seed(seeds, number)), seeds.variables(values)
        inputs = Inputs(instance.signature, values, poison, seed, case=instance.case, key=key)
        yield patience.run(device, build, instance, inputs), values, poison


def _timed_runs(timing: Timing, trials: list[tuple[Array, ...]]) -> Iterator[tuple[Run, tuple[Array, ...], int]]:
    if timing.unstable:  # the calls ended there, so that some sets have no outputs
        words = f"the outputs change between calls on the same inputs: {UNSTABLE}"
        yield Run("fault", fault=Fault("NONDETERMINISTIC", words)), trials[0], POISON
    else:
        yield from zip(timing.runs, trials, [POISON] * len(trials), strict=False)


def _trial(task: Task, seeds: Seeds, number: int) -> tuple[Array, ...]:
    """Return what the reference itself computes on, drawn for one kernel."""
    instance = task.instance(task.timing)
    tensors = instance.own_inputs(_trial_seed(seeds, number))
    specs = instance.signature.inputs
    return tuple(_array(tensor, spec.dtype) for tensor, spec in zip(tensors, specs, strict=True))


def _trial_seed(seeds: Seeds, number: int) -> int:
    return seeds.integer("trial", number) % 2**63


def _array(tensor: torch.Tensor, dtype: str) -> Array:
    plain = tensor.to(torch.float32) if tensor.dtype == torch.bfloat16 else tensor  # numpy lacks bfloat16
    return np.asarray(plain.numpy(), dtype=numpy_dtype(dtype))


def _refuse(run: Run, truths: tuple[Array, ...], poison: int) -> Incorrect | None:
    """Return the verdict on a run whose outputs are wrong; None if they are right."""
    mismatch = _mismatch(run.outputs, truths, poison)
    if mismatch is None:
        return None
    text = f"Wrong result {PLACE}: {mismatch.describe()}. Compared with atol = rtol = {PLAIN:g}."
    return Incorrect(text, cause="mismatch", case=CASE, plain=False, wrong=mismatch.elements)


def _constants(truth: Array) -> tuple[float, float]:
    """Return the least and the greatest number that could stand for every element of an output, if there is any."""
    wide = truth.astype(np.float64)
    tolerance = PLAIN + PLAIN * np.abs(np.where(np.isfinite(wide), wide, 0.0))  # an infinite output has no tolerance
    return float(np.max(wide - tolerance, initial=-np.inf)), float(np.min(wide + tolerance, initial=np.inf))


def _is_constant(allowed: list[Ranges]) -> bool:
    """Return whether one number an output would have passed in all runs."""
    return all(
        max(low for low, _ in of_one) <= min(high for _, high in of_one) for of_one in zip(*allowed, strict=True)
    )


def _timed(device: Device, task: Task, signature: Signature, runs: list[Run], allowed: list[Ranges]) -> Outcome:
    slowest = max(runs, key=lambda run: run.latency_us or 0.0)
    latency, floor = slowest.latency_us or 0.0, device.floor_us(signature)
    if latency < floor:
        return cheated("below-floor", f"{latency:.3g} us, at least {floor:.3g} us")
    notes = [f"{len(runs)} sets of inputs as get_inputs() draws them, compared with atol = rtol = {PLAIN:g}"]
    notes += [f"not at its own sizes: {flag}" for flag in task.flags if flag.startswith("shrunk: timing")]
    notes += [CONSTANT] if _is_constant(allowed) else []
    return Timed(latency, slowest.profile or Profile(), tuple(notes))


def _mismatch(outputs: tuple[Array, ...], truths: tuple[Array, ...], poison: int) -> Mismatch | None:
    """Describe the first output that is not close to the reference's; None if all are."""
    for index, (actual, truth) in enumerate(zip(outputs, truths, strict=True)):
        plain = actual.view(np.uint8) if truth.dtype.kind == "b" else actual
        close = np.isclose(plain.astype(np.float64), truth.astype(np.float64), rtol=PLAIN, atol=PLAIN)
        if not close.all():
            scale = float(np.sqrt(np.mean(np.square(truth[np.isfinite(truth)])))) if truth.dtype.kind == "f" else 0.0
            expected = Expected(truth, np.ones(truth.shape, bool), base=PLAIN, scale=scale)
            return locate(index, actual, expected, np.asarray(~close), poison)
    return None
