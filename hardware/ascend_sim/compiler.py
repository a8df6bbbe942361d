"""Compiles a kernel for the simulator within limits and returns the compiler's errors with the author's lines."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim import accesses, calls, frames, gimple, operations, symbol_table
from kernel_gym.hardware.ascend_sim.runtime import LIBRARIES, SimulatorBuild, kernel_flags, major_version
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

OBJECT, PREPROCESSED = "kernel.so", "kernel.ii"

_WRAPPED = ",".join(f"--wrap={name}" for name in symbol_table.WRAPPED)
_LINK_FLAGS = ("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now,-z,separate-code", f"-Wl,{_WRAPPED}")
_DUMPS = (*operations.FLAGS, *frames.FLAGS, *calls.FLAGS, *symbol_table.FLAGS)
_DIAGNOSTIC_FLAGS = ("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-pipe")
_WHOLE_OBJECTS = (
    "copy a bit-field before you compare it, use no bit casts or complex numbers, and copy no part of a derived object"
)
_BY_NAME = "calls a function through a pointer, a cast or a virtual table: call functions by their names"
#: Expressions whose parts the compiler does not show, so that they may hide a call of a function that was cast.
_HIDDEN = dict.fromkeys(
    ("truth_and_expr", "truth_or_expr", "truth_xor_expr"),
    "joins comparisons by & or |, and a call in them cannot be checked: use && and ||, or put them into variables",
) | {
    calls.STRING: "has a table of bytes or a string with zeros, which cannot be checked: use wider numbers",
    calls.COPY: "assigns an object that ends with unused bytes, and a call for its place cannot be checked: assign its "
    "members, or add a member that fills it up",
    "try_catch_expr": "constructs a member that has a destructor, and calls behind it cannot be checked: leave out the "
    "destructor",
}
_OTHER_HIDDEN = "has an expression ({}) in which a call cannot be checked: write it in smaller steps"
_NORETURN = "calls a noreturn function that the kernel defines: define none that a header declares noreturn"
_SIMPLER = "declare smaller ones, without alignas, and pass it fewer arguments"
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
#: Warnings about arrays of which no index is known to be beyond the end.
_WITHOUT_AN_END = re.compile(r"ISO C\+\+ forbids (?:zero-size array|flexible array member)")
#: The warning about a method that becomes a pointer to a function.
_CAST_METHOD = re.compile(r"warning: converting from .*::\*.* to ")
#: The warning about a label that is a value: a jump to it may leave its function.
_LABEL_AS_VALUE = re.compile(r"taking the address of a label is non-standard|ISO C\+\+ forbids computed gotos")
_NO_LABELS = "the address of a label is used: use switch instead of a computed goto"
_NO_CAST_METHOD = "a method is cast to a pointer to a function: call it by its name"
_NO_END = "an array has no size, or size 0, so that no access to it can be checked: give it its size"
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
    errors = _call(
        runtime,
        [*front, *_LINK_FLAGS, *_DUMPS, PREPROCESSED, "-o", OBJECT],
        folder,
    )
    if errors:
        return "", errors
    with (folder / OBJECT).open("rb") as file:
        elf = ELFFile(file)
        errors = _unusable(elf, (folder / symbol_table.DUMP).read_text(errors="replace"))
        errors = errors or _beyond_arrays(runtime, folder)
        return cores.unmarked, errors or _count(runtime, folder, text, elf)


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
    if _CAST_METHOD.search(output):
        return (Diagnostic(_NO_CAST_METHOD),)
    if _LABEL_AS_VALUE.search(output):
        return (Diagnostic(_NO_LABELS),)
    return (Diagnostic(_NO_END),) if _WITHOUT_AN_END.search(output) else ()


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


def _count(runtime: SimulatorBuild, folder: Path, text: str, elf: ELFFile) -> tuple[Diagnostic, ...]:
    """Count the operations of the kernel and find the trusted words of its frames; return why this is impossible."""
    operations.count(folder / OBJECT, text, runtime.types, elf)
    dump = (folder / gimple.DUMP).read_text(errors="replace")
    (folder / gimple.DUMP).unlink()
    if unguarded := accesses.unguarded(dump):
        return (Diagnostic(f"{unguarded} reads or writes through a pointer what cannot be guarded: {_WHOLE_OBJECTS}"),)
    if caller := calls.noreturn_call(dump):
        return (Diagnostic(f"{caller} {_NORETURN}"),)
    if found := calls.indirect_call((folder / calls.TREES).read_bytes().decode("latin-1")):
        caller, kind = found
        return (Diagnostic(f"{caller} {_HIDDEN.get(kind, _OTHER_HIDDEN.format(kind)) if kind else _BY_NAME}"),)
    if unknown := frames.write(folder / OBJECT, elf, dump):
        return (Diagnostic(f"{unknown} keeps its local variables where they cannot be guarded: {_SIMPLER}"),)
    return ()


def _beyond_arrays(runtime: SimulatorBuild, folder: Path) -> tuple[Diagnostic, ...]:
    indices = dict.fromkeys(operations.beyond_arrays(folder / OBJECT, major_version(runtime.compiler)))
    return tuple(Diagnostic(f"index {index} is beyond the end of its array") for index in indices)


def _unusable(elf: ELFFile, dump: str) -> tuple[Diagnostic, ...]:
    """Return the errors of the symbols: no entry point, the C library's mathematics, two declarations of one symbol."""
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
    if not errors and (fault := symbol_table.fault(dump, undefined)):
        errors.append(Diagnostic(fault))
    return tuple(errors)
