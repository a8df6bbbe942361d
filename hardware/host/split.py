"""Splits a CUDA or Ascend C file into a half for the host's compiler and a half for the device's, line for line.

The host half keeps `kernel_launch` and all that it uses: functions, types, constants, macros, and the signatures of
kernels with empty bodies. The device half keeps everything except the functions that launch. All other text is blanked,
so every line of the author's text keeps its number in both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import tree_sitter

from kernel_gym.hardware.host.cpp_syntax import parse
from kernel_gym.hardware.host.launch_syntax import Token, launches, tokens

ENTRY = "kernel_launch"
#: The macro that replaces a launch on the host: `LAUNCHER(line, kernel, grid, block, ...)(arguments)`.
LAUNCHER = "::kernel_gym::launcher"

ItemKind = Literal["kernel", "device", "host", "type", "value", "macro", "using"]

#: CUDA's keywords with C++ replacements that are not longer, so that a C++ grammar parses the text and positions stay.
_PLAIN = {
    "__global__": "constexpr",
    "__device__": "constexpr",
    "__host__": "inline",
    "__forceinline__": "inline",
    "__constant__": "constexpr",
    "__shared__": "static",
    "__managed__": "static",
    "__align__": "alignas",
    "__noinline__": "",
    "__restrict__": "",
    "__restrict": "",
    "__grid_constant__": "",
    "<<<": "(",
    ">>>": ")",
}
#: Keywords that are removed together with their argument in parentheses.
_VANISHING = ("__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__")
_SCOPES = ("translation_unit", "declaration_list", "namespace_definition", "linkage_specification")
_CONDITIONALS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else", "preproc_elifdef")
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "alias_declaration",
          "type_definition", "concept_definition")  # fmt: skip


@dataclass
class Item:
    """A definition at file or namespace scope; `start`, `end` and `body` are positions in the text."""

    kind: ItemKind
    start: int
    end: int
    names: tuple[str, ...]
    body: int | None = None
    scope: str = ""
    is_template: bool = False
    uses: frozenset[str] = frozenset()
    #: Names in a kernel's body and in the members that only the GPU has.
    inside: frozenset[str] = frozenset()
    #: Member functions that only the GPU has.
    members: tuple[tuple[int, int], ...] = ()
    launches: bool = False


@dataclass(frozen=True)
class Split:
    """Both halves; `kernels` are the qualified names of plain kernels, `templates` of those with parameters."""

    host: str
    device: str
    kernels: tuple[str, ...]
    templates: tuple[str, ...]
    entry: bool


def split(source: str) -> Split:
    """Split a file."""
    lexemes = tokens(source)
    items = _Reader(source, lexemes).items()
    kernels = [item for item in items if item.kind == "kernel"]
    reached = _reached(items, (i for i, item in enumerate(items) if item.kind == "host" and ENTRY in item.names))
    return Split(
        host=_host(source, lexemes, items, reached),
        device=_blanked(source, _not_for_the_device(items)),
        kernels=tuple(dict.fromkeys(item.scope + item.names[0] for item in kernels if not item.is_template)),
        templates=tuple(dict.fromkeys(item.scope + item.names[0] for item in kernels if item.is_template)),
        entry=any(item.kind == "host" and ENTRY in item.names for item in items),
    )


def masked(source: str, lexemes: Iterable[Token]) -> bytes:
    """Return the text with CUDA's keywords replaced by C++ of the same length; one byte for each character."""
    text = list(source)
    words = list(lexemes)
    closed = _closed_parentheses(words)
    for index, token in enumerate(words):
        if token.text in _PLAIN:
            text[token.start : token.end] = _PLAIN[token.text].ljust(len(token.text))
        elif token.text in _VANISHING:
            end = closed.get(index + 1, token.end)
            text[token.start : end] = [c if c == "\n" else " " for c in text[token.start : end]]
    return "".join(text).encode("ascii", errors="replace")


def _closed_parentheses(words: Sequence[Token]) -> dict[int, int]:
    """Return the place behind the parentheses that each `(` opens; one that is never closed is left out."""
    ends, waiting = dict[int, int](), list[int]()
    for index, token in enumerate(words):
        if token.text == "(":
            waiting.append(index)
        elif token.text == ")" and waiting:
            ends[waiting.pop()] = token.end
    return ends


