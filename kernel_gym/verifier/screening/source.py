"""Reads a kernel's source: tokens, directives, macros, and a syntax tree with the author's line numbers.

The screen must see what the compiler will see. So the text is lexed as a compiler does it (joined lines, comments,
literals), the author's macros are expanded, and the result is parsed. Both branches of conditionals are kept, so that
nothing can hide in the branch that is not compiled. Keywords of Ascend C and CUDA are rewritten into words that the C++
grammar has, without changing line numbers.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import Literal, NamedTuple, TypeAlias, cast

from tree_sitter import Node

from kernel_gym.hardware.host.cpp_syntax import parse

TokenKind = Literal["name", "number", "string", "char", "punct", "stray"]

#: Keywords of Ascend C and CUDA, and the C++ qualifiers that replace them in the syntax tree (no kernel needs these).
DEVICE, ENTRY, SPACE = "constinit", "consteval", "_Nonnull"
REWRITTEN = {
    "__aicore__": DEVICE,
    "__vector__": DEVICE,
    "__cube__": DEVICE,
    "__mix__": DEVICE,
    "__global__": ENTRY,
    "__gm__": SPACE,
    "__ubuf__": SPACE,
    "__cbuf__": SPACE,
    "__ca__": SPACE,
    "__cb__": SPACE,
    "__cc__": SPACE,
    "__host_aicore__": "",
    "__inout_pipe__": "",
    "__simd_vf__": "",
    "__forceinline__": "inline",
    # CUDA's. Shared memory lives as long as a block, constant memory never changes.
    "__device__": DEVICE,
    "__host__": "",
    "__shared__": "constexpr",
    "__constant__": "constexpr",
    "__restrict__": "",
    "__noinline__": "",
    "__grid_constant__": "",
    "__align__": "alignas",
    "__launch_bounds__": "",
    "__cluster_dims__": "",
    "__maxnreg__": "",
}
#: The words of the tree that no author wrote.
_OF_THE_TREE = re.compile(rf"\b(?:{DEVICE}|{ENTRY}|{SPACE})\b")
#: Keywords that are removed together with the argument in parentheses behind them.
WITH_ARGUMENT = ("__mix__", "__inout_pipe__", "__launch_bounds__", "__cluster_dims__", "__maxnreg__")
_CLASS_KEYS = ("class", "struct", "union")
#: Most tokens after expansion, and most macros that expand inside each other; more come from macros that double
#: themselves.
MAX_TOKENS, MAX_DEPTH = 200_000, 200

#: A preprocessor's line marker: the file of the lines that follow, and whether it begins (1) or ends (2).
_LINE_MARKER = re.compile(r'# (?P<line>\d+) "(?P<file>(?:[^"\\]|\\.)*)"(?P<flags>(?: \d)*)')
_PRECOMPILED = "#pragma GCC pch_preprocess "

#: What is not closed reaches to the end of its line or, as a comment or a raw string, to the end of the text. g++ reads
#: it so, and no text is read twice.
_LEXER = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*(?:.*?\*/|.*))
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\((?:.*?\)(?P=delimiter)"|.*))
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\[^\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\[^\n])*')
  | (?P<unclosed>["'][^\n]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.$])*)
  | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<newline>\n)
  | (?P<space>[ \t\r\f\v]+)
  | (?P<punct><<<|%:%:|<<=|>>=|<=>|->\*|\.\.\.|<%|%>|%:|<:(?!:[^:>])|:>|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|
      \*=|/=|%=|&=|\|=|\^=|\#\#|\.\*|[-+*/%&|^~!=<>?:;,.(){}\[\]\#])
  | (?P<stray>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Unreadable(Exception):
    """Raised for a text that cannot be screened; `rule` is the rule of the screen that it breaks."""

    def __init__(self, rule: str, line: int, detail: str) -> None:
        super().__init__(detail)
        self.rule, self.line, self.detail = rule, line, detail


class Token(NamedTuple):
    """One token, its line in the author's source, and whether white space is before it."""

    kind: TokenKind
    text: str
    line: int
    spaced: bool = False


#: A token in the expander, the macros that it must not expand again, and its place among the tokens of the text.
_Waiting: TypeAlias = "tuple[Token, frozenset[str], int]"


@dataclass(frozen=True)
class Directive:
    """A preprocessor line: `#name rest`."""

    name: str
    rest: tuple[Token, ...]
    line: int
    text: str = ""
    #: How many tokens of the text are before it.
    at: int = 0


