"""Compiles a kernel for the simulator within limits and returns the compiler's errors with the author's lines."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim import call_types, gimple, operations
from kernel_gym.hardware.ascend_sim.assembly.guards import COPYING, guarded
from kernel_gym.hardware.ascend_sim.assembly.instructions import Refused
from kernel_gym.hardware.ascend_sim.runtime import LIBRARIES, SimulatorBuild, kernel_flags, major_version, types_of
from kernel_gym.hardware.bundles.launch_text import OURS
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host import runtime as host
from kernel_gym.hardware.host.ascend_launches import Cores, rewrite
from kernel_gym.hardware.host.compiler import (
    MOST_OUTPUT,
    SOURCE,
    call_confined,
    compiler_roots,
    diagnostics,
    unexplained,
)
from kernel_gym.hardware.host.launch_syntax import tokens
from kernel_gym.hardware.host.preprocessed import plain

OBJECT, PREPROCESSED, ASSEMBLY = "kernel.so", "kernel.ii", "kernel.s"
#: The file of the places where functions start.
FUNCTIONS = ".functions"

#: Functions that the compiler calls by itself. The linker replaces them by guarded ones.
_WRAPPED = ",".join(f"--wrap={name}" for name in COPYING)
_LINK_FLAGS = (
    *("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now,-z,separate-code", f"-Wl,{_WRAPPED}"),
    operations.LINK_FLAG,
)
_ASSEMBLY_FLAGS = ("-S", "-dp", *operations.FLAGS, *call_types.FLAGS)
_DIAGNOSTIC_FLAGS = ("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-pipe")
#: What g++ says where a dump exceeds 64 MB. The dumps take about 75 bytes for each byte of code.
_TOO_LARGE = "File size limit exceeded signal terminated program cc1plus"
_TOO_MUCH_CODE = (
    "the kernel is compiled to more than about 800 KB of code: use fewer templates, macros and unrolled loops"
)
#: What g++ calls for numbers of 128 bits on aarch64.
_LONG_DOUBLE = re.compile(r"__\w+tf[23]?|__fix\w*tf\w+")
_WIDE_INTEGERS = frozenset({"__int128", "__int128__", "__int128_t", "__uint128_t"})
#: The warning about a variable without a value. It is an error, but g++ 12 also warns of temporaries that have one.
_UNINITIALISED = re.compile(r"warning: (?='(?!D\.\d+')[^']+' is used uninitialized)")
_TOO_MANY_WARNINGS = "the compiler has thousands of warnings about code that is not standard C++: write standard C++"
_NO_WIDE_INTEGERS = "integers of 128 bits do not exist in device code: use two of 64 bits"
_MATHEMATICS = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|exp[2m1]*|log(10|2|1p)?|pow|sqrt|cbrt|erfc?|[tl]gamma|floor|ceil|round|fmod|hypot)[fl]?"
)


def compile_kernel(runtime: SimulatorBuild, source: str, folder: Path) -> tuple[str, tuple[Diagnostic, ...]]:
    """Compile into `folder`, which must exist and is the only writable folder; no diagnostics means success.

    Also return the preprocessed text, for the screen. What is compiled is this text with its launches written as calls
    and a few names replaced.
    """
    (folder / SOURCE).write_text(source, encoding="utf-8", errors="surrogateescape")
    front = [runtime.compiler, *kernel_flags(runtime.compiler), *_DIAGNOSTIC_FLAGS]
    headers = ["-include", str(runtime.prelude), "-I", str(runtime.prelude.parent)]
    errors = _call(runtime, [*front, *headers, "-E", "-fpch-preprocess", SOURCE, "-o", PREPROCESSED], folder)
    if errors:
        return "", errors
    read = plain((folder / PREPROCESSED).read_text(encoding="utf-8", errors="surrogateescape"), (SOURCE, OURS))
    prelude = _prelude(runtime, read.headers)
    if read.diagnostics:
        return "", read.diagnostics
    if isinstance(prelude, Diagnostic):
        return "", (prelude,)
    if wide := _wide_integers(read.text, source):
        return "", (wide,)
    cores = Cores(read.text, source)
    text = rewrite(cores.unmarked, cores)
    with (folder / PREPROCESSED).open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f'# 0 "{SOURCE}"\n#pragma GCC pch_preprocess "{prelude}.gch"\n{text}')
    errors = _call(runtime, [*front, *_ASSEMBLY_FLAGS, PREPROCESSED, "-o", ASSEMBLY], folder)
    if errors:
        return "", errors
    dump, last = _dump(folder, operations.DUMP), _dump(folder, call_types.DUMP)
    try:
        code = guarded((folder / ASSEMBLY).read_text(encoding="utf-8", errors="surrogateescape"))
    except Refused as error:
        return cores.unmarked, (Diagnostic(_named(str(error), dump)),)
    (folder / ASSEMBLY).write_text(code.text, encoding="utf-8", errors="surrogateescape")
    errors = _call(runtime, [runtime.compiler, *_LINK_FLAGS, ASSEMBLY, "-o", OBJECT], folder)
    if errors:
        return "", errors
    with (folder / OBJECT).open("rb") as file:
        elf = ELFFile(file)
        errors = _unusable(elf) or _beyond_arrays(dump, runtime)
        if not errors:
            operations.count(folder / OBJECT, dump, text, types_of(prelude), elf, code.computed, last)
            _write_functions(folder / f"{OBJECT}{FUNCTIONS}", elf)
    return cores.unmarked, errors


def _call(runtime: SimulatorBuild, command: list[str], folder: Path) -> tuple[Diagnostic, ...]:
    """Run the compiler, whose last word is the file that it writes; return its errors."""
    read = (str(runtime.folder), *compiler_roots(runtime.compiler))
    code, output = call_confined(host.runtime(), command, folder, read)
    if code or not (folder / command[-1]).is_file():
        why = _TOO_MUCH_CODE if _TOO_LARGE in output else unexplained(code, output)
        return diagnostics(output) or (Diagnostic(why),)
    if len(output.encode()) >= MOST_OUTPUT:
        return (Diagnostic(_TOO_MANY_WARNINGS),)
    if unset := diagnostics(_UNINITIALISED.sub("error: ", output)):
        return unset
    return ()


def _prelude(runtime: SimulatorBuild, included: frozenset[str]) -> Path | Diagnostic:
    """Return the header whose precompiled form has the text of the included ones."""
    libraries = {str(runtime.prelude.parent / library): library for library in LIBRARIES}
    if unknown := sorted(included - libraries.keys()):
        return Diagnostic(f"{Path(unknown[0]).name} cannot be included in a kernel")
    wanted = [library for header, library in libraries.items() if header in included]
    return runtime.prelude_with(wanted[-1]) if wanted else runtime.prelude


def _wide_integers(preprocessed: str, source: str) -> Diagnostic | None:
    """Return an error if a text names integers of 128 bits, with the line of the source that does; None otherwise."""
    if all(word.text not in _WIDE_INTEGERS for word in tokens(preprocessed)):
        return None
    places = (word.start for word in tokens(source) if word.text in _WIDE_INTEGERS)
    lines = [source.count("\n", 0, place) + 1 for place in places]
    return Diagnostic(_NO_WIDE_INTEGERS, lines[0] if lines else None)


def _dump(folder: Path, name: str) -> str:
    """Return a dump of the compiler, which it does not write if there is no function."""
    file = folder / name
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _named(error: str, dump: str) -> str:
    """Return an error that begins with the symbol of a function, with the function's own name instead."""
    symbol, _, rest = error.partition(" ")
    function = re.search(rf"^;; Function (.*) \({re.escape(symbol)}, ", dump, re.MULTILINE)
    return f"{function[1] if function else symbol} {rest}"


