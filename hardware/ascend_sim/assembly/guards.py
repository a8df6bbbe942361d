"""Puts every memory access of compiled kernel code under the guard, and finds what the code computes.

The compiler writes assembly. Before each instruction that reads or writes memory a call of the guard is inserted, which
gets the address and the number of bytes. Left out are accesses to the variables of a function's own frame at constant
distances, and the compiler's constants. All other rules serve this one: nothing jumps past a check, nothing but a
prologue and an epilogue changes the registers of a frame, and functions return to where they were called. So nothing
depends on types, on names, or on what else the author's text means to the compiler:

- A call names a function of the kernel, or one that the kernel does not define. Its arguments may be anything.
- A jump stays in its function, behind the prologue, and ends at a label.
- The end of a function is no way into the next one.
- No section holds both code and data, and none can be written and executed.
- A label that is jumped back to is followed by the counter of basic blocks, unless the loop is empty.
- Variables with initial values are read-only.

What is not understood is refused.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from kernel_gym.hardware.ascend_sim.assembly import aarch64, x86_64
from kernel_gym.hardware.ascend_sim.assembly.instructions import Flow, Instruction, Machine, Refused, Work

_MACHINES = {"x86_64": x86_64, "aarch64": aarch64}

COUNTER = "__sanitizer_cov_trace_pc"
#: Functions that the compiler calls by itself, which no kernel may define.
COPYING = ("memcpy", "memmove", "memset", "memcmp")

_SYMBOL = r"[A-Za-z_.$\x80-\U0010ffff][\w.$\x80-\U0010ffff]*"
_LABEL = re.compile(rf"{_SYMBOL}:")
#: A directive: its name, and words in which nothing but strings may have the characters that end statements.
_DIRECTIVE = re.compile(r"\t\.(\w+)((?:[^;#\"\n]|\"(?:[^\"\\\n]|\\.)*\")*)")
_INSTRUCTION = re.compile(r"\t([a-z][\w.]*)(?:[ \t]+(.*))?")
_TYPE = re.compile(rf"\t\.type\t({_SYMBOL}), [@%]function")
_ALIAS = re.compile(rf"\t\.set\t({_SYMBOL}),({_SYMBOL})")
_SECTION = re.compile(r'([\w.$\-\x80-\U0010ffff]+)(?:,"(\w*)".*)?')
_CODE_SECTION, _LOCAL = ".text", ".L"
#: Sections of variables with initial values, and of those whose values are addresses. g++ also puts constants there
#: whose type it deduces (`constexpr std::array SIZES{1, 2}`).
_DATA_SECTION = re.compile(r'\t\.data|\t\.section\t\.data(\.(?!rel[.,]).*,"a)w(.*)')
_ADDRESSES_SECTION = re.compile(r"(\t\.section\t\.data\.rel)(?!\.ro[.,])([.,].*)")
#: Lines that an epilogue has at most.
_EPILOGUE_LINES = 8
#: Directives that change nothing about what follows, and those of data.
_ANYWHERE = re.compile("(?:p2|b)?align|type|size|globl|global|weak|hidden|internal|local|comm|ident|file|set|arch")
_DATA = re.compile("[248]?byte|short|long|quad|value|zero|string|ascii|asciz|base64|[dhx]?word")


class Computed(NamedTuple):
    """What the instructions behind a call of the counter compute, up to the next one."""

    number: int  # of the call, as the compiler numbers instructions
    integer: int
    float: int
    divisions: int


@dataclass
class Guarded:
    """Guarded code.

    Attributes:
        text: The assembly.
        computed: What the blocks of each function compute, in the order of the text.
    """

    text: str
    computed: dict[str, list[Computed]]


@dataclass
class _Function:
    name: str
    lines: list[tuple[str, int]] = field(default_factory=list)  # labels and instructions, with the compiler's numbers


def guarded(text: str, architecture: str = platform.machine()) -> Guarded:
    """Return the assembly of a kernel with calls of the guard before its accesses.

    Args:
        text: What the compiler wrote.
        architecture: The architecture that it wrote for.

    Raises:
        Refused: If it has what cannot be guarded.
    """
    machine = cast(Machine, _MACHINES[architecture])
    listing = _Listing(text.split("\n"), machine.comment)
    lines: list[str] = []
    computed: dict[str, list[Computed]] = {}
    for piece in listing.pieces():
        if isinstance(piece, str):
            lines.append(piece)
            continue
        try:
            code = _Code(piece, machine, listing)
            lines += code.guarded()
        except Refused as error:
            raise Refused(f"{piece.name} {error}") from None
        computed[piece.name] = code.computed()
    return Guarded("\n".join(lines) + "\n", computed)


class _Listing:
    """The compiler's assembly: directives, data and functions."""

    def __init__(self, lines: Sequence[str], comment: str) -> None:
        self._lines, self._comment = lines, comment
        directives = [line for line in lines if line.startswith("\t.")]
        self.functions = {found[1] for line in directives if (found := _TYPE.fullmatch(line))}
        aliases = {found[1]: found[2] for line in directives if (found := _ALIAS.fullmatch(line))}
        self.functions |= {alias for alias, of in aliases.items() if of in self.functions}
        self._defined = {line[:-1] for line in lines if _is_label(line)} | aliases.keys()
        if own := sorted(self._defined.intersection(COPYING)):
            raise Refused(f"{own[0]} has a name that is reserved for the compiler: choose another one")

    def may_be_called(self, symbol: str) -> bool:
        """Return whether a symbol is that of a function, or of one that the kernel does not define."""
        return symbol in self.functions or not (symbol in self._defined or symbol.startswith("."))

    def pieces(self) -> Iterator[str | _Function]:
        """Yield the lines outside of functions, and functions."""
        in_code, function = False, None
        for line in filter(None, self._lines):
            if line.startswith("\t.") and (found := _DIRECTIVE.fullmatch(line)):
                if function is not None and found[1] == "size":
                    yield function
                    function = None
                elif function is not None and found[1] not in ("align", "p2align"):
                    raise Refused(f"{function.name} has data in its code")
                in_code = self._is_code_behind(line, found[1], found[2].strip(), in_code)
                yield _read_only(line)
            elif _is_label(line):
                name = line[:-1]
                if function is not None and name.startswith(_LOCAL):
                    function.lines.append((line, 0))
                    continue
                if in_code != (name in self.functions) or function is not None:
                    raise Refused(f"{name} is a place in code that is no function")
                function = _Function(name) if in_code else None
                yield line
            elif function is not None:
                function.lines.append(self._instruction(line, function.name))
            else:
                raise Refused(f"a line that is no assembly of the compiler's: {line[:40]!r}")
        if function is not None:
            raise Refused(f"{function.name} has no end")

    def _instruction(self, line: str, function: str) -> tuple[str, int]:
        text, _, remark = line.partition(self._comment)
        found = _INSTRUCTION.fullmatch(text.rstrip())
        if found is None:
            raise Refused(f"{function} has a line that is no instruction: {line[:40]!r}")
        number = remark.partition("\t")[0].strip()
        line = f"{found[1]}\t{found[2]}" if found[2] else found[1]
        return line, int(number) if number.isdigit() else 0

    def _is_code_behind(self, line: str, directive: str, words: str, in_code: bool) -> bool:
        """Return whether code follows a directive."""
        if _ANYWHERE.fullmatch(directive) and (directive != "set" or _ALIAS.fullmatch(line)):
            return in_code
        if directive in ("text", "data", "bss"):
            return directive == "text"
        if directive == "section" and (found := _SECTION.fullmatch(words)):
            is_code = "x" in (found[2] or "") or found[1].startswith(_CODE_SECTION)
            if is_code and "w" in (found[2] or ""):
                raise Refused(f"the section {found[1]} can be written and executed")
            return is_code
        if _DATA.fullmatch(directive) and not in_code:
            return False
        raise Refused(f"the directive .{directive} {words[:40]} is none of the compiler's here")


