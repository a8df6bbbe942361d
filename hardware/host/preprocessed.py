"""Reads what g++'s preprocessor writes and writes its tokens so that every reader finds the same ones.

The author's text is preprocessed once. Its tokens are written with a blank between any two of them, without comments,
joined lines and directives. This plain text is what is screened and what is compiled: a reader that would have taken
the author's text otherwise has changed both. The text of headers is left out, as the precompiled header has it. So the
author's macros are never expanded in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kernel_gym.hardware.device import Diagnostic

#: Most characters that macros may make of a text, and most of these and of the headers' lines together.
MAX_CHARACTERS, MAX_OUTPUT = 4_000_000, 8_000_000
_ENDLESS = "macros expand without end: write the code out, or use a loop"
#: A gap of so many lines is written as empty lines, a longer one as a marker.
_GAP = 8

#: A preprocessor's line marker: the file of the lines that follow, and whether it begins (1) or ends (2).
_MARKER = re.compile(r'# (?P<line>\d{1,9}) "(?P<file>(?:[^"\\]|\\.)*)"(?P<flags>(?: \d)*)')
#: Files of the compiler, whose lines stand before the author's.
_COMMAND = ("<built-in>", "<command-line>")
#: Pragmas without effect on g++. All others are refused.
_PRAGMA = re.compile(r"#pragma (?:once|unroll)\b.*")
_TOKEN = re.compile(
    r"""
    (?P<blank>   [ \t\v\f]+ )
  | (?P<literal> (?:u8|[uUL])?
                 (?:"(?:[^"\\\x00-\x08\x0a-\x1f]|\\[^\x00-\x1f])*"|'(?:[^'\\\x00-\x08\x0a-\x1f]|\\[^\x00-\x1f])+')
                 (?:[A-Za-z_$][0-9A-Za-z_$]*)? )
  | (?P<number>  \.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])* )
  | (?P<name>    [A-Za-z_$][0-9A-Za-z_$]* )
  | (?P<symbol>  <<<|>>>(?!=)|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=
               | \.\*|[-+*/%&|^~!=<>?:;,.(){}\[\]] )
  | (?P<stray>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[0-9A-Za-z_.]+(?:[eEpP][+-][0-9][0-9A-Za-z_]*)?")


@dataclass(frozen=True)
class Plain:
    """A preprocessed text as one that all readers read alike.

    Attributes:
        text: The author's tokens, and markers with their lines.
        headers: The files that the author included and that had text of their own.
        diagnostics: What could not be read.
    """

    text: str = ""
    headers: frozenset[str] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()


def plain(preprocessed: str, names: Collection[str]) -> Plain:
    """Return the plain text of what a preprocessor wrote.

    Args:
        preprocessed: The output of `g++ -E`.
        names: The names of the author's file, and of the lines that are ours around it.
    """
    reader = _Reader(names)
    if len(preprocessed) > MAX_OUTPUT:
        return Plain(diagnostics=(Diagnostic(_ENDLESS),))
    try:
        for row in preprocessed.split("\n"):
            reader.read(row)
    except _Unreadable as error:
        return Plain(diagnostics=(Diagnostic(str(error), reader.line),))
    return Plain("\n".join([*reader.rows, ""]), frozenset(reader.headers))


class _Unreadable(Exception):
    """Raised for a line that no allowed text becomes."""


class _Reader:
    def __init__(self, names: Collection[str]) -> None:
        self.rows: list[str] = []
        self.headers = set[str]()
        self.line = 1
        self._names = names
        self._files: list[str] = [""]
        self._next: tuple[str, int] = ("", 0)
        self._left = MAX_CHARACTERS

    def read(self, row: str) -> None:
        """Read one line of the preprocessor's output."""
        if marker := _MARKER.fullmatch(row):
            self._enter(marker["file"], int(marker["line"]), marker["flags"].split())
            return
        if row.strip():
            self._keep(row)
        self.line += len(self._files) == 1

    def _enter(self, file: str, line: int, flags: list[str]) -> None:
        if "1" in flags:
            self._files.append(file)
            return
        if "2" in flags and len(self._files) > 1:
            self._files.pop()
        self._files[-1] = file
        if len(self._files) == 1:
            if file not in self._names and file not in _COMMAND:
                raise _Unreadable("this preprocessor directive is not allowed (#line)")
            self.line = line

    def _keep(self, row: str) -> None:
        file = self._files[0]
        if len(self._files) > 1:
            self.headers.add(self._files[1])
        if len(self._files) > 1 or file in _COMMAND or _PRAGMA.fullmatch(row):
            return
        self._left -= len(row)
        if self._left < 0:
            raise _Unreadable(_ENDLESS)
        previous, expected = self._next
        if previous != file or not 0 <= self.line - expected <= _GAP:
            self.rows.append(f'# {self.line} "{file}"')
        else:
            self.rows += [""] * (self.line - expected)
        self.rows.append(" ".join(_tokens(row)))
        self._next = (file, self.line + 1)


def _tokens(row: str) -> Iterator[str]:
    for match in _TOKEN.finditer(row):
        text = match.group()
        match match.lastgroup:
            case "blank":
                continue
            case "number":
                text = text.replace("'", "")
                if not _NUMBER.fullmatch(text):
                    raise _Unreadable(f"{text[:60]} is no number")
            case "stray":
                quote = f"missing terminating {text} character"
                raise _Unreadable(quote if text in "'\"" else f"stray {text!a} in program")
        yield text
