"""The instructions of x86-64 that g++ writes for kernel code without optimisation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from kernel_gym.hardware.ascend_sim.assembly.instructions import (
    BY_POINTER,
    RUN_TIME_STACK,
    Access,
    Flow,
    Frame,
    Instruction,
    Refused,
    Work,
    unknown,
)

comment = "\t# "
trap = "\tud2"

#: Bytes that the stack pointer may move down without touching memory. Below a stack are more that cannot be accessed.
_PAGE = 4096
_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8, "s": 4, "d": 8}
_CONDITION = "(?:a|ae|b|be|c|e|g|ge|l|le|na|nae|nb|nbe|nc|ne|ng|nge|nl|nle|no|np|ns|nz|o|p|pe|po|s|z)"


class _Properties(NamedTuple):
    """What instructions of a kind have in common.

    Attributes:
        work: What they compute.
        writes: Whether they write their last operand.
        moves: Whether they do not read the operand that they write.
        sets_flags: Whether the flags are other ones behind them.
        reads_flags: Whether they depend on the flags.
        bytes: The size of their operand in memory, where no suffix and no register tells it.
    """

    work: Work = Work.NONE
    writes: bool = False
    moves: bool = False
    sets_flags: bool = False
    reads_flags: bool = False
    bytes: int = 0


#: Kinds of instructions by their names. `size` is the suffix that tells how many bytes an operand in memory has.
_INSTRUCTIONS = [
    (re.compile(pattern), properties)
    for pattern, properties in [
        (r"mov[ua]p[sd]|movdq[ua]", _Properties(writes=True, moves=True, bytes=16)),
        (r"movs(?P<size>[sd])", _Properties(writes=True, moves=True)),
        (r"movd", _Properties(writes=True, moves=True, bytes=4)),
        (r"mov[lh]p[sd]", _Properties(writes=True, moves=True, bytes=8)),
        (r"mov[sz](?P<size>[bwl])[wlq]", _Properties()),
        (r"mov(?:abs)?(?P<size>[bwlq])", _Properties(writes=True, moves=True)),
        (r"(?:cmp|test)(?P<size>[bwlq])", _Properties(sets_flags=True)),
        (r"i?div(?P<size>[bwlq])", _Properties(Work.DIVISION, sets_flags=True)),
        (r"i?mul(?P<size>[bwlq])", _Properties(Work.INTEGER, sets_flags=True)),
        (r"(?:adc|sbb)(?P<size>[bwlq])", _Properties(Work.INTEGER, True, sets_flags=True, reads_flags=True)),
        (r"(?:and|or|s[ah]l|shr)(?P<size>[bwlq])", _Properties(writes=True, sets_flags=True)),
        (
            r"(?:add|sub|xor|neg|not|inc|dec|sar|ro[lr]|sh[lr]d|bs[fr]|bswap)(?P<size>[bwlq])",
            _Properties(Work.INTEGER, True, sets_flags=True),
        ),
        (r"(?:add|sub|mul|min|max)s(?P<size>[sd])", _Properties(Work.FLOAT)),
        (r"(?:div|sqrt)s(?P<size>[sd])", _Properties(Work.DIVISION)),
        (r"u?comis(?P<size>[sd])", _Properties(sets_flags=True)),
        (r"cvtsi2s[sd](?P<size>[lq])", _Properties()),
        (r"cvtt?s(?P<size>[sd])2(?:si[lq]?|s[sd])", _Properties(Work.FLOAT)),
        (
            r"(?:and|andn|or|xor)p[sd]|p(?:xor|or|and|andn)|unpck[lh]p[sd]|punpck[lh](?:bw|wd|dq|qdq)",
            _Properties(bytes=16),
        ),
        (r"cvt(?:ps2pd|pd2ps)|cmp\w*s[sd]", _Properties(Work.FLOAT, bytes=16)),
        (rf"set{_CONDITION}", _Properties(writes=True, moves=True, reads_flags=True, bytes=1)),
        (rf"cmov{_CONDITION}(?P<size>[wlq]?)", _Properties(reads_flags=True)),
    ]
]
_LONG_DOUBLE = (
    "computes with long double, which does not exist in device code: use float, or double in the host function"
)
_BRANCH = re.compile(rf"j{_CONDITION}")
_IMPLICIT = frozenset({"cltd", "cltq", "cqto", "cwtl", "cwtd", "cbtw", "nop"})

_OPERAND = re.compile(r"(?:[^,()]|\([^()]*\))+")
_NO_PLACE = re.compile(r"%[a-z]\w*|\$-?[\w.$@+\-\x80-\U0010ffff]+")
#: g++ writes names that begin with a dollar in parentheses.
_DOLLAR_NAME = re.compile(r"\((\$[\w.$\x80-\U0010ffff]+)\)")
_PLACE = re.compile(r"[\w.$+\-@\x80-\U0010ffff]*\([%\w, ]*\)")
#: The stack pointer and the frame pointer, whole or in part, and those that the guard uses.
_OF_FRAME = re.compile(r"%(?:[re]?[sb]pl?\b|r1[01])")
_BASE = re.compile(r"(-?\d+)?\(%(rbp|rsp)\)")
_COMPILERS_CONSTANT = re.compile(r"\.LC\d+\(%rip\)")
_LINKERS_TABLE = re.compile(r"[\w.$]+@GOTPCREL\(%rip\)")
_SYMBOL = re.compile(r"([A-Za-z_.$\x80-\U0010ffff][\w.$\x80-\U0010ffff]*?)(?:@PLT)?")
#: The sum of an address and a constant.
_ADDRESS_SUM = re.compile(r"addq\t\$-?\d+, %r\w+")

_MAKE_ROOM = re.compile(r"(?:subq\t\$(\d+)|addq\t\$-(\d+)), %rsp")
_ALIGN, _TOUCH = re.compile(r"andq\t\$-(\d+), %rsp"), "orq\t$0, (%rsp)"
_LOOP = re.compile(
    r"leaq\t-(\d+)\(%rsp\), %r11\n(\.LPSRL\d+):\nsubq\t\$4096, %rsp\norq\t\$0, \(%rsp\)\ncmpq\t%r11, %rsp\njne\t\2"
)
_LOOP_LINES = 6


@dataclass(frozen=True)
class _Frame:
    """Local variables below the frame pointer, and above the stack pointer.

    Attributes:
        bytes: How far the stack pointer lies below the frame pointer, at least.
    """

    bytes: int

    def holds(self, access: Access) -> bool:
        if access.register == "rbp":
            return -self.bytes <= access.distance and access.distance + access.bytes <= 0
        return access.register == "rsp" and access.distance >= 0 and access.distance + access.bytes <= self.bytes


def prologue(lines: Sequence[str]) -> tuple[int, Frame]:
    """Return how many lines make a frame, and the frame."""
    if tuple(lines[:2]) != ("pushq\t%rbp", "movq\t%rsp, %rbp"):
        raise Refused("has no frame: make it no virtual function of a second base class")
    taken, size, untouched = 2, 0, 0
    while taken < len(lines):
        line = lines[taken]
        if room := _MAKE_ROOM.fullmatch(line):
            size += int(room[1] or room[2])
            untouched += int(room[1] or room[2])
        elif line == _TOUCH:
            untouched = 0
        elif loop := _LOOP.fullmatch("\n".join(lines[taken : taken + _LOOP_LINES])):
            if int(loop[1]) % _PAGE:
                break
            size += int(loop[1])
            taken += _LOOP_LINES - 1
        elif align := _ALIGN.fullmatch(line):
            untouched += int(align[1])
        else:
            break
        taken += 1
        if untouched > 2 * _PAGE:
            raise Refused("has a frame that is not touched page by page")
    return taken, _Frame(size)


def epilogue(lines: Sequence[str], frame: Frame) -> int:
    """Return how many lines take a frame down and return."""
    last = tuple(lines[:2])
    assert isinstance(frame, _Frame)
    return 2 if last == ("leave", "ret") or (last == ("popq\t%rbp", "ret") and frame.bytes == 0) else 0


@lru_cache(maxsize=1 << 16)
def read(line: str) -> Instruction:
    """Return what an instruction does."""
    name, _, text = line.partition("\t")
    if name == "call" or name == "jmp" or _BRANCH.fullmatch(name):
        return _transfer(name, text)
    if line in _IMPLICIT or line == "ud2":
        return Instruction(flow=Flow.END if name == "ud2" else Flow.NEXT)
    operands = [operand.strip() for operand in _OPERAND.findall(text)]
    if name.startswith("f"):
        raise Refused(_LONG_DOUBLE)
    if not operands or not all("(" in operand or _NO_PLACE.fullmatch(operand) for operand in operands):
        raise Refused(unknown(name))
    if "(" not in operands[-1] and _OF_FRAME.search(operands[-1]):
        raise Refused(RUN_TIME_STACK)
    if name.startswith("lea"):
        return Instruction()
    if _ADDRESS_SUM.fullmatch(line):
        return Instruction(sets_flags=True)
    return _computing(name, operands)


def _transfer(name: str, target: str) -> Instruction:
    symbol = _SYMBOL.fullmatch(_DOLLAR_NAME.sub(r"\1", target))
    if symbol is None:
        raise Refused(BY_POINTER)
    if name == "call":
        return Instruction(flow=Flow.CALL, target=symbol[1])
    if name == "jmp":
        return Instruction(flow=Flow.JUMP, target=symbol[1])
    return Instruction(flow=Flow.BRANCH, target=symbol[1], reads_flags=True)


def _computing(name: str, operands: list[str]) -> Instruction:
    """Return an instruction that moves or computes."""
    for pattern, properties in _INSTRUCTIONS:
        if found := pattern.fullmatch(name):
            size = properties.bytes or _bytes(found.groupdict().get("size") or "", operands[-1])
            accesses = [
                access
                for place, operand in enumerate(operands)
                if "(" in operand
                for access in _accessed(operand, size, properties, is_last=place == len(operands) - 1)
            ]
            return Instruction(
                tuple(accesses),
                reads_flags=properties.reads_flags,
                sets_flags=properties.sets_flags,
                work=properties.work,
            )
    raise Refused(unknown(name))


def _bytes(suffix: str, last: str) -> int:
    """Return the size that a suffix names, or that of a general register."""
    if suffix in _SIZES:
        return _SIZES[suffix]
    if last.startswith("%e") or last.endswith("d"):
        return 4
    return 8 if last.startswith("%r") and not last.endswith("w") else 2


def _accessed(operand: str, size: int, properties: _Properties, is_last: bool) -> Iterator[Access]:
    """Yield the accesses of an operand in memory.

    Constants of the compiler's and addresses in the linker's table are no accesses that need a check.
    """
    place = _DOLLAR_NAME.sub(r"\1", operand)
    if _PLACE.fullmatch(place) is None:
        raise Refused(unknown(operand))
    is_written = properties.writes and is_last
    if not is_written and (_COMPILERS_CONSTANT.fullmatch(place) or (size == 8 and _LINKERS_TABLE.fullmatch(place))):
        return
    base = _BASE.fullmatch(place)
    register, distance = (base[2], int(base[1] or 0)) if base else (None, 0)
    if not (is_written and properties.moves):
        yield Access(operand, size, False, register, distance)
    if is_written:
        yield Access(operand, size, True, register, distance)


def check(access: Access, keeps_flags: bool) -> list[str]:
    """Return the instructions that call the guard."""
    entry = f"asc_guard_{'store' if access.is_store else 'load'}{'_keeping_flags' if keeps_flags else ''}"
    return [f"leaq\t{access.operand}, %r11", f"movl\t${access.bytes}, %r10d", f"call\t{entry}@PLT"]
