"""An Ascend NPU as a Device. Written from documentation; tests cover the tools' command lines and the parsing of their
output. It has not been run on hardware yet. `make test-npu` is the acceptance test for a machine that has an NPU.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend import compiler, msprof
from kernel_gym.hardware.ascend.faults import explain
from kernel_gym.hardware.ascend.halves import halves
from kernel_gym.hardware.ascend.health import Quarantine
from kernel_gym.hardware.ascend.tensors import Tensors
from kernel_gym.hardware.ascend.toolkit import Cann, find_cann, missing
from kernel_gym.hardware.device import Array, Build, Diagnostic, Fault, Inputs, PackedBuild, Run, Timing
from kernel_gym.hardware.host import compiler as host_compiler
from kernel_gym.hardware.host import launches
from kernel_gym.hardware.host.device_process import DeviceProcess
from kernel_gym.hardware.host.latency_statistics import measured, novelty, set_medians
from kernel_gym.hardware.host.runtime import INCLUDE as SHARED_INCLUDE
from kernel_gym.hardware.host.runtime import HostPrograms, runtime
from kernel_gym.hardware.host.tensors import npu_workspace_bytes, random_inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Profile

INCLUDE = Path(__file__).with_name("include")
HOST = "host.so"
#: HBM bandwidth of the largest Atlas A2 in GB/s, and the minimum time to start a kernel.
MEMORY_GBS, START_US = 1600.0, 1.0
_HOST_FLAGS = (
    *("-std=c++17", "-O0", "-fPIC", "-w", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-shared"),
    *("-nostdlib", "-fno-stack-protector", "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables"),
    *("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-Wl,-z,relro,-z,now"),
)


class Ascend:
    """An Ascend NPU through CANN and torch_npu.

    Args:
        npu: The number of the NPU.
        timeout: Wall-clock seconds for one call.
        msprof: Whether every timed kernel runs once more under CANN's profiler.
    """

    name = "ascend"
    language = "ascendc"

    #: What `doctor` reports besides availability.
    note = "written from documentation, not run on hardware yet; make test-npu is its acceptance test"

    def __init__(self, npu: int = 0, timeout: float = 30.0, msprof: bool = False) -> None:
        self._npu, self._timeout, self._msprof = npu, timeout, msprof
        self._quarantine = Quarantine(npu)
        self._server: tuple[Path, DeviceProcess] | None = None
        self._scratch: Path | None = None

    def unavailable_reason(self) -> str | None:
        lacking = missing()
        return ". Also: ".join(map(str, lacking)) if lacking else self._quarantine.reason()

    def identity(self) -> str:
        cann = find_cann()
        version = ".".join(map(str, cann.version))
        own = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(INCLUDE.iterdir()))).hexdigest()[:12]
        return f"{self.name}/{version}/{compiler.ARCHITECTURE}/{runtime().key}/{own}/{self._timeout}"

    def sandbox_tier(self) -> str:
        return runtime().confinement.tier

    def build(self, kernel: Kernel, task: Task | None = None) -> Build:
        started = time.perf_counter()
        if kernel.language != self.language:
            words = f"{self.name} builds {self.language}, not {kernel.language}"
            return Build(kernel, diagnostics=(Diagnostic(words),))
        folder = self._build_folder(kernel)
        refused = build_into(folder, kernel.source, find_cann(), runtime())
        seconds = time.perf_counter() - started
        if refused:
            return Build(kernel, diagnostics=refused, seconds=seconds)
        return Build(kernel, artifact=folder / compiler.LIBRARY, binary=folder / HOST, seconds=seconds)

    def unpack(self, packed: PackedBuild) -> Build:
        return packed.unpack(self._build_folder(packed.build.kernel))

    def run(self, build: Build, inputs: Inputs) -> Run:
        values = random_inputs(inputs.signature, inputs.seed) if inputs.values is None else inputs.values
        run = self._calls(build, inputs.signature, [values], inputs.poison, timed=False).runs[0]
        return run if inputs.values is not None else Run(**{**vars(run), "outputs": ()})

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        timing = self._calls(build, signature, sets, poison, timed=True)
        if not self._msprof or timing.runs[0].status != "ok":
            return timing
        profile = self._profile(build, signature, sets[:1], poison)
        return replace(timing, runs=tuple(replace(run, profile=profile) for run in timing.runs))

    def floor_us(self, signature: Signature) -> float:
        """Return the time to start a kernel and to write its outputs at the memory's highest rate."""
        return START_US + sum(spec.nbytes for spec in signature.outputs) / (MEMORY_GBS * 1e3)

    def fork(self) -> Ascend:
        return Ascend(self._npu, self._timeout, self._msprof)

    def close(self) -> None:
        if self._server is not None:
            self._server[1].close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._server = self._scratch = None

    def __enter__(self) -> Ascend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _calls(
        self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int, *, timed: bool
    ) -> Timing:
        if build.artifact is None:
            raise InfrastructureError("a kernel that was not built cannot run")
        plan = plan_of(build.artifact, signature)
        if plan.fault is not None:
            return Timing((Run("timeout" if plan.timeout else "fault", fault=plan.fault),))
        if plan.code:
            return Timing((Run("refused", code=plan.code),))
        tensors = Tensors(signature, sets)
        request = request_of(build.artifact, plan, tensors, poison, timed, self._timeout)
        reply = self._worker(build.artifact).ask(json.dumps(request), tensors.descriptor, 4 * self._timeout)
        if reply["status"] != "ok":
            self._drop()
            return Timing((self._failed(reply),))
        return timing_of(reply, tensors)

    def _profile(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Profile:
        """Make one more call under msprof, in a separate process, and return the profile from its tables."""
        assert build.artifact is not None
        plan = plan_of(build.artifact, signature)
        folder = Path(tempfile.mkdtemp(prefix="msprof-", dir=self._folder()))
        tensors = Tensors(signature, sets)
        request = request_of(build.artifact, plan, tensors, poison, False, self._timeout)
        (folder / "request.json").write_text(json.dumps(request))
        (folder / "tensors").write_bytes(tensors.memory.map[:])
        program = [sys.executable, "-m", "kernel_gym.hardware.ascend.worker", "--once", str(folder), str(self._npu)]
        command = msprof.command(folder / "found", len(plan.launches), program)
        code, words = host_compiler.call(list(command), folder, tools_environment())
        if code:
            raise InfrastructureError(f"msprof failed: {words.strip()[-300:]}")
        return msprof.profile(folder / "found")

    def _failed(self, reply: Mapping[str, Any]) -> Run:
        """Return what went wrong, after checking the NPU's health."""
        if reply["status"] == "timeout":
            fault = Fault("KERNEL_TIMEOUT", f"the kernel did not end within {self._timeout:g} s")
            self._quarantine.after_fault(fault.rule)
            return Run("timeout", fault=fault)
        explained = explain(reply["words"])
        if explained.fault.rule == "OUT_OF_MEMORY":
            raise InfrastructureError("the NPU has too little free memory for the tensors of this task")
        if explained.lost:
            self._quarantine.after_fault(explained.fault.rule)
        return Run("timeout" if explained.is_timeout else "fault", fault=explained.fault)

    def _worker(self, artifact: Path) -> DeviceProcess:
        """Return a process that no other kernel has used. Raises InfrastructureError if the NPU is quarantined."""
        if reason := self._quarantine.reason():
            raise InfrastructureError(reason)
        if self._server is None or self._server[0] != artifact:
            self._drop()
            command = [sys.executable, "-m", "kernel_gym.hardware.ascend.worker", "{socket}", str(self._npu)]
            self._server = artifact, DeviceProcess(command)
        return self._server[1]

    def _drop(self) -> None:
        if self._server is not None:
            self._server[1].close()
        self._server = None

    def _folder(self) -> Path:
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="kernel_gym-ascend-"))
            weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch

    def _build_folder(self, kernel: Kernel) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{kernel.digest[:16]}-", dir=self._folder()))


