"""The simulator as a Device: g++ and a confined process in place of an NPU."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.confinement import building, programs, sandbox
from kernel_gym.errors import DeviceUnavailable, InfrastructureError, KernelGymError
from kernel_gym.hardware.ascend_sim import chip as chips
from kernel_gym.hardware.ascend_sim import operations
from kernel_gym.hardware.ascend_sim.compiler import FUNCTIONS, OBJECT, compile_kernel
from kernel_gym.hardware.ascend_sim.memory import SharedTensors
from kernel_gym.hardware.ascend_sim.profile import diagnose
from kernel_gym.hardware.ascend_sim.roofline import Work, roofline_us
from kernel_gym.hardware.ascend_sim.runtime import SimulatorBuild, runtime
from kernel_gym.hardware.bundles.call import Prices
from kernel_gym.hardware.bundles.runner import BundleRunner
from kernel_gym.hardware.device import Build, Diagnostic, Fault, Inputs, PackedBuild, Run
from kernel_gym.hardware.host.device_process import DeviceProcess
from kernel_gym.hardware.host.tensors import npu_workspace_bytes
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import DTYPES, Signature, TensorSpec
from kernel_gym.tasks.task import Task

#: The framework's workspace, through which Matmul passes tiles: 2 MiB a core.
FRAMEWORK_BYTES = 256 << 20
#: Builds whose files are kept; older ones are removed.
KEPT_BUILDS = 64


class AscendSim:
    """A simulated Ascend 910B for any Linux machine with g++.

    Args:
        chip: The name of a profile in `chips/`, or a YAML file.
        timeout: Wall-clock seconds without progress after which a run has timed out.
        budget: Basic blocks after which a run has timed out, on every machine alike. An API call counts as eight, a
            scalar access as two.
        auto_sync: Whether flags between pipes that a kernel leaves out are inserted, as the vendor's compiler does for
            some, instead of being the fault MISSING_SYNC.
        record_loops: Whether loops of scalar accesses are recorded as loops. If not, each access is a record of its
            own, with the same results in much more time.
    """

    name = "ascend-sim"
    language = "ascendc"

    def __init__(
        self,
        chip: str = chips.DEFAULT,
        timeout: float = 30.0,
        budget: int = 64_000_000,
        auto_sync: bool = False,
        record_loops: bool = True,
    ) -> None:
        self._options = {
            "chip": chip,
            "timeout": timeout,
            "budget": budget,
            "auto_sync": auto_sync,
            "record_loops": record_loops,
        }
        self._record_loops = record_loops
        self._auto_sync = auto_sync
        self._chip = chips.load(chip)
        self._timeout, self._budget = timeout, budget
        self._server: DeviceProcess | None = None
        self._scratch: Path | None = None
        self._tensors = SharedTensors()
        self._owner = os.getpid()
        self._chip_lines = [f"chip {key} {value}" for key, value in self._chip.pairs()]
        self._trace: Path | None = None
        platform = [int(self._chip[name]) for name in ("vector_cores", "cube_cores", "ub_bytes", "l1_bytes")]
        prices = Prices(self._copy_us, self._reference_us)
        self._bundles = BundleRunner(self.build, self.run, self._build_folder, platform, budget, prices)

    def unavailable_reason(self) -> str | None:
        try:
            building.find_compiler()
        except DeviceUnavailable as error:
            return str(error)
        return None

    def identity(self) -> str:
        figures = hashlib.sha256(repr(sorted(self._chip.figures.items())).encode()).hexdigest()[:12]
        inserted = "/auto_sync" if self._auto_sync else ""
        return f"{self.name}/{self._chip.name}/{figures}/{runtime().key}/{self._budget}{inserted}"

    def sandbox_tier(self) -> str:
        return self._confinement().tier

    def build(self, kernel: Kernel, task: Task | None = None) -> Build:
        started = time.perf_counter()
        if kernel.language != self.language:
            return Build(
                kernel, diagnostics=(Diagnostic(f"{self.name} builds {self.language}, not {kernel.language}"),)
            )
        if kernel.form == "bundle":
            if task is None:
                raise InfrastructureError("a bundle is built for a task")
            return replace(self._bundles.build(kernel, task), seconds=time.perf_counter() - started)
        folder = self._build_folder(kernel)
        text, diagnostics = compile_kernel(runtime(), kernel.source, folder)
        seconds = time.perf_counter() - started
        if diagnostics:
            return Build(kernel, diagnostics=diagnostics, seconds=seconds)
        return Build(kernel, artifact=folder / OBJECT, binary=folder / OBJECT, preprocessed=text, seconds=seconds)

    def unpack(self, packed: PackedBuild) -> Build:
        return packed.unpack(self._build_folder(packed.build.kernel))

    def run(self, build: Build, inputs: Inputs) -> Run:
        if build.artifact is None:
            raise InfrastructureError("a kernel that was not built cannot run")
        if build.kernel.form == "bundle":
            return self._bundles.run(build, inputs)
        started = time.perf_counter()
        memory = None if inputs.values is None else self._tensors.fill(inputs.signature, inputs.values, inputs.outputs)
        reply = self._device().ask(self._request(build, inputs), memory, self._timeout)
        outputs = self._tensors.outputs() if _has_outputs(reply) and inputs.values is not None else ()
        lines = build.kernel.source.count("\n") + 1
        return _run(reply, outputs, time.perf_counter() - started, lines)

    def trace(self, build: Build, inputs: Inputs, path: Path) -> Run:
        """Run as `run` does and write a trace of the pipes, for chrome://tracing or ui.perfetto.dev.

        A separate process runs the kernel, because the process that serves all other runs may not write files.

        Args:
            build: A successful build.
            inputs: The arguments of the call.
            path: The file that the trace is written to.

        Returns:
            What happened.

        Raises:
            KernelGymError: If the file cannot be written.
            InfrastructureError: If the simulator failed.
        """
        folder = Path(tempfile.mkdtemp(dir=self._folder()))
        tracer = AscendSim(**self._options)  # type: ignore[arg-type]
        tracer._trace = folder / "trace.json"
        try:
            done = tracer.run(build, inputs)
            shutil.copyfile(tracer._trace, path)
        except OSError as error:
            raise KernelGymError(f"cannot write the trace to {str(path)!r}: {error.strerror}") from None
        finally:
            tracer.close()
            shutil.rmtree(folder)
        return done

    def floor_us(self, signature: Signature) -> float:
        """Return the time to start a kernel and to move its tensors once at the highest rate of any memory.

        Where an input holds indices, the others may be read in part: only the outputs count.
        """
        moved = (*_read_inputs(signature), *signature.outputs)
        gbs = max(self._chip["memory.hbm_gbs"], self._chip["memory.l2_gbs"])
        return self._chip["launch.base_us"] + sum(spec.nbytes for spec in moved) / (gbs * 1e3)

    def compute_us(self, signature: Signature, work: int) -> float:
        """Return the time to start a kernel and to do its multiply-adds on all cube cores.

        A cube core multiplies 16 x 16 x 32 bytes a cycle. Products of floats count in 16 bits: a kernel may convert.

        Args:
            signature: Shapes and dtypes of the call.
            work: The number of multiply-adds.

        Returns:
            Microseconds.
        """
        size = min([2, *(spec.nbytes // spec.numel for spec in signature.inputs if spec.numel)])
        rate = self._chip["cube_cores"] * self._chip["clock_mhz"] * 16 * 16 * 32 / size / self._chip["cube.step"]
        return self._chip["launch.base_us"] + work / rate

    def roofline_us(
        self, signature: Signature, work: int, *, nonlinear: bool = False, whole: frozenset[int] | None = None
    ) -> float:
        """Return the time of the chip's roofline: a launch on the best number of cores, and what they are busy with.

        That is reading the inputs from HBM and writing the outputs, each once, or the multiply-adds in the inputs' own
        type, whichever takes longest.

        Args:
            signature: Shapes and dtypes of the call.
            work: The number of multiply-adds and of elements of inputs and outputs.
            nonlinear: Whether the task computes what the cube unit cannot, so that vector cores have to be started.
            whole: The positions of the inputs that are read whole; None: all, or none where an input holds indices.

        Returns:
            Microseconds.
        """
        inputs = signature.inputs
        elements = sum(spec.numel for spec in (*inputs, *signature.outputs))
        sizes = [spec.nbytes // spec.numel for spec in inputs if spec.numel]
        moved = _read_inputs(signature) if whole is None else [inputs[place] for place in sorted(whole)]
        read, written = (sum(spec.nbytes for spec in specs) for specs in (moved, signature.outputs))
        return roofline_us(self._chip, Work(read, written, max(0, work - elements), min([4, *sizes]), nonlinear))

    def _copy_us(self, nbytes: int) -> float:
        """Return the time to start a kernel on all vector cores and to move so many bytes from or to HBM."""
        return self._launch_us() + nbytes / (self._chip["memory.hbm_gbs"] * 1e3)

    def _reference_us(self, signature: Signature, work: int) -> float:
        """Return the time of a kernel for a task that moves its tensors from and to HBM once, and multiplies."""
        return max(self._copy_us(signature.nbytes), self._launch_us() + self.compute_us(signature, work))

    def _launch_us(self) -> float:
        return self._chip["launch.base_us"] + self._chip["launch.core_us"] * self._chip["vector_cores"]

    def fork(self) -> AscendSim:
        return AscendSim(**self._options)  # type: ignore[arg-type]

    def close(self) -> None:
        self._bundles.close()
        if self._server is not None:
            self._server.close()
        if self._scratch is not None:
            _remove(self._scratch, self._owner)
        self._tensors.close()
        self._server = self._scratch = None

    def __enter__(self) -> AscendSim:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _confinement(self) -> sandbox.Confinement:
        return programs.programs().confinement

    def _device(self) -> DeviceProcess:
        if self._server is None:
            built: SimulatorBuild = runtime()
            confinement = self._confinement()
            command = [str(built.device), "{socket}", str(confinement.layers)]
            write = [] if self._trace is None else [self._trace.parent]
            self._server = DeviceProcess(confinement.wrapped(command, [built.folder, *self._readable()], write))
        return self._server

    def _readable(self) -> list[Path]:
        """Return the folders of builds: this device's, or those of the device that asked for the trace."""
        return [self._folder()] if self._trace is None else [self._trace.parent.parent]

    def _folder(self) -> Path:
        """Return the folder that this device keeps its builds in."""
        if self._scratch is None or self._owner != os.getpid():
            self._scratch, self._owner = Path(tempfile.mkdtemp(prefix="kernel_gym-")), os.getpid()
            weakref.finalize(self, _remove, self._scratch, self._owner)
        return self._scratch

    def _build_folder(self, kernel: Kernel) -> Path:
        kept = sorted(self._folder().iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for old in kept[: max(0, len(kept) - KEPT_BUILDS + 1)]:
            shutil.rmtree(old)
        folder = self._folder() / kernel.digest[:32]
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir()
        return folder

    def _request(self, build: Build, inputs: Inputs) -> str:
        signature = inputs.signature
        lines = ["run", f"so {build.artifact}", f"operations {build.artifact}{operations.SUFFIX}"]
        lines += [f"functions {build.artifact}{FUNCTIONS}"]
        lines += [f"mode {'records' if inputs.values is None else 'compute'}"]
        lines += [f"poison {inputs.poison}", f"seed {inputs.seed & (1 << 64) - 1}"]
        lines += [f"key {' '.join(map(str, _key(inputs)))}"]
        lines += [f"timeout_ms {int(self._timeout * 1000)}", f"budget {self._budget * inputs.effort}"]
        lines += [f"effort {inputs.effort}"]
        lines += [f"trace {self._trace}"] if self._trace else []
        lines += ["auto_sync 1"] if self._auto_sync else []
        lines += ["keep 1"] if inputs.outputs else []
        lines += [] if self._record_loops else ["loops 0"]
        lines += [f"numbers {' '.join(map(str, _numbers(inputs)))}"] if inputs.numbers else []
        lines += ["continues 1"] if inputs.continues else []
        lines += [f"scratch {' '.join(map(str, inputs.scratch))}"] if inputs.scratch else []
        lines += self._tensors.lines(signature)
        lines += [
            f"tensor workspace {DTYPES['uint8'][0]} 0 {size} 0" for size in (_workspace_bytes(inputs), FRAMEWORK_BYTES)
        ]
        lines += [f"int {value}" for value in signature.ints]
        lines += [f"float {float(value).hex()}" for value in signature.floats]
        lines += self._chip_lines
        return "\n".join(lines) + "\n"


def _key(inputs: Inputs) -> tuple[int, int]:
    """Return the key of what variables without a value hold in a run, in two words.

    No two runs of a verdict have the same. Nothing that a bundle's model chooses has a part in it: neither values nor
    which tensors are the same.
    """
    run = repr((inputs.poison, inputs.effort, inputs.launch)).encode()
    digest = hashlib.blake2b(run, key=inputs.key.to_bytes(16, "little"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _read_inputs(signature: Signature) -> tuple[TensorSpec, ...]:
    """Return the inputs that a kernel reads whole: none where an input holds indices."""
    return () if any(spec.domain.kind == "index" for spec in signature.inputs) else signature.inputs


def _workspace_bytes(inputs: Inputs) -> int:
    return npu_workspace_bytes(inputs.signature) if inputs.workspace is None else inputs.workspace


def _numbers(inputs: Inputs) -> tuple[int, ...]:
    """Return the numbers of all tensors; the workspaces of a call's launches are the same two."""
    return (*(number + 2 for number in inputs.numbers), 0, 1)


def _remove(folder: Path, owner: int) -> None:
    """Remove a device's files; a forked process leaves them to its parent."""
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _has_outputs(reply: dict[str, Any]) -> bool:
    """Return whether the outputs are those of the kernel: all of them, or as far as it got within its budget."""
    return reply["status"] == "ok" or (reply["fault"] or {}).get("rule") in ("BUDGET", "WORK_LIMIT")


def _run(reply: dict[str, Any], outputs: tuple[Any, ...], seconds: float, lines: int) -> Run:
    executor, timing = reply["executor"], reply["timing"]
    ok = reply["status"] == "ok"
    return Run(
        status=reply["status"],
        outputs=outputs,
        latency_us=timing["latency_us"] if _has_outputs(reply) else None,
        profile=diagnose(_of_file(timing, lines)) if ok else None,
        fault=_fault(reply["fault"], lines) if reply["fault"] else None,
        code=reply["code"],
        warnings=tuple(executor["warnings"]),
        printed=executor["printed"],
        blocks=frozenset(reply["blocks"]),
        mix=executor["mix"],
        read=tuple(executor["read"]),
        written=tuple(executor["written"]),
        data_dependent=executor["data_dependent"],
        spent=reply["spent"],
        seconds=seconds,
    )


def _of_file(timing: dict[str, Any], lines: int) -> dict[str, Any]:
    """Return the report of the timing pass without lines that the file does not have: a kernel may report any."""
    return timing | {"lines": [entry for entry in timing["lines"] if 1 <= entry["line"] <= lines]}


def _fault(fault: dict[str, Any], lines: int) -> Fault:
    """Return a fault; its line, which the kernel's process reports, is None if the file has no such line."""
    line = fault["line"]
    return Fault(**fault | {"line": line if line is not None and 1 <= line <= lines else None})