@dataclass(frozen=True)
class Macro:
    """A macro that the author defined; `parameters` is None for a macro without parameter list."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    line: int
    #: How many tokens of the text are before it.
    at: int = 0

    @property
    def pastes(self) -> bool:
        """Whether it makes names of parts; `, ##__VA_ARGS__` leaves out a comma before no arguments, and makes none."""
        return any(token.text == "##" and not self.drops_comma(place) for place, token in enumerate(self.body))

    def drops_comma(self, place: int) -> bool:
        """Return whether the `##` at a place of the body is between a comma and `__VA_ARGS__`."""
        return place > 0 and [each.text for each in self.body[place - 1 : place + 2]] == [",", "##", "__VA_ARGS__"]


@dataclass(frozen=True)
class Source:
    """A kernel's source, lexed."""

    text: str
    tokens: tuple[Token, ...]
    directives: tuple[Directive, ...]
    raw_strings: tuple[int, ...] = ()
    #: Whether a preprocessor wrote the text: keywords of Ascend C and CUDA that it has left are names to a compiler.
    preprocessed: bool = False

    @cached_property
    def macros(self) -> tuple[Macro, ...]:
        """All macro definitions, in order."""
        return tuple(macro for d in self.directives if d.name == "define" and (macro := _macro(d)))

    @cached_property
    def has_redefined_macros(self) -> bool:
        """Whether a macro has several definitions: only a preprocessor tells what it stands for, it is not expanded."""
        return len({macro.name for macro in self.macros}) < len(self.macros)

    @cached_property
    def expanded(self) -> tuple[Token, ...]:
        """The tokens with the author's macros expanded."""
        table: dict[str, Macro] = {}
        repeated = set()
        for macro in self.macros:
            repeated |= {macro.name} & table.keys()
            table[macro.name] = macro
        for name in repeated:
            del table[name]
        undefined = ((d.rest[0].text, d.at) for d in reversed(self.directives) if d.name == "undef" and d.rest)
        ends = {name: at for name, at in undefined if name in table and table[name].at <= at}
        if table.keys().isdisjoint(token.text for token in self.tokens if token.kind == "name"):
            return self.tokens  # as in nearly every kernel
        return tuple(_Expander(table, ends).run(self.tokens))

    @cached_property
    def all_names(self) -> tuple[Token, ...]:
        """Every name, including those in macro bodies and conditions."""
        hidden = [t for d in self.directives if d.name != "include" for t in d.rest]
        return tuple(t for t in (*self.tokens, *hidden) if t.kind == "name")

    @cached_property
    def parsed(self) -> bytes:
        """The text that is parsed."""
        plain = (token for token in self.expanded if token.kind != "stray")
        written = plain if self.preprocessed else _rewritten(self.expanded)
        return _layout(_without_launches(_instantiations(written))).encode()

    @cached_property
    def tree(self) -> Node:
        """The root of the syntax tree of the expanded text."""
        return parse(self.parsed)

    def as_written(self, text: str, line: int) -> str:
        """Return a text of the tree that begins on a line, with the author's keywords in it."""
        if not _OF_THE_TREE.search(text):
            return text
        keywords: dict[str, deque[str]] = {}
        for token in self.expanded:
            if token.line >= line and token.text in REWRITTEN:
                keywords.setdefault(REWRITTEN[token.text], deque()).append(token.text)
        return _OF_THE_TREE.sub(lambda word: keywords[word[0]].popleft() if keywords.get(word[0]) else word[0], text)


def read(text: str) -> Source:
    """Lex a kernel's text."""
    return _lex(text, *_splice(text.removeprefix("\ufeff")))


def read_preprocessed(text: str, name: str) -> Source:
    """Lex the output of the compiler's preprocessor: the lines that come from the author's file `name`.

    Raises:
        Unreadable: If a line is not what a preprocessor makes of an allowed text.
    """
    depth, line, kept, numbers = 0, 1, list[str](), list[int]()
    for row in text.split("\n"):
        marker = _LINE_MARKER.fullmatch(row)
        if marker:
            flags = marker["flags"].split()
            depth += ("1" in flags) - ("2" in flags)
            line = int(marker["line"])
            if depth == 0 and marker["file"] not in (name, "<built-in>", "<command-line>"):
                raise Unreadable("directive", line, "#line")
            continue
        if depth == 0 and row.strip() and not (row.startswith(_PRECOMPILED) and not kept):
            if 'R"' in row and any(match.lastgroup == "raw" for match in _LEXER.finditer(row)):
                raise Unreadable("raw-string", line, "R")  # could go on with lines that look like markers
            kept.append(row)
            numbers.append(line)
        line += 1
        if len(kept) > MAX_TOKENS or len(row) > 16 * MAX_TOKENS:
            raise Unreadable("macro-bomb", line, row[:60])
    starts = [0, *accumulate(len(row) + 1 for row in kept)]
    source = replace(_lex(text, "\n".join(kept), _Lines(starts, [*numbers, line])), preprocessed=True)
    if len(source.tokens) > MAX_TOKENS:
        raise Unreadable("macro-bomb", source.tokens[-1].line, source.tokens[-1].text)
    return source


