"""Generates both ends of the ring from `include/abi.h`.

A call crosses the ring as one fixed-size record: its number, the author's line, and its arguments as a plain struct.
`calls.inc` numbers the calls and lays out their arguments, `wire.inc` packs records in the kernel process and
`dispatch.inc` unpacks them in the device process, so both ends always agree. `front.inc` declares what is answered in
the kernel process. `exports.inc` gives all of them the names that kernels link against.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.errors import KernelGymError

#: Queries whose answer holds more than kernel code may see: src/kernel_process/scalar.cpp exports them by these names.
EXPORTED_AS = {"read_local": "get_local", "read_global": "get_global"}

_DECLARATION = re.compile(r"^ASC_(CALL|QUERY)\s+(?:(\w+)\s+)?asc_(\w+)\(([^()]*)\);", re.MULTILINE)
#: Those with a pointer to a function or with any number of arguments export themselves.
_FRONT = re.compile(r"^ASC_FRONT\s+(\w+)\s+asc_(\w+)\(([^().]*)\);", re.MULTILINE)


@dataclass(frozen=True)
class Argument:
    """One parameter of a call."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class Call:
    """One declaration of the ABI header; `answer` is the type of the reply that a query waits for."""

    name: str
    arguments: tuple[Argument, ...]
    answer: str | None = None

    @property
    def payload(self) -> tuple[Argument, ...]:
        """The arguments in the record's struct; the line has its own field in the header."""
        return self.arguments[:-1]


def parse(text: str) -> tuple[Call, ...]:
    """Return the calls and queries that an ABI header declares, in its order."""
    calls = []
    for kind, answer, name, parameters in _DECLARATION.findall(text):
        arguments = tuple(_argument(name, parameter) for parameter in parameters.split(","))
        if arguments[-1] != Argument("int32_t", "line"):
            raise KernelGymError(f"abi.h: asc_{name} must end in `int32_t line`")
        if (kind == "QUERY") != bool(answer):
            raise KernelGymError(f"abi.h: asc_{name} must {'' if kind == 'QUERY' else 'not '}declare an answer")
        calls.append(Call(name, arguments, answer or None))
    duplicates = {call.name for call in calls if sum(other.name == call.name for other in calls) > 1}
    if duplicates:
        raise KernelGymError(f"abi.h: declared twice: {', '.join(sorted(duplicates))}")
    return tuple(calls)


def parse_fronts(text: str) -> tuple[Call, ...]:
    """Return the calls that an ABI header declares to be answered in the kernel process."""
    return tuple(
        Call(name, tuple(_argument(name, each) for each in parameters.split(",") if each), answer)
        for answer, name, parameters in _FRONT.findall(text)
    )


def _argument(call: str, text: str) -> Argument:
    words = text.split()
    if len(words) != 2:
        raise KernelGymError(f"abi.h: asc_{call}: cannot read the parameter {text.strip()!r}; write `type name`")
    return Argument(words[0], words[1])


def calls(parsed: Sequence[Call]) -> str:
    """Return the numbers of the calls (0 is none) and the structs that hold their arguments."""
    numbers = "".join(f"    OP_{call.name},\n" for call in parsed)
    structs = "".join(_struct(call) for call in parsed)
    names = "".join(f'    "{call.name}",\n' for call in parsed)
    return (
        f"enum Op : uint16_t {{\n    OP_none,\n{numbers}    OP_COUNT,\n}};\n\n{structs}\n"
        f'inline constexpr const char *kOpNames[] = {{\n    "none",\n{names}}};\n'
    )


def _struct(call: Call) -> str:
    fields = "".join(f" {argument};" for argument in call.payload)
    # Unused if there are no arguments, but a record must have something to copy.
    return f"struct args_{call.name} {{{fields or ' uint8_t nothing;'} }};\nASC_FITS(args_{call.name})\n"


def wire(parsed: Iterable[Call]) -> str:
    """Return functions that put a call into the ring."""
    return "".join(map(_packer, parsed))


def _packer(call: Call) -> str:
    values = ", ".join(argument.name for argument in call.payload)
    # Not inlined: an export overwrites the stack below its own frame.
    head = f"[[gnu::noinline]] inline {_prototype(call)} {{\n"
    record = f"Record *record = claim(OP_{call.name}, line);\n    new (record->payload) args_{call.name}{{{values}}};"
    claim = record if call.payload else f"claim(OP_{call.name}, line);"
    send = f"return ask<{call.answer}>();" if call.answer else "send();"
    return f"{head}    {claim}\n    {send}\n}}\n"


def front(fronts: Iterable[Call]) -> str:
    """Return declarations of the functions that are answered in the kernel process."""
    return "".join(f"{_prototype(call)};\n" for call in fronts)


def _prototype(call: Call, prefix: str = "") -> str:
    return f"{call.answer or 'void'} {prefix}{call.name}({', '.join(map(str, call.arguments))})"


def exports(parsed: Iterable[Call], fronts: Iterable[Call]) -> str:
    """Return the functions that kernels link against."""
    wired = "".join(_export(call, "wire") for call in parsed if call.name not in EXPORTED_AS)
    return wired + "".join(_export(call, "front") for call in fronts)


def _export(call: Call, namespace: str) -> str:
    names = ", ".join(argument.name for argument in call.arguments)
    body = f"const Forgetting after; return {namespace}::{call.name}({names});"
    return f"ASC_FORGETTING {_prototype(call, 'asc_')} {{ {body} }}\n"


def dispatch(parsed: Iterable[Call]) -> str:
    """Return the cases of a switch over a record's number; each unpacks its arguments and calls the executor."""
    return "".join(map(_case, parsed))


def _case(call: Call) -> str:
    values = "".join(f"args.{argument.name}, " for argument in call.payload)
    unpack = f"const auto args = unpack<args_{call.name}>(record); " if call.payload else ""
    run = f"executor.{call.name}({values}record.line)"
    reply = "answer_block" if call.answer == "asc_block" else "answer"
    return f"case OP_{call.name}: {{ {unpack}{f'{reply}({run})' if call.answer else run}; break; }}\n"


def generate(abi: Path, folder: Path) -> None:
    """Write the generated files into `folder`."""
    text = abi.read_text()
    parsed, fronts = parse(text), parse_fronts(text)
    files = {
        "calls": calls(parsed),
        "wire": wire(parsed),
        "front": front(fronts),
        "exports": exports(parsed, fronts),
        "dispatch": dispatch(parsed),
    }
    for name, content in files.items():
        (folder / f"{name}.inc").write_text(f"// Generated from {abi.name} by marshal.py.\n{content}")
