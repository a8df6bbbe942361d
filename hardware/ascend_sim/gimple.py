"""Reads the compiler's dump of its last intermediate form (GIMPLE)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_gym.errors import InfrastructureError

DUMP = "kernel.variables"
FLAGS = (f"-fdump-tree-optimized-uid={DUMP}",)

FUNCTION = "\n;; Function "
_BLOCK, _NAME = "\n  <bb ", re.compile(r".*\((\S+), funcdef_no=\d+, ")
#: Strings, and characters that are template arguments. What is in them is the author's.
_LITERAL = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")


def bodies(dump: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each function and its basic blocks, without the text of literals."""
    for text in dump.split(FUNCTION)[1:]:
        yield name(text), _LITERAL.sub('""', text.partition(_BLOCK)[2])


def name(function: str) -> str:
    """Return the name of a function that a dump begins with."""
    found = _NAME.match(function)
    if found is None:
        raise InfrastructureError(f"a function in the compiler's dump has no name: {function[:80]}")
    return found[1]
