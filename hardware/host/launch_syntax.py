"""Reads C++ source as tokens and finds the launches `kernel<<<blocks, l2, stream>>>(args)` in it.

A small tokenizer keeps strings, comments and templates apart from launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ | \\\n | //(?:[^\n\\]|\\.)* | /\*(?:.*?\*/|.*) )
  | (?P<raw>     (?:u8|[uUL])?R"(?P<fence>[^\s()\\]{0,16})\((?:.*?\)(?P=fence)"|.*) )
  | (?P<string>  (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z) )
  | (?P<number>  \.?\d(?:[eEpP][+-]|'\w|[\w.$])* )
  | (?P<char>    (?:u8|[uUL])?'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z) )
  | (?P<word>    [A-Za-z_$][\w$]* )
  | (?P<symbol>  <<< | >>> | :: | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_ANGLES = {">": 1, "<": -1, ">>>": 3}
#: Tokens at which the search for a kernel's name ends, unless they close a bracket: what is before is no part of it.
_ENDS = frozenset({";", "<<<", *_OPENING, *_OPENING.values()})


class Token(NamedTuple):
    """A token of C++ source."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after the token."""
        return self.start + len(self.text)


@lru_cache(maxsize=8)
def tokens(source: str) -> tuple[Token, ...]:
    """Return the tokens of C++ source, without blanks and comments. Each step of a compilation asks for them."""
    return tuple(
        Token(kind, match.group(), match.start())
        for match in _TOKEN.finditer(source)
        if (kind := match.lastgroup) and kind != "blank"
    )


@dataclass(frozen=True)
class LaunchText:
    """The position of a launch in the tokens.

    Attributes:
        first: Where its callee begins: `space` in `space::kernel<int>`.
        name: The kernel's own name in it.
        opening: Its `<<<`.
        closing: Its `>>>`.
    """

    first: int
    name: int
    opening: int
    closing: int


def launches(lexemes: Sequence[Token]) -> Iterator[LaunchText]:
    """Yield the launches among tokens, none inside another; text that cannot be parsed as a launch is skipped."""
    closings, callees = _closings(lexemes), _Callees(lexemes)
    done = 0
    for opening, closing in sorted(closings.items()):
        if opening < done:
            continue
        name = callees.name(opening - 1)
        if name is not None:
            yield LaunchText(callees.first(name), name, opening, closing)
            done = closing


def _closings(lexemes: Sequence[Token]) -> dict[int, int]:
    """Return the index of the `>>>` that belongs to each `<<<`; one without it is left out.

    A launch ends where a bracket closes that it has not opened, at a semicolon, or at another launch.
    """
    closings, waiting = dict[int, int](), list[tuple[str, int]]()
    for index, token in enumerate(lexemes):
        text = token.text
        if text in _OPENING:
            waiting.append((_OPENING[text], index))
        elif text in (">>>", "<<<", ";", ")", "]", "}"):
            if waiting and waiting[-1][0] == ">>>":
                _, opening = waiting.pop()
                if text == ">>>":
                    closings[opening] = index
            if text == "<<<":
                waiting.append((">>>", index))
            elif waiting and text == waiting[-1][0] and text != ">>>":
                waiting.pop()
    return closings


class _Callees:
    """Finds the names of kernels before their `<<<`: `name`, `Space<int>::name`, `name<int, (n > 2)>`."""

    def __init__(self, lexemes: Sequence[Token]) -> None:
        self._lexemes = lexemes
        self._openings = _openings(lexemes)

    def name(self, end: int) -> int | None:
        """Return the index of the name that ends at a token, which may close the arguments of its template."""
        index = self._before_template(end) if end >= 0 and self._lexemes[end].text in (">", ">>>") else end
        return index if index >= 0 and self._lexemes[index].kind == "word" else None

    def first(self, name: int) -> int:
        """Return the index of the first token of a name with all spaces and classes that it stands in."""
        while name and self._lexemes[name - 1].text == "::":
            around = self.name(name - 2)
            if around is None:
                return name - 1
            name = around
        return name

    def _before_template(self, index: int) -> int:
        """Return the index before the angle brackets that a token closes; -1 if nothing in its statement opens them."""
        lexemes, depth = self._lexemes, 0
        while index >= 0:
            text = lexemes[index].text
            if index in self._openings and (text != "}" or lexemes[index + 1].text in (",", ">", ">>>")):
                index = self._openings[index]
            elif text in _ENDS:
                return -1
            elif text in _ANGLES and not self._is_operator(index):
                depth += _ANGLES[text]
                if depth == 0:
                    return index - 1
            index -= 1
        return -1

    def _is_operator(self, index: int) -> bool:
        """Return whether an angle before a launch is a part of `->`, `>=`, `<=` or `<<`."""
        before, here, after = (self._lexemes[index + step] for step in (-1, 0, 1))
        left = before.text if before.end == here.start else ""
        right = after.text if here.end == after.start else ""
        return right == "=" or (left == "-" if here.text == ">" else here.text == "<" and "<" in (left, right))


def _openings(lexemes: Sequence[Token]) -> dict[int, int]:
    """Return, for each token that closes a bracket around no statement, the index of the one that opens it."""
    openings, waiting, ends = dict[int, int](), list[tuple[str, int]](), 0
    for index, token in enumerate(lexemes):
        if token.text == ";":
            ends = index  # of the last statement
        elif token.text in _OPENING:
            waiting.append((_OPENING[token.text], index))
        elif waiting and token.text == waiting[-1][0]:
            _, opening = waiting.pop()
            if opening >= ends:
                openings[index] = opening
    return openings
