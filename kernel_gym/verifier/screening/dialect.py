"""The compile gate, first part: mistakes that the device compiler refuses and g++ accepts, with a hint for each.

Types are inferred only from the file itself; where that is not enough, nothing is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from tree_sitter import Node

from kernel_gym.hardware.device import Diagnostic
from kernel_gym.verifier import rules
from kernel_gym.verifier.rules import Finding
from kernel_gym.verifier.screening import syntax
from kernel_gym.verifier.screening.screen import included
from kernel_gym.verifier.screening.source import Source

_BOOK = rules.load("dialect")
_INCLUDES = rules.load("screen").lists["includes"]
_UNSIGNED = frozenset(
    {"unsigned", "unsignedint", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t", "unsignedlong"}
)
_FLOATING = frozenset({"float", "half", "float32_t"})
_FLOAT_HEADERS, _MATH_HEADERS = frozenset({"cfloat", "float.h"}), frozenset({"cmath", "math.h"})
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
#: Functions inside of functions whose own scopes are looked at; what is deeper counts as part of those around it.
_NESTED_FUNCTIONS = 4
_EXPRESSIONS = frozenset(
    {"identifier", "field_expression", "parenthesized_expression", "number_literal", "binary_expression"}
    | {"cast_expression", "call_expression"}
)


def lint(source: Source, part: str = "") -> tuple[Diagnostic, ...]:
    """Return all mistakes in the order of their lines; none if the text does not parse, which the compiler reports.

    Args:
        source: The text.
        part: The part of a bundle that the text is; it has no host function.
    """
    # A quote that is not closed is the compiler's to report: text between `#if 0` and `#endif` may have one.
    stray = [t for t in source.tokens if t.kind == "stray" and t.text[0] not in "'\""]
    if stray:
        rule = _BOOK.rules["stray-character"]
        return (Diagnostic(f"{rule.reason} ({stray[0].text[0]!a}); {rule.hint}", stray[0].line, part),)
    if source.tree.has_error:
        return ()
    mistakes = sorted(findings(source, not part), key=lambda finding: finding.line or 0)
    if source.has_redefined_macros:  # the head of a kernel may be behind one
        mistakes = [finding for finding in mistakes if finding.rule.id not in ("no-kernel", "no-launch")]
    details = (source.as_written(finding.detail, finding.line or 1) for finding in mistakes)
    return tuple(
        Diagnostic(f"{f.rule.reason} ('{detail}'); {f.rule.hint}", f.line, part)
        for f, detail in zip(mistakes, details, strict=True)
    )


def findings(source: Source, launches: bool = True) -> Iterator[Finding]:
    """Yield every mistake; a text that `launches` its kernel has a host function."""
    for directive in source.directives:
        if directive.name == "include" and included(directive) not in _INCLUDES:
            yield _BOOK.finding("missing-header", directive.line, included(directive))
    functions = [node for node in syntax.walk(source.tree) if node.type == "function_definition"]
    yield from _entry_points(functions, launches)
    names = _Names(source, frozenset(included(d) for d in source.directives if d.name == "include"))
    for function in functions:
        is_deep = syntax.places(source.tree)[function.id].functions > _NESTED_FUNCTIONS
        if syntax.is_device_function(function) and not is_deep:
            yield from _Device(function, names).findings()
    for node in syntax.walk(source.tree):
        if node.type == "qualified_identifier":
            yield from _std(node)


def _entry_points(functions: list[Node], launches: bool) -> Iterator[Finding]:
    if not any(syntax.is_entry(function) for function in functions):
        yield _BOOK.finding("no-kernel", None, "__global__")
    if launches and not any("kernel_launch" in syntax.declared_functions(function) for function in functions):
        yield _BOOK.finding("no-launch", None, "kernel_launch")


def _std(node: Node) -> Iterator[Finding]:
    name = syntax.name_in_std(node)
    if name and name not in _BOOK.lists["std_names"]:
        yield _BOOK.finding("std-name", syntax.line(node), f"std::{name}")


@dataclass(frozen=True)
class _Member:
    """The type that declares a data member; `plain` if it is the member's own, and the member not constant."""

    type: str = ""
    plain: bool = False

    @property
    def kind(self) -> str:
        return _kind(self.type) if self.plain else ""


