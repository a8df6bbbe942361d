"""The rules that the simulator checks, as its sources state them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).resolve().parent / "src" / "protocol" / "rules.h"
_ENTRY = re.compile(r'RULE\(\w+,\s*"([A-Z_]+)",\s*"([^"]*)",\s*"([^"]*)"\)')


@dataclass(frozen=True)
class Rule:
    """One rule: its stable id, its text, and a hint how to follow it."""

    id: str
    what: str
    hint: str

    @property
    def is_warning(self) -> bool:
        """True if breaking it does not end the run."""
        return self.what.startswith("warning: ")


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of the table."""
    text = _TABLE.read_text().replace("\\\n", " ")
    return tuple(Rule(*entry) for entry in _ENTRY.findall(text))


def table() -> str:
    """Return the rules as a Markdown table."""
    lines = ["| rule | what it says | what to do |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{rule.id}` | {rule.what} | {rule.hint} |" for rule in rules())]) + "\n"
