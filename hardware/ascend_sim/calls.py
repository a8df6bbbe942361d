"""Finds calls of a function as one of another type, in the compiler's dump of its last intermediate form.

A function that takes or returns a large object gets its address in a register. Called as one of another type, it gets a
number there, and no guard looks at what lies at this place. The compiler makes a plain call of a constant pointer to a
function, whatever casts it went through, so neither the text nor the instructions show it. The dump has the parameters
of each function and the arguments of each call: an object is a variable or lies in memory, and everything else is a
register, a constant or an address.

Methods cannot be cast. For other functions the types of objects are compared, too: an object of two words is passed in
registers. The dump shows neither the types of members nor which names are aliases of one type. Functions that the text
only calls cannot have been cast, so the types of their objects are not compared.

A function with the linkage of C can be declared with different parameters in two namespaces. The compiler warns of it,
and calls of the declaration without a body are refused here. Only functions of the headers and the compiler have no
body in the dump, and constructors, whose bodies have other numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kernel_gym.hardware.ascend_sim import gimple

_HEADER = re.compile(r"(.*) \((\S+), funcdef_no=\d+, decl_uid=(\d+), ")
_OBJECT = re.compile(r"(?:(?:static|const|volatile) )*(?:struct|union) \S*?D\.(\d+)(?= [^*&( ]|$)")
_NOTHING = re.compile(r"(?:static )?voidD\.\d+(?= [^*&( ]|$)")
_OF_METHOD = re.compile(r"[^,]*\* const thisD\.\d+$")
_VARIABLE = re.compile(r"^  (\S.*?) (?:[^\s()]*?D\.)(\d+)(?: = .*)?;$", re.MULTILINE)
_PARAMETER = re.compile(r"(.*) [^\s()]*?D\.(\d+)$")
#: A register that is no variable, with its type; and a register of a variable, which the dump declares by its number.
_POINTER = re.compile(r"^  (.*[^ ]) [*&](?: const)?(?: restrict)? ([\w.$#]+);$", re.MULTILINE)
_REGISTER = re.compile(r"[\w.$#]*_\d+(?:\((?:D|ab)\))*$")
_SCALAR = re.compile(rf'(?:{_REGISTER.pattern}|-?\d[\w.+-]*$|&|")')
_CALLED = re.compile(r"D\.(\d+)(?: \(|$)")
#: A function without a body that may be called: one of the compiler or of the headers, whose names no author may use.
_OUTSIDE = re.compile(r"(?:.* = )?(?:__builtin_|asc_)\w+$")
_NUMBERED = re.compile(r"[^\s()>.*&\[]*D\.(\d+)$")
_POINTED = re.compile(r"\*([\w.$#]+)(?:\((?:D|ab)\))?$")
_RESULT = "<retval>"
_OF_TYPE = re.compile(r"MEM\[\((.*) [*&]\)[^()]*(?:\((?:D|ab)\))?\]$")
#: The name of a function behind its scopes, without the arguments of a template.
_NAME = re.compile(r"(?:.*[^\w])?(\w+)")
_REMARK = re.compile(r"(?<=;) \[[\w -]*\]$")
#: The name of a lambda that was converted to a pointer.
_LAMBDA = "_FUN"
#: How a letter can be spelled in another way. In a text with one of these, any name may be used as a value.
_ESCAPES = ("\\u", "\\U")
_ESCAPE = re.compile(r"\\[uU]")
_LONGEST_ARGUMENTS = 200
#: The functions of the headers that launch a kernel: its arguments lie in an object, and it is an argument itself. No
#: author may use their namespace.
_LAUNCHERS = ("asc::launcher<", "asc::Launcher<")


class _Signature(NamedTuple):
    """What a function takes and returns: the number of an object's type, or None."""

    is_method: bool
    is_called_only: bool
    result: str | None
    is_void: bool
    parameters: list[str | None]


class _Function(NamedTuple):
    name: str
    is_launcher: bool
    signature: _Signature
    types: dict[str, str]
    pointees: dict[str, str]
    body: str


def mistyped(dump: str, source: str) -> str | None:
    """Return the name of a function that calls one as if it were of another type; None if there is none.

    Args:
        dump: The compiler's dump of the text.
        source: The text that was compiled.
    """
    functions = dict(_functions(dump, _values(source)))
    for function in functions.values():
        if not function.is_launcher and any(_mistyped(function, functions)):
            return function.name
    return None


def _values(source: str) -> set[str]:
    """Return the names in a text that are used as values somewhere: no call and no launch follows them."""
    values = {_LAMBDA, *_ESCAPE.findall(source)}
    for name in re.finditer(r"[A-Za-z_]\w*", source):
        end = name.end()
        if source[end : end + 1].isspace():
            end = next((place for place in range(end, len(source)) if not source[place].isspace()), len(source))
        if source[end : end + 1] == "<" and source[end : end + 3] != "<<<":
            end = _behind_angles(source, end)
        if source[end : end + 1] != "(" and source[end : end + 3] != "<<<":
            values.add(name[0])
    return values


