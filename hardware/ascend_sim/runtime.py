"""Builds the simulator's executable once and keeps it in the user's cache.

The cache folder is named after everything that goes into it (sources, compiler, flags, architecture), so an installed
version never uses another's build. If several processes need it at once, the first builds and the others wait.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym import activity
from kernel_gym.confinement import building, programs
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.ascend_sim import builds, call_types, gimple, marshal, operations, source_names
from kernel_gym.hardware.host import runtime as host

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
CONFINEMENT = programs.SOURCES

#: No contraction and no errno: numerics must not depend on the host or the compiler.
RUNTIME_FLAGS = ("-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-w")
#: More for the arithmetic, so that its loops become vector code. The results are the same bits; only the flags of
#: floating-point exceptions, which nobody reads, may differ.
NUMERICS, NUMERICS_FLAGS = "numerics", ("-O3", "-fno-trapping-math")
#: The folder whose files include one large header. It is compiled first if it saves time: from so many files on.
EXECUTOR, EXECUTOR_FILES = "executor", 5

#: Flags for code that can be guarded (assembly/guards.py): no function saves a register of its caller, each has a frame
#: with a record, a stack grows page by page into its guard page, no jump goes by a table, and some registers are free.
_REGISTERS = {
    "x86_64": (*(f"call-used-{name}" for name in ("rbx", "r12", "r13", "r14", "r15")), "fixed-r10", "fixed-r11"),
    "aarch64": (
        *(f"call-used-{kind}{i}" for kind, numbers in (("x", range(19, 29)), ("v", range(8, 16))) for i in numbers),
        *(f"fixed-x{i}" for i in range(14, 18)),
    ),
}.get(platform.machine(), ())
#: Arguments are written below the frame, not pushed, and nothing is written below the stack pointer. Objects of more
#: than 256 bytes are copied by calls, as on aarch64: the guard charges for these (guard.cpp).
_X86 = ("-fcf-protection=none", "-maccumulate-outgoing-args", "-mno-red-zone", "-mstringop-strategy=libcall")
GUARD_FLAGS = (
    *("-fno-omit-frame-pointer", "-fno-jump-tables", "-fno-optimize-sibling-calls", "-fstack-clash-protection"),
    *(f"-f{register}" for register in _REGISTERS),
    *(_X86 if platform.machine() == "x86_64" else ("-mno-omit-leaf-frame-pointer",)),
)

#: Kernels are compiled with little optimisation; every basic block is counted, so that scalar code costs time.
KERNEL_FLAGS = (
    *("-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-math-errno"),
    "-fsigned-char",  # as on x86-64
    *("-ffp-contract=off", "-fno-stack-protector", "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables"),
    "-fno-unwind-tables",
    "-fno-zero-initialized-in-bss",  # among the variables that become constants (assembly/guards.py)
    *("-fsanitize-coverage=trace-pc", "-ftemplate-depth=128", "-fconstexpr-ops-limit=1000000"),
    *("-Wuninitialized", "-Wno-maybe-uninitialized"),  # certain ones only (compiler.py)
    "-Werror=narrowing",  # an error in the device's compiler, a warning of g++
    "-Werror=vla",  # the size of a frame is a constant
    # An index beyond its array ends the kernel. So does the end of a function that has to return a value: it would be
    # what the runtime has left in a register.
    *("-fsanitize=bounds-strict,return", "-fsanitize-undefined-trap-on-error"),
    *GUARD_FLAGS,
)
#: Uninitialised variables hold a pattern instead of an earlier call's stack contents; g++ 11 does not support this.
PATTERN_FLAG, PATTERN_SINCE = "-ftrivial-auto-var-init=pattern", 12

#: Headers that kernels have without an include, or that they may include: then they have been read before the author's
#: macros. Headers of nothing but macros are left out. A precompiled header must be the first thing that a compilation
#: reads.
PRELUDE = """#pragma once
#include "kernel_operator.h"
#include "kernel_gym.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <utility>
extern "C" __attribute__((visibility("default"))) int kernel_launch(const KernelArgs *, void *);
"""
#: Libraries with names like those of many a kernel's own classes. The prelude is precompiled again for kernels that
#: include one of them: with this library and all before it.
LIBRARIES = (
    "lib/cube_tiling.h",
    "tiling/platform/platform_ascendc.h",
    "tiling/tiling_api.h",
    "lib/matmul_intf.h",
)

#: The names that kernel code may find in the device's executable.
EXPORTS = "{ asc_*; __sanitizer_cov_trace_pc; __wrap_mem*; };\n"

#: The names that a precompiled header gives to types are in a file of its name with this suffix.
_TYPES = ".types"
#: The parts of the sandbox that are linked into the executable.
_SANDBOX = ("seccomp", "landlock", "jail")


@dataclass(frozen=True)
class SimulatorBuild:
    """A build of the simulator: its folder, and the compiler that built it and compiles kernels for it."""

    folder: Path
    compiler: str
    key: str

    @property
    def device(self) -> Path:
        """The device process."""
        return self.folder / "ascend-sim"

    @property
    def prelude(self) -> Path:
        """The header that is precompiled; its precompiled form lies beside it."""
        return self.folder / "include" / "prelude.h"

    def prelude_with(self, library: str) -> Path:
        """Return the header that is precompiled for kernels that include a library."""
        return _with(self.prelude, library)


@cache
def types_of(header: Path) -> dict[str, source_names.Type]:
    """Return what the names are that a precompiled header gives to types."""
    return source_names.read(header.with_suffix(_TYPES))


@cache
def runtime() -> SimulatorBuild:
    """Return the simulator's build for this compiler and these sources; the first call makes it."""
    compiler = building.find_compiler()
    while True:
        key = _key(compiler)
        folder = building.cache_folder() / f"ascend_sim-{key}"
        built = SimulatorBuild(folder, compiler, key)
        if builds.hold(folder):
            return built
        with _locked(folder.with_suffix(".lock")):
            if not (folder / builds.USED).is_file():
                activity.prepare("building the simulator, once for this machine")
                _build(built)
                builds.prune(folder.parent)


