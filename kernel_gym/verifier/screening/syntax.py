"""Queries on the syntax tree of a kernel."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from tree_sitter import Node

from kernel_gym.hardware.host.cpp_syntax import Unparsable
from kernel_gym.verifier.screening.source import DEVICE, ENTRY, SPACE

#: Most levels of a tree; a sum has one for each of its terms. No walk reads a text more often than this.
MAX_DEPTH = 10_000
_FUNCTION_LIKE = ("function_definition", "lambda_expression")
_DECLARATIONS = frozenset(
    {"declaration", "field_declaration", "function_definition", "type_definition", "for_range_loop"}
    | {"parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration"}
)
_NAMED = frozenset(
    {"class_specifier", "struct_specifier", "union_specifier", "enum_specifier", "enumerator", "alias_declaration"}
    | {"namespace_definition", "namespace_alias_definition", "concept_definition"}
    | {"optional_type_parameter_declaration"}
)
_PARAMETERS_OF_TEMPLATES = frozenset({"type_parameter_declaration", "variadic_type_parameter_declaration"})
_TYPES = (_NAMED - {"enumerator"}) | {"type_definition"} | _PARAMETERS_OF_TEMPLATES
_OBJECTS = _DECLARATIONS - _TYPES
#: Nodes whose place is asked for, and those that make one.
_PLACED = frozenset({"declaration", "field_declaration", "function_definition", "expression_statement"})
_AROUND = frozenset(
    {"compound_statement", "field_declaration_list", "for_statement", "condition_clause", "linkage_specification"}
    | {"class_specifier", "struct_specifier", "union_specifier", "function_definition", "template_declaration"}
)
_ARITHMETIC = frozenset({"parenthesized_expression", "binary_expression", "unary_expression"})
#: What a number, the address of a function, and arithmetic on them may be.
_VALUES = _ARITHMETIC | {"cast_expression", "call_expression", "pointer_expression", "number_literal", "identifier"}
#: How the types of nodes end that are inside of a declarator: another one, or a name.
_INSIDE = ("declarator", "identifier", "operator_name")
#: Expressions that begin with a call.
_AROUND_A_CALL = ("call_expression", "assignment_expression", "subscript_expression")
#: Declarators that are around another one, or a name, without a field for it.
_WITHOUT_FIELD = ("reference_declarator", "parenthesized_declarator", "variadic_declarator")
_QUALIFIERS = ("storage_class_specifier", "type_qualifier")
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")


@lru_cache(maxsize=64)  # the same trees are walked several times, and creating nodes is expensive
def walk(node: Node) -> tuple[Node, ...]:
    """Return the node and all nodes below it, in the order of the text."""
    nodes, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        nodes.append(current)
        waiting += current.children[::-1]
    return tuple(nodes)


def text(node: Node | None) -> str:
    """Return the text of a node; empty for None."""
    return node.text.decode(errors="replace") if node is not None and node.text is not None else ""


def line(node: Node) -> int:
    """Return the author's line of a node, from 1."""
    return node.start_point[0] + 1


@dataclass(frozen=True)
class Place:
    """Where a declaration or a function stands.

    Args:
        in_block: Whether it is inside of braces with statements.
        in_linkage: Whether it is inside of `extern "C"`.
        in_template: Whether it is what a template declares, rather than a part of that.
        is_local: Whether what is nearest around it ends the life of a variable: a block, a class, a loop, a condition.
        around: The nearest class around it.
        functions: How many functions are around it.
    """

    in_block: bool = False
    in_linkage: bool = False
    in_template: bool = False
    is_local: bool = False
    around: Node | None = None
    functions: int = 0

    def within(self, node: Node, kind: str) -> Place:
        """Return the place of what is inside of a node of this kind."""
        match kind:
            case "compound_statement":
                return replace(self, in_block=True, in_template=False, is_local=True)
            case "field_declaration_list" | "for_statement" | "condition_clause":
                return replace(self, is_local=True)
            case "linkage_specification":
                return replace(self, in_linkage=_is_linkage_of_c(node), in_template=False)
            case "template_declaration":
                return replace(self, in_template=True)
            case "class_specifier" | "struct_specifier" | "union_specifier":
                return replace(self, in_template=False, around=node)
            case "function_definition":
                return replace(self, functions=self.functions + 1)
        return self


@lru_cache(maxsize=4)
def places(root: Node) -> dict[int, Place]:
    """Return the places of all declarations and functions by their ids; the parent of a node is slow to look up.

    Raises:
        Unparsable: If the tree is deeper than any kernel's.
    """
    by_id, around = dict[int, Place](), [(sys.maxsize, Place())]  # the nodes around, by where those below them end
    for index, node in enumerate(walk(root)):
        while around[-1][0] <= index:
            around.pop()
        kind, place = node.type, around[-1][1]
        if len(around) > MAX_DEPTH:
            raise Unparsable(f"The text is nested more than {MAX_DEPTH:,} levels deep: split its expressions")
        if kind in _PLACED:
            by_id[node.id] = place
        around.append((index + node.descendant_count, place.within(node, kind) if kind in _AROUND else place))
    return by_id


