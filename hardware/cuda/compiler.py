"""Compiles both halves of a kernel within limits: the host's by g++, the GPU's by NVRTC. Returns their errors."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.cuda.runtime import HERE, CudaPrograms
from kernel_gym.hardware.cuda.toolkit import Toolkit
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host import compiler as host_compiler
from kernel_gym.hardware.host.launches import NamesTooLong, kernels_in
from kernel_gym.hardware.host.split import Split, split

HOST, CUBIN, PTX = "host.so", "kernel.cubin", "kernel.ptx"
#: The host half, and what the preprocessor makes of it.
HOST_SOURCE, PREPROCESSED = "host.cpp", "host.ii"
NO_ENTRY = 'no entry: define extern "C" int kernel_launch(const KernelArgs *args, void *stream)'
NO_KERNEL = "no kernel: define at least one __global__ function and launch it with <<<grid, block, shared, stream>>>"

_HOST_FLAGS = (
    *("-std=c++17", "-O0", "-fPIC", "-w", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-math-errno"),
    *("-fno-stack-protector", "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables", "-ftemplate-depth=128"),
    *("-fconstexpr-ops-limit=1000000", "-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"),
    *("-pipe", "-shared", "-nostdlib", "-DNDEBUG", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now"),
)
_DEVICE_FLAGS = ("-std=c++17", "-default-device", "-w", "-include=cuda_device.h", "-lineinfo")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
#: CUDA headers whose declarations the host's half has without an include, and those of the device's half.
_OF_CUDA = re.compile(r"(cuda|mma|cooperative|device_|vector_|math_|sm_|nv|cub|crt|kernel_gym)[\w/.]*")
_OF_HOST = re.compile(
    r"(cuda_runtime(_api)?|device_launch_parameters|kernel_gym|std\w+|math|float|limits|assert|string)\.h"
)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
_STANDARD = re.compile(r"[a-z_]+")
#: Headers of the language, which the host half may include. Others have functions that compile to a clock.
_LANGUAGE = re.compile(
    r"(assert|ctype|errno|float|inttypes|iso646|limits|math|std(align|arg|bool|def|int|io|lib)|string|time)\.h|[a-z_]+"
)
#: Files that the compiler reads before the author's.
_PROVIDED = ("cuda_host.h", "kernel_gym.h", "stdc-predef.h")
_MARKER = re.compile(r'^# \d+ "(?P<file>[^"\n]*)"(?P<flags>(?: \d)*)$', re.MULTILINE)
_NVRTC_ERROR = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\d+(?:-D)?)?: (?P<text>.*)$"
)
#: g++'s message for a launch with wrong arguments, and the message that replaces it.
_LAUNCHED = re.compile(r"no match for call to .\(?(?:const )?kernel_gym::Launcher<(?P<has>.*)>\)? \((?P<given>.*)\).")
_FITS = r"the launch passes (\g<given>) to a kernel with the parameters (\g<has>)"
_INSTANTIATED = re.compile(r"at line (?P<line>\d+)(?! of)")


@dataclass(frozen=True)
class Binaries:
    """Both built halves; `kernels` maps each offset in the host's file to the kernel's name in the GPU's.

    `has_variables`: the code for the GPU has its own variables, or constants whose address it takes. They persist
    between calls unless it is loaded again.
    `preprocessed`: the host half as the compiler reads it.
    """

    host: Path
    cubin: Path
    kernels: Mapping[int, str]
    has_variables: bool
    preprocessed: str


def compile_kernel(
    runtime: CudaPrograms, toolkit: Toolkit, architecture: str, source: str, folder: Path
) -> Binaries | tuple[Diagnostic, ...]:
    """Compile into `folder`, the only folder that the compilers may write."""
    parts = split(source)
    if not parts.entry:
        return (Diagnostic(NO_ENTRY),)
    if not parts.kernels and not parts.templates:
        return (Diagnostic(NO_KERNEL),)
    (folder / "device.cu").write_text(_without(parts.device, _OF_HOST, _STANDARD), errors="surrogateescape")
    (folder / HOST_SOURCE).write_text(_without(parts.host, _OF_CUDA), errors="surrogateescape")
    compilation = _Compilation(runtime, toolkit, architecture, folder, parts)
    try:
        return compilation.serial() if parts.templates or _CONDITIONAL.search(source) else compilation.parallel()
    except NamesTooLong as error:
        return (Diagnostic(str(error)),)


def _without(text: str, *headers: re.Pattern[str]) -> str:
    """Return the text without includes of headers that this half already has or does not need.

    The directive becomes an empty one. What is behind it stays: it may begin a comment, and it is no code.
    """

    def kept(include: re.Match[str]) -> str:
        return "#" if any(header.fullmatch(include[1]) for header in headers) else include[0]

    return _INCLUDE.sub(kept, text)


@dataclass(frozen=True)
class _Compilation:
    """The compilation of one kernel by both compilers."""

    runtime: CudaPrograms
    toolkit: Toolkit
    architecture: str
    folder: Path
    parts: Split

    def parallel(self) -> Binaries | tuple[Diagnostic, ...]:
        """Compile both halves at once, because the name of every kernel is known."""
        with ThreadPoolExecutor(2) as pool:
            host, device = pool.submit(self.host), pool.submit(self.device, self.parts.kernels)
            lowered = device.result()
            refused = host.result()
        if isinstance(lowered, tuple) or refused:
            return lowered if isinstance(lowered, tuple) else refused
        return self._binaries(lowered)

    def serial(self) -> Binaries | tuple[Diagnostic, ...]:
        """Compile the host's half first, because it determines which kernels there are: instances, live branches."""
        if refused := self.host():
            # NVRTC gives the better message for an error in a kernel's signature.
            lowered = self.device(self.parts.kernels)
            return lowered if isinstance(lowered, tuple) else refused
        lowered = self.device(tuple(dict.fromkeys(self._instances().values())))
        return lowered if isinstance(lowered, tuple) else self._binaries(lowered)

    def host(self) -> tuple[Diagnostic, ...]:
        """Preprocess the host's half, and compile what that gives."""
        include = self.runtime.folder / "include"
        compiler = self.runtime.host.compiler
        headers = ["-include", str(include / "cuda_host.h"), "-I", str(include)]
        roots = host_compiler.compiler_roots(compiler)
        for arguments, result in (([*headers, "-E", HOST_SOURCE], PREPROCESSED), ([PREPROCESSED], HOST)):
            code, words = self._confined([compiler, *_HOST_FLAGS, *arguments, "-o", result], roots)
            if code or not (self.folder / result).is_file():
                return _host_diagnostics(words) or (Diagnostic(host_compiler.unexplained(code, words)),)
            if foreign := [name for name in included(self.preprocessed) if not _LANGUAGE.fullmatch(name)]:
                words = f"the host function has no header {foreign[0]}: include kernel_gym.h, CUDA's and C++'s own"
                return (Diagnostic(words),)
        return ()

    @property
    def preprocessed(self) -> str:
        """The host's half as the compiler reads it, under the name that diagnostics give it."""
        text = (self.folder / PREPROCESSED).read_text(errors="surrogateescape")
        return text.replace(f'"{HOST_SOURCE}"', f'"{host_compiler.SOURCE}"')

    def device(self, names: Sequence[str]) -> dict[str, str] | tuple[Diagnostic, ...]:
        """Compile the GPU's half; return the lowered name of each kernel, or the errors."""
        headers = [f"-I{folder}" for folder in (self.runtime.folder / "include", *self.toolkit.headers)]
        options = [f"-arch={self.architecture}", *_DEVICE_FLAGS, *headers]
        program = [str(self.runtime.nvrtc), str(self.toolkit.nvrtc), "device.cu", CUBIN, PTX, "names"]
        read = (
            "/usr",
            "/lib",
            "/lib64",
            "/etc/ld.so.cache",
            str(self.toolkit.libraries),
            *map(str, self.toolkit.headers),
        )
        code, words = self._confined([*program, *names, "--", *options], read)
        if code == 1:
            return _nvrtc_diagnostics(words) or (Diagnostic(_first_line(words)),)
        if code == 3:
            raise InfrastructureError(f"NVRTC failed: {_first_line(words)}")
        if code or not all((self.folder / name).is_file() for name in (CUBIN, PTX)):
            return (Diagnostic(host_compiler.unexplained(code, words)),)
        return dict(zip(names, (self.folder / "names").read_text().splitlines(), strict=True))

    def _confined(self, command: list[str], read: Sequence[str]) -> tuple[int, str]:
        readable = [str(self.runtime.folder), *read]
        libraries = {"LD_LIBRARY_PATH": str(self.toolkit.libraries)}
        return host_compiler.call_confined(self.runtime.host, command, self.folder, readable, libraries)

    def _instances(self) -> dict[int, str]:
        """Return offset in the host's file and name expression of every kernel that is instantiated there."""
        return kernels_in(self.folder / HOST, {*self.parts.kernels, *self.parts.templates})

    def _binaries(self, lowered: Mapping[str, str]) -> Binaries:
        kernels = {place: lowered[name] for place, name in self._instances().items() if name in lowered}
        assembly = (self.folder / PTX).read_text(errors="replace")
        with (self.folder / CUBIN).open("rb") as file:
            sections = {section.name: section.header.sh_size for section in ELFFile(file).iter_sections()}
        # Constants are memory like any other to code that takes their address.
        lasting = (".nv.global", ".nv.constant3") if "cvta.const" in assembly else (".nv.global",)
        has_variables = any(size for name, size in sections.items() if name.startswith(lasting))
        return Binaries(self.folder / HOST, self.folder / CUBIN, kernels, has_variables, self.preprocessed)


