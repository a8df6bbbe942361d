"""An NVIDIA GPU as a Device: the host function runs in the sandbox, the device code on the GPU."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import Any

from kernel_gym.confinement.building import cache_folder, find_compiler
from kernel_gym.errors import DeviceUnavailable, InfrastructureError
from kernel_gym.hardware.cuda import sanitizer
from kernel_gym.hardware.cuda.compiler import CUBIN, HOST, HOST_SOURCE, PTX, Binaries, compile_kernel
from kernel_gym.hardware.cuda.machine import architecture, facts, fault_table, trusted_cubin
from kernel_gym.hardware.cuda.profile import diagnose, peak_gbs
from kernel_gym.hardware.cuda.runtime import runtime
from kernel_gym.hardware.cuda.tensors import InputSets, OutputRoom
from kernel_gym.hardware.cuda.toolkit import missing_binding, toolkit
from kernel_gym.hardware.device import Array, Build, Diagnostic, Fault, Inputs, PackedBuild, Run, Timing
from kernel_gym.hardware.host import launches
from kernel_gym.hardware.host.device_process import DeviceProcess
from kernel_gym.hardware.host.latency_statistics import Measured, measured, novelty, set_medians
from kernel_gym.hardware.host.tensors import SharedMemory, random_inputs, workspace_bytes
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task

KEPT_BUILDS = 64
#: The file with a build's metadata, beside its binaries.
CONTENTS = "contents.json"
SANITIZER_LOG = "sanitizer"
#: Workers that are started in advance, because a process with its context takes most of a second.
SPARES = 1
#: Results may stay in the L2 cache, whose rate is a few times that of the memory behind it.
CACHE_RATE = 6.0
START_US = 0.5
#: One for all devices of this process, because kernels are judged on the same values.
_SETS = InputSets()


class Cuda:
    """The first NVIDIA GPU that CUDA sees; `CUDA_VISIBLE_DEVICES` chooses.

    Args:
        timeout: Wall-clock seconds for one call.
        sanitizer: A tool of compute-sanitizer (`memcheck`, `racecheck`, `initcheck`, `synccheck`) that calls run under.
            It is slow, and what it finds is a fault.
    """

    name = "cuda"
    language = "cuda"

    def __init__(self, timeout: float = 10.0, sanitizer: str = "") -> None:
        self._options: dict[str, Any] = {"timeout": timeout, "sanitizer": sanitizer}
        self._timeout, self._sanitizer = timeout, sanitizer
        self._spares: list[DeviceProcess] = []
        self._worker: tuple[Path, DeviceProcess] | None = None
        self._plans: dict[tuple[Path, Signature], launches.Plan] = {}
        self._room = OutputRoom()
        self._scratch: Path | None = None
        self._owner = os.getpid()

    def unavailable_reason(self) -> str | None:
        try:
            if reason := missing_binding():
                return reason
            toolkit()
            find_compiler()
            facts()
        except DeviceUnavailable as error:
            return str(error)
        if self._sanitizer and shutil.which("compute-sanitizer") is None:
            return "compute-sanitizer was not found; install the CUDA toolkit and put its bin folder on the PATH"
        return None

    def identity(self) -> str:
        gpu = facts()
        parts = (gpu["name"], architecture(), gpu["driver"], toolkit().nvrtc.name, _package("nvidia-cuda-nvrtc"))
        return "/".join(map(str, (self.name, *parts, runtime().key, self._timeout, self._sanitizer)))

    def sandbox_tier(self) -> str:
        return runtime().host.confinement.tier

    def build(self, kernel: Kernel, task: Task | None = None) -> Build:
        started = time.perf_counter()
        if kernel.language != self.language:
            words = f"{self.name} builds {self.language}, not {kernel.language}"
            return Build(kernel, diagnostics=(Diagnostic(words),))
        self._retire_worker()
        self._spare_workers()
        folder = self._build_folder(kernel)
        binaries = compile_kernel(runtime(), toolkit(), architecture(), kernel.source, folder)
        seconds = time.perf_counter() - started
        if not isinstance(binaries, Binaries):
            return Build(kernel, diagnostics=binaries, seconds=seconds)
        contents = {"kernels": dict(binaries.kernels), "has_variables": binaries.has_variables}
        (folder / CONTENTS).write_text(json.dumps(contents))
        assembly = (folder / PTX).read_text(errors="replace")
        text, code = binaries.preprocessed, folder / CUBIN
        return Build(kernel, artifact=code, binary=folder / HOST, preprocessed=text, assembly=assembly, seconds=seconds)

    def unpack(self, packed: PackedBuild) -> Build:
        self._retire_worker()
        self._spare_workers()
        return packed.unpack(self._build_folder(packed.build.kernel))

    def run(self, build: Build, inputs: Inputs) -> Run:
        started = time.perf_counter()
        values = random_inputs(inputs.signature, inputs.seed) if inputs.values is None else inputs.values
        timing = self._calls(build, inputs.signature, [values], inputs.poison, timed=False)
        run = timing.runs[0]
        if inputs.values is None:
            run = Run(**{**vars(run), "outputs": ()})
        return Run(**{**vars(run), "seconds": time.perf_counter() - started})

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        return self._calls(build, signature, sets, poison, timed=True)

    def floor_us(self, signature: Signature) -> float:
        """Return the time to start a kernel, read its inputs from memory and write its outputs into the cache.

        Where an input holds indices, the others may be read in part: only the outputs count.
        """
        indexed = any(spec.domain.kind == "index" for spec in signature.inputs)
        read = 0 if indexed else sum(spec.nbytes for spec in signature.inputs)
        written = sum(spec.nbytes for spec in signature.outputs)
        rate = peak_gbs(facts()) * 1e3
        return START_US + max(read / rate, written / (CACHE_RATE * rate))

    def fork(self) -> Cuda:
        return type(self)(**self._options)

    def close(self) -> None:
        if self._owner == os.getpid():
            for server in (*self._spares, *([self._worker[1]] if self._worker else [])):
                server.close()
        if self._scratch is not None:
            _remove(self._scratch, self._owner)
        self._spares, self._worker, self._scratch = [], None, None
        self._plans.clear()

    def __enter__(self) -> Cuda:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls

    def _calls(
        self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int, timed: bool
    ) -> Timing:
        if build.artifact is None:
            raise InfrastructureError("a kernel that was not built cannot run")
        plan = self._plan(build.artifact, signature)
        if plan.fault is not None:
            status = "timeout" if plan.timeout else "fault"
            return Timing((Run(status, fault=plan.fault),))  # type: ignore[arg-type]
        if plan.code:
            return Timing((Run("refused", code=plan.code),))
        request = _request(build.artifact, plan, signature, len(sets), poison, timed, self._timeout)
        request["sanitized"] = bool(self._sanitizer)
        room = self._room.room(signature, len(sets))
        reply = self._ask(build.artifact, request, _SETS.shared(signature, sets), room)
        return self._timing(reply, signature, len(sets), plan)

    def _plan(self, artifact: Path, signature: Signature) -> launches.Plan:
        """Return the launches of the host function. They depend on sizes only, so one call per signature is enough."""
        key = artifact, signature
        if key not in self._plans:
            names = {int(place): name for place, name in _contents(artifact)["kernels"].items()}
            workspace = workspace_bytes(signature)
            code, lines = artifact.parent / HOST, launches.line_count(artifact.parent / HOST_SOURCE)
            self._plans[key] = launches.plan(runtime().host, code, names, signature, workspace, lines)
        return self._plans[key]

    def _timing(self, reply: Mapping[str, Any], signature: Signature, count: int, plan: launches.Plan) -> Timing:
        if self._sanitizer and (fault := self._sanitizer_finding()):
            return Timing((Run("fault", fault=fault),))
        if reply["status"] != "ok":
            return Timing((self._failed(reply, plan),))
        if reply["guards"]:
            words = f"{reply['guards']} bytes around the outputs or the workspace were written: check the bounds"
            return Timing((Run("fault", fault=Fault("OUT_OF_BOUNDS", words, _only_line(plan))),))
        samples = [sample["microseconds"] for sample in reply["samples"]]
        timing = measured(samples) if samples else Measured(0.0, 0.0, 0.0, 0)
        profile = diagnose(timing, reply["kernels"], facts(), signature)
        runs = tuple(
            Run("ok", outputs=self._room.outputs(signature, index), latency_us=timing.latency_us, profile=profile)
            for index in range(count)
        )
        calls = novelty(reply["samples"])
        interval = timing.low_us, timing.high_us
        unstable, medians = bool(reply["unstable"]), set_medians(reply["samples"])
        return Timing(runs, calls.firsts, calls.repeats, unstable, interval, calls.nearby, medians)

    def _failed(self, reply: Mapping[str, Any], plan: launches.Plan) -> Run:
        if reply["status"] == "timeout":
            words = (
                f"the kernel did not end within {self._timeout:g} s: an endless loop or a barrier that not all reach"
            )
            return Run("timeout", fault=Fault("KERNEL_TIMEOUT", words, _only_line(plan)))
        if reply["error"] == "OUT_OF_MEMORY":
            raise InfrastructureError("the GPU has too little free memory for the tensors of this task")
        entry = fault_table().get(reply["error"], {})
        rule, words = entry.get("rule", reply["error"]), entry.get("message", f"the GPU reports {reply['error']}")
        return Run("fault", fault=Fault(rule, words, _only_line(plan)))

    def _sanitizer_finding(self) -> Fault | None:
        """Return the sanitizer's first finding. It writes its log when the process that it checks ends."""
        if self._worker is not None:
            self._worker[1].finish()
            self._worker = None
        return sanitizer.finding(self._folder(), SANITIZER_LOG)

    # Workers

    def _ask(
        self, artifact: Path, request: Mapping[str, Any], sets: SharedMemory, room: SharedMemory
    ) -> dict[str, Any]:
        server = self._server(artifact)
        # A first call also waits for the context; a timed one for its turn and for a hundred calls.
        patience = self._timeout * (20 if self._sanitizer else 3) + 120
        reply = server.ask(json.dumps(request), (sets.descriptor, room.descriptor), patience)
        if reply["status"] != "ok":
            self._worker = None
            if self._sanitizer:
                server.finish()
            else:
                Thread(target=server.close, daemon=True).start()
        return reply

    def _server(self, artifact: Path) -> DeviceProcess:
        """Return the worker of this kernel; no other kernel has used its context."""
        if self._owner != os.getpid():
            self._spares, self._worker, self._owner = [], None, os.getpid()
        if self._worker is not None and self._worker[0] != artifact:
            self._retire_worker()
        if self._worker is None:
            self._spare_workers()
            self._worker = artifact, self._spares.pop(0)
            self._spare_workers()
        return self._worker[1]

    def _retire_worker(self) -> None:
        """Give the kernel's worker another context, or end it if the kernel could have tampered with it."""
        if self._worker is None or self._owner != os.getpid():
            return
        server = self._worker[1]
        if facts()["pageable"] or self._sanitizer:
            Thread(target=server.close, daemon=True).start()
        else:
            server.tell(json.dumps({"renew": True}))
            self._spares.append(server)
        self._worker = None

    def _spare_workers(self) -> None:
        while len(self._spares) < SPARES:
            server = DeviceProcess(self._command())
            server.start()
            self._spares.append(server)

    def _command(self) -> list[str]:
        lock = cache_folder() / f"gpu-{facts()['uuid']}"
        python = [sys.executable, "-m", "kernel_gym.hardware.cuda.worker"]
        tool = []
        if self._sanitizer:
            tool = sanitizer.command(self._sanitizer, self._folder() / SANITIZER_LOG)
        return [*tool, *python, "{socket}", str(trusted_cubin()), str(lock)]

    # Files

    def _folder(self) -> Path:
        if self._scratch is None or self._owner != os.getpid():
            self._scratch, self._owner = Path(tempfile.mkdtemp(prefix="kernel_gym-cuda-")), os.getpid()
            weakref.finalize(self, _remove, self._scratch, self._owner)
        return self._scratch

    def _build_folder(self, kernel: Kernel) -> Path:
        builds = self._folder() / "builds"
        builds.mkdir(exist_ok=True)
        kept = sorted(builds.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for old in kept[: max(0, len(kept) - KEPT_BUILDS + 1)]:
            shutil.rmtree(old)
        folder = Path(tempfile.mkdtemp(prefix=f"{kernel.digest[:16]}-", dir=builds))
        return folder


class SanitizedCuda(Cuda):
    """The GPU under compute-sanitizer's memory checker: `--device kernel_gym.hardware.cuda.device:SanitizedCuda`."""

    name = "cuda-memcheck"

    def __init__(self, timeout: float = 60.0, sanitizer: str = "memcheck") -> None:
        super().__init__(timeout, sanitizer)


def _request(
    artifact: Path, plan: launches.Plan, signature: Signature, sets: int, poison: int, timed: bool, seconds: float
) -> dict[str, Any]:
    return {
        "cubin": str(artifact),
        "launches": [_launch(launch) for launch in plan.launches],
        "inputs": [spec.nbytes for spec in signature.inputs],
        "outputs": [spec.nbytes for spec in signature.outputs],
        "workspace": workspace_bytes(signature),
        "has_variables": _contents(artifact)["has_variables"],
        "sets": sets,
        "poison": poison,
        "timed": timed,
        "seed": int.from_bytes(os.urandom(8), "little"),  # the order of calls must not be predictable
        "seconds": seconds,
    }


def _contents(artifact: Path) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads((artifact.parent / CONTENTS).read_text())
    return contents


def _launch(launch: launches.Launch) -> dict[str, Any]:
    arguments = [{"data": argument.data.hex(), "handles": argument.handles} for argument in launch.arguments]
    return {"kernel": launch.kernel, "grid": launch.grid, "block": launch.block, "shared": launch.shared,
            "arguments": arguments}  # fmt: skip


def _only_line(plan: launches.Plan) -> int | None:
    """Return the author's line of the launch, if there is only one."""
    lines = {launch.line for launch in plan.launches}
    return (lines.pop() or None) if len(lines) == 1 else None


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "system"


def _remove(folder: Path, owner: int) -> None:
    """Remove a device's files; a forked process leaves them to its parent."""
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
