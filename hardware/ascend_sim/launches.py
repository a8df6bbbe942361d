"""Rewrites `kernel<<<blocks, l2, stream>>>(args)` into a call that g++ understands, line for line.

A small tokenizer keeps strings, comments and templates apart from launches. Nothing but the launch's own brackets
changes, so every line of the author's text stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

CoreKind = Literal["AIV", "AIC", "MIX"]

_TOKEN = re.compile(
    r"""
    (?P<blank>   \s+ | \\\n | //(?:[^\n\\]|\\.)* | /\*.*?\*/ )
  | (?P<raw>     (?:u8|[uUL])?R"(?P<fence>[^\s()\\]{0,16})\(.*?\)(?P=fence)" )
  | (?P<string>  (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" )
  | (?P<number>  \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<char>    (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+' )
  | (?P<word>    [A-Za-z_]\w* )
  | (?P<symbol>  <<< | >>> | :: | . )
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}

_KINDS: dict[str, CoreKind] = {
    "KERNEL_TYPE_AIV_ONLY": "AIV",
    "KERNEL_TYPE_MIX_AIV_1_0": "AIV",
    "KERNEL_TYPE_AIC_ONLY": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_0": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_1": "MIX",
    "KERNEL_TYPE_MIX_AIC_1_2": "MIX",
    "__vector__": "AIV",
    "__cube__": "AIC",
    "__mix__": "MIX",
}


class Token(NamedTuple):
    """A piece of source that means something; blanks and comments are left out."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.start + len(self.text)


def tokens(source: str) -> list[Token]:
    """The tokens of C++ source, without blanks and comments."""
    return [
        Token(kind, match.group(), match.start())
        for match in _TOKEN.finditer(source)
        if (kind := match.lastgroup) and kind != "blank"
    ]


@dataclass(frozen=True)
class LaunchText:
    """Where a launch stands in the tokens: its callee from `first`, `<<<` at `opening`, `>>>` at `closing`."""

    first: int
    opening: int
    closing: int


def launches(found: Sequence[Token]) -> Iterator[LaunchText]:
    """The launches among tokens, none inside another; text that cannot be read as a launch is left out."""
    done = 0
    for index, token in enumerate(found):
        if token.text != "<<<" or index < done:
            continue
        first, last = _callee(found, index), _closing(found, index)
        if first is not None and last is not None:
            yield LaunchText(first, index, last)
            done = last


def rewrite(source: str) -> str:
    """The source with its launches as calls; text that cannot be read as a launch stays as it is."""
    found = tokens(source)
    pieces, done = [], 0
    for launch in launches(found):
        begin, opening, closing = found[launch.first], found[launch.opening], found[launch.closing]
        kind = _kind(found, found[launch.first : launch.opening])
        pieces += [source[done : begin.start], f"::asc::launcher<ASC_{kind}, ", source[begin.start : opening.start]]
        pieces += [">(", source[opening.end : closing.start], ")"]
        done = closing.end
    return "".join(pieces) + source[done:]


def _callee(found: Sequence[Token], launch: int) -> int | None:
    """Index of the first token of the kernel's name: `name`, `space::name`, `name<int, 2>`."""
    index = launch - 1
    if index >= 0 and found[index].text == ">":
        depth = 0
        while index >= 0:
            depth += {">": 1, "<": -1, ">>>": 3, "<<<": -3}.get(found[index].text, 0)
            index -= 1
            if depth <= 0:
                break
    if index < 0 or found[index].kind != "word":
        return None
    while index >= 2 and found[index - 1].text == "::" and found[index - 2].kind == "word":
        index -= 2
    return index - 1 if index >= 1 and found[index - 1].text == "::" else index


def _closing(found: Sequence[Token], launch: int) -> int | None:
    """Index of the `>>>` that belongs to a `<<<`."""
    awaited: list[str] = []
    for index in range(launch + 1, len(found)):
        text = found[index].text
        if text in _OPENING:
            awaited.append(_OPENING[text])
        elif awaited and text == awaited[-1]:
            awaited.pop()
        elif not awaited and text == ">>>":
            return index
        elif not awaited and text in (")", "]", "}", ";", "<<<"):
            return None
    return None


def _kind(found: Sequence[Token], callee: Sequence[Token]) -> CoreKind:
    """On which cores a kernel runs: what its definition says, else mixed if the file registers a Matmul."""
    name = [token.text for token in callee if token.kind == "word"][0 if callee[-1].text == ">" else -1]
    said = _said_by_definition(found, name)
    words = {token.text for token in found if token.kind == "word"}
    if said:
        return said
    if "REGIST_MATMUL_OBJ" in words:
        return "AIC" if "ASCENDC_CUBE_ONLY" in words else "MIX"
    return "AIV"


def _said_by_definition(found: Sequence[Token], name: str) -> CoreKind | None:
    for index, token in enumerate(found):
        if token.text != "__global__":
            continue
        named = next((i for i in range(index, len(found)) if found[i].text in (name, "{", ";")), len(found))
        if named < len(found) and found[named].text == name:
            words = [token.text for token in found[index : _end_of_body(found, named)]]
            return next((_KINDS[word] for word in words if word in _KINDS), None)
    return None


def _end_of_body(found: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(found)):
        depth += {"{": 1, "}": -1}.get(found[index].text, 0)
        if found[index].text == "}" and depth == 0:
            return index
        if found[index].text == ";" and depth == 0:
            return index
    return len(found)