class _Reader:
    """Finds the items of a file."""

    def __init__(self, source: str, lexemes: Sequence[Token]) -> None:
        self.source, self.tokens = source, lexemes
        self.text = masked(source, lexemes)
        self._starts = [token.start for token in lexemes]

    def items(self) -> list[Item]:
        """Return all items; functions that launch, or call one that does, are marked."""
        items = list(self._scope(parse(self.text), ""))
        marks = [self.tokens[launch.opening].start for launch in launches(self.tokens)]
        for item in items:
            mark = bisect_left(marks, item.start)
            item.launches = ENTRY in item.names or (mark < len(marks) and marks[mark] < item.end)
        _mark_callers([item for item in items if item.kind == "host"])
        return items

    def _scope(self, root: tree_sitter.Node, scope: str) -> Iterator[Item]:
        waiting = [(child, scope) for child in reversed(root.children)]
        while waiting:
            child, scope = waiting.pop()
            inner = None
            if child.type == "namespace_definition":
                name = child.child_by_field_name("name")
                inner = child.child_by_field_name("body") or child
                scope = f"{scope}{self._text(name)}::" if name is not None else scope
            elif child.type == "linkage_specification":
                body = child.child_by_field_name("body")
                if body is not None and body.type == "declaration_list":
                    inner = body
                elif body is not None:
                    yield from self._item(body, scope, child.start_byte)
            elif child.type in _CONDITIONALS:
                inner = child
            else:
                yield from self._item(child, scope, child.start_byte)
            waiting += [(node, scope) for node in reversed(inner.children)] if inner else []

    def _item(self, node: tree_sitter.Node, scope: str, start: int) -> Iterator[Item]:
        inner = node
        while inner.type == "template_declaration" and inner.named_children:
            inner = inner.named_children[-1]
        kind = self._kind(inner)
        if kind is None:
            return
        body = inner.child_by_field_name("body") if inner.type == "function_definition" else None
        item = Item(kind, start, node.end_byte, tuple(_names(inner)), body.start_byte if body else None, scope)
        item.is_template = node.type == "template_declaration"
        item.members = tuple(self._device_members(inner)) if kind == "type" else ()
        inside = [(item.body, item.end)] if kind == "kernel" and item.body is not None else list(item.members)
        words = [token for token in self._within(item.start, item.end) if token.kind == "word"]
        hidden = {token for start, end in inside for token in self._within(start, end)}
        item.inside = frozenset(token.text for token in words if token in hidden)
        item.uses = frozenset(token.text for token in words if token not in hidden)
        yield item

    def _kind(self, node: tree_sitter.Node) -> ItemKind | None:
        if node.type == "function_definition":
            return self._function(node)
        if node.type in _TYPES:
            return "type"
        if node.type in ("preproc_def", "preproc_function_def"):
            return "macro"
        if node.type in ("using_declaration", "namespace_alias_definition"):
            return "using"
        if node.type != "declaration":
            return None
        words = self._words(node.start_byte, node.end_byte)
        if _is_prototype(node):
            return "kernel" if "__global__" in words else "device" if _only_device(words) else "host"
        return "device" if words & {"__device__", "__managed__"} else "value"

    def _function(self, node: tree_sitter.Node) -> ItemKind:
        body = node.child_by_field_name("body")
        words = self._words(node.start_byte, body.start_byte if body else node.end_byte)
        return "kernel" if "__global__" in words else "device" if _only_device(words) else "host"

    def _device_members(self, node: tree_sitter.Node) -> Iterator[tuple[int, int]]:
        waiting = list(reversed(node.children))
        while waiting:
            child = waiting.pop()
            inner = child.named_children[-1] if child.type == "template_declaration" else child
            if inner.type in ("function_definition", "field_declaration", "declaration"):
                body = inner.child_by_field_name("body")
                end = body.start_byte if body else inner.end_byte
                if _only_device(self._words(inner.start_byte, end)):
                    yield child.start_byte, child.end_byte
            elif inner.type in ("field_declaration_list", *_TYPES):
                waiting += reversed(inner.children)

    def _within(self, start: int, end: int) -> Sequence[Token]:
        return self.tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _words(self, start: int, end: int) -> frozenset[str]:
        return frozenset(token.text for token in self._within(start, end))

    def _text(self, node: tree_sitter.Node) -> str:
        return self.source[node.start_byte : node.end_byte]


