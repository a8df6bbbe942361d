"""Idioms: the pieces of dialect that a kernel needs, with their right and wrong spellings.

They are data, in `idioms/*.yaml` of each language's folder.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import ConfigError

Effect = Literal["uncompilable", "fault", "mismatch", "slow"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Prior(_Record):
    """How often authors get an idiom right without help: from counts in real attempts, or a guess."""

    errors: int | None = None
    uses: int | None = None
    guess: float | None = None

    @property
    def probability(self) -> float:
        """The probability; counts are smoothed by one success and one failure, so that no idiom is certain."""
        if self.guess is not None:
            return self.guess
        if self.errors is None or not self.uses:
            raise ConfigError("a prior needs errors and uses, or a guess")
        return 1 - (min(self.errors, self.uses) + 1) / (self.uses + 2)


class Spelling(_Record):
    """One way to write an idiom; `seen` holds regular expressions that recognise it in a source or a text."""

    name: str = "right"
    text: str = ""
    seen: tuple[str, ...] = ()
    weight: float = 1.0
    effect: Effect | None = None
    #: For a mistake that leaves something out: code that matches this but not the right spelling has the mistake.
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
    """A piece of dialect that an author may get wrong.

    `teaches` names the API pages that explain it. `symptoms` holds regular expressions that recognise the mistake in a
    message of the compiler, the device or the verifier.
    """

    id: str
    about: str
    effect: Effect
    prior: Prior
    right: Spelling
    wrong: tuple[Spelling, ...] = Field(min_length=1)
    teaches: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()

    @property
    def meaning(self) -> bool:
        """True for a misreading of the task, which no spelling shows."""
        return self.id.startswith("meaning.")

    def effect_of(self, spelling: Spelling) -> Effect:
        """Return what a wrong spelling leads to."""
        return spelling.effect or self.effect

    @cached_property
    def symptom_pattern(self) -> re.Pattern[str] | None:
        """All symptoms as one pattern."""
        return re.compile("|".join(f"(?:{text})" for text in self.symptoms)) if self.symptoms else None

    @cached_property
    def teaching_pattern(self) -> re.Pattern[str] | None:
        """The names of the pages that teach it, as one pattern."""
        names = (
            rf"(?<!\w){re.escape(name)}(?!\w)" if name.isidentifier() else re.escape(name) for name in self.teaches
        )
        return re.compile("|".join(names)) if self.teaches else None


class Count(_Record):
    """A mistake counted in real attempts: the gate that stopped them, how many there were, and the message."""

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
    """Return the idioms of a language."""
    result = Idioms()
    folder = resources.files("kernel_gym.authors.apprentice").joinpath(language, "idioms")
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".yaml"):
            for record in parse_yaml(file.read_text()):
                idiom = Idiom.model_validate(record)
                if idiom.id in result:
                    raise ConfigError(f"idiom {idiom.id!r} is defined twice")
                result[idiom.id] = idiom
    return result


@lru_cache(maxsize=1)
def counts() -> tuple[Count, ...]:
    """Return the Ascend C mistakes that at least three of the counted attempts made."""
    text = resources.files("kernel_gym.authors.apprentice").joinpath("ascendc", "counts.yaml").read_text()
    return tuple(Count.model_validate(record) for record in parse_yaml(text))
