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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.host.launch_syntax import Token, tokens

DUMP = "kernel.gimple"
#: The file of operations has the name of the object file and this.
SUFFIX = ".operations"
#: Flags that make the compiler write the dump and the linker keep the relocations.
FLAGS = (f"-fdump-tree-sancov_O0-raw={DUMP}", "-Wl,--emit-relocs")

_COUNTER = "__sanitizer_cov_trace_pc"
#: Elf64_Rela. On both supported machines a call ends four bytes after the place that its relocation names.
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_CALL_BYTES = 4

#: Statements that move or name a value, or read its bits as another type. Those that access a bit-field, or convert
#: between types of floating point, cost an operation nevertheless.
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

_INTEGER_WORDS = frozenset(
    ["unsigned", "signed", "int", "long", "short", "char", "bool", "sizetype", "ssizetype", "bitsizetype"]
)
_INTEGERS = frozenset(
    [
        *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *["size_t", "ptrdiff_t", "uintptr_t", "intptr_t", "wchar_t", "char16_t", "char32_t", "byte", "TEventID"],
    ]
)
#: Vector types of the host as the compiler writes them, and its names for them, some of which do not tell their lanes.
_VECTOR = re.compile(
    r"\bvector\((?P<lanes>\d{1,9})\)|\b__[A-Z][a-z]+\d+x(?P<named>\d{1,9})_t\b|\b__(?:SV|m\d)\w*|\bvector_size\b"
)
_SIZED = re.compile(r"(?:__attribute__|__attribute|\[\s*\[)[^;]{0,200}?\b_*(vector_size)")
_MOST_LANES = 256
_QUALIFIERS = re.compile(r"\b(?:const|volatile|static|register|typename|std::|AscendC::)\s*|::")
#: What stands before the first word of a declaration.
_BEFORE_STATEMENT = frozenset({*";{}()", "using", "typedef"})
#: Most names of types that stand for each other in a row; those beyond count as floating-point.
_LONGEST_CHAIN = 64
#: The check of an index that is a constant, and the end of its array: the number of elements since this g++.
_COUNTED_SINCE = 13
_CONSTANT_INDEX = re.compile(r"gimple_call <\.UBSAN_BOUNDS, NULL, 0B, (-?\d+), (\d+)>")
_FUNCTION = re.compile(r"^;; Function .*\((\S+), funcdef_no=\d+, ", re.MULTILINE)
_VARIABLE = re.compile(r"^  (\S.*?) ([\w.$]+);$", re.MULTILINE)
_PARAMETER_END = re.compile(r"([,()])")
_VERSION = re.compile(r"_\d+(?:\(D\))?$")
_LITERAL = re.compile(r"-?\d[\d.]*(e[+-]\d+)?$")
_INDEXED = re.compile(r"\[(?![\d(])")
#: The type of a bit-field, and the member at the end of an operand. Fields of whole words have the types of words.
_NARROW = re.compile(r"<unnamed-(?:un)?signed:(?!(?:8|16|32|64)>)")
_MEMBER = re.compile(r"(?:\.|->)([A-Za-z_$][\w$]*)$")


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


def aliases(source: str) -> dict[str, bool]:
    """Return the names that a source gives to types, and whether each is, or may be, a floating-point type."""
    meanings = _meanings(source)
    known: dict[str, bool] = {}
    for _ in range(min(len(meanings), _LONGEST_CHAIN)):
        resolved: dict[str, bool] = {}
        for name, meaning in meanings:
            resolved[name] = resolved.get(name, False) or (meaning != "enum" and _is_float(meaning, known))
        if resolved == known:
            break
        known = resolved
    return known


def bit_fields(source: str) -> frozenset[str]:
    """Return the names that may be those of bit-fields: the words before a colon that is no label's and no choice's.

    Others may be among them, such as the names of classes that have a base.
    """
    names: set[str] = set()
    here, around = _Statement("{"), list[_Statement]()
    for word in tokens(source):
        if word.text in ("(", "[", "{"):
            around.append(here)
            here = _Statement(word.text)
        elif word.text in (")", "]", "}"):
            here = around.pop() if around else _Statement("{")
            if word.text == "}":
                here.words, here.lone = [], False
        elif word.text == ";":
            here = _Statement(here.bracket)
        elif word.text == "?":
            here.choices += 1
        elif word.text == "," and not here.choices:
            here.words, here.lone = [], False
        elif word.text == ":" and here.choices:
            here.choices -= 1
        elif word.text == ":" and here.bracket == "{":
            if here.is_label:
                here = _Statement(here.bracket)
            else:
                names.update(here.words)
                here.words, here.lone = [], False
        elif word.kind == "word":
            here.words.append(word.text)
    return frozenset(names)


