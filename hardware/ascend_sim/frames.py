"""Finds the words of a function's frame that hold what the compiled code trusts.

The compiler calls the guard before an access through a pointer, but keeps some pointers in the frame and uses them
again without a call: the hidden address of an object that a function returns, a pointer that is dereferenced twice, or
one that waits in the frame for the end of a call. None of these words is a variable that another pointer can point to.
So the guard refuses every access to them (src/kernel_process/guard.h).

Two dumps of the compiler tell them: that of the last pass says which variable each operand in the frame belongs to, and
the last GIMPLE names with their number only those variables that lie in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim import gimple

INSTRUCTIONS = "kernel.instructions"
#: The file of frames has the name of the object file and this.
SUFFIX = ".frames"
FLAGS = (*gimple.FLAGS, f"-fdump-rtl-final-uid={INSTRUCTIONS}")

#: The number of a variable. A register that holds the value of a variable `D` is `D.0_1`.
_NUMBER = re.compile(r"D\.(\d+)(?![\w$])")
#: An operand in memory: its address, the variable or what a pointer points to, and the bytes.
_OPERAND = re.compile(
    r"\(mem\S* "
    r"(?P<address>(?:\(plus:DI )?\(reg[^()]*\)(?:\s+\(const_int [^()]*\)\))?|(?:(?!\(mem)[^\x00])*?) "
    r"\[(?P<alias>\d+) (?P<what>[^\n]*?)(?:\+-?\d+)?(?: S(?P<size>\d+))? A\d+(?: AS\d+)?\]"
)
#: The register that an address is relative to, and the distance. In the notes of an instruction the register may be one
#: that does not exist.
_ADDRESS = re.compile(
    r"(?:\(plus:DI )?\(reg\S* \d+ (?P<base>\w+)[^()]*\)(?:\s+\(const_int (?P<distance>-?\d+)[^()]*\)\))?"
)
_REGISTER = re.compile(r"\(reg\S* \d+ (\w+)")
#: A variable or a part of one, and what else an operand with an address can be.
_WHOLE = re.compile(r"(?P<name>[^\s()\[\]*&>]*?)D\.\d+")
_NO_VARIABLE = re.compile(r"<retval>|\*|->|MEM\b")
#: A register that is changed, and what it becomes: a register, a constant, or the sum of a register and one of these;
#: or a constant in some of its bits, from a first one on.
_CHANGED = re.compile(
    r"\((?:set|clobber|(?:pre|post)_\w+:DI) (?:"
    r"\(reg(?P<mode>\S*) \d+ (?P<target>\w+)[^()]*\)"
    r"(?:\s+(?:\(plus:DI \(reg\S* \d+ (?P<source>\w+)[^()]*\)\s+)?"
    r"\((?:const_int (?P<number>-?\d+)|reg\S*:DI \d+ (?P<other>\w+))[^()]*\))?"
    r"|\((?:zero_extract|strict_low_part)\S* \(reg\S* \d+ (?P<partly>\w+)[^()]*\)"
    r"(?:\s+\(const_int (?P<bits>\d+)[^()]*\)\s+\(const_int (?P<first>\d+)[^()]*\)\)\s+\(const_int (?P<part>\d+))?)"
)
#: What stands before an operand that is stored, or that is an argument of a call.
_STORED = ("(set ", "(set/f ", "(use ", "(clobber ")
_NEVER_POINTED_TO = frozenset({"%sfp", ".result_ptr"})
_FRAME_POINTERS = frozenset({"bp", "x29"})
_NO_REGISTERS = frozenset({"frame", "argp", "sfp", "ap"})
_PROLOGUE_END, _EPILOGUE = "NOTE_INSN_PROLOGUE_END", "NOTE_INSN_EPILOGUE_BEG"
_STACK_POINTER = r"\(reg/f:DI \d+ sp\)"
_TO_FRAME = re.compile(rf"\(set \(reg/f:DI \d+ (?:bp|x29)\)\s+(?:\(plus:DI )?{_STACK_POINTER}(?:\s+\(const_int (\d+))?")
#: Changes of the stack pointer: by a constant, at once or page by page in a loop; to a multiple of a constant, 256 or
#: 65536; or any other. A store to the place that it points to is none: so each page is touched.
_MOVED = re.compile(
    rf"\(set {_STACK_POINTER}\s+\((?:plus:DI {_STACK_POINTER}\s+\(const_int -|minus:DI {_STACK_POINTER}\s+\(const_int )"
    r"(?P<bytes>\d+)"
    rf"|\(set {_STACK_POINTER}\s+\(and:DI {_STACK_POINTER}\s+\(const_int -(?P<alignment>\d+)"
    r"|\(set \(strict_low_part \(reg:(?P<part>QI|HI) \d+ sp\)\)\s+\(const_int 0"
    r"|\((?:set|(?:pre|post)_\w+:DI) (?!\(mem)[^\n]* sp\)"
)
#: A register points to the arguments on the caller's stack: the return address is there, and a copy of it in the frame.
_CALLERS_STACK = re.compile(rf"\(set \(reg:DI \d+ (?!sp)\w+\)\s+\(plus:DI {_STACK_POINTER}\s+\(const_int 8 ")
#: Entries by which virtual functions of a second base are called: they jump, and have no frame.
_THUNKS = ("_ZTh", "_ZTv", "_ZTc")
#: Bytes of a frame that a record of a word can describe.
_FARTHEST = 1 << 31
_PARTS = {"QI": 1 << 8, "HI": 1 << 16}


class Word(NamedTuple):
    """Bytes of a frame, from the address of its record rounded down to a multiple of `alignment`."""

    alignment: int
    begin: int
    end: int


def write(target: Path, kernel: ELFFile, dump: str) -> str | None:
    """Write the trusted words of a kernel that was compiled with `FLAGS`; return a function with an unknown frame.

    `dump` is that of the last GIMPLE.

    Raises:
        InfrastructureError: If the dumps do not fit the object file.
    """
    instructions = target.with_name(INSTRUCTIONS)
    frames: dict[str, list[Word]] = {}
    for name, words in read(dump, instructions.read_text(errors="replace")):
        if words is None:
            return name
        frames[name] = words
    instructions.unlink()
    lines = []
    for (begin, size), names in sorted(_functions(kernel).items()):
        known = [frames[name] for name in names if name in frames]
        if not known and not names[0].startswith(_THUNKS):
            raise InfrastructureError(f"{names[0]} is missing in the compiler's dump")
        lines += [f"{begin} {begin + size} {word.alignment} {word.begin} {word.end}\n" for word in (known or [[]])[0]]
    target.with_name(f"{target.name}{SUFFIX}").write_text("".join(lines))
    return None


def read(dump: str, instructions: str) -> Iterator[tuple[str, list[Word] | None]]:
    """Yield each function of two dumps with its trusted words; None where their places are unknown."""
    in_memory = {number for _, body in gimple.bodies(dump) for number in _NUMBER.findall(body)}
    for text in instructions.split(gimple.FUNCTION)[1:]:
        yield gimple.name(text), _words(text, in_memory)


def _words(text: str, in_memory: set[str]) -> list[Word] | None:
    prologue = text.partition(_PROLOGUE_END)[0]
    if _CALLERS_STACK.search(prologue):
        return None
    words = set()
    for word in _trusted(text, prologue, in_memory):
        if word is None or not -_FARTHEST <= word.begin < word.end < _FARTHEST:
            return None
        words.add(word)
    return _joined(words)


def _trusted(text: str, prologue: str, in_memory: set[str]) -> Iterator[Word | None]:
    """Yield the operands in the frame that are no variables with an address; None where a place is unknown.

    An aarch64 instruction reaches 32 KB. For places farther away a register is computed just before they are used, from
    16 MB on with a distance in a register, of which an instruction sets 16 bits.
    """
    values: dict[str, Word | int] = {}
    in_body = False
    for instruction in text.split("\n("):
        for operand in _OPERAND.finditer(instruction) if "(mem" in instruction else ():
            registers = _REGISTER.findall(operand["address"])
            places = [_place(prologue, register) or values.get(register) for register in registers]
            if not registers or _NO_REGISTERS & {*registers} or _is_variable(operand["what"], in_memory):
                continue
            is_read = in_body and not instruction.endswith(_STORED, 0, operand.start())
            if operand["what"] or (is_read and _is_argument(operand, registers, places)):
                yield _word(operand, places)
        if _PROLOGUE_END in instruction or _EPILOGUE in instruction or instruction.startswith("barrier"):
            in_body = _EPILOGUE not in instruction
        if _PROLOGUE_END in instruction or instruction.startswith(("code_label", "call_insn", "jump_insn")):
            values.clear()
        for changed in _CHANGED.finditer(instruction):
            target, value = changed["target"] or changed["partly"], _becomes(changed, values, prologue)
            values.pop(target, None)
            if value is not None:
                values[target] = value


def _is_variable(what: str, in_memory: set[str]) -> bool:
    """Return whether an operand is a variable with an address, a part of one, or what a pointer points to.

    What has no name is none: an argument that the caller has left on the stack, such as the hidden address of a large
    object. The function trusts it if it reads it. What it only stores there are the arguments of the functions that it
    calls, whose variables these become, and copies of objects whose addresses it hands on.
    """
    whole = _WHOLE.fullmatch(what)
    if whole and whole["name"] in _NEVER_POINTED_TO:
        return False
    is_named = any(number in in_memory for number in _NUMBER.findall(what))
    return is_named or (whole is None and bool(_NO_VARIABLE.search(what)))


def _is_argument(operand: re.Match[str], registers: Iterable[str], places: Iterable[Word | int | None]) -> bool:
    """Return whether an operand without a name lies in the frame and is no part of an object that is copied.

    The memory of an object has an alias set of its own, that of an argument which the caller has left there has none.
    An argument lies at a fixed place, unlike the elements of an array, whose address has an index in it.
    """
    if _ADDRESS.fullmatch(operand["address"]) is None:
        return False
    in_frame = not {"sp", *_FRAME_POINTERS}.isdisjoint(registers) or any(isinstance(each, Word) for each in places)
    return operand["alias"] == "0" and in_frame


def _word(operand: re.Match[str], places: list[Word | int | None]) -> Word | None:
    """Return the bytes of an operand; None if its address or its size is unknown."""
    address = _ADDRESS.fullmatch(operand["address"])
    if address is None or not isinstance(places[0], Word) or operand["size"] is None:
        return None
    begin = places[0].begin + int(address["distance"] or 0)
    return places[0]._replace(begin=begin, end=begin + int(operand["size"]))


def _place(prologue: str, register: str) -> Word | None:
    """Return the place that a frame pointer or the stack pointer points to, without bytes; None for other registers."""
    if register in _FRAME_POINTERS:
        return Word(1, 0, 0)
    return _lowest_word(prologue) if register == "sp" else None


def _becomes(changed: re.Match[str], values: Mapping[str, Word | int], prologue: str) -> Word | int | None:
    """Return the place or the number that a changed register holds; None if that is unknown."""

    def held(register: str) -> Word | int | None:
        return values[register] if register in values else _place(prologue, register)

    if changed["partly"]:
        before = held(changed["partly"])
        if changed["part"] is None or not isinstance(before, int):
            return None
        bits, first = int(changed["bits"]), int(changed["first"])
        joined = before & ~(((1 << bits) - 1) << first) | int(changed["part"]) << first
        return (joined + (1 << 63)) % (1 << 64) - (1 << 63)
    if not changed["mode"].endswith(":DI"):
        return None
    place, distance = None, int(changed["number"] or 0)
    for value in [held(changed[name]) for name in ("source", "other") if changed[name]]:
        if isinstance(value, int):
            distance += value
        elif value is None or place is not None:
            return None
        else:
            place = value
    if place is not None:
        return place._replace(begin=place.begin + distance)
    return distance if changed["number"] or changed["other"] else None


@lru_cache(maxsize=1)
def _lowest_word(prologue: str) -> Word | None:
    """Return the place that the stack pointer points to, without bytes; None if the code that sets it is unknown."""
    record = _TO_FRAME.search(prologue)
    if record is None:
        return None
    alignment, below = 1, int(record[1] or 0)
    for moved in _MOVED.finditer(prologue, record.end()):
        if moved["bytes"]:
            below += int(moved["bytes"])
        elif below == 0 and (moved["alignment"] or moved["part"]):
            alignment = int(moved["alignment"] or _PARTS[moved["part"]])
        else:
            return None
    return Word(alignment, -below, -below)


def _joined(words: Iterable[Word]) -> list[Word]:
    """Return words that neither overlap nor touch."""
    joined: list[Word] = []
    for word in sorted(words):
        last = joined[-1] if joined else None
        if last and word.alignment == last.alignment and word.begin <= last.end:
            joined[-1] = last._replace(end=max(word.end, last.end))
        else:
            joined.append(word)
    return joined


def _functions(kernel: ELFFile) -> dict[tuple[int, int], list[str]]:
    """Return the names of each function by its address and size."""
    functions: dict[tuple[int, int], list[str]] = {}
    for symbol in symbols.of(kernel, ".symtab"):
        if symbol.kind == symbols.FUNCTION and not symbol.undefined:
            functions.setdefault((symbol.value, symbol.size), []).append(symbol.name)
    return functions
