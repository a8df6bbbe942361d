"""Finds accesses to computed places that the compiler has not put under the guard.

The compiler's sanitizer inserts the calls of the guard: before every access to a number or a pointer, unless the same
place was guarded just before, or lies in a variable for certain. But it leaves out parts of complex numbers, what is
read as another type, such as bit-fields that are compared, and copies of an object whose padding another member uses.
The last GIMPLE shows all accesses and calls. Whether such an access is guarded depends on its text alone: names have
numbers, and registers are set once. So its text has to be guarded somewhere in its function.
"""

from __future__ import annotations

import re
from collections import Counter

from kernel_gym.hardware.ascend_sim import gimple

#: A register: the name of a variable, if it holds one, and a number. A parameter of a pack is called `p#0`.
_REGISTER = r"[\w.$#]*_\d+(?:\((?:D|ab)\))*"
_TEMPORARY = re.compile(r"(?<![\w.$])_\d+(?![\w(])")
#: Places that may lie outside of a variable: `p_1->field`, `*p_1`, `MEM[(type *)p_1 + 8B]`, `x.fields[i_1]`, and
#: whatever is not understood. Variables, their members and elements with constant indices are none, nor are sums and
#: products. But the compiler accepts `&x[2]` of an array of two elements, so that a constant index may be too large by
#: one. So the bases of elements, which have no name, and parts of numbers in arrays are such places, too.
_ELSEWHERE = re.compile(
    r"->|\*(?![ )])|\bMEM\b|\[(?!\d+\])|\]\S*\.D\.\d+(?=[;,)]|$)"
    r"|(?:REALPART_EXPR|IMAGPART_EXPR|VIEW_CONVERT_EXPR)\b[^;]*\["
)
#: A constant of the compiler's, and memory of a variable as another type: `*.LC0`, `MEM[(type *)&x + 8B]`.
_IN_A_VARIABLE = re.compile(r"\*\.LC\d+D\.\d+|MEM(?: <[^<>]*>)? ?\[\([^()]*\)&(?:<retval>|[\w.$#]+)(?: \+ \d+B)?\]")
#: All that a pointer points to.
_WHOLE = re.compile(rf"^\*({_REGISTER})$|^MEM.*\)({_REGISTER})\]$")
#: The calls of the guard: `_1 = &access; _2 = (unsigned long) _1; guard (_2);`.
_ADDRESS = re.compile(r"(_\d+) = &(.*);")
_NUMBER = re.compile(rf"(_\d+) = \(unsigned long\) ({_REGISTER});")
_GUARD = re.compile(r"__builtin___asan_(?:load|store)\w+_noabortD\.\d+ \((_\d+)[,)]")
#: What a virtual function is called by; its object is no operand.
_VIRTUAL = re.compile(rf"OBJ_TYPE_REF\([^()]*\([^()]*\){_REGISTER}->\d+B?\)")
#: What follows a statement, such as `[return slot optimization]`.
_REMARK = re.compile(r"(?<=;) \[[\w -]*\]$")
_ASSIGNMENT = re.compile(r" =(?:\{v\})? ")
#: A call: what it calls, whose name may have types in it, and its arguments.
_CALL = re.compile(rf"(?:\.\w+|.*?D\.\d+|{_REGISTER}|) \((.*)\)")
#: A register, a number or an address.
_SCALAR = re.compile(rf"(?:{_REGISTER}|-?\d[\w.+-]*)$|&")
#: Parts of a number, and what is read as another type.
_PARTS = ("REALPART_EXPR", "IMAGPART_EXPR", "VIEW_CONVERT_EXPR", "BIT_FIELD_REF")


def unguarded(dump: str) -> str | None:
    """Return the name of a function in a dump with an access that is not guarded; None if there is none."""
    for name, body in gimple.bodies(dump):
        if _ELSEWHERE.search(body) and not _is_guarded(body):
            return name
    return None


def _is_guarded(body: str) -> bool:
    lines = [_REMARK.sub("", _VIRTUAL.sub("", line.strip())) for line in body.splitlines()]
    guarded, pointers = _guarded(lines, Counter(_TEMPORARY.findall(body)))
    for line in lines:
        for access, is_scalar in _accesses(line):
            whole = _WHOLE.match(access)
            is_plain = not access.startswith(_PARTS)
            if not (
                access in guarded
                or (is_plain and is_scalar)
                or (whole and (whole[1] or whole[2]) in pointers)
                or _IN_A_VARIABLE.fullmatch(access)
            ):
                return False
    return True


def _guarded(lines: list[str], uses: Counter[str]) -> tuple[set[str], set[str]]:
    """Return the accesses whose addresses are guarded, and pointers that are.

    An address that is used for anything else may be the author's, for an access to a part of what is there.
    """
    addresses: dict[str, str] = {}
    numbers: dict[str, str] = {}
    guarded, pointers = set(), set()
    for line in lines:
        if found := _ADDRESS.fullmatch(line):
            addresses[found[1]] = found[2]
        elif found := _NUMBER.fullmatch(line):
            numbers[found[1]] = found[2]
        elif found := _GUARD.match(line):
            pointer = numbers.get(found[1], "")
            pointers.add(pointer)
            if uses[pointer] == 2:  # where it is set, and where it becomes a number
                guarded.add(addresses.get(pointer, ""))
    return guarded, pointers


def _accesses(line: str) -> list[tuple[str, bool]]:
    """Return the accesses of a statement to computed places, each with whether a scalar is read or written."""
    if not line.endswith(";") or not _ELSEWHERE.search(line):
        return []
    sides = _ASSIGNMENT.split(line.removesuffix(";"), maxsplit=1)
    if sides[-1].startswith("{CLOBBER"):
        return []
    to, value = sides if len(sides) == 2 else ("", sides[0])
    found = [(to, _SCALAR.match(value) is not None), (value, _SCALAR.match(to) is not None)]
    if call := _CALL.fullmatch(value):
        found[1:] = [(argument, False) for argument in call[1].split(", ")]
    return [each for each in found if _ELSEWHERE.search(each[0]) and not each[0].startswith("&")]