def _is_linkage_of_c(node: Node) -> bool:
    """Return whether a linkage is that of C: `extern "C"`, or any that is not plainly `extern "C++"`."""
    return text(node.child_by_field_name("value")) != '"C++"'


def declarators(node: Node) -> list[Node]:
    """Return the declarators of a declaration without initialisers."""
    children = node.children_by_field_name("declarator")
    return [(c.child_by_field_name("declarator") or c) if c.type == "init_declarator" else c for c in children]


def words(node: Node) -> frozenset[str]:
    """Return the words of a declaration that say how it is stored and qualified: `static`, `const`, `mutable`."""
    return frozenset(text(child) for child in node.children if child.type in _QUALIFIERS)


def name_of(declarator: Node | None) -> str:
    """Return the name inside pointers, arrays, references and parameter lists."""
    while declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type in _WITHOUT_FIELD:
            inner = next(
                (c for c in declarator.named_children if "declarator" in c.type or "identifier" in c.type), None
            )
        if inner is None:
            is_named = not declarator.type.startswith("abstract_") and declarator.type != "variadic_declarator"
            return text(declarator) if is_named else ""
        declarator = inner
    return ""


class _Function(NamedTuple):
    """The name of a declared function, without its scope, and its parameters."""

    name: str
    parameters: Node | None


def _functions(node: Node) -> list[_Function]:
    """Return the functions that a declaration or definition declares; the rest of its declarators are variables'."""
    functions = (_function(declarator) for declarator in node.children_by_field_name("declarator"))
    return [function for function in functions if function is not None]


def _function(node: Node | None) -> _Function | None:
    """Return the function that a declarator declares; None for a variable.

    Pointers, references and parentheses may be around the name: `int (f)(int)`, `int (*f(int))(float)`. The declarator
    that is nearest to the name decides; in `int (*p)(int)` it is a pointer's. `Type (name)(int)` is read as a function
    `Type(name)` that returns a function, which C++ does not have.
    """
    nearest: Node | None = None
    while node is not None and node.type.endswith("declarator"):
        inner = _inner(node)
        if node.type == "function_declarator" and inner is not None and inner.type == "function_declarator":
            names = inner.child_by_field_name("parameters")
            name = names.named_children[0] if names and names.named_children else inner
            return _Function(_plain_name(name), node.child_by_field_name("parameters"))
        if node.type not in ("parenthesized_declarator", "init_declarator", "attributed_declarator"):
            nearest = node
        node = inner
    if nearest is None or nearest.type != "function_declarator" or _is_member_pointer(node):
        return None
    return _Function(_plain_name(node or nearest), nearest.child_by_field_name("parameters"))


def _inner(declarator: Node) -> Node | None:
    """Return what a declarator is around: another one, or a name."""
    field = declarator.child_by_field_name("declarator")
    return field or next((c for c in declarator.named_children if c.type.endswith(_INSIDE)), None)


def _plain_name(node: Node) -> str:
    return "".join(name_of(node).split()).rpartition("::")[2]


def _is_member_pointer(name: Node | None) -> bool:
    """Return True for `Class::*name`."""
    while name is not None and name.type == "qualified_identifier":
        name = name.child_by_field_name("name")
    return name is not None and name.type == "pointer_type_declarator"


def declared_functions(node: Node) -> list[str]:
    """Return the names of the functions that a declaration or definition declares."""
    return [function.name for function in _functions(node)]


def declares_objects(node: Node, values: frozenset[str], types: frozenset[str] = frozenset()) -> bool:
    """Return whether what looks like functions are objects with values in parentheses: `Kernel kernel(x);`.

    Args:
        node: A declaration inside of a function, or of a template.
        values: The names of the file's values (`declared_values`).
        types: Names that are no constants even if they are written like ones: `T`.
    """
    lists = [function.parameters.named_children if function.parameters else [] for function in _functions(node)]
    return all(
        any(_is_value(parameter, values, types) for parameter in given) and not any(map(_is_type, given))
        for given in lists
    )


def _is_type(parameter: Node) -> bool:
    """Return whether what looks like a parameter is one: a number's type alone, or a type with a name behind it."""
    kind, declarator = parameter.child_by_field_name("type"), parameter.child_by_field_name("declarator")
    if declarator is None:
        return kind is not None and kind.type == "primitive_type"
    return declarator.type == "identifier"


