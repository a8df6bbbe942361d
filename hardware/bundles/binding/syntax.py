"""Reads the text of a binding: its functions, and the names under which Python calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_cpp
from tree_sitter import Node


class NotUnderstood(Exception):
    """Raised for a construct that the evaluator does not know; the message names it with its line."""


@dataclass
class Function:
    """A function of the binding: its parameters (type, name, default) and its body."""

    name: str
    parameters: list[tuple[str, str, Node | None]]
    body: Node


@dataclass
class Binding:
    """The functions of a binding, by the names under which Python calls them, and its constants."""

    functions: dict[str, Function] = field(default_factory=dict)
    exported: dict[str, Function] = field(default_factory=dict)
    defaults: dict[str, dict[str, Node]] = field(default_factory=dict)
    keywords: dict[str, list[str]] = field(default_factory=dict)
    constants: list[Node] = field(default_factory=list)


def read(text: str) -> Binding:
    """Return the functions of a binding; NotUnderstood with the line of a syntax error."""
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language())).parse(_plain(text).encode())
    if tree.root_node.has_error:
        line = next((node.start_point[0] + 1 for node in _walk(tree.root_node) if node.is_error or node.is_missing), 1)
        raise NotUnderstood(f"line {line}: syntax error")
    binding = Binding()
    for node in _walk(tree.root_node):
        if node.type == "function_definition" and (function := _function(node)):
            binding.functions[function.name] = function
    for node in _walk(tree.root_node):
        if node.type == "call_expression":
            _export(binding, node)
        elif node.type == "declaration" and _is_constant(node):
            binding.constants.append(node)
    return binding


def _is_constant(node: Node) -> bool:
    """Return whether a declaration outside of functions has a value."""
    outer = node.parent
    while outer is not None and outer.type in ("declaration_list", "namespace_definition"):
        outer = outer.parent
    return outer is not None and outer.type == "translation_unit" and _first(node, "init_declarator") is not None


def _plain(text: str) -> str:
    """Return the text with the macros that define modules rewritten to functions, line by line."""
    return re.sub(r"^[ \t]*(PYBIND11_MODULE|TORCH_LIBRARY\w*)\s*\(", r"void \1(", text, flags=re.MULTILINE)


def _walk(node: Node) -> Iterator[Node]:
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        todo.extend(reversed(current.children))


def text_of(node: Node | None) -> str:
    """Return the text of a node."""
    return node.text.decode() if node is not None and node.text else ""


def line_of(node: Node) -> int:
    """Return the line that a node begins in."""
    return node.start_point[0] + 1


def _function(node: Node) -> Function | None:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or _first(declarator, "function_declarator")
    if declarator is None or body is None:
        return None
    name = text_of(declarator.child_by_field_name("declarator")).rpartition("::")[2]
    return Function(name, parameters_of(declarator), body)


def _first(node: Node, kind: str) -> Node | None:
    return next((child for child in node.named_children if child.type == kind), None)


def parameters_of(declarator: Node) -> list[tuple[str, str, Node | None]]:
    """Return type, name and default of each parameter of a function or a lambda."""
    parameters: list[tuple[str, str, Node | None]] = []
    listed = declarator.child_by_field_name("parameters")
    for node in listed.named_children if listed is not None else ():
        if node.type in ("parameter_declaration", "optional_parameter_declaration"):
            inner = node.child_by_field_name("declarator")
            name = re.sub(r"[&*\s]|const\b", "", text_of(inner))
            parameters.append(
                (text_of(node.child_by_field_name("type")), name, node.child_by_field_name("default_value"))
            )
    return parameters


def _export(binding: Binding, node: Node) -> None:
    """Take `m.def("name", &function, ...)` and `m.impl("name", &function)`; the function may be a lambda."""
    callee = node.child_by_field_name("function")
    arguments = [a for a in (node.child_by_field_name("arguments") or node).named_children if a.type != "comment"]
    if text_of(callee) not in ("m.def", "m.impl") or len(arguments) < 2 or arguments[0].type != "string_literal":
        return
    name, target = text_of(arguments[0]).strip('"').partition("(")[0], arguments[1]
    if target.type == "call_expression":  # TORCH_FN(function)
        inner = target.child_by_field_name("arguments")
        target = inner.named_children[0] if inner is not None and inner.named_children else target
    if target.type == "lambda_expression":
        declarator, body = target.child_by_field_name("declarator"), target.child_by_field_name("body")
        if declarator is not None and body is not None:
            binding.exported[name] = Function(name, parameters_of(declarator), body)
    else:
        called = text_of(target).lstrip("&").strip().rpartition("::")[2]
        if called in binding.functions:
            binding.exported[name] = binding.functions[called]
    _keywords(binding, name, arguments[2:])


def _keywords(binding: Binding, name: str, arguments: Sequence[Node]) -> None:
    """Take `py::arg("eps") = 1e-5` as the name of a parameter and its default."""
    names = []
    for argument in arguments:
        match = re.match(r'(?:py|pybind11)::arg\(\s*"(\w+)"\s*\)', text_of(argument))
        if match:
            names.append(match.group(1))
            if argument.type == "assignment_expression" and (value := argument.child_by_field_name("right")):
                binding.defaults.setdefault(name, {})[match.group(1)] = value
    if names:
        binding.keywords[name] = names


def child_of(node: Node, name: str) -> Node:
    """Return a child that a node must have."""
    child = node.child_by_field_name(name)
    if child is None:
        raise unknown(node)
    return child


def unknown(node: Node) -> NotUnderstood:
    """Return the exception for a construct that the evaluator does not know."""
    words = " ".join(text_of(node).split())
    return NotUnderstood(f"line {line_of(node)}: not understood: {words[:100]}")
