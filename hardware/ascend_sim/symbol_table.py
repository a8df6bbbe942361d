"""Checks the symbols of a kernel: each has one declaration, and the runtime defines what the kernel does not define.

Two declarations may have the same symbol: a variable and a C function in a namespace, or two templates whose signatures
are mangled alike. Then the compiler checks an access or a call against one of them, and the linker takes the other. The
compiler also calls functions that no text names, such as `memset` and those for wide numbers, so a kernel may not
define symbols with such names.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from kernel_gym.errors import InfrastructureError

DUMP = "kernel.symbols"
FLAGS = (f"-fdump-ipa-visibility={DUMP}",)

#: A symbol, its declaration, its kind, whether it is defined, and lines about it.
_NODE = re.compile(r"^(\S+)/\d+ \((.*)\)(?: @0x\w+)?\n  Type: (\w+)( definition)?.*\n((?: +.*\n)*)", re.MULTILINE)
_SHARED = "sharing asm name: "
_RESERVED_NAME = re.compile(r"__|_(?!Z)[A-Z]")
#: Prefixes of functions of the runtime and of the compiler. A call in dead code leaves no undefined symbol.
_RUNTIME, _BUILT_IN = ("asc_", "__asan_", "__sanitizer_"), "__builtin_"
#: Functions of the C library that the compiler calls by itself. The linker replaces them by guarded ones.
WRAPPED = ("memcpy", "memmove", "memset", "memcmp")
_SHARES = "has two declarations that differ: declare it once, or as it is defined"
_MISSING = "is declared and not defined"
_RESERVED = "has a name that is reserved for the compiler: choose another one"


def fault(dump: str, undefined: Collection[str]) -> str | None:
    """Return what is wrong with a symbol, as a sentence; None if all symbols are right.

    Args:
        dump: The dump of the compiler's symbol table.
        undefined: The symbols that the linked kernel takes from the runtime.
    """
    nodes = _NODE.findall(dump)
    if not nodes:
        raise InfrastructureError("the compiler's dump has no symbols")
    for symbol, declaration, kind, is_defined, lines in nodes:
        name = symbol.lstrip("*")
        if _SHARED in lines:
            return f"{name} {_SHARES}"
        if is_defined and (name in WRAPPED or _RESERVED_NAME.match(name)):
            return f"{name} {_RESERVED}"
        is_known = name.startswith(_RUNTIME) or name in WRAPPED or name in undefined or _is_built_in(declaration)
        if not is_defined and not (is_known and kind == "function"):
            return f"{name} {_MISSING}"
    return None


def _is_built_in(declaration: str) -> bool:
    """Return whether a function is one of the compiler's own. No author may declare names that begin like theirs."""
    name = declaration.partition("(")[0].rpartition(" ")[2].rpartition("::")[2]
    return name.lstrip("*&").startswith(_BUILT_IN)
