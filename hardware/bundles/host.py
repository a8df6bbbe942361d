"""The host code of a bundle: compiled by g++ against our host layer, and run in a confined process.

The program that it becomes says which operators the bundle registers, and runs their tiling functions. What it writes
is data of a stranger: every number is checked here.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym import activity
from kernel_gym.confinement import building
from kernel_gym.hardware.bundles.text import Bundle
from kernel_gym.hardware.bundles.time_left import TimeLeft
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.hardware.host import runtime as programs
from kernel_gym.hardware.host.compiler import SECONDS, call_confined, compiler_roots, diagnostics, unexplained
from kernel_gym.kernel import BUNDLE_TEXTS

INCLUDE = Path(__file__).resolve().parent / "include"
SOURCE = Path(__file__).resolve().parent / "src" / "host_main.cpp"
#: Headers of tilings that kernels in one file use, too.
TILINGS = Path(__file__).resolve().parent.parent / "ascend_sim" / "include"
FLAGS = ("-std=c++17", "-O0", "-w", "-DKERNEL_GYM_HOST", "-ftemplate-depth=128", "-fconstexpr-ops-limit=1000000")
OPERATOR, PROGRAM, REQUEST, RESPONSE = "host_operator.cpp", "host", "request", "response"
MAIN = "host_main.o"
_DIAGNOSTICS = ("-fmax-errors=8", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-pipe")
#: `ge::DataType` of our element types.
DATA_TYPES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "uint16": 7,
    "uint32": 8,
    "int64": 9,
    "uint64": 10,
    "float64": 11,
    "bool": 12,
    "bfloat16": 27,
}
NAMES = {code: name for name, code in DATA_TYPES.items()}
_OPTIONAL, _DYNAMIC = 1, 3
_WORD = re.compile(r"[A-Za-z_]\w{0,199}")
#: One tiling struct in a line, as the host layer defines it; its fields; the types of numbers.
_STRUCT = re.compile(r"struct (?P<name>[A-Za-z_]\w*) \{(?P<fields>(?: [^;{}]+;)*) \};")
_FIELD = re.compile(
    r" (?:alignas\(8\) )?(?P<type>(?:\w+::)*(?P<struct>[A-Za-z_]\w*)|[a-z ]+) [A-Za-z_]\w*(?:\[\d+\])?", re.ASCII
)
_ARITHMETIC = re.compile(
    r"(?:std::)?(?:u?int(?:8|16|32|64)_t|size_t)|float|double|bool|half|bfloat16_t"
    r"|(?:(?:un)?signed )?(?:char|short|int|long|long int|long long)|unsigned"
)
#: Most bytes of tiling data, of a workspace and of a response.
MOST_TILING, MOST_WORKSPACE, MOST_RESPONSE = 4096, 1 << 33, 1 << 20


@dataclass(frozen=True)
class Parameter:
    """An input or output of an operator: its name, whether it may be absent, and its element types by combination."""

    name: str
    optional: bool
    dtypes: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute of an operator; `kind` is `int`, `float`, `bool`, `string`, `ints`, `floats` or `bools`."""

    name: str
    kind: str