@dataclass
class _Statement:
    """What has been read of a statement, or of what stands in brackets.

    `choices` are question marks without their colons; `lone` says that a single word before a colon is a label.
    """

    bracket: str
    words: list[str] = field(default_factory=list)
    choices: int = 0
    lone: bool = True

    @property
    def is_label(self) -> bool:
        """Whether a colon that follows ends a label."""
        return (self.lone and len(self.words) == 1) or "case" in self.words


def read_dump(dump: str, source: str) -> dict[str, list[Operations]]:
    """Return the operations of each counted basic block of each function, in the order of the dump.

    Where the source or the dump names vector types of the host, every operation counts as many times as the widest of
    them has lanes. No kernel that passes the screen names one.
    """
    names, fields, pieces = aliases(source), bit_fields(source), _FUNCTION.split(dump)
    parts = [text.partition("\n  <bb ") for text in pieces[2::2]]
    functions = [_Function(head, names, fields) for head, _, _ in parts]
    types = [meaning for _, meaning in _meanings(source)] + _SIZED.findall(source)
    lanes = max([_widest(types), *(_widest(function.types) for function in functions)])
    blocks = (_blocks(function, body, lanes) for function, (_, _, body) in zip(functions, parts, strict=True))
    return dict(zip(pieces[1::2], blocks, strict=True))


def _meanings(source: str) -> list[tuple[str, str]]:
    """Return the names that a source gives to types, each with the text of its type.

    A declaration that is not understood gives `?`, which may be a floating-point type, to every name in it.
    """
    words = tokens(source)
    meanings: list[tuple[str, str]] = []
    for index, word in enumerate(words):
        if word.text == "enum":
            names = [w.text for w in words[index + 1 : index + 3] if w.text not in ("class", "struct")]
            meanings += [(names[0], "enum")] if names else []
        elif word.text == "using":
            meanings += _alias(source, _statement(words, index + 1))
        elif word.text == "typedef":
            begin = next((i + 1 for i in range(index - 1, -1, -1) if words[i].text in _BEFORE_STATEMENT), 0)
            statement = [*words[begin:index], *_statement(words, index + 1)]
            meanings += _typedefs(source, statement, first=begin == index)
    return meanings


def _statement(words: Sequence[Token], begin: int) -> list[Token]:
    """Return the words up to a semicolon that is not in braces, or to another such statement."""
    depth = 0
    for end in range(begin, len(words)):
        depth += {"{": 1, "}": -1}.get(words[end].text, 0)
        if depth < 0 or (words[end].text == ";" and depth == 0) or words[end].text in ("using", "typedef"):
            return list(words[begin:end])
    return list(words[begin:])


def _alias(source: str, statement: Sequence[Token]) -> list[tuple[str, str]]:
    equals = next((i for i, word in enumerate(statement) if word.text == "="), 0)
    meaning = _plain_text(source, statement[equals + 1 :])
    return [(statement[0].text, meaning or "?")] if equals else []


def _typedefs(source: str, statement: Sequence[Token], first: bool) -> list[tuple[str, str]]:
    """Return what a typedef declares; `first` says that the word itself begins the declaration."""
    meaning = _plain_text(source, statement[:-1])
    simple = first and meaning and all(word.text not in (",", "[", "]", "alignas") for word in statement)
    if simple and statement[-1].kind == "word":
        return [(statement[-1].text, meaning)]
    names = {word.text for word in statement if word.kind == "word"}
    return [(name, "?") for name in sorted(names - _INTEGER_WORDS)]


def _plain_text(source: str, words: Sequence[Token]) -> str:
    """Return the text of a type; empty if it has parentheses or braces."""
    if not words or any(word.text in ("(", ")", "{", "}") for word in words):
        return ""
    return source[words[0].start : words[-1].end].replace(" :: ", "::")


def _widest(meanings: Iterable[str]) -> int:
    """Return the lanes of the widest vector type of the host among types; 1 if there is none."""
    vectors = [match for meaning in meanings for match in _VECTOR.finditer(meaning)]
    return max((int(match["lanes"] or match["named"] or _MOST_LANES) for match in vectors), default=1)


def _blocks(function: _Function, body: str, lanes: int) -> list[Operations]:
    blocks: list[Operations] = []
    for line in body.splitlines():
        kind, _, rest = line.strip().partition(" <")
        if not kind.startswith("gimple_"):
            continue
        fields = rest.split(", ")
        if kind == "gimple_call" and fields[0].startswith(f"__builtin_{_COUNTER}"):
            blocks.append(Operations())
        elif blocks:
            function.add(blocks[-1], kind, fields)
    return blocks if lanes == 1 else [each.times(lanes) for each in blocks]


