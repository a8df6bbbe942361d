"""Finds calls whose arguments may not be those that the called function takes, in the compiler's first SSA form.

The trees of the front end show the type of each call, but not what is in `&`, `|` and `^` of comparisons and in some
other expressions. The SSA form shows all calls of a function, but a cast of the called function is gone. So the number
of arguments is compared with the number of parameters, and each argument must be an object of the parameter's type, a
real number of its type, or an integer or address. Methods cannot be cast, and authors cannot write the names of the
runtime's own functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend_sim import gimple
from kernel_gym.hardware.ascend_sim.symbol_table import WRAPPED

DUMP = "kernel.ssa"
FLAGS = (f"-fdump-tree-ssa-uid={DUMP}",)

_FUNCTION = re.compile(r"(.*) \((\S+), funcdef_no=\d+, decl_uid=(\d+), .*\n((?:.*\n)*?)\{\n")
_RESULT = re.compile(r"(?:.*\n)*?(?!__attribute__)(.*?D\.\d+(?: [*&])*) ")
_LOCAL = re.compile(r"^  (\S.*) (\S+);$", re.MULTILINE)
_LEFT, _CALL = re.compile(r" +(.+?) =(?:\{v\})? "), re.compile(r"([\w$]*)D\.(\d+) \(")
#: Names that authors cannot write, and the name or first parameter of a method, which cannot be cast.
_OF_RUNTIME = re.compile(r"(?:AscendC::)?asc_|asc::")
_METHOD = re.compile(r".*::operator\(\)$|.* const thisD\.\d+$")
#: The end of the symbol of a function whose last parameter is the line of its caller.
_AT = "N3asc2AtE"
#: A version of a variable, an integer or address, and a real number.
_VERSION = re.compile(r"(.*[^.])_\d+(?:\(D\))?")
_WORDS, _REALS = re.compile(r'-?\d+B?|&.*|""'), re.compile(r"[-+]*(?:\d+\.\d+(?:e[+-]\d+)?|Inf|Nan)")
#: Kinds of values. The kind of any other value is the name of its type.
_WORD, _REAL = "word", "real"
_CONSTANT_TYPE = re.compile(r"(?:float|double)D\.\d+")
_ADDRESS, _NUMBER_TYPE = re.compile(r"[*&)](?: const| volatile| restrict)*$"), re.compile(r"[\w ]+D\.(\d+)")
_NOT_A_WORD = re.compile("struct |union |void|float|double|complex|vector", re.IGNORECASE)


def mismatched(dump: str, callers: Collection[str] | None) -> str | None:
    """Return the symbol of a function with a call whose arguments may not be those that the called function takes.

    Args:
        dump: The dump of the first SSA form.
        callers: The symbols of the functions to look at; None for all functions.
    """
    texts = dump.split(gimple.FUNCTION)[1:]
    headers = _Headers(texts)
    functions = {function.number: function for function in (_Function(text, headers) for text in texts)}
    for caller in functions.values():
        if callers is None or caller.symbol in callers:
            for result, name, number, arguments in _calls(caller.statements):
                called = functions.get(number)
                if called is None and name.removeprefix("__builtin_") in WRAPPED and len(arguments) != 3:
                    return caller.symbol
                if called is not None and called.is_free and not called.takes(caller, result, arguments):
                    return caller.symbol
    return None


class _Headers:
    """What the dump tells of the headers: their types have lower numbers than those of the author."""

    def __init__(self, texts: list[str]) -> None:
        self.last, self.line_of_caller = 0, ""
        for name, symbol, number, declared, _ in map(_parts, texts):
            if symbol.endswith(_AT):
                self.line_of_caller = _parameters(declared, number)[-1][0]
            if _OF_RUNTIME.match(name) and "<" not in name:
                self.last = max(self.last, int(number))

    def kind(self, declaration: str) -> str:
        """Return the kind of a type."""
        name = re.sub(r"^(?:(?:const|volatile) )+", "", declaration)
        if name == self.line_of_caller or _ADDRESS.search(name):
            return _WORD
        number = _NUMBER_TYPE.fullmatch(name)
        is_integer = number is not None and int(number[1]) <= self.last and not _NOT_A_WORD.search(name)
        return _WORD if is_integer else name


class _Function:
    """A function in the dump: its declaration, the kinds of its variables, and its statements."""

    def __init__(self, text: str, headers: _Headers) -> None:
        name, self.symbol, self.number, declared, rest = _parts(text)
        listed = _parameters(declared, self.number)
        first = " ".join(listed[0]) if listed else ""
        self.is_free = not (_OF_RUNTIME.match(name) or _METHOD.match(name) or _METHOD.match(first))
        result = _RESULT.match(declared)
        self.result = headers.kind(result[1]) if result else _WORD
        self.parameters = [headers.kind(declaration) for declaration, _ in listed]
        local, _, body = gimple.without_literals(rest).partition("  <bb ")
        self.statements = body.splitlines()
        self.variables: dict[str, set[str]] = {"<retval>": {self.result}}
        for declaration, variable in [*listed, *_LOCAL.findall(local)]:
            for each in {variable, variable.rpartition("D.")[0]} - {""}:
                self.variables.setdefault(each, set()).add(headers.kind(declaration))

    def takes(self, caller: _Function, result: str, arguments: list[str]) -> bool:
        """Return whether a call has the kind of result and the kinds of arguments that the declaration says."""
        is_used = result or self.result.startswith(("struct ", "union "))
        if (is_used and caller.kind(result) != self.result) or len(arguments) != len(self.parameters):
            return False
        kinds = zip(self.parameters, map(caller.kind, arguments), strict=True)
        return all(
            declared == given or (given == _REAL and _CONSTANT_TYPE.fullmatch(declared)) for declared, given in kinds
        )

    def kind(self, value: str) -> str | None:
        """Return the kind of a value in a statement; None if it is not known."""
        if _WORDS.fullmatch(value):
            return _WORD
        if _REALS.fullmatch(value):
            return _REAL
        version = _VERSION.fullmatch(value)
        kinds = self.variables.get(value) or self.variables.get(version[1] if version else value, set())
        return next(iter(kinds)) if len(kinds) == 1 else None


def _parts(text: str) -> tuple[str, str, str, str, str]:
    """Return the name, the symbol, the number and the declaration of a function, and the text behind them."""
    head = _FUNCTION.match(text)
    if head is None:
        raise InfrastructureError(f"a function in the compiler's dump cannot be read: {text[:80]}")
    return head[1], head[2], head[3], head[4], text[head.end() :]


def _parameters(declared: str, number: str) -> list[tuple[str, str]]:
    """Return the types and names of the parameters of a function."""
    listed = _listed(declared.partition(f"D.{number} (")[2])
    return [(kind, name) for kind, _, name in (parameter.rpartition(" ") for parameter in listed)]


def _calls(statements: list[str]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield for each possible call the variable of its result, the function's name and number, and the arguments."""
    for statement in statements:
        left = _LEFT.match(statement)
        for call in _CALL.finditer(statement):
            yield left[1] if left else "", call[1], call[2], _listed(statement[call.end() :])


def _listed(text: str) -> list[str]:
    """Return the elements of a list that ends with a parenthesis."""
    depth, start, elements = 0, 0, []
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0 or (depth == 0 and character == ","):
            elements.append(text[start:place].strip())
            start = place + 1
        if depth < 0:
            break
    return [] if elements == [""] else elements
