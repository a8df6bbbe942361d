"""Command lines that build one file with CANN 8 and CANN 9, and bisheng's errors with the author's lines."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_gym.hardware.ascend.toolkit import Cann
from kernel_gym.hardware.device import Diagnostic

#: Atlas A2: 910B.
ARCHITECTURE = "dav-2201"
STEM, OBJECT, LIBRARY = "device", "device.o", "libkernel.so"
_LIBRARIES = ("ascendcl", "platform", "register", "tiling_api", "ascendc_runtime", "runtime", "profapi")
_HEADERS = (
    "include",
    "compiler/tikcpp/include",
    "compiler/ascendc/include/basic_api",
    "compiler/ascendc/include/basic_api/impl",
    "compiler/ascendc/include/basic_api/interface",
    "compiler/ascendc/include/highlevel_api",
    "compiler/ascendc/include/highlevel_api/impl",
    "compiler/ascendc/include/highlevel_api/lib",
)
_PROJECT = """\
cmake_minimum_required(VERSION 3.16)
find_package(ASC REQUIRED)
project(kernel LANGUAGES ASC CXX)
set(CMAKE_CXX_STANDARD 17)
add_library(kernel SHARED device.asc)
target_include_directories(kernel PRIVATE {includes})
"""
_ERROR = re.compile(
    r"^(?P<file>[^:\s][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$", re.MULTILINE
)
_PREFIX = re.compile(r"^\[(?:ERROR|WARNING)\][^\n]*?\]\s*", re.MULTILINE)
_LINKER = re.compile(r"(?:undefined reference to|undefined symbol:|multiple definition of) .*")


def source_name(cann: Cann) -> str:
    """Return the name of the file; its suffix determines the language."""
    return f"{STEM}.asc" if cann.has_asc else f"{STEM}.cpp"


def prepare(cann: Cann, text: str, includes: tuple[Path, ...], folder: Path) -> tuple[tuple[str, ...], ...]:
    """Write the input files of the build into `folder`; return the command lines to run there in order."""
    (folder / source_name(cann)).write_text(text, encoding="utf-8", errors="surrogateescape")
    if not cann.has_asc:
        return compile_command(cann, includes), link_command(cann)
    (folder / "CMakeLists.txt").write_text(_PROJECT.format(includes=" ".join(map(str, includes))))
    configure = ("cmake", "-S", ".", "-B", "build", f"-DCMAKE_ASC_ARCHITECTURES={ARCHITECTURE}")
    places = (f"-DCMAKE_PREFIX_PATH={cann.home}", f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={folder}")
    return (*configure, *places), ("cmake", "--build", "build")


def compile_command(cann: Cann, includes: tuple[Path, ...]) -> tuple[str, ...]:
    """Return CANN 8's command that compiles one file."""
    headers = [f"-I{cann.home / place}" for place in _HEADERS] + [f"-I{place}" for place in includes]
    flags = (f"--npu-arch={ARCHITECTURE}", "-xasc", "-std=c++17", "-O2", "-fPIC")
    return (str(cann.bisheng), *flags, *headers, "-c", source_name(cann), "-o", OBJECT)


def link_command(cann: Cann) -> tuple[str, ...]:
    """Return CANN 8's command that links a shared library."""
    libraries = [f"-l{name}" for name in _LIBRARIES]
    return (str(cann.bisheng), "-shared", OBJECT, "-o", LIBRARY, f"-L{cann.home / 'lib64'}", *libraries)


def diagnostics(words: str, lines: int) -> tuple[Diagnostic, ...]:
    """Return the errors in the output of bisheng or CMake; those after the author's `lines` lines have no line."""
    plain = _PREFIX.sub("", words)
    errors = []
    for error in _ERROR.finditer(plain):
        own = Path(error["file"]).stem == STEM and int(error["line"]) <= lines
        errors.append(Diagnostic(error["text"].strip()[:400], int(error["line"]) if own else None))
    errors += [Diagnostic(message.group().strip()[:400]) for message in _LINKER.finditer(plain)]
    return tuple(dict.fromkeys(errors))