def compile_trusted(runtime: CudaPrograms, toolkit: Toolkit, architecture: str, folder: Path) -> Path:
    """Compile the trusted kernels for one GPU, once, into `folder`."""
    if not (folder / CUBIN).is_file():
        work = Path(tempfile.mkdtemp(prefix="trusted-", dir=runtime.folder))
        shutil.copy(HERE / "src" / "trusted.cu", work / "device.cu")
        names = _Compilation(runtime, toolkit, architecture, work, Split("", "", (), (), False)).device(())
        if isinstance(names, tuple):
            raise InfrastructureError(f"the trusted kernels do not compile: {names[0].message}")
        folder.mkdir(exist_ok=True)
        os.replace(work / CUBIN, folder / CUBIN)
        shutil.rmtree(work)
    return folder / CUBIN


def included(preprocessed: str) -> Iterator[str]:
    """Yield the names of the headers that the author's own text includes, by the preprocessor's line markers."""
    depth = 0
    for marker in _MARKER.finditer(preprocessed):
        flags = marker["flags"].split()
        if "1" in flags and depth == 0 and Path(marker["file"]).name not in _PROVIDED:
            yield Path(marker["file"]).name
        depth += ("1" in flags) - ("2" in flags)


def _host_diagnostics(words: str) -> tuple[Diagnostic, ...]:
    errors = host_compiler.diagnostics(words.replace(f"{HOST_SOURCE}:", f"{host_compiler.SOURCE}:"))
    return tuple(Diagnostic(_LAUNCHED.sub(_FITS, error.message), error.line) for error in errors)


def _nvrtc_diagnostics(words: str) -> tuple[Diagnostic, ...]:
    """Return NVRTC's errors; an error inside a header is reported at the author's line that caused it."""
    errors: list[Diagnostic] = []
    for line in words.splitlines():
        if error := _NVRTC_ERROR.match(line):
            own = error["file"] == "kernel.cu"
            errors.append(Diagnostic(host_compiler.tidy(error["text"]), int(error["line"]) if own else None))
        elif errors and errors[-1].line is None and (origin := _INSTANTIATED.search(line)):
            errors[-1] = Diagnostic(errors[-1].message, int(origin["line"]))
    return tuple(dict.fromkeys(errors))


def _first_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return host_compiler.tidy(lines[0]) if lines else "it gave no reason"
