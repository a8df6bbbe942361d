"""Reads the C++ binding of a bundle and evaluates its functions on torch's tensors, without compiling them.

Bindings allocate outputs, compute shapes and call `EXEC_NPU_CMD`. What occurs in them is a small part of C++ around
functions of torch that Python has under the same names. Anything else is refused in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import tree_sitter
import tree_sitter_cpp
from tree_sitter import Node

#: Called for each EXEC_NPU_CMD with the operator's name and the arguments; it writes the outputs.
Launch = Callable[[str, list[Any]], None]

_DTYPES = {
    "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16, "Double": torch.float64,
    "Int": torch.int32, "Long": torch.int64, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8,
    "Bool": torch.bool,
}  # fmt: skip
_INTEGERS = frozenset({"int", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"})
_MAKING = ("empty", "zeros", "ones", "full", "rand", "randn", "new_empty", "new_zeros")
_UNFILLED = ("empty", "empty_like", "new_empty", "empty_strided")
_STEPS = 100_000


class NotUnderstood(Exception):
    """Raised for a construct that the evaluator does not know; the message names it with its line."""


class BindingError(Exception):
    """Raised for a call that the binding itself refuses: TORCH_CHECK, wrong arguments."""


@dataclass
class Function:
    """A function of the binding: its parameters (type, name, default) and its body."""

    name: str
    parameters: list[tuple[str, str, Node | None]]
    body: Node


@dataclass
class Options:
    """`at::TensorOptions`: an element type, and a device that does not matter here."""

    dtype: torch.dtype | None = None


@dataclass
class Binding:
    """The functions of a binding, by the names under which Python calls them."""

    functions: dict[str, Function] = field(default_factory=dict)
    exported: dict[str, Function] = field(default_factory=dict)
    defaults: dict[str, dict[str, Node]] = field(default_factory=dict)
    keywords: dict[str, list[str]] = field(default_factory=dict)


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
    return binding


def _plain(text: str) -> str:
    """Return the text with the macros that define modules rewritten to functions, line by line."""
    return re.sub(r"^\s*(PYBIND11_MODULE|TORCH_LIBRARY\w*)\s*\(", r"void \1(", text, flags=re.MULTILINE)


def _walk(node: Node) -> Iterator[Node]:
    todo = [node]
    while todo:
        current = todo.pop()
        yield current
        todo.extend(reversed(current.children))


def _text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text else ""


def _line(node: Node) -> int:
    return node.start_point[0] + 1


def _function(node: Node) -> Function | None:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or _first(declarator, "function_declarator")
    if declarator is None or body is None:
        return None
    name = _text(declarator.child_by_field_name("declarator")).rpartition("::")[2]
    return Function(name, _parameters(declarator), body)


def _first(node: Node, kind: str) -> Node | None:
    return next((child for child in node.named_children if child.type == kind), None)


def _parameters(declarator: Node) -> list[tuple[str, str, Node | None]]:
    parameters: list[tuple[str, str, Node | None]] = []
    listed = declarator.child_by_field_name("parameters")
    for node in listed.named_children if listed is not None else ():
        if node.type in ("parameter_declaration", "optional_parameter_declaration"):
            inner = node.child_by_field_name("declarator")
            name = re.sub(r"[&*\s]|const\b", "", _text(inner))
            parameters.append(
                (_text(node.child_by_field_name("type")), name, node.child_by_field_name("default_value"))
            )
    return parameters


def _export(binding: Binding, node: Node) -> None:
    """Take `m.def("name", &function, ...)` and `m.impl("name", &function)`; the function may be a lambda."""
    callee = node.child_by_field_name("function")
    arguments = [a for a in (node.child_by_field_name("arguments") or node).named_children if a.type != "comment"]
    if _text(callee) not in ("m.def", "m.impl") or len(arguments) < 2 or arguments[0].type != "string_literal":
        return
    name, target = _text(arguments[0]).strip('"').partition("(")[0], arguments[1]
    if target.type == "call_expression":  # TORCH_FN(function)
        inner = target.child_by_field_name("arguments")
        target = inner.named_children[0] if inner is not None and inner.named_children else target
    if target.type == "lambda_expression":
        declarator, body = target.child_by_field_name("declarator"), target.child_by_field_name("body")
        if declarator is not None and body is not None:
            binding.exported[name] = Function(name, _parameters(declarator), body)
    else:
        called = _text(target).lstrip("&").strip().rpartition("::")[2]
        if called in binding.functions:
            binding.exported[name] = binding.functions[called]
    _keywords(binding, name, arguments[2:])


def _keywords(binding: Binding, name: str, arguments: Sequence[Node]) -> None:
    """Take `py::arg("eps") = 1e-5` as the name of a parameter and its default."""
    names = []
    for argument in arguments:
        match = re.match(r'(?:py|pybind11)::arg\(\s*"(\w+)"\s*\)', _text(argument))
        if match:
            names.append(match.group(1))
            if argument.type == "assignment_expression" and (value := argument.child_by_field_name("right")):
                binding.defaults.setdefault(name, {})[match.group(1)] = value
    if names:
        binding.keywords[name] = names


class Evaluator:
    """Calls the functions of a binding; `fill` fills memory that the binding leaves unset."""

    def __init__(self, binding: Binding, launch: Launch, fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.binding, self.launch, self.fill = binding, launch, fill
        self._steps = 0

    def call(self, name: str, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Call an exported function as Python does."""
        function = self.binding.exported[name]
        keywords = self.binding.keywords.get(name) or [parameter for _, parameter, _ in function.parameters]
        values = list(arguments)
        defaults = self.binding.defaults.get(name, {})
        for position in range(len(values), len(function.parameters)):
            keyword = keywords[position] if position < len(keywords) else ""
            default = function.parameters[position][2]
            if keyword in named:
                values.append(named[keyword])
            elif keyword in defaults:
                values.append(self._evaluate(defaults[keyword], {}))
            elif default is not None:
                values.append(self._evaluate(default, {}))
            else:
                raise BindingError(f"{name}() lacks its argument {function.parameters[position][1]}")
        if len(values) > len(function.parameters) or set(named) - set(keywords):
            raise BindingError(f"{name}() takes {len(function.parameters)} arguments")
        typed = zip(values, function.parameters, strict=True)
        return self._call(function, [_converted(value, kind, name) for value, (kind, name, _) in typed])

    def _call(self, function: Function, values: Sequence[Any]) -> Any:
        names = dict(zip((name for _, name, _ in function.parameters), values, strict=False))
        try:
            self._run(function.body, names)
        except _Return as returned:
            return returned.value
        return None

    def _run(self, node: Node, names: dict[str, Any]) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise BindingError("the binding runs without end")
        match node.type:
            case "compound_statement" | "else_clause" | "translation_unit":
                for child in node.named_children:
                    self._run(child, names)
            case "declaration":
                self._declare(node, names)
            case "expression_statement":
                for child in node.named_children:
                    self._evaluate(child, names)
            case "return_statement":
                values = [child for child in node.named_children if child.type != "comment"]
                raise _Return(self._evaluate(values[0], names) if values else None)
            case "if_statement":
                branch = "consequence" if self._condition(node, names) else "alternative"
                if (chosen := node.child_by_field_name(branch)) is not None:
                    self._run(chosen, names)
            case "for_statement":
                self._loop(node, names)
            case "for_range_loop":
                variable = re.sub(r"[&*\s]", "", _text(node.child_by_field_name("declarator")))
                for value in list(self._evaluate(_field(node, "right"), names)):
                    names[variable] = value
                    self._run(_field(node, "body"), names)
            case "while_statement":
                while self._condition(node, names):
                    self._run(_field(node, "body"), names)
            case "comment" | "using_declaration" | "static_assert_declaration" | "empty_statement" | ";":
                pass
            case "alias_declaration" | "type_definition" | "namespace_alias_definition":
                pass
            case _:
                raise _unknown(node)

    def _condition(self, node: Node, names: dict[str, Any]) -> bool:
        clause = _field(node, "condition")
        return bool(self._evaluate(clause.child_by_field_name("value") or clause, names))

    def _loop(self, node: Node, names: dict[str, Any]) -> None:
        if (first := node.child_by_field_name("initializer")) is not None:
            self._run(first, names) if first.type == "declaration" else self._evaluate(first, names)
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        while condition is None or self._evaluate(condition, names):
            self._run(_field(node, "body"), names)
            if update is not None:
                self._evaluate(update, names)

    def _declare(self, node: Node, names: dict[str, Any]) -> None:
        kind = _text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type == "init_declarator":
                name, value = _field(declarator, "declarator"), _field(declarator, "value")
                if name.type == "structured_binding_declarator":
                    parts = [_text(child) for child in name.named_children]
                    names.update(zip(parts, self._evaluate(value, names), strict=False))
                    continue
                names[re.sub(r"[&*\s]", "", _text(name))] = self._initial(kind, value, names)
            elif declarator.type == "function_declarator":  # `std::vector<int64_t> shape(n, 1);` looks like a function
                raise _unknown(node)
            else:
                names[re.sub(r"[&*\s]", "", _text(declarator))] = [] if "vector" in kind else None

    def _initial(self, kind: str, value: Node, names: dict[str, Any]) -> Any:
        if value.type == "argument_list":
            arguments = [self._evaluate(child, names) for child in value.named_children]
            return _constructed(kind, arguments, value)
        result = self._evaluate(value, names)
        return _cast(kind, result) if not isinstance(result, torch.Tensor | list | tuple | str | None) else result

    def _evaluate(self, node: Node, names: dict[str, Any]) -> Any:
        self._steps += 1
        if self._steps > _STEPS:
            raise BindingError("the binding runs without end")
        match node.type:
            case "number_literal":
                return _number(_text(node))
            case "true" | "false":
                return node.type == "true"
            case "null" | "nullptr":
                return None
            case "string_literal" | "concatenated_string":
                return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', _text(node)))
            case "identifier" | "qualified_identifier" | "field_identifier":
                return _named(node, names)
            case "parenthesized_expression" | "condition_clause":
                return self._evaluate(node.named_children[0], names)
            case "initializer_list":
                return [self._evaluate(child, names) for child in node.named_children if child.type != "comment"]
            case "compound_literal_expression":
                values = self._evaluate(_field(node, "value"), names)
                return tuple(values) if "tuple" in _text(node.child_by_field_name("type")) else values
            case "binary_expression":
                return self._binary(node, names)
            case "unary_expression":
                return _unary(_text(_field(node, "operator")), self._evaluate(_field(node, "argument"), names), node)
            case "pointer_expression":  # *optional, &x
                return self._evaluate(_field(node, "argument"), names)
            case "conditional_expression":
                chosen = "consequence" if self._evaluate(_field(node, "condition"), names) else "alternative"
                return self._evaluate(_field(node, chosen), names)
            case "cast_expression":
                return _cast(_text(node.child_by_field_name("type")), self._evaluate(_field(node, "value"), names))
            case "subscript_expression":
                return self._evaluate(_field(node, "argument"), names)[self._index(node, names)]
            case "assignment_expression":
                return self._assign(node, names)
            case "update_expression":
                name = _text(_field(node, "argument"))
                names[name] = names[name] + (1 if "++" in _text(node) else -1)
                return names[name]
            case "call_expression":
                return self._call_expression(node, names)
            case "field_expression":
                return getattr(
                    self._evaluate(_field(node, "argument"), names), _text(node.child_by_field_name("field"))
                )
            case "comma_expression":
                return [self._evaluate(child, names) for child in node.named_children][-1]
        raise _unknown(node)

    def _binary(self, node: Node, names: dict[str, Any]) -> Any:
        sign = _text(_field(node, "operator"))
        left = self._evaluate(_field(node, "left"), names)
        if sign in ("&&", "||"):
            if bool(left) is (sign == "||"):
                return bool(left)
            return bool(self._evaluate(_field(node, "right"), names))
        right = self._evaluate(_field(node, "right"), names)
        whole = isinstance(left, int) and isinstance(right, int)
        if sign in ("/", "%") and whole:  # towards zero
            if right == 0:
                raise BindingError(f"line {_line(node)}: division by zero")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if sign == "/" else left - quotient * right
        if sign not in _BINARY:
            raise _unknown(node)
        return _BINARY[sign](left, right)

    def _assign(self, node: Node, names: dict[str, Any]) -> Any:
        target, sign = _field(node, "left"), _text(_field(node, "operator"))
        value = self._evaluate(_field(node, "right"), names)
        if sign != "=":
            old = self._evaluate(target, names)
            if sign[:-1] not in _BINARY and sign != "/=":
                raise _unknown(node)
            whole = isinstance(old, int) and isinstance(value, int)
            value = old // value if sign == "/=" and whole else _BINARY[sign[:-1]](old, value)
        if target.type == "identifier":
            names[_text(target)] = value
        elif target.type == "subscript_expression":
            self._evaluate(_field(target, "argument"), names)[self._index(target, names)] = value
        else:
            raise _unknown(node)
        return value

    def _index(self, node: Node, names: dict[str, Any]) -> Any:
        index = node.child_by_field_name("indices") or _field(node, "index")
        return self._evaluate(index.named_children[0] if index.type == "subscript_argument_list" else index, names)

    def _call_expression(self, node: Node, names: dict[str, Any]) -> Any:
        callee = _field(node, "function")
        words = [child for child in _field(node, "arguments").named_children if child.type != "comment"]
        if callee.type == "field_expression":
            owner = self._evaluate(_field(callee, "argument"), names)
            name = _text(callee.child_by_field_name("field")).partition("<")[0]
            return self._method(node, owner, name, [self._evaluate(word, names) for word in words])
        name = re.sub(r"\s", "", _text(callee))
        if name == "EXEC_NPU_CMD":
            self.launch(_text(words[0]), [self._evaluate(word, names) for word in words[1:]])
            return None
        if name in ("TORCH_CHECK", "TORCH_INTERNAL_ASSERT", "AT_ASSERTM"):
            if not self._evaluate(words[0], names):
                said = "".join(str(self._evaluate(word, names)) for word in words[1:] if word.type != "call_expression")
                raise BindingError(f"{name} failed: {said}")
            return None
        return self._free(node, name, [self._evaluate(word, names) for word in words])

    def _free(self, node: Node, name: str, arguments: list[Any]) -> Any:
        bare, _, template = name.partition("<")
        scope, _, short = bare.rpartition("::")
        if short in ("static_cast", "reinterpret_cast"):
            return _cast(template.rstrip(">"), arguments[0])
        if short in _INTEGERS or short in ("float", "double", "bool", "size_t"):
            return _cast(short, arguments[0])
        if not scope and short in self.binding.functions:
            return self._call(self.binding.functions[short], arguments)
        if scope in ("std", "") and short in _STANDARD:
            return _STANDARD[short](*arguments)
        if short in ("optional", "IntArrayRef", "ArrayRef", "vector", "Tensor", "Scalar", "TensorOptions"):
            return _constructed(short, arguments, node)
        if short == "dtype" and scope in ("at", "torch"):
            return Options(arguments[0])
        if short in ("device", "OptionalDeviceGuard", "DeviceGuard") or short.endswith("Guard"):
            return Options()
        if scope in ("at", "torch", "at::native") and hasattr(torch, short):
            return self._torch(getattr(torch, short), short, arguments)
        raise _unknown(node)

    def _torch(self, function: Callable[..., Any], name: str, arguments: list[Any]) -> Any:
        dtypes = [argument.dtype for argument in arguments if isinstance(argument, Options) and argument.dtype]
        plain = [argument for argument in arguments if not isinstance(argument, Options)]
        if name in _MAKING:
            dtypes += [argument for argument in plain if isinstance(argument, torch.dtype)]
            plain = [argument for argument in plain if not isinstance(argument, torch.dtype)]
        result = function(*plain, dtype=dtypes[-1]) if dtypes else function(*plain)
        return self.fill(result) if name in _UNFILLED else result

    def _method(self, node: Node, owner: Any, name: str, arguments: list[Any]) -> Any:
        if isinstance(owner, torch.Tensor):
            if name in ("sizes", "sym_sizes"):
                return list(owner.shape)
            if name == "strides":
                return list(owner.stride())
            if name in ("scalar_type", "dtype"):
                return owner.dtype
            if name in ("options", "device", "layout"):
                return Options(owner.dtype)
            if name == "defined":
                return True
            if name in ("has_value", "value", "value_or"):
                return True if name == "has_value" else owner
            if name in ("is_privateuseone", "is_npu"):
                return True
            if name.startswith("data_ptr"):
                raise _unknown(node)
            if hasattr(owner, name):
                return self._torch(getattr(owner, name), name, arguments)
        if isinstance(owner, Options):
            return Options(arguments[0]) if name == "dtype" and arguments else owner
        if isinstance(owner, list | tuple) and name in _LISTS:
            return _LISTS[name](owner, *arguments)
        if name in ("has_value", "value", "value_or"):
            return {"has_value": owner is not None, "value": owner}.get(name, owner if owner is not None else arguments)
        if name in ("toDouble", "toFloat", "toInt", "toLong", "to", "item"):
            return int(owner) if name in ("toInt", "toLong") else float(owner)
        raise _unknown(node)


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "%": lambda a, b: a % b, "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
}  # fmt: skip
_STANDARD: dict[str, Callable[..., Any]] = {
    "max": max, "min": min, "abs": abs, "make_tuple": lambda *a: tuple(a), "tuple": lambda *a: tuple(a),
    "move": lambda a: a, "ceil": lambda a: float(-(-a // 1)), "floor": lambda a: float(a // 1),
    "sqrt": lambda a: float(a) ** 0.5, "pow": lambda a, b: float(a) ** b, "make_pair": lambda a, b: (a, b),
    "to_string": str, "forward_as_tuple": lambda *a: tuple(a),
}  # fmt: skip


def _insert(items: list[Any], *arguments: Any) -> None:
    items[len(items) :] = arguments[-1] if isinstance(arguments[-1], list) else [arguments[-1]]


_LISTS: dict[str, Callable[..., Any]] = {
    "size": len, "vec": list, "push_back": lambda items, value: items.append(value),
    "emplace_back": lambda items, value: items.append(value), "back": lambda items: items[-1],
    "front": lambda items: items[0], "begin": lambda items: items, "end": lambda items: items,
    "empty": lambda items: not items, "pop_back": lambda items: items.pop(), "at": lambda items, i: items[i],
    "slice": lambda items, start, count=None: items[start : None if count is None else start + count],
    "insert": _insert, "reserve": lambda items, n: None,
    "resize": lambda items, n, value=0: items.__setitem__(slice(None), (items + [value] * n)[:n]),
}  # fmt: skip


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise _unknown(node)
    return child


def _unknown(node: Node) -> NotUnderstood:
    words = " ".join(_text(node).split())
    return NotUnderstood(f"line {_line(node)}: not understood: {words[:100]}")


def _number(text: str) -> int | float:
    plain = re.sub(r"['\s]", "", text)
    if re.fullmatch(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*", plain):
        return int(plain.rstrip("uUlL"), 16 if "x" in plain.lower() else 10)
    return float(plain.rstrip("fFlL"))


def _named(node: Node, names: dict[str, Any]) -> Any:
    name = re.sub(r"\s", "", _text(node))
    if name in names:
        return names[name]
    short = name.rpartition("::")[2]
    if short.startswith("k") and short[1:] in _DTYPES:
        return _DTYPES[short[1:]]
    if name.rpartition("::")[0].endswith("ScalarType") and short in _DTYPES:
        return _DTYPES[short]
    if short in ("nullopt", "kPrivateUse1", "kNPU"):
        return None if short == "nullopt" else Options()
    if name in ("INFINITY", "HUGE_VALF"):
        return float("inf")
    raise _unknown(node)


def _unary(sign: str, value: Any, node: Node) -> Any:
    match sign:
        case "-":
            return -value
        case "+":
            return value
        case "!":
            return not value
    raise _unknown(node)


def _cast(kind: str, value: Any) -> Any:
    plain = re.sub(r"\bconst\b|\bstd::|\bstatic\b|\bconstexpr\b|[&*\s]", "", kind)
    if plain in _INTEGERS or plain in ("size_t", "long", "longlong", "unsigned", "unsignedint", "unsignedlong"):
        return int(value)
    if plain in ("float", "double", "c10::Scalar", "at::Scalar"):
        return float(value) if plain in ("float", "double") else value
    return bool(value) if plain == "bool" else value


def _constructed(kind: str, arguments: list[Any], node: Node) -> Any:
    """Return what a constructor with arguments in parentheses makes."""
    if not arguments:
        return [] if "vector" in kind or "Array" in kind else Options() if "Options" in kind else None
    first = arguments[0]
    if "vector" in kind and isinstance(first, int):
        return [arguments[1] if len(arguments) > 1 else 0] * first
    if isinstance(first, list | tuple):
        return list(first)
    if len(arguments) == 1:
        return _cast(kind, first) if isinstance(first, int | float) else first
    raise _unknown(node)


def _converted(value: Any, kind: str, name: str) -> Any:
    """Return an argument of Python as the parameter's type; a BindingError if pybind11 would refuse it."""
    plain = re.sub(r"\s", "", kind)
    if "optional" in plain and value is None:
        return None
    if "Tensor" in plain and "List" not in plain and "vector" not in plain:
        if not isinstance(value, torch.Tensor):
            raise BindingError(f"the argument {name} is a tensor, not {type(value).__name__}")
        return value.detach()
    if "vector" in plain or "ArrayRef" in plain:
        return list(value)
    if plain in _INTEGERS or plain == "size_t":
        if isinstance(value, float) or not isinstance(value, int):
            raise BindingError(f"the argument {name} is {plain}, not {type(value).__name__}")
        return int(value)
    if plain in ("float", "double"):
        if not isinstance(value, int | float):
            raise BindingError(f"the argument {name} is {plain}, not {type(value).__name__}")
        return float(value)
    return value
