"""Counts the operations of plain code in each basic block of a compiled kernel.

The compiler calls a counter at the start of every basic block. Its dump of the intermediate form (GIMPLE), written
right after it has inserted these calls, says what each block computes. There the form is still the same for every
machine: only the order in which the arguments of a call are computed differs. The blocks of a function lie in the
object file in the order of the dump, so the calls of the counter, which the linker lists as relocations, tell the
address of each block.

The prices of operations are figures of the chip profile (`scalar` in `chips/base.yaml`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim.source_names import Kind, Names, kind, lanes, unqualified

DUMP = "kernel.gimple"
#: The file of operations has the name of the object file and this.
SUFFIX = ".operations"
#: Flags that make the compiler write the dump and the linker keep the relocations.
FLAGS = (f"-fdump-tree-sancov_O0-raw={DUMP}", "-Wl,--emit-relocs")

_COUNTER = "__sanitizer_cov_trace_pc"
#: Elf64_Rela. On both supported machines a call ends four bytes after the place that its relocation names.
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_CALL_BYTES = 4

#: Statements that move or name a value. Where they make another value of it, they cost an operation nevertheless: those
#: that access a bit-field, convert between types of floating point, read a pointer or a part of a number from memory,
#: or add the place of a member to a pointer.
_MOVES = frozenset(
    [
        "integer_cst",
        "real_cst",
        "string_cst",
        "ssa_name",
        "var_decl",
        "parm_decl",
        "result_decl",
        "const_decl",
        "component_ref",
        "mem_ref",
        "array_ref",
        "bit_field_ref",
        "addr_expr",
        "constructor",
        "nop_expr",
        "convert_expr",
        "view_convert_expr",
        "paren_expr",
        "obj_type_ref",
    ]
)
_DIVISIONS = frozenset(f"{kind}_{what}_expr" for kind in ("trunc", "ceil", "floor", "round") for what in ("div", "mod"))
_CONVERSIONS = frozenset({"float_expr", "fix_trunc_expr"})
_CASTS = frozenset({"nop_expr", "convert_expr"})
_READS = frozenset({"component_ref", "mem_ref", "array_ref"})
_COMPARISONS = frozenset(
    f"{relation}_expr"
    for relation in [
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "ltgt",
        "unlt",
        "unle",
        "ungt",
        "unge",
        "uneq",
        "ordered",
        "unordered",
    ]
)
#: Calls of the compiler's own that compute nothing, and those of the headers that are one operation.
_FREE_CALLS = frozenset(
    [
        ".DEFERRED_INIT",
        ".UBSAN_BOUNDS",
        "__builtin_expect",
        "__builtin_trap",
        "__builtin_memcpy",
        "__builtin_memmove",
        "__builtin_memset",
        "__builtin_memcmp",
    ]
)
_SCALAR_CALLS = frozenset({"min", "max", "abs"})
#: Methods of tensors and buffers that add, scale or limit a number that they are given, with the fewest arguments at
#: which they do, the object among them. Each is one operation. The dump has no class with a name: the author's own
#: methods of these names cost one more. What else computes in the headers is counted there.
_COMPUTING_METHODS = {
    "operator[]": 2,
    "GetPhyAddr": 2,
    "GetSize": 1,
    "GetLength": 1,
    "SetSize": 2,
    "SetBufferLen": 2,
    "SetAddrWithOffset": 3,
    "Get": 2,
    "GetWithOffset": 3,
    "Alloc": 2,
}
_CONVERTING_CALLS = frozenset({"half_to", "half_from", "bfloat_from", "ScalarCast"})
#: A division by a constant is a multiplication and a shift.
_BY_CONSTANT = 2

#: The check of an index that is a constant, and the end of its array: the number of elements since this g++.
_COUNTED_SINCE = 13
_CONSTANT_INDEX = re.compile(r"gimple_call <\.UBSAN_BOUNDS, NULL, 0B, (-?\d+), (\d+)>")
_FUNCTION = re.compile(r"^;; Function (.*) \((\S+), funcdef_no=\d+, ", re.MULTILINE)
_WORD = re.compile(r"\w+")
_VARIABLE = re.compile(r"^  (\S.*?) ([\w.$]+);$", re.MULTILINE)
_PARAMETER_END = re.compile(r"([,()])")
_VERSION = re.compile(r"_\d+(?:\(D\))?$")
_REGISTER = re.compile(rf"[\w.$#]*{_VERSION.pattern}")
_TEMPORARY = re.compile(r"(?<![\w.$#])_\d+(?!\w)")
#: A constant: `3`, `-0.5e+1`, the pointer `0B`.
_LITERAL = re.compile(r"-?\d[\d.]*(?:e[+-]\d+)?(B?)$")
_INDEXED = re.compile(r"\[(?![\d(])")
#: An address that is computed from a pointer: `&p_1->x`, `&(*p_1)[3]`, `&MEM[(int *)p_1 + 4B]`, but not `&x.y`.
_FROM_POINTER = re.compile(r"&.*(?:->|\*\w|\)(?!&)[\w.$#]+(?:\(D\))?(?: \+ -?\d+B)?\])")
#: All that a pointer of the author's points to, as a type that is written: `MEM[(const struct S &)p_1]`. The compiler's
#: own pointers to variables, such as `x.0_1`, are of no known type: several classes may be written `struct S`.
_WHOLE = re.compile(r"MEM\[\(([^()]*)[*&]\)([\w$#]+(?:\(D\))?)\]$")
#: The end of a lambda's name, if it is no method, and a variable that it has captured.
_CALLED = re.compile(r"operator\(\)(?:<[^:]*>)?$")
_CAPTURED = re.compile(r"__closure_\d+\(D\)->\w+$")
#: The type of a bit-field, the members in an operand, and the one at its end. Fields of whole words have the types of
#: words.
_NARROW = re.compile(r"<unnamed-(?:un)?signed:(?!(?:8|16|32|64)>)")
_MEMBERS = re.compile(r"(?:\.|->)([A-Za-z_$][\w$]*)")
_MEMBER = re.compile(rf"{_MEMBERS.pattern}$")


@dataclass
class Operations:
    """What a basic block computes: numbers of operations by their price."""

    branches: int = 0
    integer: int = 0
    float: int = 0
    divisions: int = 0

    def times(self, lanes: int) -> Operations:
        """Return the operations of so many lanes."""
        return Operations(self.branches, self.integer * lanes, self.float * lanes, self.divisions * lanes)


def count(target: Path, source: str, kernel: ELFFile) -> None:
    """Write the operations of each basic block of a kernel that was compiled with `FLAGS`.

    Args:
        target: The path of the object file; the dump lies beside it.
        source: The text that was compiled, which says what its own names of types mean.
        kernel: The object file.

    Raises:
        InfrastructureError: If the dump does not fit the object file.
    """
    blocks = read_dump(target.with_name(DUMP).read_text(encoding="utf-8", errors="replace"), source)
    lines = [
        f"{where} {each.branches} {each.integer} {each.float} {each.divisions}\n"
        for where, each in _placed(kernel, blocks)
    ]
    target.with_name(f"{target.name}{SUFFIX}").write_text("".join(lines))


def beyond_arrays(target: Path, version: int) -> Iterator[int]:
    """Yield each constant index beyond its array, from the dump beside an object file.

    The compiler leaves out whatever follows such an access, so that the dump does not fit the object file. Up to g++ 12
    the dump has the last index of the array, since then the number of elements.
    """
    for match in _CONSTANT_INDEX.finditer(target.with_name(DUMP).read_text(encoding="utf-8", errors="replace")):
        index, bound = map(int, match.groups())
        if not 0 <= index < bound + (version < _COUNTED_SINCE):
            yield index


def read_dump(dump: str, source: str) -> dict[str, list[Operations]]:
    """Return the operations of each counted basic block of each function, in the order of the dump.

    Where the source or the dump names vector types of the host, every operation counts as many times as the widest of
    them has lanes. No kernel that passes the screen names one.
    """
    names, pieces = Names.of(source), _FUNCTION.split(dump)
    counted = _Counted(pieces[1::3])
    functions = [_Function(name, text, names, counted) for name, text in zip(pieces[1::3], pieces[3::3], strict=True)]
    width = lanes(source, {meaning for function in functions for meaning in function.types})
    blocks = ([block.times(width) for block in function.blocks()] for function in functions)
    return dict(zip(pieces[2::3], blocks, strict=True))


class _Counted:
    """The names of the functions in a dump, all of which are counted: the author's, and some of the headers'."""

    def __init__(self, names: Sequence[str]) -> None:
        self._text = "\n".join(names)
        self._words = frozenset(_WORD.findall(self._text))

    def may_have(self, called: str) -> bool:
        """Return whether a function that is called by this name may be counted; constructors have no names and may."""
        if called.startswith("operator"):
            return called in self._text
        return called in self._words or not called[:1].isalpha() or called.startswith("OBJ_TYPE_REF")


class _Function:
    """A function in the dump: its statements, and the types of its variables, which decide about their prices."""

    def __init__(self, name: str, text: str, names: Names, counted: _Counted) -> None:
        self._names, self._counted = names, counted
        head, _, self._body = text.partition("\n  <bb ")
        signature, _, variables = f"{head}\n".partition("\n{\n")
        declared = [*_parameters(signature.rpartition("\n")[2]), *_VARIABLE.findall(variables)]
        self._types: dict[str, set[str]] = {}
        for meaning, variable in declared:
            self._types.setdefault(variable, set()).add(unqualified(meaning))
        closures = self._types.get("__closure", ())
        is_operator = _CALLED.search(name) is not None
        self._is_lambda = is_operator and "this" not in self._types and len(closures) == 1

    @property
    def types(self) -> set[str]:
        """The types of all variables, as they are written."""
        return set[str]().union(*self._types.values())

    def blocks(self) -> list[Operations]:
        """Return the operations of each basic block that is counted."""
        blocks: list[Operations] = []
        for line in self._body.splitlines():
            statement, fields = _parsed(line)
            if statement == "gimple_call" and fields[0].startswith(f"__builtin_{_COUNTER}"):
                blocks.append(Operations())
            elif blocks:
                self._add(blocks[-1], statement, fields)
        return blocks

    def _add(self, block: Operations, statement: str, fields: list[str]) -> None:
        """Add the operations of a statement to those of its block."""
        if statement == "gimple_assign":
            self._add_assignment(block, fields)
        elif statement == "gimple_cond":
            block.branches += 1
            if fields[2] != "0" or self._meanings(fields[1]) != {"bool"}:  # a truth value is not compared again
                self._add_operation(block, fields[1])
        elif statement == "gimple_switch":
            block.branches += 1
            block.integer += sum(each.startswith("case ") for each in fields).bit_length()
        elif statement == "gimple_call":
            self._add_call(block, fields)

    def _add_assignment(self, block: Operations, fields: list[str]) -> None:
        code, result, *operands = fields
        block.integer += sum(len(_INDEXED.findall(each)) for each in fields[1:])
        block.integer += self._accesses_bit_field(code, fields[1:])
        block.integer += self._makes_another(code, result, operands[0])
        if code in _CASTS and not any(map(self._is_no_float, (result, operands[0]))):
            block.float += 1
        if code in _MOVES:
            return
        if code in _DIVISIONS and _LITERAL.match(operands[1]):
            block.integer += _BY_CONSTANT
        elif code in _DIVISIONS or code == "rdiv_expr":
            block.divisions += 1
        elif code in _CONVERSIONS:
            block.float += 1
        else:
            self._add_operation(block, operands[0] if code in _COMPARISONS else result)

    def _add_call(self, block: Operations, fields: list[str]) -> None:
        name, result, *arguments = (each.rstrip("> ") for each in fields)
        block.integer += self._accesses_bit_field("", [result])
        block.integer += sum(map(self._is_read_as_another, arguments))
        if len(arguments) >= _COMPUTING_METHODS.get(name, len(fields)):
            block.integer += 1
        elif name in _CONVERTING_CALLS:
            block.float += 1
        elif name in _SCALAR_CALLS:
            self._add_operation(block, result)
        elif name == "operator()":  # of a closure, which may be one of many
            block.integer += _REGISTER.match(arguments[0]) is not None
        elif name.startswith(("__builtin_", ".")) and name not in _FREE_CALLS:
            block.divisions += 1  # a root: kernels may call no other function of the compiler
        elif not self._counted.may_have(name):
            block.integer += self._may_be_pointer(result)

    def _makes_another(self, code: str, result: str, operand: str) -> bool:
        """Return whether a statement that moves a value makes another value of it, or a pointer that was none."""
        if code == "addr_expr":
            is_computed = _FROM_POINTER.match(operand) is not None and result not in self._objects
            return is_computed or self._is_in_union(operand)
        if code in _READS:
            is_variable = self._is_lambda and _CAPTURED.match(operand)
            return self._is_read_as_another(operand) or (self._may_be_pointer(result) and not is_variable)
        is_made = code in _CASTS and self._may_be_pointer(result) and self._kinds(operand) != {Kind.POINTER}
        return is_made or code == "view_convert_expr"

    def _is_read_as_another(self, operand: str) -> bool:
        """Return whether an operand is a part of a number or a number of another type, read from where one lies."""
        if self._is_in_union(operand):
            return True
        if operand.startswith("&") or "MEM" not in operand:
            return False
        whole = _WHOLE.match(operand)
        types = {meaning[:-1].strip() for meaning in self._meanings(whole[2])} if whole else set[str]()
        return whole is None or types != {unqualified(whole[1])}

    def _is_in_union(self, operand: str) -> bool:
        members = self._names.union_members
        return bool(members) and not members.isdisjoint(_MEMBERS.findall(operand))

    @cached_property
    def _objects(self) -> frozenset[str]:
        """The registers with addresses of objects that only functions of the headers get, or their constructors.

        A constructor's object is a variable or a part of one: kernels cannot construct an object in other memory.
        """
        uses = Counter[str]()
        for line in self._body.splitlines():
            statement, fields = _parsed(line)
            if statement == "gimple_call" and not self._counted.may_have(fields[0].rstrip("> ")):
                fields = fields[1:2]
            elif statement == "gimple_call" and fields[0].startswith("__ct_"):
                fields = [*fields[1:2], *fields[3:]]
            uses.update(register for each in fields for register in _TEMPORARY.findall(each))
        return frozenset(register for register, number in uses.items() if number == 1)

    def _accesses_bit_field(self, code: str, operands: Sequence[str]) -> bool:
        """Return whether a statement, its result before its operands, reads or writes a bit-field or cuts for one."""
        if code == "bit_field_ref" or (self._names.bit_fields and any(map(self._is_bit_field, operands))):
            return True
        narrow = [self._is_narrow(operand) for operand in operands[:2]]
        return code in _MOVES and (narrow[0] or (code == "ssa_name" and narrow[1]))

    def _is_bit_field(self, operand: str) -> bool:
        member = _MEMBER.search(operand.rstrip("> "))
        return member is not None and member[1] in self._names.bit_fields

    def _is_narrow(self, operand: str) -> bool:
        return any(_NARROW.match(meaning) for meaning in self._meanings(operand))

    def _add_operation(self, block: Operations, operand: str) -> None:
        """Add an operation on numbers of an operand's type, on floats if this has no known meaning."""
        if self._is_no_float(operand):
            block.integer += 1
        else:
            block.float += 1

    def _is_no_float(self, operand: str) -> bool:
        return self._kinds(operand) <= {Kind.INTEGER, Kind.POINTER}

    def _may_be_pointer(self, operand: str) -> bool:
        """Return whether an operand is a register that may hold a pointer."""
        return _REGISTER.match(operand) is not None and not self._kinds(operand) <= {Kind.INTEGER, Kind.FLOAT}

    def _kinds(self, operand: str) -> set[Kind]:
        """Return what a number or a pointer may be: several if variables of its name are of different kinds."""
        if literal := _LITERAL.match(operand):
            return {Kind.POINTER if literal[1] else Kind.FLOAT if "." in operand or "e" in operand else Kind.INTEGER}
        if operand.startswith("&"):
            return {Kind.POINTER}
        kinds = {kind(meaning, self._names.types) for meaning in self._meanings(operand)}
        return kinds - {Kind.OBJECT} or {Kind.UNKNOWN}

    def _meanings(self, operand: str) -> set[str]:
        """Return the types of the variables of this name: several if scopes use it for different ones.

        `x_3` may be a version of `x`, or a variable of this name.
        """
        return self._types.get(operand, set()) | self._types.get(_VERSION.sub("", operand), set())