@dataclass(frozen=True)
class Operator:
    """What a bundle registers under one name."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True)
class HostProgram:
    """The built host code.

    Args:
        folder: Where the program lies and runs.
        operator: The operator of the bundle.
        struct: The name of the tiling struct.
        definition: The C++ definition of the tiling struct for the kernel.
    """

    folder: Path
    operator: Operator
    struct: str
    definition: str


@dataclass(frozen=True)
class Tiling:
    """What a tiling function sets for one call."""

    data: bytes
    blocks: int
    key: int
    workspace: int


class HostFailure(Exception):
    """Raised if the tiling function fails or sets something that no device accepts; the message is for the author.

    Args:
        message: What happened.
        late: Whether it took too long.
    """

    def __init__(self, message: str, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


@dataclass(frozen=True)
class TensorArgument:
    """Shape and element type of one tensor of a call; `dtype` is None for an optional input that was not passed."""

    shape: tuple[int, ...]
    dtype: str | None


def build(bundle: Bundle, folder: Path) -> HostProgram | tuple[Diagnostic, ...]:
    """Compile the host code into `folder` and ask it for its operators; return the program or what is wrong."""
    tiling = f"{bundle.function}_tiling.h"
    (folder / tiling).write_text(bundle["host_tiling_src"], encoding="utf-8")
    (folder / OPERATOR).write_text(bundle["host_operator_src"], encoding="utf-8")
    host, headers = programs.runtime(), _headers()
    command = [host.compiler, *FLAGS, *_DIAGNOSTICS, "-include", str(headers / "kernel_gym_host.h")]
    command += ["-I", str(headers), "-I", ".", OPERATOR, str(headers / MAIN), "-o", PROGRAM]
    code, output = call_confined(host, command, folder, [headers, *compiler_roots(host.compiler)])
    if code or not (folder / PROGRAM).is_file():
        parts = {OPERATOR: BUNDLE_TEXTS["host_operator_src"]}
        parts |= dict.fromkeys((tiling, f"./{tiling}"), BUNDLE_TEXTS["host_tiling_src"])
        return diagnostics(output, parts) or (Diagnostic(unexplained(code, output), None, "host operator"),)
    try:
        return _described(bundle, folder, _ask(folder, "describe"))
    except HostFailure as failure:
        return (Diagnostic(str(failure), None, "host operator"),)
    except (ValueError, IndexError):
        return (Diagnostic("the host code wrote a file that is not its own", None, "host operator"),)


def request(
    operator: Operator,
    inputs: Sequence[TensorArgument],
    outputs: Sequence[TensorArgument],
    attributes: Sequence[object],
    platform: Sequence[int],
) -> str:
    """Return all that the tiling function is told of one launch, as the text that the program reads.

    Args:
        operator: The operator.
        inputs: The inputs, absent ones included.
        outputs: The outputs.
        attributes: The values of the attributes, in their order.
        platform: Vector cores, cube cores, bytes of unified buffer and of L1.

    Returns:
        The text.

    Raises:
        HostFailure: If an attribute has a value that is not of its kind.
    """
    lines = [f"op {operator.name}", "platform " + " ".join(map(str, platform))]
    lines += [f"input {_tensor(argument)}" for argument in inputs]
    lines += [f"output {_tensor(argument)}" for argument in outputs]
    kinds = zip(operator.attributes, attributes, strict=True)
    lines += [f"attr {attribute.kind} {_value(attribute, value)}" for attribute, value in kinds]
    return "\n".join(lines) + "\n"


def tile(program: HostProgram, request: str, left: TimeLeft | None = None) -> Tiling:
    """Run the tiling function for one launch and return what it set.

    Args:
        program: The host code.
        request: What the function is told.
        left: How long it may take, if that is less than any program may.

    Returns:
        What it set.

    Raises:
        HostFailure: If it fails, or if no device accepts what it set.
    """
    words = {line[0]: line[1:] for line in _ask(program.folder, "tile", request, left) if line}
    if words.get("status") != ["0"]:
        raise HostFailure(
            f"the tiling function returned {' '.join(words.get('status', ['nothing']))}, not GRAPH_SUCCESS"
        )
    return Tiling(
        data=_bytes(words.get("tiling", [])),
        blocks=_number(words.get("blocks", []), "SetBlockDim", 1, 0xFFFF),
        key=_number(words.get("key", []), "SetTilingKey", 0, (1 << 63) - 1),
        workspace=_number([str(_workspace(words))], "GetWorkspaceSizes", 0, MOST_WORKSPACE),
    )


def _workspace(words: dict[str, list[str]]) -> int:
    return sum(_number([word], "GetWorkspaceSizes", 0, MOST_WORKSPACE) for word in words.get("workspace", []))


def _ask(program: Path, what: str, request: str = "", left: TimeLeft | None = None) -> list[list[str]]:
    """Run the host code in a folder of its own, which nothing survives, and return the lines of its response."""
    left = left or TimeLeft(SECONDS, "the host code")
    folder = Path(tempfile.mkdtemp(prefix="kernel_gym-"))
    try:
        (folder / REQUEST).write_text(request)
        system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache"]
        command = [str(program / PROGRAM), what]
        with left.spend():
            code, output = call_confined(
                programs.runtime(), command, folder, [program, *system], processes="alone", seconds=left.seconds
            )
        response = _response(folder / RESPONSE)
    finally:
        building.remove(folder)
    if code < 0 and not left.seconds:
        raise HostFailure(left.why(), late=True)
    if code or response is None:
        words = " ".join(output.split())[-200:]
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        raise HostFailure(f"the host code {ending}{': ' + words if words else ''}")
    return [line.split() for line in response.splitlines()]


def _response(path: Path) -> str | None:
    """Return the text of a file that host code wrote; None if it is no plain file, or too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_RESPONSE:
            return None
        return os.read(handle, MOST_RESPONSE).decode(errors="replace")
    finally:
        os.close(handle)