def plan_of(artifact: Path, signature: Signature) -> launches.Plan:
    """Return the launches of the host function for one signature."""
    folder = artifact.parent
    names = {int(place): name for place, name in json.loads((folder / "kernels.json").read_text()).items()}
    lines = launches.line_count(folder / host_compiler.SOURCE)
    return launches.plan(runtime(), folder / HOST, names, signature, npu_workspace_bytes(signature), lines)


def build_into(folder: Path, source: str, cann: Cann, programs: HostPrograms) -> tuple[Diagnostic, ...]:
    """Compile both halves into `folder`; no diagnostics means success."""
    parts = halves(source)
    if parts.problem:
        return (Diagnostic(parts.problem),)
    if refused := compile_host(folder, parts.host, programs):
        return refused
    for command in compiler.prepare(cann, parts.device, (INCLUDE, SHARED_INCLUDE), folder):
        code, words = host_compiler.call(list(command), folder, tools_environment())
        if code:
            errors = compiler.diagnostics(words, source.count("\n") + 1)
            return errors or (Diagnostic(host_compiler.unexplained(code, words)),)
    if not (folder / compiler.LIBRARY).is_file():
        raise InfrastructureError(f"{cann.bisheng} left no {compiler.LIBRARY}")
    try:
        kernels = launches.kernels_in(folder / HOST, {*parts.kernels})
    except launches.NamesTooLong as error:
        return (Diagnostic(str(error)),)
    numbers = {place: str(parts.kernels.index(name)) for place, name in kernels.items()}
    (folder / "kernels.json").write_text(json.dumps(numbers))
    return ()


