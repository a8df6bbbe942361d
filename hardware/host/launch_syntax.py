"""Reads C++ source as tokens and finds the launches `kernel<<<blocks, l2, stream>>>(args)` in it.

A small tokenizer keeps strings, comments and templates apart from launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ | \\\n | //(?:[^\n\\]|\\.)* | /\*(?:.*?\*/|.*) )
  | (?P<raw>     (?:u8|[uUL])?R"(?P<fence>[^\s()\\]{0,16})\((?:.*?\)(?P=fence)"|.*) )
  | (?P<string>  (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z) )
  | (?P<number>  \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<char>    (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+(?:'|(?=\n)|\Z) )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<symbol>  <<< | >>> | :: | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A token of C++ source."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after the token."""
        return self.start + len(self.text)


def tokens(source: str) -> list[Token]:
    """Return the tokens of C++ source, without blanks and comments."""
    return [
        Token(kind, match.group(), match.start())
        for match in _TOKEN.finditer(source)
        if (kind := match.lastgroup) and kind != "blank"
    ]


@dataclass(frozen=True)
class LaunchText:
    """The position of a launch in the tokens: its callee from `first`, `<<<` at `opening`, `>>>` at `closing`."""

    first: int
    opening: int
    closing: int


def launches(lexemes: Sequence[Token]) -> Iterator[LaunchText]:
    """Yield the launches among tokens, none inside another; text that cannot be parsed as a launch is skipped."""
    done = 0
    for index, token in enumerate(lexemes):
        if token.text != "<<<" or index < done:
            continue
        first, last = _callee(lexemes, index), _closing(lexemes, index)
        if first is not None and last is not None:
            yield LaunchText(first, index, last)
            done = last


def _callee(lexemes: Sequence[Token], launch: int) -> int | None:
    """Return the index of the first token of the kernel's name: `name`, `space::name`, `name<int, 2>`."""
    index = launch - 1
    if index >= 0 and lexemes[index].text == ">":
        depth = 0
        while index >= 0:
            depth += {">": 1, "<": -1, ">>>": 3, "<<<": -3}.get(lexemes[index].text, 0)
            index -= 1
            if depth <= 0:
                break
    if index < 0 or lexemes[index].kind != "word":
        return None
    while index >= 2 and lexemes[index - 1].text == "::" and lexemes[index - 2].kind == "word":
        index -= 2
    return index - 1 if index >= 1 and lexemes[index - 1].text == "::" else index


def _closing(lexemes: Sequence[Token], launch: int) -> int | None:
    """Return the index of the `>>>` that belongs to a `<<<`."""
    awaited: list[str] = []
    for index in range(launch + 1, len(lexemes)):
        text = lexemes[index].text
        if text in _OPENING:
            awaited.append(_OPENING[text])
        elif awaited and text == awaited[-1]:
            awaited.pop()
        elif not awaited and text == ">>>":
            return index
        elif not awaited and text in (")", "]", "}", ";", "<<<"):
            return None
    return None
