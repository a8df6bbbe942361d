"""The size constants of a problem's text: finding them and giving them other values.

A size is a whole number assigned at the top of the module (`rows = 128`), addressed by its name, or one element of a
literal tuple or list (`shape = (16, 64)`), addressed as `shape[0]`. Other constants that are computed from a size follow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kernel_gym.errors import TaskError


def find_sizes(source: str) -> dict[str, int]:
    """The size constants of a module's text and their values, in the order of the text."""
    return {name: _value(node) for name, node in _constants(_parse(source))}


def with_sizes(source: str, sizes: Mapping[str, int]) -> ast.Module:
    """The module's syntax tree with the named sizes replaced."""
    tree = _parse.__wrapped__(source)
    found = dict(_constants(tree))
    for name, value in sizes.items():
        if name not in found:
            raise TaskError(f"the module has no size constant {name!r}; it has: {', '.join(found) or 'none'}")
        found[name].value = value
    return tree


@lru_cache(maxsize=256)
def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise TaskError(f"the problem file is not Python: line {error.lineno}: {error.msg}") from error


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _assigned(target, value)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.Constant]]:
    match target, value:
        case ast.Name(id=name), ast.Constant() if _is_size(value):
            yield name, value
        case ast.Name(id=name), ast.Tuple(elts=elements) | ast.List(elts=elements):
            for position, element in enumerate(elements):
                if isinstance(element, ast.Constant) and _is_size(element):
                    yield f"{name}[{position}]", element
        case ast.Tuple(elts=names), ast.Tuple(elts=elements):
            for name, element in zip(names, elements, strict=False):
                yield from _assigned(name, element)


def _is_size(node: ast.Constant) -> bool:
    return type(node.value) is int and node.value >= 0


def _value(node: ast.Constant) -> int:
    assert isinstance(node.value, int)
    return node.value
