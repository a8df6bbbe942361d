"""Every public name says what it is, what it takes, what it returns and what it raises, in Google style."""

from __future__ import annotations

import ast
import inspect
import logging
import re
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from itertools import pairwise
from operator import attrgetter
from types import FunctionType
from typing import Any

import griffe
import pytest

import kernel_gym

logging.getLogger("griffe").setLevel(logging.ERROR)

#: Aliases of types: described where they are defined, in a string below the assignment.
ALIASES = {"Context", "Verdict"}


def members() -> Iterator[str]:
    """Every public function, and every public method that a public class has of the package."""
    for name in sorted({*kernel_gym.__all__} - ALIASES - {"__version__"}):
        value = getattr(kernel_gym, name)
        if inspect.isfunction(value):
            yield name
            continue
        for attribute in dir(value):
            member = inspect.getattr_static(value, attribute)
            function = getattr(member, "__func__", member)
            if (
                isinstance(function, FunctionType)
                and attribute[0] != "_"
                and function.__module__.startswith("kernel_gym")
            ):
                yield f"{name}.{attribute}"


def classes() -> Iterator[str]:
    """The public classes that are made by calling them; what `Options` takes is described in its table."""
    for name in sorted({*kernel_gym.__all__} - ALIASES - {"Options"}):
        value = getattr(kernel_gym, name)
        constructible = isinstance(value, type) and not issubclass(value, Exception | Enum)
        if constructible and not getattr(value, "_is_protocol", False):
            yield name


def sections(text: str) -> dict[str, set[str]]:
    """The sections of a docstring, each with the names that it lists."""
    parsed = griffe.Docstring(inspect.cleandoc(text)).parse("google", warnings=False)
    return {
        section.kind.value: {getattr(item, "name", "") for item in section.value}
        for section in parsed
        if isinstance(section.value, list)
    }


def parameters(function: Callable[..., Any]) -> set[str]:
    """The parameters that a caller fills; options that are passed on are documented where they are declared."""
    own = inspect.signature(function).parameters.values()
    return {each.name for each in own if each.name not in ("self", "cls") and each.kind is not each.VAR_KEYWORD}


def docstring(name: str) -> str:
    """The docstring of a function or method, or of the method that it overrides."""
    return inspect.getdoc(attrgetter(name)(kernel_gym)) or ""


def undescribed(name: str) -> set[str]:
    """The parameters of a public function, method or class that no docstring describes."""
    value = attrgetter(name)(kernel_gym)
    if not isinstance(value, type):
        return parameters(value) - sections(docstring(name)).get("parameters", set())
    described: set[str] = set()
    for kind in value.__mro__:
        for text in (vars(kind).get("__doc__"), getattr(vars(kind).get("__init__"), "__doc__", None)):
            listed = sections(text or "")
            described |= listed.get("parameters", set()) | listed.get("attributes", set())
    return parameters(value) - described


@pytest.mark.parametrize("name", sorted({*kernel_gym.__all__} - {"__version__"} - ALIASES))
def test_a_public_name_has_a_docstring(name: str) -> None:
    text = getattr(kernel_gym, name).__doc__
    assert text
    assert not text.startswith(f"{name}("), "the signature that dataclasses write"


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_a_public_alias_has_a_docstring(name: str) -> None:
    tree = ast.parse(inspect.getsource(import_module(kernel_gym._DEFINED_IN[name])))
    for assignment, after in pairwise(tree.body):
        if isinstance(assignment, ast.Assign | ast.AnnAssign) and f"{name}" in ast.unparse(assignment).split("=")[0]:
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            return
    pytest.fail("not found")


@pytest.mark.parametrize("name", [*members(), *classes()])
def test_parameters_are_documented(name: str) -> None:
    assert undescribed(name) == set()


@pytest.mark.parametrize("name", list(members()))
def test_a_value_that_is_returned_is_documented(name: str) -> None:
    """In a section, or in the first line, which then says "Return" or "Yield"."""
    function = attrgetter(name)(kernel_gym)
    text = docstring(name)
    assert text
    if function.__annotations__.get("return") not in (None, "None"):
        assert sections(text).keys() & {"returns", "yields"} or re.search(r"Return|Yield|Iterate", text.splitlines()[0])