def _described(bundle: Bundle, folder: Path, lines: list[list[str]]) -> HostProgram | tuple[Diagnostic, ...]:
    part = BUNDLE_TEXTS["host_operator_src"]
    names = [line[1] for line in lines if line[:1] == ["op"] and len(line) == 3]
    if not names:
        return (Diagnostic("no operator is registered: add OP_ADD(Name) for the class derived from OpDef", None, part),)
    name = bundle.operator
    if name not in names:
        text = f"the project JSON names the operator {name}, the host code registers {', '.join(names)}"
        return (Diagnostic(text, None, part),)
    own = _lines_of(lines, name)
    if own[0][2] != "1":
        return (Diagnostic(f"{name} has no tiling function: add this->AICore().SetTiling(...)", None, part),)
    if not any(line[0] == "soc" and line[1:2] == ["ascend910b"] for line in own):
        text = f'{name} is not configured for this chip: add this->AICore().AddConfig("ascend910b")'
        return (Diagnostic(text, None, part),)
    tilings = {line[1]: line[2:] for line in lines if line[:1] == ["tiling"] and len(line) == 4}
    if name not in tilings:
        text = f"no tiling class is registered for {name}: add REGISTER_TILING_DATA_CLASS({name}, ...)"
        return (Diagnostic(text, None, BUNDLE_TEXTS["host_tiling_src"]),)
    struct, definition = tilings[name]
    operator = Operator(name, _parameters(own, "input"), _parameters(own, "output"), _attributes(own))
    return HostProgram(folder, operator, _checked(struct), _structs(bytes.fromhex(definition).decode(errors="replace")))


def _structs(definition: str) -> str:
    """Return the definition of tiling structs, which becomes device code; a HostFailure if it is anything else."""
    known = {"TCubeTiling"}
    for line in definition.splitlines():
        head = _STRUCT.fullmatch(line)
        fields = [_FIELD.fullmatch(field) for field in head["fields"].split(";")[:-1]] if head else [None]
        if head is None or not all(f and (f["struct"] in known or _ARITHMETIC.fullmatch(f["type"])) for f in fields):
            raise HostFailure(f"a tiling class has fields of arithmetic types and of tiling classes, not: {line[:80]}")
        known.add(head["name"])
    return definition


def _lines_of(lines: list[list[str]], name: str) -> list[list[str]]:
    """Return the lines of one operator, its own first."""
    own: list[list[str]] = []
    for line in lines:
        if line[:1] == ["op"]:
            if own:
                break
            own = [line] if line[1] == name else []
        elif own:
            own.append(line)
    return own