def _lex(text: str, spliced: str, lines: _Lines) -> Source:
    tokens: list[Token] = []
    directives: list[Directive] = []
    raw: list[int] = []
    current: list[Token] | None = None
    fresh, end = True, 0
    for match in _LEXER.finditer(spliced):
        kind, line = str(match.lastgroup), lines.at(match.start())
        if kind == "raw":
            raw.append(line)
        if kind == "newline":
            if current is not None:
                directives.append(_directive(current, len(tokens)))
            current, fresh = None, True
        elif kind not in ("space", "comment"):
            kind = {"raw": "string", "unclosed": "stray"}.get(kind, kind)
            token = Token(cast(TokenKind, kind), match.group(), line, spaced=match.start() != end)
            if fresh and token.text in ("#", "%:"):
                current = []
            (tokens if current is None else current).append(token)
            fresh, end = False, match.end()
    if current is not None:
        directives.append(_directive(current, len(tokens)))
    return Source(text, tuple(tokens), tuple(directives), tuple(raw))


def _splice(text: str) -> tuple[str, _Lines]:
    """Join lines that end in a backslash, as g++ does; also return where the author's lines begin."""
    text = text.replace("\r\n", "\n")
    parts = re.split(r"\\[ \t\f\v\0]*\n", text)
    starts, line, offset = [0], 1, 0
    numbers = [1]
    for index, part in enumerate(parts):
        for newline in re.finditer("\n", part):
            line += 1
            starts.append(offset + newline.end())
            numbers.append(line)
        offset += len(part)
        if index + 1 < len(parts):
            line += 1
            starts.append(offset)
            numbers.append(line)
    return "".join(parts), _Lines(starts, numbers)


class _Lines:
    """The author's line numbers by offset; offsets must be requested in ascending order."""

    def __init__(self, starts: list[int], numbers: list[int]) -> None:
        self._ends, self._numbers, self._index = [*starts[1:], sys.maxsize], numbers, 0

    def at(self, offset: int) -> int:
        while self._ends[self._index] <= offset:
            self._index += 1
        return self._numbers[self._index]


def _directive(tokens: Sequence[Token], at: int) -> Directive:
    name = tokens[1].text if len(tokens) > 1 else ""
    return Directive(name, tuple(tokens[2:]), tokens[0].line, tokens[0].text, at)


def _macro(directive: Directive) -> Macro | None:
    if not directive.rest:
        return None
    name, *rest = directive.rest
    if rest and rest[0].text == "(" and not rest[0].spaced:  # `F(x)` takes parameters, `F (x)` does not
        close = next((i for i, t in enumerate(rest) if t.text == ")"), len(rest) - 1)
        parameters = tuple(t.text for t in rest[1:close] if t.text != ",")
        return Macro(name.text, parameters, tuple(rest[close + 1 :]), directive.line, directive.at)
    return Macro(name.text, None, tuple(rest), directive.line, directive.at)


class _Expander:
    """Expands macros as the preprocessor does, from their definition to their end, within a budget."""

    def __init__(self, macros: dict[str, Macro], ends: dict[str, int]) -> None:
        self.macros = macros
        self.ends = ends
        self.left = MAX_TOKENS

    def _macro(self, token: Token, hidden: frozenset[str], place: int) -> Macro | None:
        macro = self.macros.get(token.text) if token.kind == "name" and token.text not in hidden else None
        if macro is None or not macro.at <= place < self.ends.get(macro.name, sys.maxsize):
            return None
        return macro

    def run(self, tokens: Sequence[Token]) -> Iterator[Token]:
        waiting = deque((token, frozenset[str](), place) for place, token in enumerate(tokens))
        while waiting:
            token, hidden, place = waiting.popleft()
            macro = self._macro(token, hidden, place)
            if macro is None or (macro.parameters is not None and not (waiting and waiting[0][0].text == "(")):
                yield token
                continue
            arguments = _arguments(waiting) if macro.parameters is not None else []
            body = self._substitute(macro, arguments, hidden | {macro.name}, token.line, place)
            self.left -= len(body) + 1
            if self.left < 0 or len(hidden) > MAX_DEPTH:
                raise Unreadable("macro-bomb", token.line, macro.name)
            waiting.extendleft(reversed(body))

    def _substitute(
        self, macro: Macro, arguments: list[list[_Waiting]], hidden: frozenset[str], line: int, place: int
    ) -> list[_Waiting]:
        named = _by_parameter(macro.parameters or (), arguments)
        body: list[_Waiting] = []
        for index, token in enumerate(macro.body):
            if token.kind == "name" and token.text in named:
                body += named[token.text]
            elif token.text == "##" and macro.drops_comma(index):
                if not named.get("__VA_ARGS__"):
                    body.pop()
            else:
                body.append((token._replace(line=line), hidden, place))
        return body