def _write_functions(file: Path, elf: ELFFile) -> None:
    """Write where functions start: a launch may begin nowhere else."""
    functions = (each for each in symbols.of(elf, ".symtab") if each.kind == symbols.FUNCTION and not each.undefined)
    starts = {function.value for function in functions}
    file.write_text("".join(f"{start}\n" for start in sorted(starts)))


def _beyond_arrays(dump: str, runtime: SimulatorBuild) -> tuple[Diagnostic, ...]:
    indices = dict.fromkeys(gimple.beyond_arrays(dump, major_version(runtime.compiler)))
    return tuple(Diagnostic(f"index {index} is beyond the end of its array") for index in indices)


def _unusable(elf: ELFFile) -> tuple[Diagnostic, ...]:
    """Return the errors of the symbols: no entry point, the C library's mathematics, long double."""
    table = list(symbols.of(elf))
    undefined = {symbol.name for symbol in table if symbol.undefined}
    errors = [
        Diagnostic(
            f"{name} does not exist in device code: use the vector functions (Exp, Ln, Sqrt, ...) on a LocalTensor"
        )
        for name in sorted(undefined)
        if _MATHEMATICS.fullmatch(name)
    ]
    if any(map(_LONG_DOUBLE.fullmatch, undefined)):
        errors.append(
            Diagnostic("long double does not exist in device code: use float, or double in the host function")
        )
    if all(symbol.name != "kernel_launch" or symbol.name in undefined for symbol in table):
        errors.append(Diagnostic('no entry: define extern "C" int kernel_launch(const KernelArgs *args, void *stream)'))
    return tuple(errors)