def _sources() -> list[Path]:
    folders = (SOURCES, HERE / "include", host.INCLUDE, CONFINEMENT)
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if path.suffix in (".h", ".cpp", ""))


def _key(compiler: str) -> str:
    modules = (call_types, gimple, marshal, operations, source_names)
    files = (Path(str(module.__file__)) for module in modules)
    return _digest(compiler, [*_sources(), *files, *sorted((HERE / "assembly").glob("*.py"))])


def _digest(compiler: str, files: Sequence[Path]) -> str:
    flags = (RUNTIME_FLAGS, NUMERICS_FLAGS, KERNEL_FLAGS, PATTERN_FLAG, PRELUDE, LIBRARIES, EXPORTS)
    return building.digest(compiler, flags, files)


@cache
def kernel_flags(compiler: str) -> tuple[str, ...]:
    """Return the flags with which a compiler compiles kernels."""
    return (*KERNEL_FLAGS, PATTERN_FLAG) if major_version(compiler) >= PATTERN_SINCE else KERNEL_FLAGS


@cache
def major_version(compiler: str) -> int:
    """Return the first number of the compiler's version."""
    answer = subprocess.run([compiler, "-dumpversion"], capture_output=True, check=True, text=True).stdout
    return int(answer.split(".")[0])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(target: SimulatorBuild) -> None:
    print(
        f"kernel_gym: building the simulator (once, about half a minute) in {target.folder}",
        file=sys.stderr,
        flush=True,
    )
    work = Path(tempfile.mkdtemp(prefix=f"{target.folder.name}-", dir=target.folder.parent))
    try:
        for headers in (HERE / "include", host.INCLUDE):
            shutil.copytree(headers, work / "include", dirs_exist_ok=True)
        marshal.generate(HERE / "include" / "abi.h", work)
        _build_executable(target.compiler, work)
        _precompile_preludes(target.compiler, work / "include" / "prelude.h")
        for leftover in (*work.glob("*.o"), *work.glob("*.inc"), *work.glob("executor_common.h*")):
            leftover.unlink()
        (work / builds.USED).touch()
        work.chmod(0o755)
        if _key(target.compiler) == target.key:  # otherwise the sources were edited during the build
            shutil.rmtree(target.folder, ignore_errors=True)  # a build of an earlier version, or an incomplete one
            work.rename(target.folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _build_executable(compiler: str, work: Path) -> None:
    sources = [*SOURCES.glob("*/*.cpp"), *(CONFINEMENT / f"{part}.cpp" for part in _SANDBOX)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        common = pool.submit(_precompile_executor, compiler, sources, work)
        list(pool.map(lambda source: _compile(compiler, source, work, common), sorted(sources, key=_order)))
    (work / "exports.list").write_text(EXPORTS)
    exports = f"-Wl,--dynamic-list={work}/exports.list"
    objects = [str(work / f"{_object_name(source)}.o") for source in sorted(sources)]
    _call(compiler, "-static-libstdc++", "-static-libgcc", exports, *objects, "-o", str(work / "ascend-sim"), "-ldl")


def _order(source: Path) -> tuple[bool, int]:
    """Return the sort key of a source: the executor's wait for its header and come last; large ones first."""
    return source.parent.name == EXECUTOR, -source.stat().st_size


def _compile(compiler: str, source: Path, work: Path, common: Future[list[str]]) -> None:
    """Compile one file, or copy it from an earlier build with the same file and headers."""
    target = work / f"{_object_name(source)}.o"
    kept = _kept(compiler, source, work)
    try:
        shutil.copy(kept, target)
        os.utime(kept)
    except FileNotFoundError:
        flags = (*RUNTIME_FLAGS, *(NUMERICS_FLAGS if source.parent.name == NUMERICS else ()))
        headers = common.result() if source.parent.name == EXECUTOR else []
        _call(compiler, *flags, *_includes(work), *headers, "-c", str(source), "-o", str(target))
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(target, f"{kept}.{os.getpid()}")
        os.replace(f"{kept}.{os.getpid()}", kept)


def _precompile_executor(compiler: str, sources: Sequence[Path], work: Path) -> list[str]:
    """Compile the header of the executor's files, unless most of them are kept; return the words that use it."""
    files = [source for source in sources if source.parent.name == EXECUTOR]
    if sum(not _kept(compiler, source, work).is_file() for source in files) < EXECUTOR_FILES:
        return []
    header = work / "executor_common.h"
    header.write_text(f'#include "{EXECUTOR}/executor.h"\n')
    _call(compiler, *RUNTIME_FLAGS, *_includes(work), "-x", "c++-header", str(header), "-o", f"{header}.gch")
    return ["-include", str(header)]


def _kept(compiler: str, source: Path, work: Path) -> Path:
    return work.parent / "objects" / f"{_object_name(source)}-{_object_key(compiler, source, work)}.o"


def _includes(work: Path) -> list[str]:
    return [word for folder in (SOURCES, CONFINEMENT, work) for word in ("-I", str(folder))]


def _object_name(source: Path) -> str:
    return f"{source.parent.name}-{source.stem}"


def _object_key(compiler: str, source: Path, work: Path) -> str:
    headers = [path for path in _sources() if path.suffix == ".h"]
    return _digest(compiler, [source, *headers, *sorted(work.glob("*.inc"))])


def _with(prelude: Path, library: str) -> Path:
    return prelude.with_name(f"{prelude.stem}_{Path(library).name}")


def _precompile_preludes(compiler: str, prelude: Path) -> None:
    headers, text = [prelude], PRELUDE
    prelude.write_text(text)
    for library in LIBRARIES:
        text += f'#include "{library}"\n'
        headers.append(_with(prelude, library))
        headers[-1].write_text(text)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda header: _precompile(compiler, header), headers))


def _precompile(compiler: str, header: Path) -> None:
    """Precompile a header, and write what the names are that it gives to types."""
    flags, text = (*kernel_flags(compiler), "-I", str(header.parent)), header.with_suffix(".ii")
    _call(compiler, *flags, "-x", "c++-header", str(header), "-o", f"{header}.gch")
    _call(compiler, *flags, "-w", "-x", "c++", "-E", "-P", str(header), "-o", str(text))
    source_names.write(header.with_suffix(_TYPES), source_names.declared(text.read_text(encoding="utf-8")))
    text.unlink()


def _call(*command: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise DeviceUnavailable(
            f"building the simulator failed: {_first_error(run.stderr)} [{shlex.join(command[:2])} ...]"
        )


def _first_error(output: str) -> str:
    lines: Sequence[str] = output.splitlines() or ("the compiler said nothing",)
    telling = (
        line
        for word in ("error:", "undefined reference")
        for line in lines
        if word in line and "ld returned" not in line
    )
    return next(telling, lines[-1]).strip()