class _Function:
    """The types of a function's variables, which decide whether an operation is one of floating point.

    `fields` are names of bit-fields.
    """

    def __init__(self, head: str, names: Mapping[str, bool], fields: frozenset[str]) -> None:
        self._names, self._fields = names, fields
        signature, _, variables = head.partition("\n{\n")
        declared = [*_parameters(signature.rpartition("\n")[2]), *_VARIABLE.findall(variables)]
        self._types: dict[str, set[str]] = {}
        for meaning, name in declared:
            self._types.setdefault(name, set()).add(_QUALIFIERS.sub("", meaning).strip())

    @property
    def types(self) -> set[str]:
        """The types of all variables, as they are written."""
        return set[str]().union(*self._types.values())

    def add(self, block: Operations, kind: str, fields: list[str]) -> None:
        """Add the operations of a statement to those of its block."""
        if kind == "gimple_assign":
            self._add_assignment(block, fields)
        elif kind == "gimple_cond":
            block.branches += 1
            if fields[2] != "0" or self._meanings(fields[1]) != {"bool"}:  # a truth value is not compared again
                self._add_operation(block, fields[1:3])
        elif kind == "gimple_switch":
            block.branches += 1
            block.integer += sum(each.startswith("case ") for each in fields).bit_length()
        elif kind == "gimple_call":
            self._add_call(block, fields)

    def _add_assignment(self, block: Operations, fields: list[str]) -> None:
        code, result, *operands = fields
        block.integer += sum(len(_INDEXED.findall(each)) for each in fields[1:])
        block.integer += self._accesses_bit_field(code, fields[1:])
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
            self._add_operation(block, operands[:2] if code in _COMPARISONS else [result, *operands[:2]])

    def _add_call(self, block: Operations, fields: list[str]) -> None:
        name = fields[0].rstrip("> ")
        block.integer += self._accesses_bit_field("", fields[1:2])
        if len(fields) - 2 >= _COMPUTING_METHODS.get(name, len(fields)):  # behind the name and the result
            block.integer += 1
        elif name in _CONVERTING_CALLS:
            block.float += 1
        elif name in _SCALAR_CALLS:
            self._add_operation(block, fields[1:2])
        elif name.startswith(("__builtin_", ".")) and name not in _FREE_CALLS:
            block.divisions += 1  # a root: kernels may call no other function of the compiler

    def _accesses_bit_field(self, code: str, operands: Sequence[str]) -> bool:
        """Return whether a statement, its result before its operands, reads or writes a bit-field or cuts for one."""
        if code == "bit_field_ref" or (self._fields and any(map(self._is_bit_field, operands))):
            return True
        narrow = [self._is_narrow(operand) for operand in operands[:2]]
        return code in _MOVES and (narrow[0] or (code == "ssa_name" and narrow[1]))

    def _is_bit_field(self, operand: str) -> bool:
        member = _MEMBER.search(operand.rstrip("> "))
        return member is not None and member[1] in self._fields

    def _is_narrow(self, operand: str) -> bool:
        return any(_NARROW.match(meaning) for meaning in self._meanings(operand))

    def _is_no_float(self, operand: str) -> bool:
        literal = _LITERAL.match(operand)
        known = {literal[1] is not None} if literal else {_known(each, self._names) for each in self._meanings(operand)}
        return known == {False}

    def _add_operation(self, block: Operations, operands: Iterable[str]) -> None:
        if self._computes_float(operands):
            block.float += 1
        else:
            block.integer += 1

    def _computes_float(self, operands: Iterable[str]) -> bool:
        """Return whether operands of one type are floating-point; they are if their type has no known meaning."""
        for operand in operands:
            literal = _LITERAL.match(operand)
            if literal:
                return literal[1] is not None
            known = {_known(meaning, self._names) for meaning in self._meanings(operand)}
            if len(known) == 1 and None not in known:
                return True in known
        return True

    def _meanings(self, operand: str) -> set[str]:
        """Return the types of the variables of this name: several if scopes use it for different ones.

        `x_3` may be a version of `x`, or a variable of this name.
        """
        return self._types.get(operand, set()) | self._types.get(_VERSION.sub("", operand), set())


def _parameters(signature: str) -> Iterator[tuple[str, str]]:
    """Yield type and name of each parameter in a line such as `int f (int x, float y)`."""
    pieces = _PARAMETER_END.split(signature)
    for text, end in zip(pieces[::2], pieces[1::2], strict=False):
        meaning, _, name = text.rpartition(" ")
        if end != "(" and meaning.strip() and name.replace("$", "_").isidentifier():
            yield meaning, name


def _is_float(meaning: str, names: Mapping[str, bool]) -> bool:
    return _known(meaning, names) is not False


def _known(meaning: str, names: Mapping[str, bool]) -> bool | None:
    """Return whether a type is floating-point, or None if its name has no known meaning."""
    if _is_pointer(meaning) or meaning.startswith("<unnamed-"):
        return False
    plain = _QUALIFIERS.sub("", meaning).strip()
    if plain in ("float", "double", "long double", "float32_t"):
        return True
    own = names.get(plain.removeprefix("enum "))
    if own is None and (plain in _INTEGERS or _INTEGER_WORDS.issuperset(plain.split())):
        return False
    return own


def _is_pointer(meaning: str) -> bool:
    return "*" in meaning or "&" in meaning


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
