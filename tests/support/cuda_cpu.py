"""A device that runs CUDA kernels on the CPU, for checking what they compute; it cannot time them.

`nvcc` says whether they compile, if it is there; `cuda_cpu.h` gives threads, barriers and shuffles to the same text
compiled as C++. Inputs and outputs lie between guard zones.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.hardware.device import Build, Device, Diagnostic, Fault, Inputs, Run, numpy_dtype
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import DTYPES, Signature
from kernel_gym.tasks.task import Task

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "hardware" / "host" / "include"
GUARD, PATTERN = 4096, 0x5C
#: Around inputs, so that what is read there and written behind an output shows.
INPUT_PATTERN = 0x3D
SECONDS = 60
ENDS = {71: "LAUNCH_CONFIGURATION", 72: "BARRIER", 73: "SHARED_MEMORY"}
_LAUNCH = re.compile(r"(\w+)<<<(.*?)>>>\((.*?)\);", re.DOTALL)
_DYNAMIC = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


def has_nvcc() -> bool:
    """True if there is a CUDA compiler here."""
    return shutil.which("nvcc") is not None


def on_cpu(source: str) -> str:
    """The same text as C++."""
    text = _LAUNCH.sub(r"cuda_cpu::Launch(\2) << [&] { \1(\3); };", source)
    text = _DYNAMIC.sub(r"\1 *\2 = reinterpret_cast<\1 *>(cuda_cpu::shared.data());", text)
    alone = "__syncthreads" not in source and "__shfl" not in source
    mark = f"static const bool files_alone = cuda_cpu::alone = {'true' if alone else 'false'};\n"
    return f'#include "cuda_cpu.h"\n{mark}{text}'


def nvcc_errors(source: str) -> tuple[Diagnostic, ...]:
    """What nvcc says of a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cu"
        file.write_text(source)
        command = [
            "nvcc",
            "-std=c++17",
            "-O0",
            "-ptx",
            "-arch=compute_80",
            f"-I{INCLUDE}",
            "-o",
            "/dev/null",
            str(file),
        ]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = re.findall(r"kernel\.cu\((\d+)\): error: (.*)", compiled.stderr)
    if compiled.returncode and not errors:
        errors = [("0", line) for line in compiled.stderr.splitlines() if "error" in line][:1] or [("0", "nvcc failed")]
    return tuple(Diagnostic(message, int(line) or None) for line, message in errors) if compiled.returncode else ()


