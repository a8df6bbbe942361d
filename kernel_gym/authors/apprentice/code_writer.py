"""Writes lines of C with indentation; wraps long calls and formats numbers as C literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import numpy as np

_INDENT = "    "
_WIDTH = 110


class CodeWriter:
    """Collects the lines of a source file, indented by the current depth."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def add(self, *texts: str) -> None:
        """Append texts at the current depth; a text may have several lines."""
        pad = _INDENT * self._depth
        for text in texts:
            if "\n" in text:
                self.lines += [pad + line if line else "" for line in text.split("\n")]
            else:
                self.lines.append(pad + text if text else "")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write a braced block around the lines that are added inside the `with` statement."""
        self.add(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add(tail)

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Write a function, with the opening brace on a line of its own."""
        self.add(head, "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    @contextmanager
    def outdented(self) -> Iterator[None]:
        """Indent one level less, for `public:` and `private:`."""
        self._depth -= 1
        yield
        self._depth += 1

    def text(self) -> str:
        """Return all lines as one text."""
        return "\n".join(self.lines) + "\n"


@lru_cache(maxsize=4096)
def wrapped(head: str, arguments: str, tail: str, used: int = 0) -> str:
    """Return a call or a signature; arguments that would make the line too long go to lines of their own."""
    if used + len(head) + len(arguments) + len(tail) <= _WIDTH:
        return f"{head}{arguments}{tail}"
    lines = [""]
    for argument in _split(f"{arguments}{tail}"):
        if lines[-1] and used + len(_INDENT) + len(lines[-1]) + len(argument) > _WIDTH:
            lines.append("")
        lines[-1] += argument
    return "\n".join([head, *(f"{_INDENT}{line.rstrip()}" for line in lines)])


def _split(arguments: str) -> list[str]:
    """Split arguments at the commas outside brackets; each keeps its comma."""
    parts, depth, begin = list[str](), 0, 0
    for position, letter in enumerate(arguments):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == " " and depth == 0 and position and arguments[position - 1] == ",":
            parts.append(arguments[begin : position + 1])
            begin = position + 1
    return [*parts, arguments[begin:]]


def literal(number: float) -> str:
    """Return a number as a C float literal that reads back exactly."""
    if number in (float("inf"), float("-inf")):
        return "(1.0f / 0.0f)" if number > 0 else "(-1.0f / 0.0f)"
    if number != number:
        return "(0.0f / 0.0f)"
    text = repr(float(np.float32(number)))
    shortest = np.format_float_positional(np.float32(number), trim="0") if 1e-4 <= abs(number) < 1e7 else text
    return f"{shortest}f"


def product_text(factors: Iterable[str]) -> str:
    """Return the product of factors as C, without those that are 1."""
    return " * ".join(factor for factor in factors if factor != "1") or "1"