def _is_value(parameter: Node, values: frozenset[str], types: frozenset[str]) -> bool:
    """Return whether what looks like a parameter's type is a value of the file, a call, or named like a constant.

    In a template it may be a member of a type that is not known yet: without `typename` before it, that is a value.
    """
    kind, declarator = parameter.child_by_field_name("type"), parameter.child_by_field_name("declarator")
    if kind is None or kind.type not in ("type_identifier", "qualified_identifier"):
        return False
    is_call = declarator is not None and declarator.type == "abstract_function_declarator"
    scope, _, name = "".join(text(kind).split()).rpartition("::")
    is_member = "<" in scope or (scope in types and name not in types)
    return is_call or name in values or (bool(types) and is_member) or (name.isupper() and name not in types)


def defined_functions(root: Node) -> frozenset[str]:
    """Return the names of all functions and classes that the file defines; a class name is called as constructor."""
    names: set[str] = set()
    for node in walk(root):
        if node.type == "function_definition":
            names.update(declared_functions(node))
        elif node.type in ("class_specifier", "struct_specifier"):
            names.add(text(node.child_by_field_name("name")))
    return frozenset(names)


def declared_names(root: Node) -> frozenset[str]:
    """Return every name that the file declares: variables, functions, types, constants, parameters of templates."""
    names: set[str] = set()
    for node in walk(root):
        if node.type in _DECLARATIONS:
            names.update(name_of(declarator).rpartition("::")[2] for declarator in declarators(node))
        elif node.type in _NAMED:
            names.add(text(node.child_by_field_name("name")))
        elif node.type in _PARAMETERS_OF_TEMPLATES or node.type == "structured_binding_declarator":
            names.update(text(child) for child in node.named_children)
    return frozenset(names)


def namespace_aliases(root: Node) -> frozenset[str]:
    """Return the names that the file gives to namespaces of others."""
    nodes = (node for node in walk(root) if node.type == "namespace_alias_definition")
    return frozenset(text(node.child_by_field_name("name")) for node in nodes)


@lru_cache(maxsize=4)
def declared_values(root: Node) -> frozenset[str]:
    """Return the names that the file declares as variables, members, parameters, constants or functions."""
    values = set[str]()
    for node in walk(root):
        if node.type in _OBJECTS:
            values.update(name_of(declarator).rpartition("::")[2] for declarator in declarators(node))
        elif node.type == "enumerator":
            values.add(text(node.child_by_field_name("name")))
        elif node.type == "structured_binding_declarator":
            values.update(text(child) for child in node.named_children)
        elif node.type == "lambda_capture_initializer":
            values.add(text(node.child_by_field_name("left")))
    return frozenset(values) - declared_types(root)


@lru_cache(maxsize=4)
def names_of_c(root: Node) -> frozenset[str]:
    """Return the names that the file declares with the linkage of C; a definition elsewhere has it, too."""
    names, around = set[str](), places(root)
    for node in walk(root):
        if node.type not in _PLACED or not around[node.id].in_linkage or node.type == "field_declaration":
            continue
        if node.type != "expression_statement":
            names.update(_plain_name(declarator) for declarator in declarators(node))
            names.update(declared_functions(node))
        elif declared := misread(node, around[node.id], declared_types(root)):
            names.add(declared.name)
    return frozenset(names)


@lru_cache(maxsize=4)
def declared_types(root: Node) -> frozenset[str]:
    """Return the names that the file declares as types or namespaces."""
    nodes = (node for node in walk(root) if node.type in _TYPES)
    names = (child for node in nodes for child in node.named_children if child.type.endswith("identifier"))
    return frozenset(text(name).rpartition("::")[2] for name in names)


class Misread(NamedTuple):
    """A declaration that looks like an expression: `int (name)();`, `int (name) = 1;`."""

    name: str
    is_function: bool


def misread(statement: Node, place: Place, types: frozenset[str]) -> Misread | None:
    """Return the declaration that an expression is; None for expressions, and for what may be a macro of a header.

    No expression stands outside of functions. Inside, a number cannot be called. `types` are those of the file.
    """
    node, around = next(iter(statement.named_children), None), list[Node]()
    while node is not None and node.type in _AROUND_A_CALL and node.named_children:
        around.append(node)
        node = node.named_children[0]
    if node is None or not around or around[-1].type != "call_expression":
        return None
    is_call = len(around) > 1 and around[-2].type == "call_expression"
    is_number = node.type == "primitive_type"
    if place.in_block and not (is_number and is_call):
        return None
    is_type = is_number or text(node).partition("<")[0].rpartition("::")[2].strip() in types
    if not (is_type or len(around) > 1):
        return None
    named = around[-1].child_by_field_name("arguments")
    declarator = named.named_children[0] if named is not None and named.named_children else node
    given = around[-2].child_by_field_name("arguments") if is_call else None
    is_function = given is not None and not given.named_children and declarator.type != "pointer_expression"
    return Misread(text(declarator).strip("() "), is_function)


