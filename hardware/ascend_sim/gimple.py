"""Reads the compiler's dump of its intermediate form (GIMPLE): which operations each basic block has.

The dump is written right after the compiler has inserted the calls of the counter of basic blocks (operations.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property
from types import MappingProxyType

from kernel_gym.hardware.ascend_sim.assembly.guards import COUNTER, Computed
from kernel_gym.hardware.ascend_sim.source_names import POINTER_BITS, Kind, Names, Type, lanes, type_of, unqualified

#: Statements that move or name a value. Some cost an operation nevertheless: those that cut a number, access a
#: bit-field, convert between types of floating point, access memory by a pointer, read a pointer or a part of a number,
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
_CONSTANTS = frozenset({"integer_cst", "constructor"})
_DIVISIONS = frozenset(f"{kind}_{what}_expr" for kind in ("trunc", "ceil", "floor", "round") for what in ("div", "mod"))
_CONVERSIONS = frozenset({"float_expr", "fix_trunc_expr"})
_CASTS = frozenset({"nop_expr", "convert_expr"})
_READS = frozenset({"component_ref", "mem_ref", "array_ref", "var_decl", "parm_decl", "result_decl"})
#: The registers have 32 or 64 bits: the result of arithmetic on narrower numbers needs a mask, but truth values do not,
#: nor do some operations. Others give the same if only their result is masked, and not their operands.
_UNMASKED_BITS = frozenset({1, 32, 64})
_UNMASKED = frozenset({"bit_and_expr", "bit_ior_expr", "bit_xor_expr", "rshift_expr", "min_expr", "max_expr"})
_MODULAR = frozenset(f"{name}_expr" for name in ("plus", "minus", "mult", "negate", "bit_not"))
#: Narrower numbers in memory may be parts of others, but not where these functions of the headers read them.
_NARROWEST_WORD = 32
_READING_HALVES = frozenset({"half::operator float", "bfloat16_t::operator float"})
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
#: which they do, the object among them, and their operations: a length is a difference that is limited and divided. The
#: dump has no class with a name: the author's own methods of these names cost more. What else computes in the headers
#: is counted there.
_COMPUTING_METHODS = {
    "operator[]": (2, 1),
    "GetPhyAddr": (2, 1),
    "GetSize": (1, 3),
    "GetLength": (1, 3),
    "SetSize": (2, 1),
    "SetBufferLen": (2, 1),
    "SetAddrWithOffset": (3, 1),
    "Get": (2, 1),
    "GetWithOffset": (3, 1),
    "Alloc": (2, 1),
}
_CONVERTING_CALLS = frozenset({"half_to", "half_from", "bfloat_from", "ScalarCast"})
#: Instructions for integers that a block may have beside two for each operation of the dump.
_MORE_INTEGERS = 8
#: A division by a constant is a multiplication and a shift.
_BY_CONSTANT = 2

#: The check of an index that is a constant, and the end of its array: the number of elements since this g++.
_COUNTED_SINCE = 13
_CONSTANT_INDEX = re.compile(r"gimple_call <\.UBSAN_BOUNDS, NULL, 0B, (-?\d+), (\d+)>")
_FUNCTION = re.compile(r"^;; Function (.*) \((\S+), funcdef_no=\d+, ", re.MULTILINE)
#: What follows a call, such as `[return slot optimization]`.
_REMARK = re.compile(r"(?<=>) \[[\w -]*\]$")
_WORD = re.compile(r"\w+")
_VARIABLE = re.compile(r"^  (\S.*?) ([\w.$]+);$", re.MULTILINE)
_PARAMETER_END = re.compile(r"([,()])")
#: A variable: `x`, or one of the compiler's, `D.12`.
_NAME = re.compile(r"(?:[\w$#]+|D\.\d+)$")
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
#: What lies behind a pointer, and the pointer: `p_1->x.y`, `(*p_1)[3]`, `MEM[(struct S &)p_1].x`. A variable as another
#: type, `MEM[(int *)&x + 4B]`, and a constant of the compiler's, `*.LC0`, do not.
_POINTED = re.compile(r"->|^\(*\*(?!\.LC)|MEM(?!.*\)&)")
_POINTER = re.compile(r"(?:\(*\*|MEM\[\([^()]*\))?([\w.$#]+(?:\(D\))?)(?:->|[])]|$)")
#: The padding of a variable, which the compiler fills with zeros.
_PADDING = re.compile(r"MEM <char(?:\[\d+\])?> \[\((?:const )?struct [^()]* \*\)&")
_THIS, _CLOSURE = re.compile(r"this_\d+(?:\(D\))?$"), re.compile(r"__closure_\d+\(D\)$")
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

    def at_least(self, computed: Computed) -> Operations:
        """Return the operations of a block whose instructions compute this.

        The dump says more than the instructions: what is a part of an address, and what a number is cut for. But its
        names of types can be misread, and instructions cannot. An honest block has no more instructions for floats and
        divisions than the dump has operations, and about two for an integer operation.
        """
        integer = (computed.integer - _MORE_INTEGERS) // 2
        return Operations(
            self.branches,
            max(self.integer, integer),
            max(self.float, computed.float),
            max(self.divisions, computed.divisions),
        )

    @classmethod
    def dearest(cls, each: Sequence[Operations]) -> Operations:
        """Return the most operations of each price that one of several blocks has."""
        return cls(*map(max, zip(*map(astuple, each), strict=True)))

    def times(self, lanes: int) -> Operations:
        """Return the operations of so many lanes."""
        return Operations(self.branches, self.integer * lanes, self.float * lanes, self.divisions * lanes)


def read_dump(
    dump: str,
    source: str,
    headers: Mapping[str, Type] = MappingProxyType({}),
) -> dict[str, list[Operations]]:
    """Return the operations of each counted basic block of each function, in the order of the dump.

    Where the source or the dump names vector types of the host, every operation counts as many times as the widest of
    them has lanes. No kernel that passes the screen names one.
    """
    names, pieces = Names.of(source, headers), _FUNCTION.split(dump)
    counted = _Counted(pieces[1::3], pieces[3::3])
    functions = [_Function(name, text, names, counted) for name, text in zip(pieces[1::3], pieces[3::3], strict=True)]
    width = lanes(source, {meaning for function in functions for meaning in function.types})
    blocks = ([block.times(width) for block in function.blocks()] for function in functions)
    return dict(zip(pieces[2::3], blocks, strict=True))


class _Counted:
    """The names of the functions in a dump, all of which are counted: the author's, and some of the headers'."""

    def __init__(self, names: Sequence[str], texts: Sequence[str]) -> None:
        self._text = "\n".join(names)
        self._words = frozenset(_WORD.findall(self._text))
        self._methods = "\n".join(name for name, text in zip(names, texts, strict=True) if " this" in _signature(text))
        self._method_words = frozenset(_WORD.findall(self._methods))
        # Names of operators are searched for in all names: each is looked up once.
        self.may_have = cache(self._may_have)
        self.may_be_method = cache(self._may_be_method)

    def _may_have(self, called: str) -> bool:
        """Return whether a function that is called by this name may be counted; constructors have no names and may."""
        if called.startswith("operator"):
            return called in self._text
        return called in self._words or not called[:1].isalpha() or called.startswith("OBJ_TYPE_REF")

    def _may_be_method(self, called: str) -> bool:
        """Return whether this may be a counted method, for which members of its object are free; no constructor is."""
        if called.startswith("operator"):
            return called in self._methods
        if called[:1].isalpha():
            return called.partition("<")[0] in self._method_words
        return not called.startswith(("__ct_", "__dt_", "__builtin_", "."))


class _Function:
    """A function in the dump: its statements, and the types of its variables, which decide about their prices."""

    def __init__(self, name: str, text: str, names: Names, counted: _Counted) -> None:
        self._names, self._counted = names, counted
        self._narrowest = 0 if name in _READING_HALVES else _NARROWEST_WORD
        head, _, self._body = text.partition("\n  <bb ")
        signature, _, variables = f"{head}\n".partition("\n{\n")
        declared = [*_parameters(_signature(signature)), *_VARIABLE.findall(variables)]
        self._types: dict[str, set[str]] = {}
        for meaning, variable in declared:
            self._types.setdefault(variable, set()).add(unqualified(meaning))
        self._known = {
            variable: {type_of(meaning, names.types) for meaning in meanings}
            for variable, meanings in self._types.items()
        }
        closures = self._types.get("__closure", ())
        is_operator = _CALLED.search(name) is not None
        self._is_lambda = is_operator and "this" not in self._types and len(closures) == 1
        self._statements = [_parsed(line) for line in self._body.splitlines()]
        self._computed: dict[str, str] = {}  # places that the block has computed for one access or call, and how

    @property
    def types(self) -> set[str]:
        """The types of all variables, as they are written."""
        return set[str]().union(*self._types.values())

    def blocks(self) -> list[Operations]:
        """Return the operations of each basic block that is counted."""
        blocks: list[Operations] = []
        for statement, fields in self._statements:
            if statement == "gimple_call" and fields[0].startswith(f"__builtin_{COUNTER}"):
                blocks.append(Operations())
                self._computed.clear()
            elif blocks:
                self._add(blocks[-1], statement, fields)
        return blocks

    def _add(self, block: Operations, statement: str, fields: list[str]) -> None:
        """Add the operations of a statement to those of its block."""
        if statement == "gimple_assign":
            self._add_assignment(block, fields)
        elif statement == "gimple_cond":
            block.branches += 1
            block.integer += sum(map(self._read, fields[1:]))
            if fields[2] != "0" or self._meanings(fields[1]) != {"bool"}:  # a truth value is not compared again
                self._add_operation(block, fields[1])
        elif statement == "gimple_switch":
            block.branches += 1
            block.integer += sum(each.startswith("case ") for each in fields).bit_length()
        elif statement == "gimple_call":
            self._add_call(block, fields)

    def _add_assignment(self, block: Operations, fields: list[str]) -> None:
        code, result, *operands = fields
        is_field = self._accesses_bit_field(code, fields[1:])
        block.integer += is_field
        if not (operands[0].startswith("{CLOBBER") or (code in _CONSTANTS and _PADDING.match(result))):
            block.integer += self._written(result, is_field)
        block.integer += self._read(operands[0], result if code in _READS else "", is_field)
        block.integer += self._makes_another(code, result, operands[0])
        block.integer += not is_field and self._is_cut(code, result, operands[0])
        if _THIS.match(result):  # of a method that is inlined
            block.integer += self._is_behind_pointer(operands[0])
        if code in _CASTS and not any(map(self._is_no_float, (result, operands[0]))):
            block.float += 1
        if code in ("pointer_plus_expr", "addr_expr") and self._uses[result] == 2:
            self._computed[result] = code
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
            block.integer += self._is_masked(code, result) and result not in self._masked_later

    def _add_call(self, block: Operations, fields: list[str]) -> None:
        name, result, *arguments = (each.rstrip("> ") for each in fields)
        is_field = self._accesses_bit_field("", [result])
        block.integer += is_field + self._written(result, is_field) + sum(map(self._read, arguments))
        block.integer += self._is_called_by_pointer(name, arguments)
        least, operations = _COMPUTING_METHODS.get(name, (len(fields), 0))
        if len(arguments) >= least:
            block.integer += operations
        elif name in _CONVERTING_CALLS:
            block.float += 1
        elif name in _SCALAR_CALLS:
            self._add_operation(block, result)
        elif name.startswith(("__builtin_", ".")) and name not in _FREE_CALLS:
            block.divisions += 1  # a root: kernels may call no other function of the compiler
        elif not self._counted.may_have(name):
            block.integer += self._may_be_pointer(result)

    def _makes_another(self, code: str, result: str, operand: str) -> bool:
        """Return whether a statement that moves a value makes another value of it, or a pointer that was none."""
        if code == "addr_expr":
            is_computed = _FROM_POINTER.match(operand) is not None and result not in self._objects
            return is_computed or self._is_in_union(operand)
        return self._is_made_pointer(code, result, operand) or code == "view_convert_expr"

    def _is_made_pointer(self, code: str, result: str, operand: str) -> bool:
        return code in _CASTS and self._may_be_pointer(result) and self._kinds(operand) != {Kind.POINTER}

    def _read(self, place: str, into: str = "", is_charged: bool = False) -> int:
        """Return the operations of reading an operand, into a register if the statement does nothing else.

        Variables, members of `this` and what a lambda has captured are free, other than pointers, what is read as
        another type, and numbers of less than 32 bits, which may be parts of others. What lies behind a pointer costs
        an operation, unless one is charged for the access already.
        """
        indices = len(_INDEXED.findall(place))
        if place.startswith("&"):
            return indices
        is_variable = _NAME.match(place) or (self._is_lambda and _CAPTURED.match(place))
        is_pointer = into != "" and self._may_be_pointer(into) and not is_variable
        known = indices + (is_pointer or self._is_in_union(place) or self._is_another_type(place))
        return known or (not is_charged and (self._is_pointed(place) or self._is_part(place, into)))

    def _written(self, place: str, is_charged: bool) -> int:
        """Return the operations of writing to memory: to an element, by a pointer, or as another type."""
        known = len(_INDEXED.findall(place)) + self._is_another_type(place)
        return known or (not is_charged and self._is_pointed(place))

    def _is_part(self, place: str, into: str) -> bool:
        """Return whether a register gets a number that may be a part of another, from a place that was not computed."""
        pointer = _POINTER.match(place)
        is_element = pointer is not None and self._computed.get(pointer[1]) == "pointer_plus_expr"
        numbers = (each for each in self._typed(into) if each.kind in (Kind.INTEGER, Kind.UNKNOWN))
        narrow = any(each.bits < self._narrowest for each in numbers)
        return narrow and not is_element

    def _is_called_by_pointer(self, name: str, arguments: Sequence[str]) -> bool:
        """Return whether a call is one of a method, or of a lambda, whose object lies behind a pointer."""
        if name == "operator()":  # of a closure, which may be one of many
            return bool(arguments) and _REGISTER.match(arguments[0]) is not None
        return self._counted.may_be_method(name) and self._is_behind_pointer(*arguments[:1])

    def _is_behind_pointer(self, place: str = "") -> bool:
        """Return whether the object at an address lies behind a pointer that is not charged already."""
        return self._may_be_pointer(place) and not self._is_free_pointer(place)

    def _is_pointed(self, place: str) -> bool:
        """Return whether an operand lies behind a pointer or a reference that is not charged already."""
        if not _POINTED.search(place):
            return False
        pointer = _POINTER.match(place)
        return pointer is None or not self._is_free_pointer(pointer[1])

    def _is_free_pointer(self, register: str) -> bool:
        is_closure = self._is_lambda and _CLOSURE.match(register)
        return bool(_THIS.match(register) or is_closure or register in self._captured or register in self._computed)

    @cached_property
    def _captured(self) -> frozenset[str]:
        """The registers with the places of variables that a lambda has captured by reference, or with its `this`."""
        if not self._is_lambda:
            return frozenset()
        return frozenset(
            result
            for code, result, operand, *_ in self._assignments
            if code == "component_ref"
            and _CAPTURED.match(operand)
            and (operand.endswith("->__this") or all(each.endswith("&") for each in self._meanings(result)))
        )

    @cached_property
    def _masked_later(self) -> frozenset[str]:
        """The registers that are used once, by arithmetic whose result is masked: they need no mask themselves."""
        found: set[str] = set()
        for code, result, *operands in self._assignments:
            if self._is_masked(code, result):
                found.update(operands if code in _MODULAR else operands[:1] if code == "lshift_expr" else ())
        return frozenset(register for register in found if self._uses[register] == 2)

    @cached_property
    def _assignments(self) -> list[list[str]]:
        return [fields for statement, fields in self._statements if statement == "gimple_assign"]

    @cached_property
    def _uses(self) -> Counter[str]:
        """How often each temporary register occurs: twice, if it is used once."""
        return Counter(_TEMPORARY.findall(self._body))

    def _is_masked(self, code: str, result: str) -> bool:
        """Return whether the result of an operation needs a mask, because it has 8 or 16 bits, or others of no word."""
        if code in _MOVES or code in _UNMASKED or code in _COMPARISONS or code in _DIVISIONS or code in _CONVERSIONS:
            return False
        return any(each.kind is Kind.INTEGER and each.bits not in _UNMASKED_BITS for each in self._typed(result))

    def _is_cut(self, code: str, result: str, operand: str) -> bool:
        """Return whether a cast may make a narrower integer of a number or a pointer, and no mask that follows does."""
        if code not in _CASTS or not any(map(self._is_no_float, (result, operand))) or result in self._masked_later:
            return False
        wide, narrow = ({each.bits for each in self._typed(register)} or {0} for register in (operand, result))
        return (0 in wide or max(wide) > min(narrow)) and not self._is_made_pointer(code, result, operand)

    def _is_another_type(self, operand: str) -> bool:
        """Return whether an operand is memory as another type than its variable or pointer has."""
        if "MEM" not in operand:
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
        for statement, fields in self._statements:
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
        kinds = {each.kind for each in self._typed(operand)}
        return kinds - {Kind.OBJECT} or {Kind.UNKNOWN}

    def _typed(self, operand: str) -> set[Type]:
        """Return what a number or a pointer that is no constant may be."""
        if operand.startswith("&"):
            return {Type(Kind.POINTER, POINTER_BITS)}
        return self._known.get(operand, set()) | self._known.get(_VERSION.sub("", operand), set())

    def _meanings(self, operand: str) -> set[str]:
        """Return the types of the variables of this name: several if scopes use it for different ones.

        `x_3` may be a version of `x`, or a variable of this name.
        """
        return self._types.get(operand, set()) | self._types.get(_VERSION.sub("", operand), set())


def _parsed(line: str) -> tuple[str, list[str]]:
    """Return the kind of a statement and its fields."""
    statement, _, fields = _REMARK.sub("", line.strip()).partition(" <")
    return statement, fields.split(", ")


def _signature(text: str) -> str:
    """Return the line before the body of a function in the dump."""
    return text.partition("\n{\n")[0].rpartition("\n")[2]


def _parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Yield type and name of each parameter in a line such as `int f (int x, float y)`."""
    pieces = _PARAMETER_END.split(signature)
    for text, end in zip(pieces[::2], pieces[1::2], strict=False):
        meaning, _, name = text.rpartition(" ")
        if end != "(" and meaning.strip() and name.replace("$", "_").isidentifier():
            yield meaning, name


def beyond_arrays(dump: str, version: int) -> Iterator[int]:
    """Yield each constant index beyond its array.

    The compiler leaves out whatever follows such an access, so that the dump does not fit the object file. Up to g++ 12
    the dump has the last index of the array, since then the number of elements.
    """
    for match in _CONSTANT_INDEX.finditer(dump):
        index, bound = map(int, match.groups())
        if not 0 <= index < bound + (version < _COUNTED_SINCE):
            yield index
