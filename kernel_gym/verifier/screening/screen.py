"""The screen gate: which tokens, directives, names and declarations a kernel's source may have.

The gate has allow-lists over tokens and over the syntax tree of the expanded text. Tokens are complete: without
pasting, no macro can produce a name that is not written somewhere. The tree adds what tokens do not show: globals,
declarations, casts.
Mere mistakes (an unknown function, a missing header) are left to the compile gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tree_sitter import Node

from kernel_gym.hardware.host.compiler import SOURCE
from kernel_gym.verifier import rules
from kernel_gym.verifier.rules import Finding, RuleBook
from kernel_gym.verifier.screening import syntax
from kernel_gym.verifier.screening.source import (
    Directive,
    Macro,
    Source,
    Token,
    Unreadable,
    closing_brackets,
    read_preprocessed,
)

_GNU_ATTRIBUTE = ("__attribute__", "__attribute")
_OPENING = {")": "(", "]": "["}
_ENDS_OF_A_CLASS_NAME = frozenset({"{", "}", ";", ":", ",", ">", "="})
_DIGRAPHS = frozenset({"<%", "%>", "<:", ":>", "%:", "%:%:"})
#: Names that C++ reserves, and the form of macros that the compiler defines itself, which are numbers and plain types.
_RESERVED, _PREDEFINED = re.compile("__|_[A-Z]"), re.compile("__[A-Z0-9_]+__")
#: A number of standard C++, whose own suffixes begin with `_`; others are complex, decimal or of another width.
_NUMBER = re.compile(
    r"(0[xX][0-9A-Fa-f.']+([pP][+-]?[0-9']+)?|0[bB][01']+|[0-9.']+([eE][+-]?[0-9']+)?)([uUlLzZfF]{0,3}|_\w*)"
)
#: The rule book of each language.
BOOKS = {"ascendc": "screen", "cuda": "screen_cuda"}


def screen(source: Source, compiled: bool = False, language: str = "ascendc") -> Finding | None:
    """Return the first broken rule, or None.

    If the text does not parse, a mistake can look like a global. Then the tree is screened only after the compiler has
    accepted the text (`compiled`). It is parsed only if its tokens break no rule.

    A macro with several definitions is not expanded, because only a preprocessor knows which one holds. In Ascend C the
    tree of such a text is left to `screen_preprocessed`. Where the whole kernel has no preprocessed text, which is so
    on GPUs and NPUs, the macro is refused.
    """
    book = rules.load(BOOKS[language])
    try:
        broken = next(findings(source, False, book), None)
        if broken is None and source.has_redefined_macros:
            if language == "ascendc" and not compiled:
                return None
            broken = next(_redefined_macros(book, source), None)
        if broken is None and (compiled or not source.tree.has_error):
            broken = next(_tree(book, source), None)
        return broken
    except Unreadable as error:
        return book.finding(error.rule, error.line, error.detail)


def screen_host(source: Source) -> Finding | None:
    """Return the first rule that the host code of a bundle breaks, or None.

    It finds calls of the host system and other files by their names, for the author: host code that means to can call
    them all the same. What keeps it from values is that it runs confined, and before a process has seen them.
    """
    book = rules.load("screen_host")
    try:
        broken = next((finding for directive in source.directives for finding in _directive(book, directive)), None)
        broken = broken or next(_names(book, source), None)
        if broken is None and not source.tree.has_error:
            names = syntax.defined_functions(source.tree) | syntax.declared_values(source.tree)
            nodes = (node for node in syntax.walk(source.tree) if node.type == "call_expression")
            broken = next((finding for node in nodes for finding in _call(book, node, names)), None)
        return broken
    except Unreadable as error:
        return book.finding(error.rule, error.line, error.detail)


def screen_known_names(source: Source) -> Finding | None:
    """Return the first reserved name in a text that the compiler has accepted and no list allows, or None.

    The text does not declare such a name, so it is one that the compiler of this machine knows: a type or a function
    that other machines, and the device, may not have. What a compiler knows on any machine is never the text's own: in
    `void f(float __complex__)` it is a part of the type, and a name is declared in one scope and used in others.
    Suffixes of numbers name types, too.
    """
    book = rules.load(BOOKS["ascendc"])
    tokens = source.expanded
    numbers = (token for token in tokens if token.kind == "number")
    if odd := next((number for number in numbers if not _NUMBER.fullmatch(number.text)), None):
        return book.finding("reserved-name", odd.line, odd.text)
    unknown = [place for place, token in enumerate(tokens) if token.kind == "name" and not _is_known(book, token.text)]
    if not unknown:
        return None
    declared = syntax.declared_names(source.tree)
    scopes = declared - syntax.namespace_aliases(source.tree) - {"std"}
    for place in unknown:
        name, scope = tokens[place].text, _scope(tokens, place)
        if _is_suffix(tokens, place):
            continue
        if name not in declared or _is_of_a_compiler(book, name) or (scope and scope not in scopes):
            return book.finding("reserved-name", tokens[place].line, name)
    return None


def _scope(tokens: Sequence[Token], place: int) -> str:
    """Return the name before the `::` in front of a name; empty if there is none."""
    is_scoped = place > 1 and tokens[place - 1].text == "::" and tokens[place - 2].kind == "name"
    return tokens[place - 2].text if is_scoped else ""


def _is_suffix(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a name is the suffix of a literal: the text's own in `operator""_KB`."""
    return place > 1 and tokens[place - 2].text == "operator" and tokens[place - 1].text == '""'


