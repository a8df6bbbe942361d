"""Finds functions that are called as ones of another type, in the compiler's dump of the last intermediate form.

The compiler turns the call of a constant function pointer into a direct call, whatever casts it went through. Between
the arguments of such a call and the parameters of its function no statement stands that cuts a number, joins two or
takes one apart. It costs nothing unless it is found here. Memory is safe from such calls (assembly/guards.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernel_gym.hardware.ascend_sim.source_names import POINTER_BITS, Kind, Type, type_of, unqualified
from kernel_gym.hardware.host.launch_syntax import tokens

DUMP = "kernel.calls"
FLAGS = (f"-fdump-tree-optimized-raw-asmname={DUMP}",)

_FUNCTION = re.compile(r"^;; Function (.*) \((\S+), funcdef_no=\d+, ", re.MULTILINE)
_VARIABLE = re.compile(r"^  (\S.*?) ([\w.$#]+);$", re.MULTILINE)
_CALL = re.compile(r"^ +gimple_call <(.*)>(?: \[[\w -]*\])?$", re.MULTILINE)
#: The conversion of a narrow argument to a whole register, and its type there.
_WIDENED, _WHOLE = re.compile(r"^ +gimple_assign <nop_expr, (\S+), (\S+), NULL, NULL>$", re.MULTILINE), "int"
_VERSION = re.compile(r"(?<=\w)_\d+(?:\(D\))?$")
#: All that a pointer points to, with its type or by the type of the pointer.
_WHOLE_OBJECT = re.compile(r"MEM\[\(([^()]*[&*])\)[\w.$]+(?:\(D\))?\]|\*([\w.$]+(?:\(D\))?)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"-?\d[\d.]*(?:e[+-]\d+)?B?")
_DOUBLE_BITS = 64
_RESULT, _NOTHING = "<retval>", "NULL"
#: Classes of the C++ library that print alike and hold different things.
_TEMPLATES = frozenset({"array", "pair", "tuple"})
_CLASS_WORDS = frozenset({"struct", "class", "union"})
#: Words of a text that makes a function one of another type; it may do so without them, by types that are deduced.
_CASTS = frozenset({"reinterpret_cast", "__builtin_bit_cast", "bit_cast", "decltype"})
#: The type of an object, which no register holds.
_CLASS = re.compile(r"(?:struct|class|union) .*(?<![*&])")


@dataclass(frozen=True)
class _Signature:
    result: str
    parameters: Sequence[str]
    variables: Mapping[str, frozenset[str]]  # those of one name, in several scopes, may be of several types


def called_as_others(dump: str, source: str, types: Mapping[str, Type], functions: frozenset[str]) -> frozenset[str]:
    """Return the functions that are called with arguments, or for a result, of other types.

    Args:
        dump: The dump.
        source: The text that was compiled.
        types: What names of types mean.
        functions: The symbols of the functions that are looked at: the author's, which no header has declared.

    Returns:
        Their symbols.
    """
    pieces = _FUNCTION.split(dump)
    names = dict(zip(pieces[2::3], pieces[1::3], strict=True))
    texts = dict(zip(pieces[2::3], pieces[3::3], strict=True))
    signatures = {symbol: _signature(names[symbol], texts[symbol]) for symbol in functions & texts.keys()}
    alike = _printed_alike(source)
    return frozenset(
        called
        for symbol, signature in signatures.items()
        for called, result, arguments in _calls(texts[symbol])
        if called in signatures and not _fits(signatures[called], signature, result, arguments, types, alike)
    )


def _signature(name: str, text: str) -> _Signature:
    head, _, body = text.partition("\n{\n")
    line = head.rpartition("\n")[2]
    result, _, parameters = line.partition(f"{name} (")
    declared = [each.rpartition(" ") for each in parameters.rpartition(")")[0].split(", ") if each]
    variables: dict[str, frozenset[str]] = {_RESULT: frozenset([unqualified(result)])}
    own = _VARIABLE.findall(f"\n{body.partition('  <bb ')[0]}")
    for meaning, variable in [*own, *((meaning, variable) for meaning, _, variable in declared)]:
        variables[variable] = variables.get(variable, frozenset()) | {unqualified(meaning)}
    for wide, narrow in _WIDENED.findall(body):
        if _declared(wide, variables) == {_WHOLE}:
            variables[wide] = _declared(narrow, variables)
    return _Signature(result, [meaning for meaning, _, _ in declared], variables)


def _calls(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what is called, what the result becomes, and the arguments."""
    for call in (_STRING.sub('""', each) for each in _CALL.findall(text)):
        called, result, *arguments = call.split(", ") if ", " in call else (call, _NOTHING)
        yield called, result, arguments