class _Names:
    """The names that the file declares outside of function bodies: member types, functions, constants."""

    def __init__(self, source: Source, headers: frozenset[str]) -> None:
        self.root, self._parsed = source.tree, source.parsed
        self.headers = headers
        self.functions = syntax.defined_functions(self.root)

    def class_around(self, node: Node) -> str:
        """Return the name of the class that a declaration or a function is in; empty outside of classes."""
        around = syntax.places(self.root)[node.id].around
        return syntax.text(around.child_by_field_name("name")).partition("<")[0] if around else ""

    def excerpt(self, node: Node) -> str:
        """Return the text of a node, shortened, for a message."""
        return _short(
            self._parsed[node.start_byte : min(node.end_byte, node.start_byte + 400)].decode(errors="replace")
        )

    @cached_property
    def classes(self) -> dict[str, dict[str, _Member]]:
        """The data members of each class; one that classes of the same name declare in different ways is unknown."""
        classes: dict[str, dict[str, _Member]] = {}
        for node in syntax.walk(self.root):
            if node.type != "field_declaration":
                continue
            members = classes.setdefault(self.class_around(node), {})
            for declarator in syntax.declarators(node):
                name, plain = syntax.name_of(declarator), _is_plain(declarator) and not _is_fixed(node)
                member = _Member(_type(node), plain)
                members[name] = member if members.get(name, member) == member else _Member()
        return classes

    @cached_property
    def members(self) -> dict[str, _Member]:
        """The data members of all classes by name; those that classes declare in different ways are left out."""
        by_name: dict[str, set[_Member]] = {}
        for members in self.classes.values():
            for name, member in members.items():
                by_name.setdefault(name, set()).add(member)
        return {name: kinds.pop() for name, kinds in by_name.items() if len(kinds) == 1}

    def member(self, owner: str, name: str) -> _Member:
        """Return a member of a class; of an unknown class, the one that all classes with such a member agree on."""
        own = self.classes.get(owner.partition("<")[0], {}) if owner else {}
        return own.get(name) or self.members.get(name, _Member())

    @cached_property
    def declared(self) -> frozenset[str]:
        """Every name that the file declares as a variable, constant or function."""
        nodes = (
            n for n in syntax.walk(self.root) if n.type in ("declaration", "field_declaration", "parameter_declaration")
        )
        return self.functions | {
            syntax.name_of(declarator) for node in nodes for declarator in syntax.declarators(node)
        }

    def has_constant(self, name: str) -> bool:
        """Return whether the file declares a constant of the C library, or includes the header that does."""
        of_floats = name.startswith(("FLT_", "DBL_"))
        return name in self.declared or not self.headers.isdisjoint(_FLOAT_HEADERS if of_floats else _MATH_HEADERS)


def _is_fixed(node: Node) -> bool:
    """Return whether a declaration is constant: the compiler folds constants, and folded casts are allowed."""
    return not syntax.words(node).isdisjoint({"constexpr", "const", "static"})


def _head(node: Node) -> str:
    """Return the text of a declaration without its values and without the body of a class."""
    children = takewhile(lambda child: child.type != "=", node.children)
    written = (c for c in children if c.child_by_field_name("body") is None)
    return "".join(syntax.text(c.child_by_field_name("declarator") or c) for c in written)


def _is_plain(declarator: Node) -> bool:
    return declarator.type in ("identifier", "field_identifier")


def _type(node: Node) -> str:
    """Return the type that a declaration names; of a class that it defines, the name."""
    kind = node.child_by_field_name("type")
    if kind is not None and kind.child_by_field_name("body") is not None:
        kind = kind.child_by_field_name("name")
    return syntax.text(kind).replace(" ", "").rpartition("::")[2]