def _parsed(line: str) -> tuple[str, list[str]]:
    """Return the kind of a statement and its fields."""
    statement, _, fields = line.strip().partition(" <")
    return statement, fields.split(", ")


def _parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Yield type and name of each parameter in a line such as `int f (int x, float y)`."""
    pieces = _PARAMETER_END.split(signature)
    for text, end in zip(pieces[::2], pieces[1::2], strict=False):
        meaning, _, name = text.rpartition(" ")
        if end != "(" and meaning.strip() and name.replace("$", "_").isidentifier():
            yield meaning, name


def _placed(elf: ELFFile, blocks: Mapping[str, list[Operations]]) -> list[tuple[int, Operations]]:
    """Return the return address of each call of the counter, in order, with the operations of its block."""
    table = list(symbols.of(elf, ".symtab"))
    calls = _calls(elf, [number for number, symbol in enumerate(table) if symbol.name == _COUNTER])
    placed: dict[int, Operations] = {}
    for symbol in table:
        expected = blocks.get(symbol.name, []) if symbol.kind == symbols.FUNCTION else []
        if not expected:
            continue
        begin, end = np.searchsorted(calls, [symbol.value, symbol.value + symbol.size])
        if end - begin != len(expected):
            raise InfrastructureError(
                f"{symbol.name} has {end - begin} basic blocks, but {len(expected)} in the compiler's dump"
            )
        placed.update(zip((calls[begin:end] + _CALL_BYTES).tolist(), expected, strict=True))
    if len(placed) != len(calls):
        raise InfrastructureError(f"{len(calls) - len(placed)} basic blocks are missing in the compiler's dump")
    return sorted(placed.items())


def _calls(elf: ELFFile, counters: list[int]) -> np.ndarray:
    """Return the addresses of the relocations by one of these symbols, in order."""
    text = elf.get_section_by_name(".rela.text")
    if text is None:
        return np.empty(0, np.int64)
    relocations = np.frombuffer(text.data(), _RELOCATION)
    return np.sort(relocations["offset"][np.isin(relocations["info"] >> 32, counters)].astype(np.int64))
