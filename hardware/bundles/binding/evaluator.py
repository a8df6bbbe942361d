"""Evaluates the functions of a binding on torch's tensors: statements and expressions of a small part of C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from tree_sitter import Node

from kernel_gym.hardware.bundles.binding.calls import TorchCalls
from kernel_gym.hardware.bundles.binding.syntax import (
    Binding,
    Function,
    NotUnderstood,
    child_of,
    line_of,
    parameters_of,
    text_of,
    unknown,
)
from kernel_gym.hardware.bundles.binding.values import (
    BindingError,
    binary,
    cast,
    constructed,
    converted,
    named_value,
    number,
    unary,
)

#: Called for each EXEC_NPU_CMD with the operator's name and the arguments; it writes the outputs.
Launch = Callable[[str, list[Any]], None]

#: Most steps of one call.
_STEPS = 100_000


class Evaluator:
    """Calls the functions of a binding; `fill` fills memory that the binding leaves unset."""

    def __init__(self, binding: Binding, launch: Launch, fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.binding, self.launch, self._calls = binding, launch, TorchCalls(fill)
        self._steps = 0
        self._constants: dict[str, Any] = {}
        for node in binding.constants:
            with suppress(NotUnderstood):  # it may be used by nothing that runs
                self._declare(node, self._constants)

    def call(self, name: str, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Call an exported function as Python does."""
        self._steps = 0
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
        return self._call(function, [converted(value, kind, name) for value, (kind, name, _) in typed])

    def _call(self, function: Function, values: Sequence[Any], around: Mapping[str, Any] | None = None) -> Any:
        own = zip((name for _, name, _ in function.parameters), values, strict=False)
        names = {**(self._constants if around is None else around), **dict(own)}
        try:
            self._run(function.body, names)
        except _Return as returned:
            return returned.value
        return None

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise BindingError("the binding runs without end")

    def _run(self, node: Node, names: dict[str, Any]) -> None:
        self._step()
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
                variable = re.sub(r"[&*\s]", "", text_of(node.child_by_field_name("declarator")))
                for value in list(self._evaluate(child_of(node, "right"), names)):
                    names[variable] = value
                    if self._turn(node, names):
                        break
            case "while_statement":
                while self._condition(node, names) and not self._turn(node, names):
                    pass
            case "break_statement" | "continue_statement":
                raise _Break if node.type == "break_statement" else _Continue
            case "throw_statement":
                raise BindingError(f"line {line_of(node)}: {' '.join(text_of(node).split())[:100]}")
            case "comment" | "using_declaration" | "static_assert_declaration" | "empty_statement" | ";":
                pass
            case "alias_declaration" | "type_definition" | "namespace_alias_definition":
                pass
            case _:
                raise unknown(node)

    def _condition(self, node: Node, names: dict[str, Any]) -> bool:
        clause = child_of(node, "condition")
        return bool(self._evaluate(clause.child_by_field_name("value") or clause, names))

    def _loop(self, node: Node, names: dict[str, Any]) -> None:
        if (first := node.child_by_field_name("initializer")) is not None:
            self._run(first, names) if first.type == "declaration" else self._evaluate(first, names)
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        while (condition is None or self._evaluate(condition, names)) and not self._turn(node, names):
            if update is not None:
                self._evaluate(update, names)

    def _turn(self, loop: Node, names: dict[str, Any]) -> bool:
        """Run the body of a loop once; return whether it left the loop."""
        try:
            self._run(child_of(loop, "body"), names)
        except _Continue:
            return False
        except _Break:
            return True
        return False

    def _declare(self, node: Node, names: dict[str, Any]) -> None:
        kind = text_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type == "init_declarator":
                name, value = child_of(declarator, "declarator"), child_of(declarator, "value")
                if name.type == "structured_binding_declarator":
                    parts = [text_of(child) for child in name.named_children]
                    names.update(zip(parts, self._evaluate(value, names), strict=False))
                    continue
                initial = self._initial(kind, value, names)
                copied = isinstance(initial, list) and "&" not in text_of(name)
                names[re.sub(r"[&*\s]", "", text_of(name))] = list(initial) if copied else initial
            elif declarator.type == "function_declarator":  # `std::vector<int64_t> shape(n, 1);` looks like a function
                raise unknown(node)
            else:
                names[re.sub(r"[&*\s]", "", text_of(declarator))] = [] if "vector" in kind.lower() else None

    def _initial(self, kind: str, value: Node, names: dict[str, Any]) -> Any:
        if value.type == "argument_list":
            arguments = [self._evaluate(child, names) for child in value.named_children]
            return constructed(kind, arguments, value)
        result = self._evaluate(value, names)
        return cast(kind, result) if not isinstance(result, torch.Tensor | list | tuple | str | None) else result

    def _evaluate(self, node: Node, names: dict[str, Any]) -> Any:
        self._step()
        match node.type:
            case "number_literal":
                return number(text_of(node))
            case "true" | "false":
                return node.type == "true"
            case "null" | "nullptr":
                return None
            case "string_literal" | "concatenated_string":
                return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text_of(node)))
            case "identifier" | "qualified_identifier" | "field_identifier":
                return named_value(node, names)
            case "parenthesized_expression" | "condition_clause":
                return self._evaluate(node.named_children[0], names)
            case "initializer_list":
                return [self._evaluate(child, names) for child in node.named_children if child.type != "comment"]
            case "compound_literal_expression":
                values = self._evaluate(child_of(node, "value"), names)
                return tuple(values) if "tuple" in text_of(node.child_by_field_name("type")) else values
            case "binary_expression":
                return self._binary(node, names)
            case "unary_expression":
                return unary(
                    text_of(child_of(node, "operator")), self._evaluate(child_of(node, "argument"), names), node
                )
            case "pointer_expression":  # *optional, &x
                return self._evaluate(child_of(node, "argument"), names)
            case "conditional_expression":
                chosen = "consequence" if self._evaluate(child_of(node, "condition"), names) else "alternative"
                return self._evaluate(child_of(node, chosen), names)
            case "cast_expression":
                return cast(text_of(node.child_by_field_name("type")), self._evaluate(child_of(node, "value"), names))
            case "subscript_expression":
                return self._evaluate(child_of(node, "argument"), names)[self._index(node, names)]
            case "assignment_expression":
                return self._assign(node, names)
            case "update_expression":
                name, before = text_of(child_of(node, "argument")), self._evaluate(child_of(node, "argument"), names)
                names[name] = before + (1 if "++" in text_of(node) else -1)
                return names[name] if text_of(node)[0] in "+-" else before
            case "lambda_expression":
                function = Function("lambda", parameters_of(child_of(node, "declarator")), child_of(node, "body"))
                return lambda *values: self._call(function, values, names)
            case "call_expression":
                return self._call_expression(node, names)
            case "field_expression":
                return getattr(
                    self._evaluate(child_of(node, "argument"), names), text_of(node.child_by_field_name("field"))
                )
            case "comma_expression":
                return [self._evaluate(child, names) for child in node.named_children][-1]
        raise unknown(node)

    def _binary(self, node: Node, names: dict[str, Any]) -> Any:
        sign = text_of(child_of(node, "operator"))
        left = self._evaluate(child_of(node, "left"), names)
        if sign in ("&&", "||"):
            if bool(left) is (sign == "||"):
                return bool(left)
            return bool(self._evaluate(child_of(node, "right"), names))
        return binary(sign, left, self._evaluate(child_of(node, "right"), names), node)

    def _assign(self, node: Node, names: dict[str, Any]) -> Any:
        target, sign = child_of(node, "left"), text_of(child_of(node, "operator"))
        value = self._evaluate(child_of(node, "right"), names)
        if sign != "=":
            value = binary(sign[:-1], self._evaluate(target, names), value, node)
        if target.type == "identifier":
            names[text_of(target)] = value
        elif target.type == "subscript_expression":
            self._evaluate(child_of(target, "argument"), names)[self._index(target, names)] = value
        else:
            raise unknown(node)
        return value

    def _index(self, node: Node, names: dict[str, Any]) -> Any:
        index = node.child_by_field_name("indices") or child_of(node, "index")
        return self._evaluate(index.named_children[0] if index.type == "subscript_argument_list" else index, names)

    def _call_expression(self, node: Node, names: dict[str, Any]) -> Any:
        callee = child_of(node, "function")
        words = [child for child in child_of(node, "arguments").named_children if child.type != "comment"]
        if callee.type == "field_expression":
            owner = self._evaluate(child_of(callee, "argument"), names)
            name = text_of(callee.child_by_field_name("field")).partition("<")[0]
            return self._calls.method(node, owner, name, [self._evaluate(word, names) for word in words])
        name = re.sub(r"\s", "", text_of(callee))
        if name == "EXEC_NPU_CMD":
            self.launch(text_of(words[0]), [self._evaluate(word, names) for word in words[1:]])
            return None
        if name in ("TORCH_CHECK", "TORCH_INTERNAL_ASSERT", "AT_ASSERTM"):
            if not self._evaluate(words[0], names):
                said = "".join(str(self._evaluate(word, names)) for word in words[1:] if word.type != "call_expression")
                raise BindingError(f"{name} failed: {said}")
            return None
        arguments = [self._evaluate(word, names) for word in words]
        if callable(local := names.get(name)):
            return local(*arguments)
        if name in self.binding.functions:
            return self._call(self.binding.functions[name], arguments)
        return self._calls.function(node, name, arguments)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value