def _behind_angles(source: str, begin: int) -> int:
    """Return the place behind the arguments of a template, or `begin` if these are none."""
    depth = 0
    for place in range(begin, min(begin + _LONGEST_ARGUMENTS, len(source))):
        depth += (source[place] == "<") - (source[place] == ">")
        if depth == 0:
            rest = source[place + 1 : place + 1 + _LONGEST_ARGUMENTS]
            return place + 1 + len(rest) - len(rest.lstrip())
        if source[place] in "();{}":  # an expression, in which `>` may be a comparison
            break
    return begin


def _functions(dump: str, values: set[str]) -> Iterator[tuple[str, _Function]]:
    for text, (name, body) in zip(dump.split(gimple.FUNCTION)[1:], gimple.bodies(dump), strict=True):
        header = _HEADER.match(text)
        if header is None:
            continue
        head = text.partition("\n  <bb ")[0]
        before, _, variables = f"{head}\n".partition("\n{\n")
        signature = before.rpartition("\n")[2]
        returned, _, listed = signature.partition(f"D.{header[3]} (")
        parameters = _split(listed.removesuffix(")"))
        result = _OBJECT.match(returned)
        is_method = _OF_METHOD.match(parameters[0]) is not None if parameters else False
        types = {number: _type(meaning) for meaning, number in _VARIABLE.findall(variables)}
        types |= {found[2]: _type(found[1]) for each in parameters if (found := _PARAMETER.match(each))}
        pointees = {register: _type(meaning) for meaning, register in _POINTER.findall(variables)}
        yield (
            header[3],
            _Function(
                name,
                header[1].startswith(_LAUNCHERS),
                _Signature(
                    is_method or header[1].endswith("operator()"),
                    (found := _NAME.fullmatch(_without_arguments(header[1]))) is not None
                    and values.isdisjoint((found[1], *_ESCAPES)),
                    result[1] if result else None,
                    _NOTHING.match(returned) is not None,
                    [found[1] if (found := _OBJECT.match(each)) else None for each in parameters],
                ),
                types,
                pointees,
                body,
            ),
        )


def _without_arguments(name: str) -> str:
    """Return the name of a function without the arguments of a template at its end."""
    depth = 0
    for place in range(len(name) - 1, -1, -1) if name.endswith(">") else ():
        depth += (name[place] == ">") - (name[place] == "<")
        if depth == 0:
            return name[:place]
    return name


def _type(meaning: str) -> str:
    """Return the number of an object's type; empty for other types."""
    found = _OBJECT.fullmatch(meaning)
    return found[1] if found else ""


def _mistyped(caller: _Function, functions: dict[str, _Function]) -> Iterator[str]:
    for line in caller.body.splitlines():
        statement = _REMARK.sub("", line.strip())
        for called in _CALLED.finditer(statement):
            if called[1] in functions and statement.endswith(");"):
                to, assigned, _ = statement[: called.start()].partition(" = ")
                arguments = _split(statement[called.end() : -2])
                is_right = _fits(caller, functions[called[1]].signature, to if assigned else "", arguments)
            elif called[0].endswith("("):
                is_right = _has_body_elsewhere(statement[: called.start()])
            else:
                continue
            if not is_right:
                yield statement
            break


def _has_body_elsewhere(name: str) -> bool:
    """Return whether a function without a body may be called. Before its name there may be what its result becomes."""
    if _OUTSIDE.match(name):
        return True
    scope, _, last = _without_arguments(name).rpartition("::")
    owner = _NAME.fullmatch(_without_arguments(scope))
    return last.startswith("~") or (owner is not None and owner[1] == last)


def _fits(caller: _Function, called: _Signature, to: str, arguments: list[str]) -> bool:
    if len(arguments) != len(called.parameters) or (called.is_void and to):
        return False
    if to and (called.result is None) != (_REGISTER.match(to) is not None):
        return False
    kinds = zip(called.parameters, arguments, strict=True)
    if any((wanted is None) != (_SCALAR.match(given) is not None) for wanted, given in kinds):
        return False
    if called.is_method or called.is_called_only:
        return True
    objects = zip([called.result, *called.parameters], [to, *arguments], strict=True)
    return all(_type_of(caller, given) == wanted for wanted, given in objects if wanted)


def _type_of(caller: _Function, place: str) -> str:
    """Return the number of the type of a variable, or of what a pointer points to; empty if it is not known."""
    if place == _RESULT:
        return caller.signature.result or ""
    if found := _NUMBERED.match(place):
        return caller.types.get(found[1], "")
    if found := _POINTED.match(place):
        return caller.pointees.get(found[1], "")
    if found := _OF_TYPE.match(place):
        return _type(found[1])
    return ""


def _split(text: str) -> list[str]:
    """Return what commas separate that are not within brackets."""
    pieces, depth, begin = [], 0, 0
    plain = text.replace("->", "..")
    for place, character in enumerate(plain):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            pieces.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*pieces, last] if last else pieces
