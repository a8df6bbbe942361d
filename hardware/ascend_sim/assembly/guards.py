"""Puts every memory access of compiled kernel code under the guard, and finds what the code computes.

The compiler writes assembly. Before each instruction that reads or writes memory a call of the guard is inserted, which
gets the address and the number of bytes. Left out are accesses to the variables of a function's own frame at constant
distances, and the compiler's constants. All other rules serve this one: nothing jumps past a check, nothing but a prologue
and an epilogue changes the registers of a frame, and functions return to where they were called. So nothing depends on
types, on names, or on what else the author's text means to the compiler:

- A call names a function of the kernel, or one that the kernel does not define. Its arguments may be anything.
- A jump stays in its function, behind the prologue, and ends at a label.
- The end of a function is no way into the next one.
- No section holds both code and data, and none can be written and executed.
- A label that is jumped back to is followed by the counter of basic blocks.

What is not understood is refused.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from kernel_gym.hardware.ascend_sim.assembly import aarch64, x86_64
from kernel_gym.hardware.ascend_sim.assembly.instructions import Flow, Frame, Instruction, Machine, Refused, Work

_MACHINES = {"x86_64": x86_64, "aarch64": aarch64}

COUNTER = "__sanitizer_cov_trace_pc"
#: Functions that the compiler calls by itself, which no kernel may define.
COPYING = ("memcpy", "memmove", "memset", "memcmp")

_SYMBOL = r"[\w.$\x80-\U0010ffff]+"
_LABEL = re.compile(rf"({_SYMBOL}):")
_DIRECTIVE = re.compile(r"\t\.(\w+)(?:[ \t]+(.*))?")
_INSTRUCTION = re.compile(r"\t([a-z][\w.]*)(?:[ \t]+(.*))?")
_TYPE = re.compile(rf"({_SYMBOL}), [@%](function|object)")
_ALIAS = re.compile(rf"({_SYMBOL}),({_SYMBOL})")
_SECTION = re.compile(r'([\w.$\-\x80-\U0010ffff]+)(?:,"(\w*)".*)?')
_LOCAL = ".L"
#: Lines that an epilogue has at most.
_EPILOGUE_LINES = 8
_ANYWHERE = frozenset(
    {"align", "p2align", "balign", "type", "size", "globl", "global", "weak", "hidden", "internal", "local", "ident", "file", "set", "arch"}
)
_DATA = frozenset(
    {"long", "quad", "byte", "value", "short", "zero", "string", "ascii", "asciz", "hword", "word", "xword", "2byte", "4byte", "8byte", "dword", "comm"}
)
_CODE_SECTION = ".text"
#: Data that the linker and the loader know by its name. The binary screen refuses what runs before the entry.


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
    listing = _Listing(text.splitlines(), machine.comment)
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
        self.functions = {found[1] for line in lines if line.startswith("\t.type") and (found := _TYPE.fullmatch(line[7:])) and found[2] == "function"}
        aliases = [found.groups() for line in lines if line.startswith("\t.set") and (found := _ALIAS.fullmatch(line[6:]))]
        self.functions |= {alias for alias, of in aliases if of in self.functions}
        self._defined = {found[1] for line in lines if (found := _LABEL.fullmatch(line))} | {alias for alias, _ in aliases}

        if own := sorted(self._defined.intersection(COPYING)):
            raise Refused(f"{own[0]} has a name that is reserved for the compiler: choose another one")

    def may_be_called(self, symbol: str) -> bool:
        return symbol in self.functions or not (symbol in self._defined or symbol.startswith(_LOCAL))

    def pieces(self) -> Iterator[str | _Function]:
        """Yield the lines outside of functions, and functions."""
        in_code, function = False, None
        for line in self._lines:
            if found := _DIRECTIVE.fullmatch(line):
                if function is not None:
                    if found[1] == "size":
                        yield function
                        function = None
                    elif found[1] not in ("align", "p2align"):
                        raise Refused(f"{function.name} has data in its code")
                in_code = self._section(found[1], found[2] or "", in_code)
                yield line
            elif found := _LABEL.fullmatch(line):
                if function is None and in_code and found[1] in self.functions:
                    function = _Function(found[1])
                    yield line
                elif function is not None and found[1].startswith(_LOCAL):
                    function.lines.append((line, 0))
                elif in_code or found[1] in self.functions:
                    raise Refused(f"{found[1]} is a place in code that is no function")
                else:
                    yield line
            elif function is not None:
                function.lines.append(self._instruction(line, function.name))
            elif line:
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

    def _section(self, directive: str, words: str, in_code: bool) -> bool:
        """Return whether code follows a directive."""
        if directive in _ANYWHERE:
            return in_code
        if directive in ("text", "data", "bss"):
            return directive == "text"
        if directive == "section" and (found := _SECTION.fullmatch(words)):
            is_code = "x" in (found[2] or "") or found[1].startswith(_CODE_SECTION)
            if is_code and "w" in (found[2] or ""):
                raise Refused(f"the section {found[1]} can be written and executed")
            return is_code
        if directive in _DATA and not in_code:
            return False
        raise Refused(f"the directive .{directive} {words[:40]} is none of the compiler's here")


class _Code:
    """The instructions of a function."""

    def __init__(self, function: _Function, machine: Machine, listing: _Listing) -> None:
        self._machine, self._listing, self._numbered = machine, listing, function.lines
        self._lines = [line for line, _ in function.lines]
        self._begin, self._frame = machine.prologue(self._lines)
        self._instructions: dict[int, Instruction] = {}
        self._labels = {
            line[:-1]: at for at, line in enumerate(self._lines) if line.endswith(":") and at >= self._begin
        }
        self._read()

    def _read(self) -> None:
        at = self._begin
        self._epilogues: dict[int, int] = {}
        while at < len(self._lines):
            if not self._lines[at].endswith(":"):
                if taken := self._machine.epilogue(self._lines[at : at + _EPILOGUE_LINES], self._frame):
                    self._epilogues[at] = taken
                    at += taken
                    continue
                self._instructions[at] = self._machine.read(self._lines[at])
                self._check_target(at)
            at += 1

    def _check_target(self, at: int) -> None:
        instruction = self._instructions[at]
        if instruction.flow is Flow.CALL and not self._listing.may_be_called(instruction.target):
            raise Refused("calls what is no function")
        if instruction.flow in (Flow.JUMP, Flow.BRANCH):
            place = self._labels.get(instruction.target)
            if place is None:
                raise Refused("jumps out of its code")
            if place < at and not self._is_counted(place):
                raise Refused("has a loop that is not counted")

    def _is_counted(self, label: int) -> bool:
        """Return whether the counter is called behind a label, or the function is one of the headers', which call none."""
        behind = (line for line in self._lines[label:] if not line.endswith(":"))
        return next(behind, "").partition("\t")[2].startswith(COUNTER) or not any(COUNTER in line for line in self._lines)

    def guarded(self) -> Iterator[str]:
        live = self._live_flags()
        for at, line in enumerate(self._lines):
            instruction = self._instructions.get(at)
            for access in instruction.accesses if instruction else ():
                if not self._frame.holds(access):
                    yield from (f"\t{each}" for each in self._machine.check(access, at in live))
            yield line if line.endswith(":") else f"\t{line}"
        yield self._machine.trap

    def _live_flags(self) -> set[int]:
        """Return the instructions before which the flags are in use."""
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
        blocks: list[list[int]] = []
        kinds = [Work.INTEGER, Work.FLOAT, Work.DIVISION]
        for at, instruction in self._instructions.items():
            if instruction.flow is Flow.CALL and instruction.target == COUNTER:
                blocks.append([self._numbered[at][1], 0, 0, 0])
            elif blocks and instruction.work is not Work.NONE:
                blocks[-1][1 + kinds.index(instruction.work)] += 1
        return [Computed(*block) for block in blocks]
