"""Reads a bundle: a Python file that assigns six strings. They are read from its syntax tree; nothing of it runs."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym import python_text
from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles.strings import strings
from kernel_gym.kernel import BUNDLE_TEXTS, readable

#: Most characters of a bundle.
MAX_CHARACTERS = 1_000_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True)
class Bundle:
    """The six texts of a bundle, by the names of `BUNDLE_TEXTS`."""

    texts: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.texts[name]

    @property
    def operator(self) -> str:
        """The name of the operator in the project JSON."""
        return _operator(self["project_json_src"])

    @property
    def function(self) -> str:
        """The name that the toolchain gives to files and kernel function of the operator."""
        return snake_case(self.operator)

    def line_in(self, source: str, part: str, line: int | None) -> int | None:
        """Return the line of the file for a line of the text that feedback calls `part`; None if it is not known."""
        start = source.find(self.parts.get(part, "\0"))
        return source.count("\n", 0, start) + line if line is not None and start >= 0 else None

    @property
    def parts(self) -> dict[str, str]:
        """The texts by the names that feedback uses."""
        return {BUNDLE_TEXTS[name]: text for name, text in self.texts.items()}


def read(source: str) -> Bundle:
    """Read a bundle; a BundleError says in one line what is wrong."""
    if len(source) > MAX_CHARACTERS:
        raise BundleError(f"a bundle has at most {MAX_CHARACTERS:,} characters, this one has {len(source):,}")
    return _read(source)


@lru_cache(maxsize=256)
def _read(source: str) -> Bundle:
    texts = strings(_parse(source), BUNDLE_TEXTS, MAX_CHARACTERS)
    missing = [name for name in BUNDLE_TEXTS if name not in texts]
    if missing:
        raise BundleError(f"the bundle lacks {', '.join(missing)}; it assigns six strings: {', '.join(BUNDLE_TEXTS)}")
    if sum(map(len, texts.values())) > MAX_CHARACTERS:
        raise BundleError(f"the six strings of a bundle have at most {MAX_CHARACTERS:,} characters together")
    bundle = Bundle({name: readable(text) for name, text in texts.items()})
    _operator(bundle["project_json_src"])
    return bundle


def _parse(source: str) -> ast.Module:
    try:
        return python_text.parse(source)
    except SyntaxError as error:
        raise BundleError(f"the bundle is not Python: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BundleError(f"the bundle is not Python: {error}") from None


def _operator(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"project JSON: not JSON: {error}") from None
    entry = data[0] if isinstance(data, list) and data else data
    name = entry.get("op") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BundleError('project JSON: it names no operator; write [{"op": "ReluCustom", ...}]')
    return name


def snake_case(name: str) -> str:
    """Return an operator's name as the toolchain spells it in files and functions: `ReluCustom` is `relu_custom`."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", parts).lower()