def _parameters(lines: list[list[str]], role: str) -> tuple[Parameter, ...]:
    parameters = []
    for line in lines:
        if line[0] == role:
            if int(line[2]) == _DYNAMIC:
                raise HostFailure(f"the {role} {line[1]} is DYNAMIC: lists of tensors are not supported")
            dtypes = tuple(NAMES.get(int(word), "other") for word in line[3:])
            parameters.append(Parameter(_checked(line[1]), int(line[2]) == _OPTIONAL, dtypes))
    return tuple(parameters)


def _attributes(lines: list[list[str]]) -> tuple[Attribute, ...]:
    return tuple(Attribute(_checked(line[1]), line[2]) for line in lines if line[0] == "attr")


def _checked(name: str) -> str:
    if not _WORD.fullmatch(name):
        raise HostFailure(f"{name!r} is no name")
    return name


def _tensor(argument: TensorArgument) -> str:
    if argument.dtype is None:
        return "-1"
    return " ".join(map(str, (DATA_TYPES[argument.dtype], len(argument.shape), *argument.shape)))


def _value(attribute: Attribute, value: object) -> str:
    """Return an attribute as words of a request; a HostFailure if the value does not have its kind."""
    try:
        match attribute.kind, value:
            case "int", bool() | int():
                return str(int(value))
            case "float", bool() | int() | float():
                return float(value).hex()
            case "bool", bool() | int():
                return str(int(bool(value)))
            case "string", str():
                return value.encode().hex() or "-"
            case "ints" | "floats" | "bools", list():
                return _values(value, attribute)
    except (OverflowError, ValueError):  # a number or a character that C++ does not have
        pass
    raise HostFailure(f"the attribute {attribute.name} is {attribute.kind}, and the binding passes {value!r}")


def _values(values: Iterable[object], attribute: Attribute) -> str:
    numbers = list(values)
    if not all(isinstance(number, int | float) for number in numbers):
        raise HostFailure(f"the attribute {attribute.name} is {attribute.kind}, and the binding passes {numbers!r}")
    return " ".join(repr(number) if isinstance(number, float) else str(int(number)) for number in numbers)  # type: ignore[call-overload]


def _number(words: list[str], what: str, least: int, most: int) -> int:
    value = int(words[0]) if words and re.fullmatch(r"\d{1,20}", words[0]) else -1
    if not least <= value <= most:
        raise HostFailure(f"{what}: {' '.join(words) or 'nothing'} is not between {least} and {most}")
    return value


def _bytes(words: list[str]) -> bytes:
    text = "" if words == ["-"] else "".join(words)
    if len(text) > 2 * MOST_TILING or not re.fullmatch(r"(?:[0-9a-f]{2})*", text):
        raise HostFailure(f"the tiling data has more than {MOST_TILING} bytes")
    return bytes.fromhex(text)


@cache
def _headers() -> Path:
    """Return the folder of the host layer's headers, precompiled; the first call makes it."""
    compiler = programs.runtime().compiler
    shared = [*(TILINGS / "tiling").rglob("*.h"), *(TILINGS / "lib").glob("cube_tiling.h"), TILINGS / "abi.h"]
    shared.append(TILINGS / "detail" / "tiling.h")
    own = [path for path in INCLUDE.rglob("*") if path.is_file()]
    folder = building.cache_folder() / f"bundles-{building.digest(compiler, FLAGS, sorted([*own, *shared, SOURCE]))}"
    if not folder.is_dir():
        activity.prepare("compiling the host layer of bundles, once for this machine")
        building.install(folder, lambda work: _install(compiler, work, own, shared))
    return folder


def _install(compiler: str, work: Path, own: list[Path], shared: list[Path]) -> None:
    for root, files in ((INCLUDE, own), (TILINGS, shared)):
        for file in files:
            target = work / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    header = work / "kernel_gym_host.h"
    building.run([compiler, *FLAGS, "-x", "c++-header", str(header), "-I", str(work), "-o", f"{header}.gch"])
    building.run([compiler, *FLAGS, "-I", str(work), "-c", str(SOURCE), "-o", str(work / MAIN)])
