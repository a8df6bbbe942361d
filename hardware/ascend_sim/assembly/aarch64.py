"""The instructions of aarch64 that g++ writes for kernel code without optimisation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

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

comment = "\t// "
trap = "\tbrk\t#1000"

#: Bytes that the stack pointer may move down without touching memory. As many below a stack cannot be accessed.
_UNTOUCHED = 1 << 16
_UNKNOWN_FRAME = "keeps its local variables where they cannot be guarded: declare smaller ones, without alignas"
_CONDITION = "(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)"
_IMMEDIATE_BITS = 12

#: Kinds of instructions by their names: what they compute, and what they do to the flags.
_COMPUTING = [
    (re.compile(pattern), instruction)
    for pattern, instruction in [
        (r"mov[kzni]?|adrp?|nop|[su]xt[bhw]|fmov|movi|mvni|umov|smov|dup|ins", Instruction()),
        (r"ushr|sshr|shl|zip[12]|uzp[12]|cnt|addv", Instruction()),
        (r"(?:add|sub|and|bic|adc|sbc|neg)s|cmp|cmn|tst|fcmpe?", Instruction(sets_flags=True)),
        (r"ccmp|ccmn|fccmpe?", Instruction(sets_flags=True, reads_flags=True)),
        (r"csel|cset|csetm|cinc|cinv|cneg|csinc|csinv|csneg|fcsel", Instruction(reads_flags=True)),
        (r"and|bic|orr|orn|lsl|lsr|[su]bfx|[su]bfiz|bfi|bfxil|[su]cvtf", Instruction()),
        (r"add|sub|eor|eon|mvn|neg|asr|ror|rev(?:16|32|64)?|rbit|cl[sz]|extr|abs", Instruction(work=Work.INTEGER)),
        (r"mul|mneg|madd|msub|[su]mull|[su]mulh|[su]maddl|[su]msubl|[su]mnegl", Instruction(work=Work.INTEGER)),
        (r"adc|sbc|ngc", Instruction(work=Work.INTEGER, reads_flags=True)),
        (
            r"f(?:add|sub|mul|nmul|neg|abs|madd|msub|nmadd|nmsub|max|min)(?:nm)?|fcvt\w*|frint\w",
            Instruction(work=Work.FLOAT),
        ),
        (r"[su]div|fdiv|fsqrt", Instruction(work=Work.DIVISION)),
    ]
]
_BRANCH = re.compile(rf"b\.?{_CONDITION}")
_BRANCH_BY_REGISTER = re.compile(r"cbn?z|tbn?z")
_ACCESS = re.compile(r"(?P<kind>ld|st)(?:(?P<pair>p)|u?r)(?P<size>s?[bhw])?")
_VECTORS = re.compile(r"(?P<kind>ld|st)1\t\{v\d+\.16b(?: - v\d+\.16b)?\}, \[(?P<base>x\d+)\]")
_REGISTER_BYTES = {"w": 4, "x": 8, "b": 1, "h": 2, "s": 4, "d": 8, "q": 16}
_SIZES = {"b": 1, "h": 2, "w": 4}

_PLACE = re.compile(
    r"\[(?P<base>x\d+|sp)(?:, (?:#?(?P<distance>-?\d+)"
    r"|(?P<index>[xw]\d+)(?:, (?P<how>lsl|sxtw|uxtw|sxtx) ?#?(?P<shift>\d)?)?"
    r"|#?(?P<low>:lo12:[\w.$+\-\x80-\U0010ffff]+)))?\]"
)
_LANE = re.compile(r"v\d+\.[bhsd]\[\d+\]")
_SYMBOL = re.compile(r"[A-Za-z_.$\x80-\U0010ffff][\w.$\x80-\U0010ffff]*")
#: Registers of the frame and those that the guard uses.
_OF_FRAME = re.compile(r"\b(?:sp|wsp|[xw](?:29|30|1[4-7]))\b")
#: The sum of an address and a constant, as `lea` computes it on x86-64.
_ADDRESS_SUM = re.compile(r"(?:add|sub)\tx\d+, (?:x\d+|sp), (?:#?\d+|#?:lo12:.*)(?:, lsl 12)?")

_PUSH = re.compile(r"stp\tx29, x30, \[sp, -(\d+)\]!")
_ROOM = re.compile(r"sub\tsp, sp, (?:#?(?P<number>\d+)|x(?P<by>9|1[0-3]))")
_RECORD = re.compile(r"stp\tx29, x30, \[sp(?:, (\d+))?\]")
_POINT = re.compile(r"mov\tx29, sp|add\tx29, sp, (\d+)")
_TOUCH = re.compile(r"str\txzr, \[sp(?:, \d+)?\]")
_NUMBER = re.compile(
    r"mov\tx(?P<register>9|1[0-3]), #?(?P<value>-?\d+)"
    r"|movk\tx(?P<part>9|1[0-3]), (?P<bits>0x[0-9a-f]+|\d+), lsl #?(?P<shift>16|32)"
)
_END_OF_LOOP = re.compile(r"sub\tx(?P<register>9|1[0-3]), sp, (?:x(?P<by>9|1[0-3])|#?(?P<number>\d+))")
_LOOP = re.compile(
    r"(?P<label>\.LPSRL\d+):\nsub\tsp, sp, #?65536\nstr\txzr, \[sp, 1024\]\n"
    r"cmp\tsp, x(?P<register>9|1[0-3])\nb\.ne\t(?P=label)"
)
_LOOP_LINES = 5
_POP = re.compile(r"ldp\tx29, x30, \[sp\], (\d+)")
_RELOAD = re.compile(r"ldp\tx29, x30, \[sp(?:, (\d+))?\]")
_DROP = re.compile(r"add\tsp, sp, (?:#?(?P<number>\d+)|x(?P<by>9|1[0-3]))")


class _Numbers(dict[str, int]):
    """What registers hold that are set to constants."""

    def take(self, line: str) -> bool:
        """Return whether a line sets a register to a constant, or a part of one."""
        found = _NUMBER.fullmatch(line)
        if found is None:
            return False
        if found["register"]:
            self[found["register"]] = int(found["value"])
        else:
            shift = int(found["shift"])
            before = self.get(found["part"], 0) & ~(0xFFFF << shift)
            self[found["part"]] = before | int(found["bits"], 0) << shift
        return True

    def named(self, found: re.Match[str]) -> int:
        """Return the number, or what the register holds, by which a line moves the stack pointer."""
        number = int(found["number"]) if found["number"] else self.get(found["by"])
        if number is None:
            raise Refused(_UNKNOWN_FRAME)
        return number


@dataclass(frozen=True)
class _Frame:
    """Local variables above the stack pointer, around the record of the frame.

    Attributes:
        bytes: The size of the frame.
        record: Where the record is, from the stack pointer.
    """

    bytes: int
    record: int

    def holds(self, access: Access) -> bool:
        if access.register is None:
            return False
        begin = access.distance + (self.record if access.register == "x29" else 0)
        end = begin + access.bytes
        return begin >= 0 and end <= self.bytes and (end <= self.record or begin >= self.record + 16)


def prologue(lines: Sequence[str]) -> tuple[int, Frame]:
    """Return how many lines make a frame, and the frame."""
    if lines and (push := _PUSH.fullmatch(lines[0])) and lines[1:2] == ["mov\tx29, sp"]:
        return 2, _Frame(int(push[1]), 0)
    size = untouched = at = 0
    numbers = _Numbers()
    end_of_loop: tuple[str, int] | None = None
    while at < len(lines):
        line = lines[at]
        if room := _ROOM.fullmatch(line):
            moved = numbers.named(room)
            size += moved
            untouched += moved
        elif _TOUCH.fullmatch(line):
            untouched = 0
        elif found := _END_OF_LOOP.fullmatch(line):
            end_of_loop = found["register"], numbers.named(found)
        elif loop := _LOOP.fullmatch("\n".join(lines[at : at + _LOOP_LINES])):
            if end_of_loop is None or end_of_loop[0] != loop["register"] or end_of_loop[1] % _UNTOUCHED:
                break
            size += end_of_loop[1]
            at += _LOOP_LINES - 1
        elif not numbers.take(line):
            break
        at += 1
        if untouched > _UNTOUCHED:
            raise Refused(_UNKNOWN_FRAME)
    record = _RECORD.fullmatch(lines[at]) if at < len(lines) else None
    point = _POINT.fullmatch(lines[at + 1]) if at + 1 < len(lines) else None
    if record and point and record[1] == point[1]:
        return at + 2, _Frame(size, int(record[1] or 0))
    raise Refused(_UNKNOWN_FRAME)


def epilogue(lines: Sequence[str], frame: Frame) -> int:
    """Return how many lines take a frame down and return."""
    assert isinstance(frame, _Frame)
    if pop := _POP.fullmatch(lines[0]):
        return 2 if frame == _Frame(int(pop[1]), 0) and lines[1:2] == ["ret"] else 0
    reload = _RELOAD.fullmatch(lines[0])
    if reload is None or int(reload[1] or 0) != frame.record:
        return 0
    left, numbers = frame.bytes, _Numbers()
    for at, line in enumerate(lines[1:], 1):
        if line == "ret":
            return at + 1 if left == 0 else 0
        if drop := _DROP.fullmatch(line):
            left -= numbers.named(drop)
        elif not numbers.take(line):
            return 0
    return 0


@lru_cache(maxsize=1 << 16)
def read(line: str) -> Instruction:
    """Return what an instruction does."""
    name, _, text = line.partition("\t")
    operands = _operands(text)
    if name in ("b", "bl", "blr", "br", "ret") or _BRANCH.fullmatch(name) or _BRANCH_BY_REGISTER.fullmatch(name):
        return _transfer(name, operands)
    if name == "brk":
        return Instruction(flow=Flow.END)
    if vectors := _VECTORS.fullmatch(line):
        size = 32 if " - " in line else 16
        return Instruction((Access(vectors["base"], size, vectors["kind"] == "st"),))
    if found := _ACCESS.fullmatch(name):
        return _accessing(found, operands)
    if _OF_FRAME.search(operands[0] if operands else ""):
        raise Refused(RUN_TIME_STACK)
    if _ADDRESS_SUM.fullmatch(line):
        return Instruction()
    for pattern, instruction in _COMPUTING:
        if pattern.fullmatch(name) and all("[" not in operand or _LANE.fullmatch(operand) for operand in operands):
            return instruction
    raise Refused(unknown(name))


def _operands(text: str) -> list[str]:
    return [operand.strip() for operand in re.findall(r"(?:[^,\[\]{}]|\[[^\]]*\]!?|\{[^}]*\})+", text)]


def _transfer(name: str, operands: Sequence[str]) -> Instruction:
    if name in ("blr", "br", "ret"):
        raise Refused(BY_POINTER)
    if _SYMBOL.fullmatch(operands[-1]) is None or any(map(_OF_FRAME.search, operands[:-1])):
        raise Refused(unknown(name))
    flow = {"bl": Flow.CALL, "b": Flow.JUMP}.get(name, Flow.BRANCH)
    return Instruction(flow=flow, target=operands[-1], reads_flags=flow is Flow.BRANCH and name[0] == "b")


def _accessing(found: re.Match[str], operands: Sequence[str]) -> Instruction:
    """Return an instruction that loads or stores one register or two."""
    *registers, place = operands
    if any(map(_OF_FRAME.search, registers)):
        raise Refused(RUN_TIME_STACK)
    size = _SIZES[found["size"][-1]] if found["size"] else _REGISTER_BYTES.get(registers[0][0], 0)
    read = _PLACE.fullmatch(place)
    if read is None or size == 0 or len(registers) != (2 if found["pair"] else 1):
        raise Refused(unknown(f"{found[0]} {place}"))
    size *= len(registers)
    register = read["base"] if read["base"] in ("sp", "x29") and not (read["index"] or read["low"]) else None
    return Instruction((Access(place, size, found["kind"] == "st", register, int(read["distance"] or 0)),))


def check(access: Access, keeps_flags: bool) -> list[str]:
    """Return the instructions that call the guard."""
    entry = f"asc_guard_{'store' if access.is_store else 'load'}"
    return [*_address(access.operand), f"mov\tw14, {access.bytes}", f"bl\t{entry}"]


def _address(operand: str) -> Iterator[str]:
    """Yield the instructions that compute an address."""
    place = _PLACE.fullmatch(operand)
    if place is None:
        yield f"mov\tx15, {operand}"
        return
    base = place["base"]
    if place["index"]:
        how = place["how"] or "lsl"
        if base == "sp":
            yield f"mov\tx15, {base}"
            base = "x15"
        shift = place["shift"] or "0"
        yield f"add\tx15, {base}, {place['index']}, {how} {shift}"
    elif place["low"]:
        yield f"add\tx15, {base}, {place['low']}"
    else:
        distance = int(place["distance"] or 0)
        name = "sub" if distance < 0 else "add"
        high, low = divmod(abs(distance), 1 << _IMMEDIATE_BITS)
        yield f"{name}\tx15, {base}, {low}"
        if high:
            yield f"{name}\tx15, x15, {high}, lsl {_IMMEDIATE_BITS}"
