"""The strings that a Python file assigns to names, computed from its syntax tree: nothing of the file runs.

A file that ran could take its kernel from elsewhere, for example from this package.
"""

from __future__ import annotations

import ast
import json
import operator
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from kernel_gym.errors import BundleError

READ = "literals, names, +, f-strings without formats, join, replace, strip, textwrap.dedent and json.dumps are read"
#: So many times the characters of the longest string may be written on the way to all of them.
_TIMES = 20
_MOST_INTEGER, _MOST_INDENT = 1 << 63, 8
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_STRIPPED = {"strip": str.strip, "lstrip": str.lstrip, "rstrip": str.rstrip}


class _NotRead(Exception):
    """Raised at an expression that is not understood."""


def strings(tree: ast.Module, names: Collection[str], most: int) -> dict[str, str]:
    """Return the strings that a file assigns to these names.

    Args:
        tree: The file.
        names: The names; one that is not assigned is left out.
        most: Most characters of a string.

    Raises:
        BundleError: If one of them is assigned in a way that is not understood.
    """
    reader = _Reader(most)
    for statement in tree.body:
        reader.read(statement)
    for name in names:
        if name in reader.lines and not isinstance(reader.values.get(name), str):
            message = f"{name} is computed: write it out as a string, because nothing of the file runs ({READ})"
            raise BundleError(message, reader.lines[name])
    return {name: text for name in names if isinstance(text := reader.values.get(name), str)}


class _Reader:
    """Reads the statements of a file in their order.

    Attributes:
        values: The values of names.
        lines: The line at which each name was last assigned.
    """

    def __init__(self, most: int) -> None:
        self.values: dict[str, str | int | float] = {}
        self.lines: dict[str, int] = {}
        self._most, self._left = most, _TIMES * most

    def read(self, statement: ast.stmt) -> None:
        """Assign what a statement assigns; names whose value is not understood have none."""
        value = self._assigned(statement)
        for name in _stored(statement):
            self.lines[name] = statement.lineno
            self.values.pop(name, None)
            if value is not None:
                self.values[name] = value

    def _assigned(self, statement: ast.stmt) -> str | int | float | None:
        """Return the value that a statement assigns to one or more names; None if it is not understood."""
        try:
            match statement:
                case ast.Assign(targets, value) if all(isinstance(target, ast.Name) for target in targets):
                    return self._value(value)
                case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
                    return self._value(value)
                case ast.AugAssign(ast.Name(name), operation, value):
                    return self._value(ast.BinOp(ast.Name(name, ast.Load()), operation, value))
        except (_NotRead, ArithmeticError, ValueError, RecursionError):
            pass
        return None

    def _value(self, node: ast.expr) -> str | int | float:
        value = self._computed(node)
        if isinstance(value, str):
            self._spend(len(value))
        return value

    def _text(self, node: ast.expr) -> str:
        value = self._value(node)
        if not isinstance(value, str):
            raise _NotRead
        return value

    def _computed(self, node: ast.expr) -> str | int | float:
        match node:
            case ast.Constant(str() | int() | float() as value):
                return value
            case ast.Name(name) if name in self.values:
                return self.values[name]
            case ast.BinOp(left, operation, right):
                return self._operated(type(operation), self._value(left), self._value(right))
            case ast.JoinedStr(parts):
                return "".join(self._text(part) for part in parts)
            case ast.FormattedValue(part, -1, None):
                return str(self._value(part))
            case ast.Call(ast.Attribute(text, "replace"), [old, new], []):
                return self._replaced(self._text(text), self._text(old), self._text(new))
            case ast.Call(ast.Attribute(text, name), what, []) if name in _STRIPPED and len(what) <= 1:
                return _STRIPPED[name](self._text(text), *map(self._text, what))
            case ast.Call(ast.Attribute(text, "join"), [ast.List(items) | ast.Tuple(items)], []):
                return self._joined(self._text(text), items)
            case ast.Call(ast.Attribute(ast.Name("textwrap"), "dedent") | ast.Name("dedent"), [text], []):
                return textwrap.dedent(self._text(text))
            case ast.Call(ast.Attribute(ast.Name("json"), "dumps"), [data], options):
                return json.dumps(self._data(data), indent=_indent(options))
        raise _NotRead

    def _data(self, node: ast.expr) -> object:
        """Return what is written out as JSON. Names stand for no lists: a few lines of them could be without end."""
        match node:
            case ast.Constant(None):
                return None
            case ast.List(items) | ast.Tuple(items):
                return [self._data(item) for item in items]
            case ast.Dict(keys, items) if all(keys):
                return {self._text(key): self._data(item) for key, item in zip(keys, items, strict=True) if key}
        return self._value(node)

    def _operated(self, kind: type[ast.operator], left: object, right: object) -> str | int:
        numbers = isinstance(left, int) and isinstance(right, int) and max(abs(left), abs(right)) < _MOST_INTEGER
        if kind in _OPERATIONS and (numbers or (kind is ast.Add and isinstance(left, str) and isinstance(right, str))):
            result: str | int = _OPERATIONS[kind](left, right)
            return result
        raise _NotRead

    def _joined(self, between: str, items: Sequence[ast.expr]) -> str:
        self._spend(len(between) * len(items))
        return between.join([self._text(item) for item in items])

    def _replaced(self, text: str, old: str, new: str) -> str:
        self._spend(len(text) + max(0, text.count(old) * (len(new) - len(old))))
        return text.replace(old, new)

    def _spend(self, characters: int) -> None:
        """Count the characters of a result, before it is made where it may be long."""
        self._left -= characters
        if characters > self._most or self._left < 0:
            raise _NotRead


def _stored(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement may assign or delete."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def _indent(options: list[ast.keyword]) -> int | None:
    match options:
        case []:
            return None
        case [ast.keyword("indent", ast.Constant(int() as indent))] if 0 <= indent <= _MOST_INDENT:
            return indent
    raise _NotRead