def _fits(
    called: _Signature,
    caller: _Signature,
    result: str,
    arguments: Sequence[str],
    types: Mapping[str, Type],
    alike: frozenset[str] | None,
) -> bool:
    if len(arguments) != len(called.parameters):
        return False
    pairs = [*zip(arguments, called.parameters, strict=True)]
    if result != _NOTHING:
        pairs.append((result, called.result))
    return all(_is_of(operand, unqualified(meaning), caller.variables, types, alike) for operand, meaning in pairs)


def _is_of(
    operand: str,
    meaning: str,
    variables: Mapping[str, frozenset[str]],
    types: Mapping[str, Type],
    alike: frozenset[str] | None,
) -> bool:
    """Return whether an operand is certainly of a type."""
    expected = type_of(meaning, types)
    if operand.startswith(("&", '"')):
        return expected.kind is Kind.POINTER
    if _LITERAL.fullmatch(operand):
        return expected.kind is not Kind.OBJECT
    declared = _declared(operand, variables)
    if expected.kind is Kind.OBJECT and alike is None:
        return all(type_of(each, types).kind in (Kind.OBJECT, Kind.UNKNOWN) for each in declared)
    if expected.kind is Kind.OBJECT and alike is not None:
        return declared == {meaning} and meaning.rpartition(" ")[2] not in alike
    known = {_word(each, types) for each in declared}
    return declared == {meaning} or known == {_word(meaning, types)} != {Type(Kind.UNKNOWN)}


def _declared(operand: str, variables: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the types that a variable or a register may have; none if it is neither."""
    if operand in variables:
        return variables[operand]
    if whole := _WHOLE_OBJECT.fullmatch(operand):
        pointed = [whole[1]] if whole[1] else _declared(whole[2], variables)
        return frozenset(unqualified(each.rstrip("*& ")) for each in pointed)
    name, is_register = _VERSION.subn("", operand)
    return frozenset(each for each in variables.get(name, ()) if is_register and not _CLASS.fullmatch(each))


def _word(meaning: str, types: Mapping[str, Type]) -> Type:
    """Return a type, an integer for a pointer: each becomes the other without a statement."""
    known = type_of(meaning, types)
    if known.kind is Kind.POINTER:
        return Type(Kind.INTEGER, POINTER_BITS)
    return Type(Kind.FLOAT, _DOUBLE_BITS) if meaning == "double" else known


def _printed_alike(source: str) -> frozenset[str] | None:
    """Return the names of classes that may be several: templates, and those that are defined more than once.

    None in a text that casts no functions, as far as words can tell: there objects may have names that are aliases.
    """
    words = [token.text for token in tokens(source)]
    if _CASTS.isdisjoint(words) and ("(", "*", ")") not in zip(words, words[1:], words[2:], strict=False):
        return None
    defined = Counter[str]()
    for before, word, name, behind in zip(["", *words], words, words[1:], words[2:], strict=False):
        if word in _CLASS_WORDS and behind in ("{", ":", "<", "final"):
            defined[name] += 2 if before == ">" or behind == "<" else 1
    return _TEMPLATES | {name for name, number in defined.items() if number > 1}
