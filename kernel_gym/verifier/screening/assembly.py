"""The screen of PTX, the assembly that the compiler makes of code for NVIDIA GPUs: its instructions and registers.

Macros, escapes, joined lines and adjacent string literals are resolved there, so inline assembly shows what it is. A
register is one that the text declares, or one of the special registers that the rule book allows: no clock, no timer,
no counter of the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_gym.verifier import rules
from kernel_gym.verifier.rules import Finding

_BOOK = rules.load("binary_cuda")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"[^\"\n\\]*\"", re.DOTALL)
#: Directives that nothing ends, with all that belongs to them: code may follow on their line.
_OPEN = re.compile(
    r"\.loc\s+\d+\s+\d+\s+\d+(?:\s*,\s*function_name\s+[\w$]+(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+\d+\s+\d+\s+\d+)?"
    r"|\.file\s+\d+(?:\s*,\s*\d+){0,2}|\.version\s+\d+\.\d+|\.target\s+\w+(?:\s*,\s*\w+)*|\.address_size\s+\d+"
)
#: What is left of one that is written otherwise, and of a string that ends elsewhere than it seems to.
_UNREAD = re.compile(r"\.(?:loc|file|version|target|address_size)\b|\"")
_REGISTER = re.compile(r"%[A-Za-z_$][\w$]*")
_DECLARATION = re.compile(r"\.reg\s*(?:\.\w+\s*)+([^;{}]*)")
_PARAMETERISED = re.compile(r"(%[\w$]+?)<\d+>")
#: A variable in global memory without a value. CUDA's headers have some, with mangled names; code that has any variable
#: is loaded anew for every call.
_VARIABLE = re.compile(r"\.global\s+(?:\.\w+\s*|\d+\b\s*)+(?!_Z)([A-Za-z_$][\w$]*)\s*(?:\[\d*\]\s*)*(?=[;,])")
#: What may be before an instruction: braces, labels, a predicate.
_BEFORE = re.compile(r"(?:[\s{}]|[%\w$]+\s*:(?!:)|@!?\s*[%\w$]+)*")


def screen(text: str) -> Finding | None:
    """Return the first broken rule of a text in PTX, or None."""
    return next(findings(text), None)


def findings(text: str) -> Iterator[Finding]:
    """Yield every broken rule."""
    plain = _OPEN.sub(" ", _COMMENT.sub(" ", text))
    for directive in _UNREAD.findall(plain):
        yield _BOOK.finding("device-instruction", None, directive)
    yield from _registers(plain)
    for name in _VARIABLE.findall(plain):
        yield _BOOK.finding("device-variable", None, name)
    for statement in plain.split(";"):
        name = _instruction(statement)
        if name and name not in _BOOK.lists["instructions"]:
            yield _BOOK.finding("device-instruction", None, name)


def _registers(text: str) -> Iterator[Finding]:
    declared, families = set[str](), set[str]()
    for declaration in _DECLARATION.findall(text):
        families.update(_PARAMETERISED.findall(declaration))
        declared.update(_REGISTER.findall(_PARAMETERISED.sub("", declaration)))
    for name in dict.fromkeys(_REGISTER.findall(text)):
        is_declared = name in declared or name in families or name.rstrip("0123456789") in families
        if name[1:] in _BOOK.lists["special_registers"]:
            continue
        # A declaration holds in its block only, so the name of a clock is refused all the same.
        if not is_declared or name[1:].startswith(tuple(_BOOK.lists["clock_prefixes"])):
            yield _BOOK.finding("device-register", None, name)


def _instruction(statement: str) -> str:
    """Return the instruction's name without its suffixes, or what stands in its place; empty for a directive."""
    rest = statement[_BEFORE.match(statement).end() :]  # type: ignore[union-attr]
    if rest.startswith(".") and "{" in rest:  # the head of a function, and perhaps its first instruction
        rest = rest[rest.index("{") :]
        rest = rest[_BEFORE.match(rest).end() :]  # type: ignore[union-attr]
    match = re.match(r"[A-Za-z_$][\w$]*|%.{0,20}", rest)
    return match[0] if match else ""
