"""Rewrites `kernel<<<blocks, l2, stream>>>(args)` into a call that g++ understands, line for line.

Nothing but the launch's own brackets changes, so every line of the author's text stays where it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

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
#: The most braces around a definition.
_DEPTH = 4


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
        kind = cores.of(lexemes[launch.name].text)
        pieces += [text[done : begin.start], f"::asc_launcher<ASC_{kind}, ", text[begin.start : opening.start]]
        pieces += [">(", text[opening.end : closing.start], ")"]
        done = closing.end
    return "".join(pieces) + text[done:]


def core_kind(source: str, kernel: str) -> CoreKind:
    """Return the cores that a kernel of a source runs on."""
    return Cores(source).of(kernel)


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
        self._on_cubes = _reaching(_words_by_name(lexemes), _CUBE_NAMES) if words & _CUBE_NAMES else frozenset[str]()
        self._otherwise: CoreKind = "AIV"
        if words & _MATMUL_NAMES:
            written = lexemes if source is None else tokens(source)
            self._otherwise = "AIC" if any(token.text == "ASCENDC_CUBE_ONLY" for token in written) else "MIX"
        self._defined = _kinds_in_definitions(lexemes) if "__global__" in words else {}

    def of(self, name: str) -> CoreKind:
        """Return the cores of the kernel that has this name."""
        if self._otherwise == "AIV" and not self._defined.get(name) and name in self._on_cubes:
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
    opened: list[tuple[int, str | None]] = []
    for index, owner in _owners(lexemes):
        if lexemes[index].text == "{":
            opened.append((index, owner))
        elif opened:
            begin, owner = opened.pop()
            if len(opened) < _DEPTH and owner:
                words.setdefault(owner, set()).update(t.text for t in lexemes[begin:index] if t.kind == "word")
    return words


def _reaching(words: Mapping[str, set[str]], targets: Collection[str]) -> frozenset[str]:
    """Return the functions and classes that name a target, those that name one of these, and so on."""
    users: dict[str, list[str]] = {}
    for owner, own in words.items():
        for word in own:
            users.setdefault(word, []).append(owner)
    reaching, todo = set[str](), list(targets)
    while todo:
        new = [user for user in users.pop(todo.pop(), ()) if user not in reaching]
        reaching.update(new)
        todo += new
    return frozenset(reaching)


class _Head(NamedTuple):
    """What stands between the end of a statement and a brace, outside of parentheses.

    Attributes:
        called: The first word before a parenthesis.
        kind: The name behind the last `class` or `struct`, if no word before a parenthesis follows.
    """

    called: str | None = None
    kind: str | None = None


def _owners(lexemes: Sequence[Token]) -> Iterator[tuple[int, str | None]]:
    """Yield the place of each brace and, if it opens a body, the name of the function or class that has it."""
    head, around = _Head(), list[_Head]()  # `around`: for each open parenthesis, what stands before it
    for index, token in enumerate(lexemes):
        if token.text in ("{", "}", ";"):
            if token.text != ";":
                yield index, head.kind or head.called
            head = _Head()
        elif token.text in ("class", "struct"):
            head = head._replace(kind=lexemes[index + 1].text if index + 1 < len(lexemes) else None)
        elif token.text == "(":
            if index and lexemes[index - 1].kind == "word":
                head = _Head(head.called or lexemes[index - 1].text)
            around.append(head)
            head = _Head()
        elif token.text == ")":
            head = around.pop() if around else _Head()


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