def _arguments(waiting: deque[_Waiting]) -> list[list[_Waiting]]:
    """Remove a parenthesised list of arguments from the front and return it."""
    waiting.popleft()
    arguments: list[list[_Waiting]] = [[]]
    depth = 0
    while waiting:
        token, hidden, place = waiting.popleft()
        if token.text in "([{":
            depth += 1
        elif token.text in ")]}":
            if depth == 0:
                break
            depth -= 1
        if token.text == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append((token, hidden, place))
    return arguments


def _by_parameter(parameters: tuple[str, ...], arguments: list[list[_Waiting]]) -> dict[str, list[_Waiting]]:
    named = dict(zip((p for p in parameters if p != "..."), arguments, strict=False))
    if "..." in parameters:
        rest: list[_Waiting] = []
        for argument in arguments[len(parameters) - 1 :]:
            rest += [
                *(
                    [(Token("punct", ",", argument[0][0].line), frozenset(), argument[0][2])]
                    if rest and argument
                    else []
                ),
                *argument,
            ]
        named["__VA_ARGS__"] = rest
    return named


def closing_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the place of the bracket that closes each opening one; one that is never closed is left out."""
    closings, waiting = dict[int, int](), list[int]()
    for index, token in enumerate(tokens):
        if token.text in ("(", "[", "{"):
            waiting.append(index)
        elif token.text in (")", "]", "}") and waiting:
            closings[waiting.pop()] = index
    return closings


def _rewritten(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens with keywords of Ascend C and CUDA replaced by words of the C++ grammar."""
    closings = closing_brackets(tokens)
    rest = iter(enumerate(tokens))
    for index, token in rest:
        if token.text == "extern" and index + 1 < len(tokens) and tokens[index + 1].text == "__shared__":
            continue
        if token.kind == "name" and token.text in REWRITTEN:
            if REWRITTEN[token.text]:
                yield token._replace(text=REWRITTEN[token.text])
            if token.text in WITH_ARGUMENT and index + 1 in closings and tokens[index + 1].text == "(":
                next(islice(rest, closings[index + 1] - index - 1, None), None)
        elif token.kind != "stray":
            yield token


def _instantiations(tokens: Iterator[Token]) -> Iterator[Token]:
    """Rewrite `extern template class A<int>;` to `template A<int>;`: the grammar has no class and no `extern` there.

    What is left out declares nothing: `extern template` stands before the name of a template only.
    """
    before, waiting = "", list(tokens)
    for index, token in enumerate(waiting):
        behind = [each.text for each in waiting[index + 1 : index + 3]] if token.text == "extern" else []
        is_extern = behind[:1] == ["template"] and behind[1:] != ["<"]
        if not is_extern and not (before == "template" and token.text in _CLASS_KEYS):
            yield token
        before = token.text


def _without_launches(tokens: Iterator[Token]) -> Iterator[Token]:
    """Rewrite `kernel<<<a, b, c>>>(arguments)` to `kernel(a, b, c)(arguments)`, which is C++."""
    open_launches = 0
    waiting = list(tokens)
    index = 0
    while index < len(waiting):
        token = waiting[index]
        if token.text == "<<<":
            open_launches += 1
            yield token._replace(text="(")
        elif open_launches and token.text == ">>" and [t.text for t in waiting[index + 1 : index + 3]] == [">", "("]:
            open_launches -= 1
            index += 1
            yield token._replace(text=")")
        else:
            yield token
        index += 1


def _layout(tokens: Iterator[Token]) -> str:
    """Return a text with every token on its line."""
    parts: list[str] = []
    line = 1
    for token in tokens:
        if token.line > line:
            parts.append("\n" * (token.line - line))
            line = token.line
        parts.append(token.text.replace("\n", " ") + " ")
    return "".join(parts) + "\n"
