"""Rules of the gates as data, read from `rule_books/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kernel_gym.data_files import parse_yaml


@dataclass(frozen=True)
class Rule:
    """A rule: why something is refused and what to do instead."""

    id: str
    reason: str
    hint: str


@dataclass(frozen=True)
class Finding:
    """A place where a kernel breaks a rule."""

    rule: Rule
    line: int | None
    detail: str

    def describe(self) -> str:
        """Return one line for the author."""
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.rule.reason} (`{_short(self.detail)}`): {self.rule.hint}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."


@dataclass(frozen=True)
class RuleBook:
    """The content of one YAML file: its rules by id and its lists by name."""

    rules: dict[str, Rule]
    lists: dict[str, frozenset[str]]

    def finding(self, rule: str, line: int | None, detail: str) -> Finding:
        """Return the finding for a broken rule of this book."""
        return Finding(self.rules[rule], line, detail)


@cache
def load(name: str) -> RuleBook:
    """Read `rule_books/NAME.yaml`. A book that `extends` another has only the differences."""
    data: dict[str, Any] = parse_yaml(files(__package__).joinpath("rule_books", f"{name}.yaml").read_text())
    base = load(data.pop("extends")) if "extends" in data else RuleBook({}, {})
    rules = {rule["id"]: Rule(**rule) for rule in data.pop("rules")}
    lists = {key: frozenset(value.split() if isinstance(value, str) else value) for key, value in data.items()}
    return RuleBook(base.rules | rules, base.lists | lists)
