"""Second formulations by the name of their task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Module = Any
ATTENTION: dict[str, Callable[..., Any]] = {}
MHC: dict[str, Callable[..., Any]] = {}
PARTS: dict[str, Callable[..., Any]] = {}


def attention(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register the formulation of a module of the suite `attention`."""
    ATTENTION[function.__name__] = function
    return function


def mhc(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register the formulation of a module of the suite `mhc`."""
    MHC[function.__name__] = function
    return function