def _is_label(line: str) -> bool:
    return line.endswith(":") and _LABEL.fullmatch(line) is not None


def _read_only(directive: str) -> str:
    """Return a directive; one for a section of variables becomes one for a section of constants."""
    if found := _ADDRESSES_SECTION.fullmatch(directive):
        return f"{found[1]}.ro{found[2]}"
    if found := _DATA_SECTION.fullmatch(directive):
        return f"\t.section\t.rodata{found[1] or ''}{found[2] or ''}"
    return directive


class _Code:
    """The instructions of a function."""

    def __init__(self, function: _Function, machine: Machine, listing: _Listing) -> None:
        self._machine, self._listing = machine, listing
        self._lines = [line for line, _ in function.lines]
        self._numbers = [number for _, number in function.lines]
        self._is_counted = any(COUNTER in line for line in self._lines)  # those of the headers are not
        self._begin, self._frame = machine.prologue(self._lines)
        self._labels = {
            line[:-1]: at for at, line in enumerate(self._lines) if line.endswith(":") and at >= self._begin
        }
        self._instructions = dict(self._read())
        for at, instruction in self._instructions.items():
            self._check_target(at, instruction)

    def _read(self) -> Iterator[tuple[int, Instruction]]:
        """Yield the instructions but those of the prologue and of epilogues, each with its line."""
        at = self._begin
        while at < len(self._lines):
            if self._lines[at].endswith(":"):
                at += 1
            elif taken := self._machine.epilogue(self._lines[at : at + _EPILOGUE_LINES], self._frame):
                at += taken
            else:
                yield at, self._machine.read(self._lines[at])
                at += 1

    def _check_target(self, at: int, instruction: Instruction) -> None:
        if instruction.flow is Flow.CALL and not self._listing.may_be_called(instruction.target):
            raise Refused("calls what is no function")
        if instruction.flow in (Flow.JUMP, Flow.BRANCH):
            place = self._labels.get(instruction.target)
            if place is None:
                raise Refused("jumps out of its code")
            if place <= at and self._is_counted and not self._counts_behind(place):
                raise Refused("has a loop that is not counted")

    def _counts_behind(self, label: int) -> bool:
        """Return whether the first instruction behind a label, `nop` aside, calls the counter or only jumps back."""
        at = next(at for at in range(label, len(self._lines)) if not self._does_nothing(self._lines[at]))
        instruction = self._instructions.get(at, Instruction())
        is_empty = instruction.flow is Flow.JUMP and label <= self._labels[instruction.target] <= at
        return is_empty or (instruction.flow is Flow.CALL and instruction.target == COUNTER)

    @staticmethod
    def _does_nothing(line: str) -> bool:
        return line.endswith(":") or line == "nop"

    def guarded(self) -> Iterator[str]:
        """Yield the lines of the function, with calls of the guard, and a trap behind them."""
        live = self._with_flags_in_use()
        for at, line in enumerate(self._lines):
            instruction = self._instructions.get(at)
            for access in instruction.accesses if instruction else ():
                if not self._frame.holds(access):
                    yield from (f"\t{each}" for each in self._machine.check(access, at in live))
            yield line if line.endswith(":") else f"\t{line}"
        yield self._machine.trap

    def _with_flags_in_use(self) -> set[int]:
        """Return the lines of the instructions before which the flags are in use."""
        live, is_live = set(), False
        at_labels: dict[str, bool] = {}
        for at in range(len(self._lines) - 1, self._begin - 1, -1):
            instruction = self._instructions.get(at)
            if instruction is None:
                at_labels[self._lines[at][:-1]] = is_live
                continue
            if instruction.flow in (Flow.JUMP, Flow.BRANCH):
                is_live = at_labels.get(instruction.target, False) or (is_live and instruction.flow is Flow.BRANCH)
            if instruction.sets_flags or instruction.flow in (Flow.CALL, Flow.END):
                is_live = False
            is_live = is_live or instruction.reads_flags
            if is_live:
                live.add(at)
        return live

    def computed(self) -> list[Computed]:
        """Return what is computed behind each call of the counter."""
        blocks: list[tuple[int, Counter[Work]]] = []
        for at, instruction in self._instructions.items():
            if instruction.flow is Flow.CALL and instruction.target == COUNTER:
                blocks.append((self._numbers[at], Counter()))
            elif blocks:
                blocks[-1][1][instruction.work] += 1
        return [Computed(number, work[Work.INTEGER], work[Work.FLOAT], work[Work.DIVISION]) for number, work in blocks]
