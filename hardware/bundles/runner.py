"""Builds bundles and runs them on a device that runs kernels in one file.

A run calls ModelNew in a confined process. Each EXEC_NPU_CMD comes back as a launch: the tiling function runs for its
shapes, and the device runs the kernel on its tensors. The latency is that of all launches together.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kernel_gym.errors import BundleError, InfrastructureError, TaskError
from kernel_gym.hardware.bundles import host, launch_text
from kernel_gym.hardware.bundles.call import BuiltBundle, Call, to_torch
from kernel_gym.hardware.bundles.host import HostProgram
from kernel_gym.hardware.bundles.model_process import ModelFailure, ModelProcess
from kernel_gym.hardware.bundles.text import read
from kernel_gym.hardware.device import Build, Diagnostic, Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

#: Bundles whose builds are kept.
KEPT = 16


class BundleRunner:
    """Builds and runs bundles for one device.

    Args:
        build: Compiles a kernel in one file.
        run: Runs it.
        folder: Returns an empty folder for the host code of a kernel.
        platform: Vector cores, cube cores, bytes of unified buffer and of L1.
    """

    def __init__(
        self,
        build: Callable[[Kernel, Task], Build],
        run: Callable[[Build, Inputs], Run],
        folder: Callable[[Kernel], Path],
        platform: Sequence[int],
    ) -> None:
        self._build, self._run, self._folder, self._platform = build, run, folder, platform
        self._built: OrderedDict[str, BuiltBundle] = OrderedDict()
        self._process: tuple[str, ModelProcess] | None = None

    def build(self, kernel: Kernel, task: Task) -> Build:
        """Compile host code and kernel of a bundle."""
        try:
            bundle = read(kernel.source)
        except BundleError as error:
            return Build(kernel, diagnostics=(Diagnostic(str(error), error.line),))
        program = host.build(bundle, self._folder(kernel))
        if isinstance(program, tuple):
            return Build(kernel, diagnostics=program)
        column = _column(program, task)
        text = launch_text.compose(bundle["kernel_src"], bundle.function, program, column)
        if isinstance(text, Diagnostic):
            return Build(kernel, diagnostics=(text,))
        build = self._build(Kernel(text, kernel.language, kernel.trusted, "file"), task)
        if not build.ok:
            part = launch_text.PART
            return Build(kernel, diagnostics=tuple(replace(d, part=part) for d in build.diagnostics))
        self._built[kernel.digest] = BuiltBundle(bundle, program, build, column, task)
        if len(self._built) > KEPT:
            shutil.rmtree(self._built.popitem(last=False)[1].program.folder, ignore_errors=True)
        return replace(build, kernel=kernel, preprocessed=launch_text.of_author(build.preprocessed))

    def run(self, build: Build, inputs: Inputs) -> Run:
        """Call the model once and run its launches."""
        built = self._built.get(build.kernel.digest)
        if built is None or inputs.values is None or inputs.case is None:
            raise InfrastructureError("a bundle runs on the values of a case, after it was built")
        call = Call(built, build.kernel.source, inputs, self._run, self._platform)
        try:
            outputs = self._forward(built, inputs, call.launch)
            if call.failure is None and inputs.poison != 0 and call.runs:
                call.unlaunched = self._forward(built, inputs, call.pretend)
        except ModelFailure as failure:
            return call.failure or call.failed(failure)
        return call.failure or call.result(outputs)

    def close(self) -> None:
        """End the confined process."""
        if self._process is not None:
            self._process[1].close()
        self._process = None

    def _forward(self, built: BuiltBundle, inputs: Inputs, launch: Any) -> list[torch.Tensor]:
        case = inputs.case or Case("timing", "timing")
        request = {
            "reference": built.task.source,
            "digest": built.task.digest,
            "case": [case.name, case.role, [list(size) for size in case.sizes]],
            "model": built.bundle["model_src"],
            "binding": built.bundle["python_bind_src"],
            "seed": inputs.seed,
            "poison": inputs.poison,
        }
        return self._model(built).forward(request, [to_torch(array) for array in inputs.values or ()], launch)

    def _model(self, built: BuiltBundle) -> ModelProcess:
        """Return the confined process of a bundle; another bundle's is ended first."""
        key = built.kernel.kernel.digest + built.bundle["model_src"] + built.bundle["python_bind_src"]
        if self._process is None or self._process[0] != key or not self._process[1].alive:
            self.close()
            try:
                self._process = (key, ModelProcess())
            except TaskError as error:
                raise InfrastructureError(str(error)) from error
        return self._process[1]


def _column(program: HostProgram, task: Task) -> int:
    """Return which combination of element types a kernel is compiled for: the first that fits the task's input."""
    dtype = task.instance(task.timing).signature.inputs[0].dtype if program.operator.inputs else ""
    for parameter in program.operator.inputs[:1]:
        if dtype in parameter.dtypes:
            return parameter.dtypes.index(dtype)
    return 0
