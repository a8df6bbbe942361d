"""Values of a binding: literals, names, casts, constructors, operators, and the functions of lists and of `std`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from tree_sitter import Node

from kernel_gym.hardware.bundles.binding.syntax import line_of, text_of, unknown

_DTYPES = {
    "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16, "Double": torch.float64,
    "Int": torch.int32, "Long": torch.int64, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8,
    "Bool": torch.bool,
}  # fmt: skip
INTEGERS = frozenset({"int", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"})


class BindingError(Exception):
    """Raised for a call that the binding itself refuses: TORCH_CHECK, wrong arguments."""


@dataclass
class Options:
    """`at::TensorOptions`: an element type, and a device that does not matter here."""

    dtype: torch.dtype | None = None


@dataclass(frozen=True)
class Iterator:
    """A place in a list: `sizes.begin() + 1`."""

    items: list[Any]
    index: int

    def __add__(self, steps: int) -> Iterator:
        return Iterator(self.items, self.index + steps)

    def __sub__(self, steps: int) -> Iterator:
        return self + -steps

    def until(self, end: Iterator) -> list[Any]:
        """Return the elements from here to `end`."""
        return list(self.items[self.index : end.index])


def _accumulate(first: Iterator, last: Iterator, start: Any, combine: Callable[[Any, Any], Any] = operator.add) -> Any:
    return reduce(combine, first.until(last), start)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "%": lambda a, b: a % b, "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
}  # fmt: skip
STANDARD: dict[str, Callable[..., Any]] = {
    "max": max, "min": min, "abs": abs, "make_tuple": lambda *a: tuple(a), "tuple": lambda *a: tuple(a),
    "move": lambda a: a, "ceil": lambda a: float(-(-a // 1)), "floor": lambda a: float(a // 1),
    "sqrt": lambda a: float(a) ** 0.5, "pow": lambda a, b: float(a) ** b, "make_pair": lambda a, b: (a, b),
    "accumulate": _accumulate, "multiplies": lambda: operator.mul, "plus": lambda: operator.add, "to_string": str,
    "forward_as_tuple": lambda *a: tuple(a),
}  # fmt: skip


def _insert(items: list[Any], at: Iterator, *values: Any) -> None:
    """Insert a value, a list of values, or those between two iterators."""
    first = values[0]
    if isinstance(first, Iterator):
        first = first.until(values[1])
    items[at.index : at.index] = first if isinstance(first, list) else [first]


LISTS: dict[str, Callable[..., Any]] = {
    "size": len, "vec": list, "push_back": lambda items, value: items.append(value),
    "emplace_back": lambda items, value: items.append(value), "back": lambda items: items[-1],
    "front": lambda items: items[0], "begin": lambda items: Iterator(items, 0),
    "end": lambda items: Iterator(items, len(items)), "erase": lambda items, at: items.pop(at.index),
    "empty": lambda items: not items, "pop_back": lambda items: items.pop(), "at": lambda items, i: items[i],
    "slice": lambda items, start, count=None: items[start : None if count is None else start + count],
    "insert": _insert, "reserve": lambda items, n: None,
    "resize": lambda items, n, value=0: items.__setitem__(slice(None), (items + [value] * n)[:n]),
}  # fmt: skip


def number(text: str) -> int | float:
    """Return the value of a literal."""
    plain = re.sub(r"['\s]", "", text)
    if re.fullmatch(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*", plain):
        return int(plain.rstrip("uUlL"), 16 if "x" in plain.lower() else 10)
    return float(plain.rstrip("fFlL"))


def named_value(node: Node, names: dict[str, Any]) -> Any:
    """Return what a name stands for: a variable, an element type, or a constant."""
    name = re.sub(r"\s", "", text_of(node))
    if name in names:
        return names[name]
    short = name.rpartition("::")[2]
    if short.startswith("k") and short[1:] in _DTYPES:
        return _DTYPES[short[1:]]
    if name.rpartition("::")[0].endswith("ScalarType") and short in _DTYPES:
        return _DTYPES[short]
    if short == "nullopt":
        return None
    if short in ("kPrivateUse1", "kNPU", "kCPU", "kCUDA", "PrivateUse1", "CPU"):
        return Options()
    if name in ("INFINITY", "HUGE_VALF"):
        return float("inf")
    raise unknown(node)


def binary(sign: str, left: Any, right: Any, node: Node) -> Any:
    """Return the result of an operator; quotients of integers are rounded towards zero."""
    if sign in ("/", "%") and isinstance(left, int) and isinstance(right, int):
        if right == 0:
            raise BindingError(f"line {line_of(node)}: division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if sign == "/" else left - quotient * right
    if sign not in _BINARY:
        raise unknown(node)
    return _BINARY[sign](left, right)


def unary(sign: str, value: Any, node: Node) -> Any:
    """Return the result of an operator with one operand."""
    match sign:
        case "-":
            return -value
        case "+":
            return value
        case "!":
            return not value
    raise unknown(node)


def cast(kind: str, value: Any) -> Any:
    """Return a number as a value of a C++ type; other values as they are."""
    plain = re.sub(r"\bconst\b|\bstd::|\bstatic\b|\bconstexpr\b|[&*\s]", "", kind)
    if plain in INTEGERS or plain in ("size_t", "long", "longlong", "unsigned", "unsignedint", "unsignedlong"):
        return int(value)
    if plain in ("float", "double", "c10::Scalar", "at::Scalar"):
        return float(value) if plain in ("float", "double") else value
    return bool(value) if plain == "bool" else value


def constructed(kind: str, arguments: list[Any], node: Node) -> Any:
    """Return what a constructor with arguments in parentheses makes."""
    if not arguments:
        return [] if "vector" in kind or "Array" in kind else Options() if "Options" in kind else None
    first = arguments[0]
    if isinstance(first, Iterator) and len(arguments) == 2:
        return first.until(arguments[1])
    if "vector" in kind and isinstance(first, int):
        return [arguments[1] if len(arguments) > 1 else 0] * first
    if isinstance(first, list | tuple):
        return list(first)
    if len(arguments) == 1:
        return cast(kind, first) if isinstance(first, int | float) else first
    raise unknown(node)


def converted(value: Any, kind: str, name: str) -> Any:
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
    if plain in INTEGERS or plain == "size_t":
        if isinstance(value, float) or not isinstance(value, int):
            raise BindingError(f"the argument {name} is {plain}, not {type(value).__name__}")
        return int(value)
    if plain in ("float", "double"):
        if not isinstance(value, int | float):
            raise BindingError(f"the argument {name} is {plain}, not {type(value).__name__}")
        return float(value)
    return value