def screen_preprocessed(text: str, language: str = "ascendc") -> Finding | None:
    """Return the first broken rule in what the compiler's preprocessor made of the author's text, or None."""
    book = rules.load(BOOKS[language])
    builtins = book.lists["builtins"] | book.lists["builtins_of_headers"]
    names = book.lists["reserved_names"] | book.lists["names_of_assembly"]
    book = RuleBook(book.rules, book.lists | {"builtins": builtins, "reserved_names": names})
    try:
        source = read_preprocessed(text, SOURCE)
        unknown = screen_known_names(source) if language == "ascendc" else None
        return unknown or next(findings(source, book=book), None)
    except Unreadable as error:
        return book.finding(error.rule, error.line, error.detail)


def findings(source: Source, with_tree: bool = True, book: RuleBook | None = None) -> Iterator[Finding]:
    """Yield every broken rule of a book; by default of the book for Ascend C."""
    book = book or rules.load(BOOKS["ascendc"])
    yield from _characters(book, source)
    for directive in source.directives:
        yield from _directive(book, directive)
    yield from _macros(book, source)
    yield from _names(book, source)
    yield from _namespaces(book, source)
    yield from _specialisations(book, source)
    yield from _operators(book, source)
    yield from _attributes(book, source)
    if with_tree:
        yield from _tree(book, source)


def _characters(book: RuleBook, source: Source) -> Iterator[Finding]:
    if source.raw_strings:
        yield book.finding("raw-string", source.raw_strings[0], "R")
    hidden = [token for d in source.directives for token in d.rest]
    for token in (*source.tokens, *hidden):
        if token.text in _DIGRAPHS and token.kind == "punct":
            yield book.finding("digraph", token.line, token.text)
    for first, second, third in zip(source.tokens, source.tokens[1:], source.tokens[2:], strict=False):
        if first.text == second.text == "?" and not second.spaced and not third.spaced:
            yield book.finding("digraph", first.line, f"??{third.text}")


def _directive(book: RuleBook, directive: Directive) -> Iterator[Finding]:
    if directive.text != "#":
        yield book.finding("digraph", directive.line, directive.text)
    if directive.name not in book.lists["directives"] and (directive.name or directive.rest):
        yield book.finding("directive", directive.line, f"#{directive.name}")
    elif directive.name == "pragma" and not (directive.rest and directive.rest[0].text in book.lists["pragmas"]):
        yield book.finding("pragma", directive.line, " ".join(t.text for t in directive.rest))
    elif directive.name == "include" and is_foreign(included(directive)):
        yield book.finding("include-path", directive.line, included(directive) or "computed by a macro")


