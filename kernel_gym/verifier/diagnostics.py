"""Compiler output as one line of feedback for the author.

It has the first real error, the author's line, the message without paths and shortened, and a hint for common mistakes.
Compiler output contains text of the author: it is shown, never interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from kernel_gym.data_files import parse_yaml
from kernel_gym.hardware.device import Diagnostic

#: Messages that only follow from another error.
_CONSEQUENCES = re.compile(r"compilation terminated|too many errors|^In (file|function)|required from|^note:|recovery")
_PATHS = re.compile(r"(?:(?<=[\s'\"(<`])|^)(?:[\w.+-]*/){2,}([\w.+-]*)")
_TEMPLATE = re.compile(r" \[with [^\]]*\]")
_LONGEST = 280


def explain(diagnostics: tuple[Diagnostic, ...], texts: Mapping[str, str]) -> tuple[str, Diagnostic]:
    """Return feedback on the first real error, and that error.

    Args:
        diagnostics: The compiler's errors.
        texts: The author's texts by the parts that diagnostics name: one text "", or those of a bundle.
    """
    first = next((d for d in diagnostics if not _CONSEQUENCES.search(d.message)), diagnostics[0])
    lines = texts.get(first.part, "").splitlines()
    place = f"{first.part}: " if first.part else ""
    if first.line is not None and 0 < first.line <= len(lines):
        place = f"{first.part and first.part + ' '}line {first.line}: "
    message = f"{place}{scrub(first.message)}"
    if "line" in place and (quoted := _quote(lines[(first.line or 1) - 1])):
        message += f" | {quoted}"
    hint = hint_for(first.message)
    return (f"{message}\nHint: {hint}" if hint else message), first


def scrub(message: str) -> str:
    """Return a compiler message without paths, control characters and template arguments, cut to a readable length."""
    text = "".join(c if c.isprintable() else " " for c in message)
    text = _TEMPLATE.sub("", _PATHS.sub(r"\1", text.replace("‘", "'").replace("’", "'")))
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def hint_for(message: str) -> str | None:
    """Return the advice for a common mistake; None if there is none."""
    plain = message.replace("‘", "'").replace("’", "'")
    return next((hint for pattern, hint in _hints() if pattern.search(plain)), None)


@cache
def _hints() -> tuple[tuple[re.Pattern[str], str], ...]:
    data = parse_yaml(files(__package__).joinpath("hints.yaml").read_text())
    return tuple((re.compile(entry["match"]), entry["hint"]) for entry in data)


def _quote(line: str) -> str:
    text = "".join(c for c in line if c.isprintable()).strip()
    return text if len(text) <= 100 else text[:97] + "..."
