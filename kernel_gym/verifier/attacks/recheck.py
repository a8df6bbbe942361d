"""A second opinion on a kernel that was called feasible, without the verifier's values, tolerances and comparison."""

from __future__ import annotations

import numpy as np
import torch

from kernel_gym.hardware.device import Device, Inputs, numpy_dtype
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.hidden_sizes import aligned_case, edge_cases, hidden_cases
from kernel_gym.verifier.secret import Seeds
from kernel_gym.verifier.values import Array

#: Largest error that counts as right, as a share of the element and of the root mean square.
TOLERANCE = {"float64": 1e-3, "float32": 1e-3, "float16": 1e-2, "bfloat16": 5e-2}
#: Elements in int8 that may be off by one, and a share of all that may be: a number near a half is rounded up or down.
ROUNDED_OTHERWISE = (2, 1e-3)


def is_right(device: Device, kernel: Kernel, task: Task, seed: int) -> bool:
    """Return whether a kernel computes what the problem file computes on its own inputs.

    The sizes are the public ones, hidden ones by another secret, and the timing sizes, where every element is compared.
    A run that exceeds the limits of the device decides nothing and counts as right.
    """
    build = device.build(kernel, task)
    seeds = Seeds.of(kernel, task, f"second opinion {seed}".encode())
    aligned = aligned_case(task, seeds)
    drawn = (*hidden_cases(task, seeds), *([aligned] if aligned else []), *edge_cases(task, seeds))
    for case in (task.public, *drawn, task.timing):
        instance = task.instance(case)
        inputs = instance.own_inputs(seed)
        values = tuple(map(_array, inputs))
        run = device.run(build, Inputs(instance.signature, values, key=seeds.variables(values)))
        if run.status == "timeout":
            continue
        truths = instance.evaluate(inputs)
        pairs = zip(run.outputs, map(_array, truths), strict=False)
        if run.status != "ok" or not all(_is_close(output, truth) for output, truth in pairs):
            return False
    return True


def _array(tensor: torch.Tensor) -> Array:
    """Return a tensor as an array of the same type, which numpy may lack."""
    plain = tensor.detach().double() if tensor.is_floating_point() else tensor.detach()
    return plain.numpy().astype(numpy_dtype(str(tensor.dtype).removeprefix("torch.")))


def _is_close(output: Array, truth: Array) -> bool:
    if truth.dtype == np.int8 and output.shape == truth.shape:
        error = np.abs(output.astype(np.int16) - truth)
        few, share = ROUNDED_OTHERWISE
        return bool((error <= 1).all() and error.sum() <= few + share * error.size)
    tolerance = TOLERANCE.get(truth.dtype.name)
    if tolerance is None:
        return bool(np.array_equal(output, truth))
    output, truth = output.astype(np.float64), truth.astype(np.float64)
    finite = truth[np.isfinite(truth)]
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    return bool(np.allclose(output, truth, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
