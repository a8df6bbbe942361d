"""Builds bundles and runs them on a device that runs kernels in one file.

A run calls ModelNew in a confined process. Each EXEC_NPU_CMD comes back as a launch: the device runs the kernel on its
tensors, with what the tiling function has set for its shapes before the call (`tilings`). A second process that does
not know the values tells what torch did to them around the launches (`provenance`). The latency is that of all launches
and of torch's work together.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from kernel_gym.errors import BundleError, InfrastructureError, TaskError
from kernel_gym.hardware.bundles import host, launch_text, time_left
from kernel_gym.hardware.bundles.call import BuiltBundle, Call, Prices, ProbeCall, failed, to_torch
from kernel_gym.hardware.bundles.host import HostProgram
from kernel_gym.hardware.bundles.model_process import ModelFailure, ModelProcess
from kernel_gym.hardware.bundles.provenance import Probe
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
        budget: What all launches of a call may take of the device's budget.
        prices: What torch's work around the launches costs.
    """

    def __init__(
        self,
        build: Callable[[Kernel, Task], Build],
        run: Callable[[Build, Inputs], Run],
        folder: Callable[[Kernel], Path],
        platform: Sequence[int],
        budget: int,
        prices: Prices,
    ) -> None:
        self._build, self._run, self._folder, self._platform = build, run, folder, platform
        self._budget, self._prices = budget, prices
        self._built: OrderedDict[str, BuiltBundle] = OrderedDict()
        self._processes: dict[str, tuple[str, ModelProcess]] = {}
        self._probed: tuple[object, Probe] | None = None

    def build(self, kernel: Kernel, task: Task) -> Build:
        """Compile host code and kernel of a bundle."""
        self._end_processes()  # the host code describes itself: nobody tells it values of an earlier run
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
        self._built[kernel.digest] = BuiltBundle(bundle, program, build, column, task, time_left.of_verdict(task))
        if len(self._built) > KEPT:
            shutil.rmtree(self._built.popitem(last=False)[1].program.folder, ignore_errors=True)
        return replace(build, kernel=kernel, preprocessed=launch_text.of_author(build.preprocessed))

    def run(self, build: Build, inputs: Inputs) -> Run:
        """Call the model once and run its launches."""
        built = self._built.get(build.kernel.digest)
        if built is None or inputs.values is None or inputs.case is None:
            raise InfrastructureError("a bundle runs on the values of a case, after it was built")
        try:
            call = Call(
                built, build.kernel.source, inputs, self._run, self._platform, self._budget, self._probe(built, inputs)
            )
            return self._called(built, inputs, call)
        except ModelFailure as failure:  # it took too long, or ended its process, before the call itself
            return failed(built, build.kernel.source, failure)

    def close(self) -> None:
        """End the confined processes."""
        self._end_processes()
        self._probed = None

    def _end_processes(self) -> None:
        for _, process in self._processes.values():
            process.close()
        self._processes = {}

    def _called(self, built: BuiltBundle, inputs: Inputs, call: Call) -> Run:
        try:
            outputs = self._forward(built, inputs, call.launch)
        except ModelFailure as failure:
            return call.failure or call.failed(failure)
        refused = call.failure or call.returned(outputs, self._processes["model"][1].made)
        if refused is None and any(name.startswith("output") for name in call.computed):
            try:
                refused = call.without_launches(outputs, self._forward(built, inputs, call.pretend))
            except ModelFailure:  # it does not bear NaN, so it looks at what its launches return
                refused = None
        return refused or call.result(outputs, self._torch_us(built, inputs, call, outputs))

    def _probe(self, built: BuiltBundle, inputs: Inputs) -> Probe:
        """Return what the model sends at a case, seen in a process that does not know the values.

        While it lives there is no process that may know them from an earlier call. It ends before the tiling function
        runs and before the call, so that neither learns the values of this one.
        """
        key = (built.task.digest, dict(built.bundle.parts), inputs.case, inputs.seed, inputs.poison)
        if self._probed is None or self._probed[0] != key:
            self._probed = None  # its arrays can be large
            self._end_processes()
            call = ProbeCall(built, inputs, self._platform)
            try:
                call.returned(self._forward(built, replace(inputs, values=tuple(call.values)), call.launch, "probe"))
            except ModelFailure:
                if not self._processes["probe"][1].alive:
                    raise
            self._end_processes()
            built.tilings.make(built.program, call.requests, (inputs.case, inputs.seed), built.all_calls)
            self._probed = (key, call.probe)
        return self._probed[1]

    def _torch_us(self, built: BuiltBundle, inputs: Inputs, call: Call, outputs: list[torch.Tensor]) -> float:
        """Return the price of what torch did around the launches of a call."""
        price = sum(self._prices.copy(nbytes) for _, nbytes in call.moved)
        if not call.computed or inputs.case is None:
            return price
        if all(name.startswith("output") for name in call.computed) and self._follows(built, inputs, call, outputs):
            results = sum(array.nbytes for results in call.results for array in results)
            return price + self._prices.copy(results + sum(tensor.nbytes for tensor in outputs))
        work = built.task.instance(inputs.case).work()
        return price + self._prices.reference(inputs.signature, work)

    def _follows(self, built: BuiltBundle, inputs: Inputs, call: Call, outputs: list[torch.Tensor]) -> bool:
        """Return whether the outputs follow from the results of the launches alone, without the inputs."""
        self._end_processes()  # one that knows the inputs could tell them
        probe = ProbeCall(built, inputs, self._platform)
        try:
            others = self._forward(built, replace(inputs, values=tuple(probe.values)), call.replay(), "probe")
        except ModelFailure:
            return False
        return len(others) == len(outputs) and all(map(torch.equal, others, outputs))

    def _forward(
        self, built: BuiltBundle, inputs: Inputs, launch: Any, role: Literal["model", "probe"] = "model"
    ) -> list[torch.Tensor]:
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
        tensors = [to_torch(array) for array in inputs.values or ()]
        return self._model(built, role).forward(request, tensors, launch, built.all_calls)

    def _model(self, built: BuiltBundle, role: str) -> ModelProcess:
        """Return a confined process of a bundle; another bundle's is ended first."""
        key = built.kernel.kernel.digest + built.bundle["model_src"] + built.bundle["python_bind_src"]
        kept = self._processes.get(role)
        if kept is None or kept[0] != key or not kept[1].alive:
            if kept is not None:
                kept[1].close()
            try:
                self._processes[role] = (key, ModelProcess())
            except TaskError as error:
                raise InfrastructureError(str(error)) from error
        return self._processes[role][1]


def _column(program: HostProgram, task: Task) -> int:
    """Return which combination of element types a kernel is compiled for: the first that fits the task's input."""
    dtype = task.instance(task.timing).signature.inputs[0].dtype if program.operator.inputs else ""
    for parameter in program.operator.inputs[:1]:
        if dtype in parameter.dtypes:
            return parameter.dtypes.index(dtype)
    return 0