class _Device:
    """One function that runs on the device."""

    def __init__(self, function: Node, names: _Names) -> None:
        self.function = function
        self.names = names
        self.types: dict[str, str] = {}
        self.owners: dict[str, str] = {}  # types of variables, and what pointers point to
        scope = syntax.name_of(function.child_by_field_name("declarator")).rpartition("::")[0]
        self.owner = names.class_around(function) or scope.rpartition("::")[2]
        self.in_global_memory: set[str] = set()
        self._kinds: dict[int, str] = {}
        self._members: dict[int, _Member] = {}
        for node in syntax.walk(function):
            if node.type in ("declaration", "parameter_declaration", "optional_parameter_declaration"):
                self._declare(node)
        for node in reversed(syntax.walk(function)):  # operands first: long expressions are deep trees
            if node.type in _EXPRESSIONS:
                self._kinds[node.id] = self._kind_of(node)

    def _declare(self, node: Node) -> None:
        for declarator in syntax.declarators(node):
            name = syntax.name_of(declarator)
            if _type(node) == "GM_ADDR" or "_Nonnull" in _head(node):
                self.in_global_memory.add(name)
            plain = _is_plain(declarator) or declarator.type == "reference_declarator"
            is_fixed = _is_fixed(node) and node.type == "declaration"
            self.owners[name] = _type(node) if self.owners.get(name, _type(node)) == _type(node) else ""
            kept = "" if is_fixed or not plain else _type(node)
            self.types[name] = kept if self.types.get(name, kept) == kept else ""  # shadowed by another type: unknown

    def findings(self) -> Iterator[Finding]:
        for node in syntax.walk(self.function):
            match node.type:
                case "cast_expression" | "call_expression":
                    yield from self._conversion(node)
                    yield from self._pointer(node)
                    yield from self._call(node)
                case "assignment_expression" | "binary_expression" | "init_declarator":
                    yield from self._conversion(node)
                case "identifier":
                    yield from self._name(node)
                case "primitive_type" if syntax.text(node) == "double":
                    yield _BOOK.finding("double", syntax.line(node), syntax.text(node.parent or node)[:40])

    def _conversion(self, node: Node) -> Iterator[Finding]:
        kinds: set[str] = set()
        cast = syntax.as_cast(node)
        if cast is not None:
            kinds = {_kind(syntax.text(cast.type).replace(" ", "")), self.kind(cast.value)}
        elif node.type == "assignment_expression" or (_is_arithmetic(node) and not _scales(node)):
            kinds = {self._operand(node, "left"), self._operand(node, "right")}
        elif node.type == "init_declarator" and node.parent is not None and _declares_number(node, node.parent):
            kinds = {_kind(_type(node.parent)), self._operand(node, "value")}
        if kinds == {"float", "unsigned"}:
            yield _BOOK.finding("float-unsigned", syntax.line(node), self.names.excerpt(node))

    def _operand(self, node: Node, field: str) -> str:
        operand = node.child_by_field_name(field)
        return self.kind(operand) if operand is not None else ""

    def kind(self, node: Node) -> str:
        """Return `float`, `unsigned`, `pointer`, or nothing for other types, integer literals and constants."""
        return self._kinds.get(node.id, "")

    def _kind_of(self, node: Node) -> str:
        """Return the kind of a node, given those of the nodes below it."""
        cast = syntax.as_cast(node)
        if cast is not None:
            return _kind(syntax.text(cast.type).replace(" ", ""))
        match node.type:
            case "identifier":
                name = syntax.text(node)
                return _kind(self.types[name]) if name in self.types else self.names.member(self.owner, name).kind
            case "field_expression":
                return self._member(node).kind
            case "parenthesized_expression":
                return self.kind(node.named_children[0]) if node.named_children else ""
            case "number_literal":
                is_float = syntax.text(node).lower().endswith("f") and not syntax.text(node).startswith("0x")
                return "float" if is_float else ""
            case "binary_expression" if _is_arithmetic(node):
                both = {self._operand(node, "left"), self._operand(node, "right")}
                if "pointer" in both:
                    return "pointer"
                return "float" if "float" in both else "unsigned" if "unsigned" in both else ""
        return ""

    def _member(self, node: Node) -> _Member:
        """Return the member that `object.name`, `this->name` or `object.part.name` is."""
        part, owner = node.child_by_field_name("argument"), ""
        if part is not None and part.type == "this":
            owner = self.owner
        elif part is not None and part.type == "field_expression":
            owner = self._members[part.id].type
        elif part is not None and part.type == "identifier":
            name = syntax.text(part)
            owner = self.owners[name] if name in self.owners else self.names.member(self.owner, name).type
        member = self._members[node.id] = self.names.member(owner, syntax.text(node.child_by_field_name("field")))
        return member

    def _pointer(self, node: Node) -> Iterator[Finding]:
        cast = syntax.as_cast(node)
        if cast is None or not syntax.is_plain_pointer(cast.type):
            return
        value = cast.value
        while value.type in ("parenthesized_expression", "binary_expression") and value.named_children:
            value = value.named_children[0]
        if value.type == "identifier" and syntax.text(value) in self.in_global_memory:
            yield _BOOK.finding("missing-gm", syntax.line(node), self.names.excerpt(node))

    def _name(self, node: Node) -> Iterator[Finding]:
        name = syntax.text(node)
        if name in _BOOK.lists["constants"] and not self.names.has_constant(name):
            yield _BOOK.finding("host-constant", syntax.line(node), name)

    def _call(self, node: Node) -> Iterator[Finding]:
        called = syntax.callee(node)
        if called in _BOOK.lists["maths"] and called not in self.names.declared:
            yield _BOOK.finding("host-maths", syntax.line(node), called)


def _is_arithmetic(node: Node) -> bool:
    return node.type == "binary_expression" and syntax.text(node.child_by_field_name("operator")) in _ARITHMETIC


def _scales(node: Node) -> bool:
    """Return whether a number is multiplied by a literal, as in `n * 1.0f`: the device compiler converts it."""
    operator = syntax.text(node.child_by_field_name("operator"))
    return operator == "*" and any(child.type == "number_literal" for child in node.named_children)


def _declares_number(node: Node, declaration: Node) -> bool:
    """Return whether an initialised declarator is of its declaration's own type and not constant."""
    declarator = node.child_by_field_name("declarator")
    return not _is_fixed(declaration) and declarator is not None and _is_plain(declarator)


def _kind(type_name: str) -> str:
    if type_name.endswith("*"):
        return "pointer"
    bare = type_name.removeprefix("const").removeprefix("std::")
    return "unsigned" if bare in _UNSIGNED else "float" if bare in _FLOATING else ""


def _short(text: str) -> str:
    flat = re.sub(r"\s*([(),.;<>\[\]]|::|->)\s*", r"\1", " ".join(text.replace("_Nonnull", "__gm__").split()))
    return flat if len(flat) <= 60 else flat[:57] + "..."