def _mark_callers(hosts: list[Item]) -> None:
    """Mark the functions that call one that launches, directly or not."""
    callers = defaultdict[str, list[Item]](list)
    for host in hosts:
        for name in host.uses:
            callers[name].append(host)
    waiting = [host for host in hosts if host.launches]
    while waiting:
        for name in waiting.pop().names:
            fresh = [host for host in callers.pop(name, ()) if not host.launches]
            for host in fresh:
                host.launches = True
            waiting += fresh


def _only_device(words: frozenset[str]) -> bool:
    return "__device__" in words and "__host__" not in words


def _is_prototype(node: tree_sitter.Node) -> bool:
    return any(_function_declarator(child) for child in node.children_by_field_name("declarator"))


def _function_declarator(node: tree_sitter.Node) -> bool:
    while node.type in ("pointer_declarator", "reference_declarator") and node.named_children:
        node = node.named_children[-1]
    return node.type == "function_declarator"


def _names(node: tree_sitter.Node) -> Iterator[str]:
    """Yield the names that an item defines."""
    name = node.child_by_field_name("name")
    if name is not None:
        yield _plain(name)
    if node.type == "using_declaration" and node.named_children:
        yield _plain(node.named_children[-1]).rpartition("::")[2]
    for declarator in node.children_by_field_name("declarator"):
        yield _declared(declarator)
    typed = node.child_by_field_name("type")
    if typed is not None and typed.type in _TYPES:  # `struct S {...} s;` and `typedef struct S {...} T;`
        yield from _names(typed)


def _declared(node: tree_sitter.Node) -> str:
    while (inner := node.child_by_field_name("declarator")) is not None or (
        node.type == "reference_declarator" and node.named_children
    ):
        node = inner if inner is not None else node.named_children[-1]
    return _plain(node).rpartition("::")[2]


def _plain(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode()


def _not_for_the_device(items: list[Item]) -> Iterator[tuple[int, int]]:
    """Yield functions that launch, and functions of the host that no device code calls."""
    reached = _reached(items, (i for i, item in enumerate(items) if item.kind not in ("host", "macro")), bodies=True)
    for index, item in enumerate(items):
        if item.kind == "host" and (item.launches or index not in reached):
            yield item.start, item.end


def _reached(items: list[Item], start: Iterable[int], bodies: bool = False) -> set[int]:
    """Return these items and their dependencies, by position in the list; `bodies`: those of kernels too."""
    by_name: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        for name in item.names:
            by_name.setdefault(name, []).append(index)
    waiting = list(start)
    reached = set(waiting)
    while waiting:
        item = items[waiting.pop()]
        for name in item.uses | item.inside if bodies else item.uses:
            fresh = [index for index in by_name.pop(name, ()) if index not in reached]
            reached.update(fresh)
            waiting += fresh
    return reached


def _host(source: str, lexemes: Sequence[Token], items: list[Item], reached: set[int]) -> str:
    edits = _Edits(source)
    for index, item in enumerate(items):
        own_namespace = item.kind == "using" and "std" in item.uses
        if item.kind == "device" or (index not in reached and item.kind != "macro" and not own_namespace):
            edits.blank(item.start, item.end)
        elif item.kind == "kernel" and item.body is not None:
            edits.blank(item.body, item.end, "{}")
        else:
            for start, end in item.members:
                edits.blank(start, end)
    line, counted = 1, 0
    for launch in launches(lexemes):
        first, opening, closing = lexemes[launch.first], lexemes[launch.opening], lexemes[launch.closing]
        line, counted = line + source.count("\n", counted, first.start), first.start
        edits.replace(first.start, first.start, f"{LAUNCHER}({line}, ")
        edits.replace(opening.start, opening.end, ", ")
        edits.replace(closing.start, closing.end, ")")
    return edits.text()


def _blanked(source: str, spans: Iterable[tuple[int, int]]) -> str:
    edits = _Edits(source)
    for start, end in spans:
        edits.blank(start, end)
    return edits.text()


@dataclass
class _Edits:
    """Edits of a text that keep its lines."""

    source: str
    changes: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        self.changes.append((start, end, text))

    def blank(self, start: int, end: int, keep: str = "") -> None:
        lines = self.source.count("\n", start, end)
        self.changes.append((start, end, keep + "\n" * lines if lines else keep.ljust(end - start)))

    def text(self) -> str:
        """Return the edited text; an edit inside another is dropped."""
        pieces, done = [], 0
        for start, end, text in sorted(self.changes, key=lambda change: (change[0], -change[1])):
            if start >= done:
                pieces += [self.source[done:start], text]
                done = end
        return "".join(pieces) + self.source[done:]
