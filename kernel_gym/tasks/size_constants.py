"""Finds and replaces the size constants in the text of a module.

A size is a whole number assigned at the top of the module (`rows = 128`, `rows = 64 * 2`), addressed by its name, or
one element of a literal tuple or list (`shape = (16, 64)`), addressed as `shape[0]`. Constants that are computed from
a size follow it. Numbers written in `get_inputs()` are sizes too: every 512 there is `get_inputs(512)`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kernel_gym import python_text
from kernel_gym.errors import TaskError

#: The largest size of a tensor, and how many operators the expression of a size has inside each other.
LARGEST, DEEPEST = 1 << 40, 50
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


@dataclass(frozen=True)
class _Place:
    """The place of a size in a syntax tree: a field of a node, or one element of a list."""

    name: str
    owner: ast.AST | list[ast.expr]
    key: str | int

    @property
    def value(self) -> int | None:
        """The number at this place; None if there is something else."""
        return _fold(self.owner[self.key] if isinstance(self.key, int) else getattr(self.owner, self.key))  # type: ignore[index]

    def put(self, value: int) -> None:
        """Write another number at this place."""
        if isinstance(self.owner, list):
            assert isinstance(self.key, int)
            self.owner[self.key] = ast.copy_location(ast.Constant(value), self.owner[self.key])
        else:
            assert isinstance(self.key, str)
            setattr(self.owner, self.key, ast.copy_location(ast.Constant(value), getattr(self.owner, self.key)))


def find_sizes(source: str) -> dict[str, int]:
    """Return the size constants of a module's text and their values, in the order of the text."""
    return {place.name: place.value for place in _places(parse_module(source)) if place.value is not None}


def with_sizes(source: str, sizes: Mapping[str, int]) -> ast.Module:
    """Return the module's syntax tree with the named sizes replaced; a TaskError if there is no such size."""
    tree = parse_module(source)
    places = _places(tree)
    for name, value in sizes.items():
        named = [place for place in places if place.name == name]
        if not named:
            names = dict.fromkeys(place.name for place in places)
            raise TaskError(f"the module has no size constant {name!r}; it has: {', '.join(names) or 'none'}")
        for place in named:
            place.put(value)
    return tree


def parse_module(source: str) -> ast.Module:
    """Return the syntax tree of a module's text; a TaskError says why it is not Python."""
    try:
        return python_text.parse(source)
    except SyntaxError as error:
        raise TaskError(f"the problem file is not Python: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"the problem file is not Python: {str(error) or 'its nesting is too deep'}") from error


def _places(tree: ast.Module) -> list[_Place]:
    constants = [place for statement in tree.body for place in _assigned(statement) if place.value is not None]
    return [*constants, *_written(tree)]


def _assigned(statement: ast.stmt) -> Iterator[_Place]:
    """Yield the sizes of one statement at the top of the module."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for position, target in enumerate(targets):
                if isinstance(target, ast.Name) and position < len(values):
                    yield _Place(target.id, values, position)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple(elts=values) | ast.List(elts=values)):
            for position in range(len(values)):
                yield _Place(f"{name}[{position}]", values, position)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield _Place(name, statement, "value")


def _written(tree: ast.Module) -> list[_Place]:
    """Return the numbers in calls of `get_inputs()`, without those that only bound values (`randint(0, 10, ...)`)."""
    shapes: list[_Place] = []
    bounds: list[_Place] = []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "get_inputs"]
    for node in (node for function in functions for node in ast.walk(function)):
        values = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        bounding = isinstance(node, ast.Call) and _called(node).endswith("randint")
        for position, number in enumerate(_fold(value) or 0 for value in values):
            if number > 1:
                (bounds if bounding else shapes).append(_Place(f"get_inputs({number})", values, position))
    sizes = {place.name for place in shapes}
    return [*shapes, *(place for place in bounds if place.name in sizes)]


def _called(node: ast.Call) -> str:
    """Return the last name of a called function."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _fold(node: ast.AST) -> int | None:
    """Return the value of an expression of whole numbers; None for any other expression, and for one that no size has.

    An expression is folded as deep as sizes are written; a file may hold a sum of thousands of terms.
    """
    return _folded(node, DEEPEST)


def _folded(node: ast.AST, depth: int) -> int | None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value if 0 <= value <= LARGEST else None
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS and depth:
            first, second = _folded(left, depth - 1), _folded(right, depth - 1)
            if first is None or second is None or (isinstance(operation, ast.Pow | ast.LShift) and second > 64):
                return None
            if isinstance(operation, ast.FloorDiv) and not second:
                return None
            value = _OPERATIONS[type(operation)](first, second)
            return value if abs(value) <= LARGEST else None
    return None