def included(directive: Directive) -> str:
    """Return the file that an #include names; empty if a macro computes it."""
    text = "".join(t.text for t in directive.rest)
    match = re.fullmatch(r"""<([^<>"]+)>|"([^"]+)\"""", text)
    return (match.group(1) or match.group(2)) if match else ""


def is_foreign(name: str) -> bool:
    """Return True for paths outside the include folders; a header that only does not exist is a compile error."""
    return not re.fullmatch(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*(\.h|\.hpp)?", name)


def _macros(book: RuleBook, source: Source) -> Iterator[Finding]:
    for macro in source.macros:
        if macro.pastes:
            yield book.finding("token-paste", macro.line, macro.name)
        if macro.name in book.lists["keywords"] or (macro.name.startswith("__") and macro.body):
            yield book.finding("macro-name", macro.line, macro.name)
    names = {macro.name for macro in source.macros}
    for directive in source.directives:
        if directive.name == "undef" and directive.rest and directive.rest[0].text not in names:
            yield book.finding("macro-name", directive.line, directive.rest[0].text)


def _redefined_macros(book: RuleBook, source: Source) -> Iterator[Finding]:
    """Find macros of which only a preprocessor can tell what they stand for."""
    seen: dict[str, Macro] = {}
    for macro in source.macros:
        if macro.name in seen and not (_is_constant(book, macro) and _is_constant(book, seen[macro.name])):
            yield book.finding("macro-redefined", macro.line, macro.name)
        seen[macro.name] = macro


def _is_constant(book: RuleBook, macro: Macro) -> bool:
    """Return whether a macro is a number, a name or arithmetic on them, which cannot hide a declaration."""
    plain = all(
        t.kind in ("number", "name") or t.text in ("+", "-", "/", "%", "(", ")", "<<", ">>", "::") for t in macro.body
    )
    return macro.parameters is None and plain and not any(t.text in book.lists["keywords"] for t in macro.body)


def _names(book: RuleBook, source: Source) -> Iterator[Finding]:
    for token in source.all_names:
        if _is_reserved(book, token.text):
            yield book.finding("reserved-name", token.line, token.text)


def _namespaces(book: RuleBook, source: Source) -> Iterator[Finding]:
    """Find uses of the runtime's own namespace; in a macro, any mention counts."""
    reserved, tokens = book.lists["reserved_namespaces"], source.expanded
    texts = ["", "", "", *(token.text for token in tokens), ""]
    for place, token in enumerate(tokens):
        first, _, before, here, after = texts[place : place + 5]
        is_alias = first == "namespace" and before == "="
        if here in reserved and (is_alias or before in ("namespace", "::") or after == "::"):
            yield book.finding("reserved-name", token.line, here)
    for token in (token for macro in source.macros for token in macro.body if token.text in reserved):
        yield book.finding("reserved-name", token.line, token.text)


def _specialisations(book: RuleBook, source: Source) -> Iterator[Finding]:
    """Find classes that take the place of the library's: functions that are not counted would call theirs."""
    listed = book.lists.get("library_templates", frozenset())
    within = [False]  # for each open bracket: whether the name of a class is being read
    for here, after in pairwise(source.expanded):
        if here.text in ("class", "struct"):
            within[-1] = True
        elif here.text in _OPENING.values():
            within.append(False)
        elif here.text in _OPENING and len(within) > 1:
            within.pop()
        elif here.text in _OPENING or here.text in _ENDS_OF_A_CLASS_NAME:
            within[-1] = False
        elif within[-1] and here.text in listed and after.text == "<":
            yield book.finding("reserved-definition", here.line, here.text)


def _operators(book: RuleBook, source: Source) -> Iterator[Finding]:
    """Find functions that take the place of the runtime's memory, and calls of them."""
    for here, after in pairwise(source.expanded):
        if here.text == "operator" and after.text in ("new", "delete"):
            yield book.finding("reserved-definition", here.line, f"operator {after.text}")


def _is_reserved(book: RuleBook, name: str) -> bool:
    if name.startswith("__builtin_"):
        return name not in book.lists["builtins"] | book.lists["builtin_constants"]
    return name in book.lists["reserved_names"] or name.startswith(tuple(book.lists["reserved_prefixes"]))


def _is_known(book: RuleBook, name: str) -> bool:
    """Return whether a name is not reserved, or one of those that every text may have."""
    if not _RESERVED.match(name) or _PREDEFINED.fullmatch(name):
        return True
    listed = name in book.lists["known_names"] or _bare(name) in book.lists["attributes"]
    return listed or name.startswith(tuple(book.lists["known_prefixes"]))


def _is_of_a_compiler(book: RuleBook, name: str) -> bool:
    """Return whether a compiler knows a reserved name, on this machine or another one."""
    return name.strip("_") in book.lists["compiler_words"] or name.startswith(tuple(book.lists["compiler_prefixes"]))


def _attributes(book: RuleBook, source: Source) -> Iterator[Finding]:
    """Find attributes that are not allowed: every name of every list, also in the bodies of macros."""
    for tokens in (source.expanded, *(macro.body for macro in source.macros)):
        closings = closing_brackets(tokens)
        for index, (first, second) in enumerate(pairwise(tokens)):
            if first.text == second.text == "[":
                yield from _attribute_list(book, tokens, index, "]", closings)
            elif first.text in _GNU_ATTRIBUTE:
                yield from _attribute_list(book, tokens, index + 1, ")", closings)
        if tokens and tokens[-1].text in _GNU_ATTRIBUTE:
            yield book.finding("attribute", tokens[-1].line, tokens[-1].text)


def _attribute_list(
    book: RuleBook, tokens: Sequence[Token], begin: int, closing: str, closings: Mapping[int, int]
) -> Iterator[Finding]:
    """Check the list that begins with two brackets at `begin`: names, scopes (`gnu::`), arguments in parentheses.

    Only names outside of arguments count: what brackets enclose is passed over. A scope is a name, too: `gnu` is
    allowed and the name behind it decides.
    """
    line, index = tokens[begin].line, begin + 2
    end = closings.get(begin + 1, -1)
    brackets = [tokens[place].text for place in (begin, begin + 1, end, end + 1) if 0 <= place < len(tokens)]
    while index < end:
        token = tokens[index]
        allowed = token.text in (",", "::", ":", "using") or _bare(token.text) in book.lists["attributes"]
        if index not in closings and not allowed:
            yield book.finding("attribute", line, token.text)
        index = closings.get(index, index) + 1
    if brackets != [_OPENING[closing], _OPENING[closing], closing, closing]:
        yield book.finding("attribute", line, tokens[begin].text)


def _bare(name: str) -> str:
    """Return an attribute's name without the underscores that it may be written with."""
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def _tree(book: RuleBook, source: Source) -> Iterator[Finding]:
    for finding in _nodes(book, source):
        yield replace(finding, detail=source.as_written(finding.detail, finding.line or 1))


def _nodes(book: RuleBook, source: Source) -> Iterator[Finding]:
    names = syntax.defined_functions(source.tree)
    own, of_c = names | syntax.declared_values(source.tree), syntax.names_of_c(source.tree)
    mutable = any(syntax.is_mutable_member(node) for node in syntax.walk(source.tree))
    places = syntax.places(source.tree)
    for node in syntax.walk(source.tree):
        match node.type:
            case "declaration" | "field_declaration":
                yield from _declaration(book, node, places[node.id], names, mutable, source.tree)
            case "expression_statement":
                yield from _misread(book, node, places[node.id], names, source.tree)
            case "function_definition":
                yield from _definition(book, node, of_c)
            case "call_expression":
                yield from _call(book, node, own)
                yield from _cast(book, node, source.tree, names)
            case "cast_expression":
                yield from _cast(book, node, source.tree, names)
            case "qualified_identifier":
                yield from _qualified(book, node)


def _declaration(
    book: RuleBook, node: Node, place: syntax.Place, names: frozenset[str], mutable: bool, root: Node
) -> Iterator[Finding]:
    """Check one declaration; `mutable` says that the file has a class of which even a constant can be written.

    A function that is declared inside of another one has the linkage of what is around it. With that of C, the name
    may be any symbol's. No template has that linkage, and the functions that a binary may leave undefined
    (`rule_books/binary.yaml`) all have it: what calls a template without a definition ends at the binary gate.
    """
    line = syntax.line(node)
    storage = {syntax.text(child) for child in node.children if child.type == "storage_class_specifier"}
    functions = [] if _declares_objects(node, place, storage, root) else syntax.declared_functions(node)
    has_variables = len(functions) < len(syntax.declarators(node))
    is_mangled = (place.in_template or place.in_block) and not place.in_linkage
    is_prototype = bool(functions) and node.type == "declaration" and not is_mangled
    is_defined = is_prototype and names.issuperset(functions)
    if (is_prototype and not is_defined) or ("extern" in storage and (has_variables or not is_defined)):
        yield book.finding("extern-declaration", line, syntax.text(node))
    elif has_variables and syntax.is_lasting(node, storage, place) and not syntax.is_constant(node, mutable):
        yield book.finding("mutable-global", line, syntax.text(node))


def _declares_objects(node: Node, place: syntax.Place, storage: set[str], root: Node) -> bool:
    """Return whether what looks like functions are objects, as they may be in a function or of a template.

    No function is static inside of another one. In a class no object has its value in parentheses.
    """
    if node.type != "declaration" or not syntax.declared_functions(node):
        return False
    if place.in_block:
        return "static" in storage or syntax.declares_objects(node, syntax.declared_values(root))
    is_template = place.in_template and place.around is None
    types = syntax.declared_types(root)
    return is_template and syntax.declares_objects(node, syntax.declared_values(root), types)


def _misread(book: RuleBook, node: Node, place: syntax.Place, names: frozenset[str], root: Node) -> Iterator[Finding]:
    """Check a declaration that looks like an expression, because its name is in parentheses."""
    declared = syntax.misread(node, place, syntax.declared_types(root))
    if declared is None:
        return
    if declared.is_function and declared.name not in names and (place.in_linkage or not place.in_block):
        yield book.finding("extern-declaration", syntax.line(node), syntax.text(node))
    elif not declared.is_function and not place.in_block:
        yield book.finding("mutable-global", syntax.line(node), syntax.text(node))


def _definition(book: RuleBook, node: Node, of_c: frozenset[str]) -> Iterator[Finding]:
    """Check one definition; `of_c` are the names that have the linkage of C wherever they are defined."""
    for name in syntax.declared_functions(node):
        taken = book.lists["reserved_definitions"] | book.lists["host_functions"]
        if name in taken and name in of_c:
            yield book.finding("reserved-definition", syntax.line(node), name)


def _call(book: RuleBook, node: Node, own: frozenset[str]) -> Iterator[Finding]:
    """Check one call; `own` are the functions and values of the file. The binary shows which function is called."""
    name = syntax.callee(node)
    if name in book.lists["host_functions"] and name not in own:
        yield book.finding("host-function", syntax.line(node), name)


def _qualified(book: RuleBook, node: Node) -> Iterator[Finding]:
    name = syntax.name_in_std(node)
    if name in book.lists["host_std"]:
        yield book.finding("host-function", syntax.line(node), f"std::{name}")


def _cast(book: RuleBook, node: Node, root: Node, names: frozenset[str]) -> Iterator[Finding]:
    cast = syntax.as_cast(node)
    if cast and syntax.is_plain_pointer(cast.type) and cast.value.id in syntax.numbers_and_code(root, names):
        yield book.finding("forged-pointer", syntax.line(node), syntax.text(node))
