"""Text with indentation, and numbers as C literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_INDENT = "    "
_WIDTH = 110


class Script:
    """Lines of a source file under construction."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def add(self, *texts: str) -> None:
        """Append texts at the present depth; a text may have several lines."""
        pad = _INDENT * self._depth
        for text in texts:
            self.lines += [pad + line if line else "" for line in text.split("\n")]

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """A braced block."""
        self.add(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add(tail)

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """A function whose brace stands on a line of its own."""
        self.add(head, "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    @contextmanager
    def outdented(self) -> Iterator[None]:
        """One level less, for `public:` and `private:`."""
        self._depth -= 1
        yield
        self._depth += 1

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"


def wrapped(head: str, arguments: str, tail: str, used: int = 0) -> str:
    """A call or a signature; arguments that would make the line too long begin on the next one, or on several."""
    if used + len(head) + len(arguments) + len(tail) <= _WIDTH:
        return f"{head}{arguments}{tail}"
    lines = [""]
    for argument in _apart(f"{arguments}{tail}"):
        if lines[-1] and used + len(_INDENT) + len(lines[-1]) + len(argument) > _WIDTH:
            lines.append("")
        lines[-1] += argument
    return "\n".join([head, *(f"{_INDENT}{line.rstrip()}" for line in lines)])


def _apart(arguments: str) -> list[str]:
    """Arguments one by one, each with its comma; commas inside of brackets part nothing."""
    found, depth = [""], 0
    for position, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        found[-1] += letter
        if depth == 0 and arguments[: position + 1].endswith(", "):
            found.append("")
    return found


def literal(number: float) -> str:
    """A number as a float of C that reads back exactly."""
    import numpy as np

    if number in (float("inf"), float("-inf")):
        return "(1.0f / 0.0f)" if number > 0 else "(-1.0f / 0.0f)"
    if number != number:
        return "(0.0f / 0.0f)"
    text = repr(float(np.float32(number)))
    shortest = np.format_float_positional(np.float32(number), trim="0") if 1e-4 <= abs(number) < 1e7 else text
    return f"{shortest}f"


def product_text(factors: Iterable[str]) -> str:
    """Factors multiplied, ones left out."""
    return " * ".join(factor for factor in factors if factor != "1") or "1"