def is_lasting(node: Node, storage: set[str], place: Place) -> bool:
    """Return True for variables that outlive a call: globals, statics, static members."""
    if not declarators(node):
        return False
    return "static" in storage or (node.type == "declaration" and not place.is_local)


def is_mutable_member(node: Node) -> bool:
    """Return True for the declaration of a member that can be written in a constant object."""
    return node.type == "field_declaration" and "mutable" in words(node)


def is_constant(node: Node, mutable: bool = False) -> bool:
    """Return whether a declaration is constant: `constexpr`, or `const` on the variable rather than its target.

    If the file has `mutable` members, objects of class types do not count as constant. `T &&` refers to an object that
    can be written.
    """
    kind = node.child_by_field_name("type")
    if mutable and (kind is None or kind.type not in ("primitive_type", "sized_type_specifier")):
        return False
    if any(d.type == "reference_declarator" and text(d).startswith("&&") for d in declarators(node)):
        return False
    qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
    if "constexpr" in qualifiers:
        return True
    variables = declarators(node)
    pointers = [variable for variable in variables if variable.type == "pointer_declarator"]
    fixed = all("const" in {text(c) for c in pointer.children if c.type == "type_qualifier"} for pointer in pointers)
    return fixed and ("const" in qualifiers or 0 < len(pointers) == len(variables))


def callee(node: Node) -> str:
    """Return the unqualified name of a called function; empty for member calls and namespaces other than `std`."""
    function = node.child_by_field_name("function")
    while function is not None and function.type == "qualified_identifier":
        scope = function.child_by_field_name("scope")
        if scope is not None and not _is_std(scope):
            return ""
        function = function.child_by_field_name("name")
    if function is None or function.type not in ("identifier", "template_function"):
        return ""
    return text(function.child_by_field_name("name") or function)


def name_in_std(node: Node) -> str:
    """Return the name behind `std::` of a qualified name that begins with it; empty for others."""
    scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
    if scope is None or not _is_std(scope):
        return ""
    while name is not None and (inner := name.child_by_field_name("scope") or name.child_by_field_name("name")):
        name = inner
    return text(name)


def _is_std(scope: Node) -> bool:
    return scope.type == "namespace_identifier" and text(scope) == "std"


@dataclass(frozen=True)
class Cast:
    """An explicit conversion: the target type and the value."""

    type: Node
    value: Node


def as_cast(node: Node) -> Cast | None:
    """Return the cast that a node is, in any spelling; None if it is no cast."""
    kind = node.type
    if kind == "cast_expression":
        target, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        return Cast(target, value) if target and value else None
    if kind != "call_expression":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or len(arguments.named_children) != 1:
        return None
    value = arguments.named_children[0]
    if function.type == "template_function" and text(function.child_by_field_name("name")) in _CASTS:
        types = function.child_by_field_name("arguments")
        return Cast(types.named_children[0], value) if types and types.named_children else None
    return Cast(function, value) if function.type == "primitive_type" else None


def is_plain_pointer(target: Node) -> bool:
    """Return True for a pointer that is not in one of the device's address spaces."""
    written = text(target)
    return "*" in written and SPACE not in written


@lru_cache(maxsize=4)
def numbers_and_code(root: Node, functions: frozenset[str]) -> frozenset[int]:
    """Return the ids of all number literals and addresses of the file's functions, also in arithmetic."""
    ids: set[int] = set()
    for node in reversed(walk(root)):  # operands first
        if node.type not in _VALUES:
            continue
        operands = node.named_children if node.type in _ARITHMETIC else []
        if (cast := as_cast(node)) is not None:
            operands = [cast.value]
        if all(operand.id in ids for operand in operands) if operands else _is_number_or_function(node, functions):
            ids.add(node.id)
    return frozenset(ids)


def _is_number_or_function(value: Node, functions: frozenset[str]) -> bool:
    if value.type == "pointer_expression":
        return text(value.child_by_field_name("argument")) in functions
    if value.type == "number_literal":
        return text(value).strip("()") not in ("0", "0u", "0U")
    return value.type == "identifier" and text(value) in functions


def is_device_function(node: Node) -> bool:
    """Return True for functions that run on the device."""
    return bool({text(c) for c in node.children if c.type == "type_qualifier"} & {DEVICE, ENTRY})


def is_entry(node: Node) -> bool:
    """Return True for kernels: functions that the host launches."""
    return ENTRY in {text(c) for c in node.children if c.type == "type_qualifier"}
