"""Writes a kernel in one file as a bundle that the vendor's toolchain and the published harness take.

The file's host function becomes the tiling function: it runs with addresses that stand for the tensors, and its
launches are recorded instead of made. A launch is an attribute of the operator, its kernel the tiling key, its
arguments the tiling data. The model is the task's, with a `forward` that calls the operator once for each launch.
"""

from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path

from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles import host
from kernel_gym.hardware.bundles.export.project import MOST_WORDS, Project
from kernel_gym.hardware.bundles.export.source import OneFile
from kernel_gym.hardware.bundles.host import HostFailure, TensorArgument
from kernel_gym.hardware.bundles.text import read
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task

#: Vector cores, cube cores, bytes of unified buffer and of L1 of the chip that launches are counted on.
_CHIP = (48, 24, 196608, 524288)


def export(kernel: Kernel, task: Task) -> str:
    """Return the bundle of a kernel in one file, for the shapes of the task's timing case.

    Args:
        kernel: An Ascend C kernel in one file.
        task: The task that it is for.

    Returns:
        The text of the bundle.

    Raises:
        BundleError: The kernel or the task has something that a bundle cannot express.
    """
    signature = task.instance(task.timing).signature
    if any(spec.origin == "constant" for spec in signature.inputs):
        raise BundleError(f"{task.id} has constants that are no part of its state: they cannot be passed by a model")
    if signature.changes:
        raise BundleError(f"{task.id} changes {', '.join(signature.changes)}: a bundle's model returns outputs only")
    name = "".join(word.capitalize() for word in re.split(r"\W|_", task.name) if word) + "Custom"
    project = Project(name, OneFile(kernel.source), signature)
    counted = project.text(task, launch_count=0)
    return project.text(task, *_count(counted, signature, project.scratch_bytes))


def _count(text: str, signature: Signature, scratch_bytes: int) -> tuple[int, int]:
    """Return how many launches the host function makes, and their most words, from the built host code."""
    with tempfile.TemporaryDirectory(prefix="kernel_gym-") as folder:
        program = host.build(read(text), Path(folder))
        if isinstance(program, tuple):
            raise BundleError(f"the host function cannot be exported: {program[0].message}", program[0].line)
        inputs = [TensorArgument(spec.shape, spec.dtype) for spec in signature.inputs]
        outputs = [TensorArgument(spec.shape, spec.dtype) for spec in signature.outputs]
        scratch = [TensorArgument((scratch_bytes,), "uint8")] if scratch_bytes else []
        attributes: list[object] = [list(signature.ints), list(signature.floats), -1, 0]
        try:
            request = host.request(program.operator, inputs, [*outputs, *scratch], attributes, _CHIP)
            tiling = host.tile(program, request)
        except HostFailure as failure:
            raise BundleError(f"the host function cannot be exported: {failure}") from failure
    (words,) = struct.unpack_from("<Q", tiling.data, len(tiling.data) - 8 * MOST_WORDS)
    return tiling.key, words