class CudaOnCpu:
    """Runs CUDA kernels as C++."""

    name = "cuda-on-cpu"
    language = "cuda"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cuda_cpu"))

    def unavailable_reason(self) -> str | None:
        return None

    def identity(self) -> str:
        return self.name

    def sandbox_tier(self) -> str:
        return "D"

    def build(self, kernel: Kernel, task: Task) -> Build:
        file = self.folder / f"{hashlib.sha256(kernel.source.encode()).hexdigest()[:16]}.cpp"
        file.write_text(on_cpu(kernel.source))
        target = file.with_suffix(".so")
        flags = ("-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-shared", "-fPIC")  # it jumps between stacks
        command = ["g++", *flags, f"-I{HERE}", f"-I{INCLUDE}"]
        compiled = subprocess.run([*command, "-o", str(target), str(file)], capture_output=True, text=True, check=False)
        messages = re.findall(r"\.cpp:(\d+):\d+: (?:fatal )?error: (.*)", compiled.stderr)
        errors = tuple(Diagnostic(message, max(1, int(line) - 2)) for line, message in messages)
        if compiled.returncode and not errors:
            errors = (Diagnostic(compiled.stderr.strip()[-300:]),)
        return Build(kernel, target, diagnostics=errors)

    def run(self, build: Build, inputs: Inputs) -> Run:
        """`kernel_launch` in a child that shares nothing but the tensors' memory."""
        memory = _Memory(inputs)
        child = os.fork()
        if child == 0:
            os._exit(_call(build, memory, inputs.signature))
        status = _wait(child)
        if status is None:
            return Run("timeout")
        if os.WIFSIGNALED(status):
            return Run("fault", fault=Fault("CRASH", f"signal {os.WTERMSIG(status)}"))
        code = os.WEXITSTATUS(status)
        if code in ENDS:
            return Run("fault", fault=Fault(ENDS[code], "the launch or its barriers are wrong"))
        if code:
            return Run("refused", code=code)
        if touched := memory.touched():
            return Run("fault", fault=Fault("OUT_OF_BOUNDS", f"the kernel wrote outside {touched}"))
        return Run("ok", outputs=memory.outputs())

    def floor_us(self, signature: Signature) -> float:
        return 0.0

    def fork(self) -> Device:
        return CudaOnCpu()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _wait(child: int) -> int | None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class _Memory:
    """The tensors of one call and the workspace, each between guard zones."""

    def __init__(self, inputs: Inputs) -> None:
        signature = inputs.signature
        assert inputs.values is not None
        self.count = len(signature.inputs)
        self.specs = [*signature.inputs, *signature.outputs]
        sizes = [spec.nbytes for spec in self.specs]
        sizes.append((32 << 20) + 4 * sum(sizes))
        self.places, at = [], 0
        for size in sizes:
            self.places.append((at + GUARD, size))
            at += 2 * GUARD + -(-size // 512) * 512
        self.map = mmap.mmap(-1, at)
        self.bytes = np.frombuffer(self.map, dtype=np.uint8)
        for number, (start, size) in enumerate(self.places[:-1]):
            self.bytes[start - GUARD : start] = self._pattern(number)
            self.bytes[start + size : start + size + GUARD] = self._pattern(number)
        for (start, size), value in zip(self.places, inputs.values, strict=False):
            self.bytes[start : start + size] = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        for start, size in self.places[self.count : -1]:
            self.bytes[start : start + size] = inputs.poison
        start, size = self.places[-1]
        self.bytes[start : start + min(size, 8 << 20)] = inputs.poison
        self.base = self.bytes.ctypes.data

    def _pattern(self, number: int) -> int:
        return INPUT_PATTERN if number < self.count else PATTERN

    def touched(self) -> str:
        """Which tensor's surroundings were written to."""
        for number, (start, size) in enumerate(self.places[:-1]):
            around = (self.bytes[start - GUARD : start], self.bytes[start + size : start + size + GUARD])
            if any((zone != self._pattern(number)).any() for zone in around):
                return f"tensor {number}"
        return ""

    def outputs(self) -> tuple[Any, ...]:
        """Copies of the outputs."""
        matches = []
        for (start, size), spec in zip(self.places[self.count : -1], self.specs[self.count :], strict=True):
            data = self.bytes[start : start + size].tobytes()
            matches.append(np.frombuffer(data, numpy_dtype(spec.dtype)).reshape(spec.shape).copy())
        return tuple(matches)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("ptr", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 8),
    ]


class _Arguments(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_int32),
        *((name, ctypes.c_int32) for name in ("num_inputs", "num_outputs", "num_ints", "num_floats")),
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
    ]


def _call(build: Build, memory: _Memory, signature: Signature) -> int:
    tensors = (_Tensor * len(memory.specs))()
    for tensor, spec, (start, _) in zip(tensors, memory.specs, memory.places, strict=False):
        tensor.ptr, tensor.dtype, tensor.ndim = memory.base + start, DTYPES[spec.dtype][0], len(spec.shape)
        tensor.shape[: len(spec.shape)] = spec.shape
    first = ctypes.cast(tensors, ctypes.POINTER(_Tensor))
    second = ctypes.cast(ctypes.byref(tensors, memory.count * ctypes.sizeof(_Tensor)), ctypes.POINTER(_Tensor))
    start, size = memory.places[-1]
    ints, floats = (ctypes.c_int64 * 64)(*signature.ints), (ctypes.c_double * 64)(*signature.floats)
    arguments = _Arguments(
        1, memory.count, len(memory.specs) - memory.count, len(signature.ints), len(signature.floats),
        first, second, ints, floats, memory.base + start, size,
    )  # fmt: skip
    library = ctypes.CDLL(str(build.artifact))
    return int(library.kernel_launch(ctypes.byref(arguments), None)) & 0xFF
