"""Profiles: what an author is like. Constants of the mechanism, frozen and hashed."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from math import exp, log
from typing import Any
from zlib import crc32

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.errors import ConfigError


class Profile(BaseModel):
    """Weights are log-odds: how far a fully noticed piece of evidence moves the odds of the right spelling."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    about: str = ""
    #: False: context and start point are ignored (placebo).
    reads: bool = True
    #: True: every idiom is right and the schedule is the best known (oracle).
    fluent: bool = False
    #: Added to the log-odds of every prior.
    skill: float = 0.0

    #: A page that teaches the idiom.
    page: float = Field(1.5, ge=0)
    #: The right spelling in verified code.
    verified: float = Field(5.0, ge=0)
    #: The right spelling in code that compiled, for idioms that a compiler checks.
    compiled: float = Field(3.0, ge=0)
    #: The right spelling in code or prose of unknown worth.
    shown: float = Field(1.0, ge=0)
    #: A failure whose message points at the idiom.
    hinted: float = Field(1.6, ge=0)
    #: The wrong spelling in a failed kernel that nothing corrects.
    misled: float = Field(1.2, ge=0)
    #: How much of the smaller side is lost when both spellings are seen.
    conflict: float = Field(0.5, ge=0)
    #: Each further piece of the same evidence counts this much of the one before.
    repetition: float = Field(0.5, ge=0, lt=1)

    #: Characters of context at which half of every item is read: 32,000 tokens of four characters, a length at which
    #: about half of the models that claim it still do well (RULER, arXiv 2404.06654).
    span: float = Field(128_000, gt=0)
    #: Characters of one item at which half of an idiom in it is noticed.
    focus: float = Field(12000, gt=0)
    #: What a comment beside the spelling adds to how plainly it shows.
    comment: float = Field(0.25, ge=0)

    #: Probability that an idiom of the start point is copied as it is.
    copying: float = Field(0.985, ge=0, le=1)
    #: Probability that an idiom which a move puts at risk survives the change.
    care: float = Field(0.8, ge=0, le=1)
    #: Added to the log-odds of every optimisation in a first draft.
    ambition: float = 0.0
    #: Chance of a second move in one attempt.
    boldness: float = Field(0.3, ge=0, le=1)
    #: Log-odds for a move that the context shows, and for one that fits the bottleneck.
    prompted: float = Field(1.5, ge=0)
    fitting: float = Field(1.5, ge=0)

    def digest(self) -> str:
        """A hash of everything in the profile."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def sampled(self, seed: int) -> Profile:
        """Another author of this kind: every constant drawn around this profile's, as far as `ranges.yaml` says."""
        drawn: dict[str, Any] = {"name": f"{self.name}~{seed}", "about": f"{self.about} Drawn with seed {seed}."}
        for name, spread in _ranges().items():
            # A stream for each field: a new one leaves the others as they are.
            unit = np.random.default_rng([seed, crc32(name.encode())]).uniform(-1, 1)
            drawn[name] = _moved(float(getattr(self, name)), float(unit), spread)
        return Profile.model_validate(self.model_dump() | drawn)


def _moved(value: float, unit: float, spread: dict[str, float]) -> float:
    """A value moved by a part of its range, `unit` between -1 and 1."""
    ((kind, size),) = spread.items()
    if kind == "factor":
        return value * exp(unit * log(size))
    if kind == "shift":
        return value + unit * size
    return 1 / (1 + exp(-log(value / (1 - value)) - unit * size))


@lru_cache(maxsize=1)
def _ranges() -> dict[str, dict[str, float]]:
    read: dict[str, dict[str, float]] = yaml.safe_load(resources.files(__package__).joinpath("ranges.yaml").read_text())
    return read


def profile_names() -> tuple[str, ...]:
    """The profiles that come with the package."""
    files = resources.files(__package__).joinpath("profiles").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@lru_cache(maxsize=256)
def load_profile(name: str) -> Profile:
    """A profile by name; `middle~7` is an author drawn around `middle` with seed 7."""
    base, sampled, seed = name.partition("~")
    file = resources.files(__package__).joinpath("profiles", f"{base}.yaml")
    if not file.is_file():
        raise ConfigError(f"unknown author profile {base!r}; known: {', '.join(profile_names())}")
    if sampled and not seed.isdecimal():
        raise ConfigError(f"a sampled profile is a name, ~ and a number, such as {base}~7, not {name!r}")
    profile = Profile.model_validate({"name": base} | yaml.safe_load(file.read_text()))
    return profile.sampled(int(seed)) if sampled else profile
