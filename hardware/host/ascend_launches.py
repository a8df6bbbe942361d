"""Rewrites `kernel<<<blocks, l2, stream>>>(args)` into a call that g++ understands, line for line.

Nothing but the launch's own brackets changes, so every line of the author's text stays where it is.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Literal

from kernel_gym.hardware.host.launch_syntax import Token, launches, tokens

CoreKind = Literal["AIV", "AIC", "MIX", "MIX_1_1"]

KINDS: dict[str, CoreKind] = {
    "KERNEL_TYPE_AIV_ONLY": "AIV",
    "KERNEL_TYPE_MIX_AIV_1_0": "AIV",
    "KERNEL_TYPE_AIC_ONLY": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_0": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_1": "MIX_1_1",
    "KERNEL_TYPE_MIX_AIC_1_2": "MIX",
    "__vector__": "AIV",
    "__cube__": "AIC",
    "__mix__": "MIX",
}

#: Names that a kernel may have and that the simulator's compiler must not see. Behind a call that does not return, or a
#: place that is never reached, g++ writes no end of the function: it would run into the next one.
_REPLACED = {
    "always_inline": "unused",
    "__always_inline__": "__unused__",
    "noreturn": "unused",
    "__noreturn__": "__unused__",
    "__builtin_unreachable": "__builtin_trap",
}
#: Names that say on which cores a kernel runs. The headers' macros leave them in the preprocessed text.
_QUALIFIERS = frozenset({"__global__", "__vector__", "__cube__"})
_WITH_ARGUMENTS = frozenset({"__mix__", "KERNEL_TASK_TYPE_DEFAULT", "KERNEL_TASK_TYPE"})
#: REGIST_MATMUL_OBJ, and what the headers make of it.
_MATMUL_NAMES = frozenset({"REGIST_MATMUL_OBJ", "regist_matmul"})
#: Names of the cube at its basic level: a kernel that reaches one runs on cube cores.
_CUBE_NAMES = frozenset({"Mmad", "LoadData", "LoadDataWithTranspose", "Fixpipe", "Nd2NzParams", "InitConstValue"})
#: The most tokens between the name of a function and its body, and the most braces around a definition.
_HEAD, _DEPTH = 200, 4


def rewrite(text: str, cores: Cores | None = None) -> str:
    """Return a text with its launches as calls; what cannot be parsed as a launch is unchanged.

    Attributes that force a function to be inlined are replaced, too: code that is inlined into a function of the
    headers would not be counted, and so be free.

    Args:
        text: The text, in which no macro is left.
        cores: The cores that its kernels run on; by default read in the text.
    """
    cores = cores or Cores(text)
    text = _with_names_replaced(text)
    lexemes = tokens(text)
    pieces, done = [], 0
    for launch in launches(lexemes):
        begin, opening, closing = lexemes[launch.first], lexemes[launch.opening], lexemes[launch.closing]
        kind = cores.of(lexemes[launch.first : launch.opening])
        pieces += [text[done : begin.start], f"::asc::launcher<ASC_{kind}, ", text[begin.start : opening.start]]
        pieces += [">(", text[opening.end : closing.start], ")"]
        done = closing.end
    return "".join(pieces) + text[done:]


def core_kind(source: str, kernel: str) -> CoreKind:
    """Return the cores that a kernel of a source runs on."""
    return Cores(source).of([next(token for token in tokens(source) if token.text == kernel)])


def _with_names_replaced(source: str) -> str:
    if not any(name in source for name in _REPLACED):
        return source
    pieces, done = list[str](), 0
    for token in tokens(source):
        if token.text in _REPLACED:
            pieces += [source[done : token.start], _REPLACED[token.text]]
            done = token.end
    return "".join(pieces) + source[done:]


class Cores:
    """The cores that kernels run on: from their definitions, else from the names that their code reaches.

    Args:
        text: The text, in which no macro is left.
        source: The text as its author wrote it, where ASCENDC_CUBE_ONLY is defined; by default the same.

    Attributes:
        unmarked: The text without the names that only say on which cores kernels run.
    """

    def __init__(self, text: str, source: str | None = None) -> None:
        lexemes = tokens(text)
        self.unmarked = _without_marks(text, lexemes)
        words = {token.text for token in lexemes if token.kind == "word"}
        self._words = _words_by_name(lexemes) if words & _CUBE_NAMES else {}
        self._otherwise: CoreKind = "AIV"
        if words & _MATMUL_NAMES:
            written = lexemes if source is None else tokens(source)
            self._otherwise = "AIC" if any(token.text == "ASCENDC_CUBE_ONLY" for token in written) else "MIX"
        self._defined = _kinds_in_definitions(lexemes) if "__global__" in words else {}

    def of(self, callee: Sequence[Token]) -> CoreKind:
        """Return the cores of the kernel that these tokens name."""
        before_templates = itertools.takewhile(lambda token: token.text != "<", callee)
        name = [token.text for token in before_templates if token.kind == "word"][-1]
        if self._otherwise == "AIV" and not self._defined.get(name) and _reached(self._words, name) & _CUBE_NAMES:
            return "AIC"
        return self._defined.get(name) or self._otherwise


def _without_marks(text: str, lexemes: Sequence[Token]) -> str:
    pieces, done, first, depth = list[str](), 0, None, 0
    for index, token in enumerate(lexemes):
        if first is None and token.text in _WITH_ARGUMENTS and lexemes[index + 1 : index + 2]:
            first = token if lexemes[index + 1].text == "(" else None
        elif first is not None:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        ends = token.text in _QUALIFIERS if first is None else token.text == ")" and depth == 0
        if ends:
            begin = (first or token).start
            if "\n" not in text[begin : token.end]:
                pieces.append(text[done:begin])
                done = token.end
            first = None
    return "".join(pieces) + text[done:]


def _words_by_name(lexemes: Sequence[Token]) -> dict[str, set[str]]:
    """Return the words in the bodies of each function and class."""
    words: dict[str, set[str]] = {}
    opened: list[int] = []
    for index, token in enumerate(lexemes):
        if token.text == "{":
            opened.append(index)
        elif token.text == "}" and opened:
            begin = opened.pop()
            if len(opened) < _DEPTH and (owner := _owner(lexemes, begin)):
                words.setdefault(owner, set()).update(t.text for t in lexemes[begin:index] if t.kind == "word")
    return words


def _reached(words: Mapping[str, set[str]], name: str) -> set[str]:
    """Return the words of a function, of the functions and classes that it names, and so on."""
    reached: set[str] = set()
    todo = {name}
    while todo:
        own = words.get(todo.pop(), set())
        todo |= own - reached
        reached |= own
    return reached


def _owner(lexemes: Sequence[Token], brace: int) -> str | None:
    """Return the name of the function or class whose body opens at `brace`."""
    depth = 0
    name: str | None = None
    for index in range(brace - 1, max(brace - _HEAD, -1), -1):
        token = lexemes[index]
        if depth == 0 and token.text in ("{", "}", ";"):
            return name
        depth += {")": 1, "(": -1}.get(token.text, 0)
        if depth == 0 and name is None and token.text in ("class", "struct"):
            return lexemes[index + 1].text
        if depth == 0 and token.text == "(" and index and lexemes[index - 1].kind == "word":
            name = lexemes[index - 1].text
    return name


def _kinds_in_definitions(lexemes: Sequence[Token]) -> dict[str, CoreKind | None]:
    """Return the kind of cores in the first definition of each kernel; None if there is none.

    A definition is `__global__` and what follows, up to a semicolon or to the end of a body in braces.
    """
    kind_by_name: dict[str, CoreKind | None] = {}
    kinds = [index for index, token in enumerate(lexemes) if token.text in KINDS]
    bodies, head = _bodies(lexemes), None
    for index, token in enumerate(lexemes):
        if token.text == "__global__" and head is None:
            head = index
        elif token.text in ("{", ";") and head is not None:
            end = bodies.get(index, index)
            first = bisect_left(kinds, head)
            kind = _kind(lexemes, kinds[first]) if first < len(kinds) and kinds[first] < end else None
            depth = 0
            for name in lexemes[head:index]:
                depth += {"(": 1, ")": -1}.get(name.text, 0)
                if depth == 0:  # parameters may have the names of other kernels
                    kind_by_name.setdefault(name.text, kind)
            head = None
    return kind_by_name


def _kind(lexemes: Sequence[Token], index: int) -> CoreKind:
    following = [token.text for token in lexemes[index + 1 : index + 6]]
    return "MIX_1_1" if following == ["(", "1", ",", "1", ")"] else KINDS[lexemes[index].text]


def _bodies(lexemes: Sequence[Token]) -> dict[int, int]:
    """Return the index behind the body that each `{` opens."""
    bodies, waiting = dict[int, int](), list[int]()
    for index, token in enumerate(lexemes):
        if token.text == "{":
            waiting.append(index)
        elif token.text == "}" and waiting:
            bodies[waiting.pop()] = index
    return bodies | dict.fromkeys(waiting, len(lexemes))