def compile_host(folder: Path, text: str, programs: HostPrograms) -> tuple[Diagnostic, ...]:
    """Compile the host's half by g++, confined, with a header that records launches."""
    source = folder / host_compiler.SOURCE
    source.write_text(without_includes(text), encoding="utf-8", errors="surrogateescape")
    read = (str(INCLUDE), str(SHARED_INCLUDE), *host_compiler.compiler_roots(programs.compiler))
    headers = ["-include", str(INCLUDE / "ascend_host.h"), "-I", str(SHARED_INCLUDE)]
    command = [programs.compiler, *_HOST_FLAGS, *headers, source.name, "-o", HOST]
    code, words = host_compiler.call_confined(programs, command, folder, read)
    if code:
        return host_compiler.diagnostics(words) or (Diagnostic(host_compiler.unexplained(code, words)),)
    return ()


def without_includes(text: str) -> str:
    """Return the text with includes of the device's headers blanked; ascend_host.h defines their names."""
    return re.sub(
        r'^[ \t]*#[ \t]*include[ \t]*[<"](?:kernel_operator|lib/|tiling/)[^\n]*', "", text, flags=re.MULTILINE
    )


def tools_environment() -> dict[str, str]:
    """Return the variables that CANN's tools read, as set_env.sh has set them."""
    return {name: value for name, value in os.environ.items() if name.startswith("ASCEND") or name == "LD_LIBRARY_PATH"}


def request_of(
    artifact: Path, plan: launches.Plan, tensors: Tensors, poison: int, timed: bool, seconds: float
) -> dict[str, Any]:
    """Return the request to the trusted process."""
    started = [
        {
            "number": int(launch.kernel),
            "blocks": launch.grid[0],
            "arguments": [{"data": argument.data.hex(), "handles": argument.handles} for argument in launch.arguments],
        }
        for launch in plan.launches
    ]
    signature = tensors.signature
    return {
        "library": str(artifact),
        "launches": started,
        "inputs": [spec.nbytes for spec in signature.inputs],
        "outputs": [spec.nbytes for spec in signature.outputs],
        "workspace": npu_workspace_bytes(signature),
        "sets": tensors.count,
        "set_bytes": tensors.set_bytes,
        "output_bytes": tensors.output_bytes,
        "poison": poison,
        "timed": timed,
        "seed": int.from_bytes(os.urandom(8), "little"),  # the order of calls must not be predictable
        "seconds": seconds,
    }


def timing_of(reply: Mapping[str, Any], tensors: Tensors) -> Timing:
    """Return the trusted process's answer as the verifier reads it."""
    if reply["guards"]:
        words = f"{reply['guards']} bytes around the outputs or the workspace were written: check the bounds"
        return Timing((Run("fault", fault=Fault("OUT_OF_BOUNDS", words)),))
    if reply["inputs_changed"]:
        return Timing(
            (Run("fault", fault=Fault("INPUT_WRITTEN", "the kernel wrote to an input: inputs are read-only")),)
        )
    timing = measured([sample["microseconds"] for sample in reply["samples"]])
    profile = Profile(
        waits={"interval_low": timing.low_us, "interval_high": timing.high_us}, counts={"timed_calls": timing.samples}
    )
    runs = tuple(
        Run("ok", outputs=tensors.outputs(index), latency_us=timing.latency_us, profile=profile)
        for index in range(tensors.count)
    )
    calls = novelty(reply["samples"])
    interval = timing.low_us, timing.high_us
    unstable, medians = bool(reply["unstable"]), set_medians(reply["samples"])
    return Timing(runs, calls.firsts, calls.repeats, unstable, interval, calls.nearby, medians)
