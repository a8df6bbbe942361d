"""Parses Python that others wrote, in time proportional to the length of its text."""

from __future__ import annotations

import ast
import re
import sys

_FORMATTED = re.compile(r"""[fF][rR]?['"]""")
#: Python before 3.12 reads a formatted string once for each of its fields: a second for so many of their product.
MOST_READ = 2_000_000_000


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: If the text is not Python, or too nested or too long.
    """
    is_long = source.count("{") * len(source) > MOST_READ
    if is_long and sys.version_info < (3, 12) and _FORMATTED.search(source):
        raise ValueError("its formatted strings are too long")
    return ast.parse(source)
