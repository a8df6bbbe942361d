"""Idioms: the pieces of dialect that a kernel needs, with their right and wrong spellings, as data."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from importlib import resources
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.errors import ConfigError

Effect = Literal["uncompilable", "fault", "mismatch", "slow"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Prior(_Record):
    """How often authors get an idiom right without help: from counts of real attempts, or a guess."""

    errors: int | None = None
    uses: int | None = None
    guess: float | None = None

    @property
    def probability(self) -> float:
        """Counts are smoothed by one success and one failure, so that no idiom is certain."""
        if self.guess is not None:
            return self.guess
        if self.errors is None or not self.uses:
            raise ConfigError("a prior needs errors and uses, or a guess")
        return 1 - (min(self.errors, self.uses) + 1) / (self.uses + 2)


class Spelling(_Record):
    """One way to put an idiom; `seen` are regular expressions that recognise it in any source or text."""

    name: str = "right"
    text: str = ""
    seen: tuple[str, ...] = ()
    weight: float = 1.0
    effect: Effect | None = None
    #: For a mistake that leaves something out: code that matches this, and not the right spelling, makes it.
    when: str = ""

    @property
    def right(self) -> bool:
        """True for the spelling that works."""
        return self.name == "right"

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """All of `seen` as one pattern."""
        return re.compile("|".join(f"(?:{text})" for text in self.seen)) if self.seen else None


class Idiom(_Record):
    """A piece of dialect.

    `teaches` are the API names whose pages explain it; `symptoms` recognise it in what a compiler, a device or a
    verifier says about a kernel that got it wrong.
    """

    id: str
    about: str
    effect: Effect
    prior: Prior
    right: Spelling
    wrong: tuple[Spelling, ...] = Field(min_length=1)
    teaches: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()

    def effect_of(self, spelling: Spelling) -> Effect:
        """What a wrong spelling leads to."""
        return spelling.effect or self.effect

    @cached_property
    def symptom_pattern(self) -> re.Pattern[str] | None:
        """All symptoms as one pattern."""
        return re.compile("|".join(f"(?:{text})" for text in self.symptoms)) if self.symptoms else None

    @cached_property
    def teaching_pattern(self) -> re.Pattern[str] | None:
        """The names of the pages that teach it."""
        names = (
            rf"(?<!\w){re.escape(name)}(?!\w)" if name.isidentifier() else re.escape(name) for name in self.teaches
        )
        return re.compile("|".join(names)) if self.teaches else None


class Count(_Record):
    """A mistake that was counted: the gate at which attempts ended, how many, what was said of what."""

    gate: Effect
    attempts: int
    said: str
    of: str
    #: The wrong spelling that stands for it, as `idiom:name`.
    spelling: str


class Idioms(dict[str, Idiom]):
    """All idioms by id."""


@lru_cache(maxsize=8)
def idioms(language: str = "ascendc") -> Idioms:
    """The idioms of a language that come with the package."""
    found = Idioms()
    folder = resources.files("kernel_gym.authors.apprentice").joinpath(language, "idioms")
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".yaml"):
            for record in yaml.safe_load(file.read_text()):
                idiom = Idiom.model_validate(record)
                if idiom.id in found:
                    raise ConfigError(f"idiom {idiom.id!r} is defined twice")
                found[idiom.id] = idiom
    return found


@lru_cache(maxsize=1)
def counts() -> tuple[Count, ...]:
    """The counted mistakes that at least three attempts made."""
    text = resources.files(__package__).joinpath("counts.yaml").read_text()
    return tuple(Count.model_validate(record) for record in yaml.safe_load(text))
