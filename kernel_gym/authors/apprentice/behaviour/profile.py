"""Author profiles: the constants of the apprentice's mechanism, in `profiles/*.yaml`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from math import exp, log
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import ConfigError

#: The constants that state the log-odds of one idiom.
_STATED = {
    "meaning.formula": "formula",
    "meaning.boundary": "boundary",
    "meaning.precision": "precision",
    "axis.stride": "axis",
}


class Profile(BaseModel):
    """The constants of one author.

    Weights are log-odds: how far a fully noticed piece of evidence moves the odds of the right spelling.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    about: str = ""
    #: False: the author ignores context and start point (placebo).
    reads: bool = True
    #: True: every idiom is right and the schedule is the best one (oracle).
    fluent: bool = False
    #: Added to the log-odds of every prior.
    skill: float = 0.0

    #: Seed of what is one author's own: its beliefs about idioms and its grasp of tasks.
    person: int = Field(0, ge=0)
    #: Standard deviation, in log-odds, of what one author always knows better or worse than others, by idiom.
    belief: float = Field(0.0, ge=0)
    #: Standard deviation, in log-odds, of how well one author copes with a task, for all idioms of its kernels.
    grasp: float = Field(0.0, ge=0)
    #: Log-odds that a task's formula, boundary and constants are read right. None: they always are.
    formula: float | None = None
    boundary: float | None = None
    precision: float | None = None
    #: Log-odds that neighbours along an axis are found. None: the idiom's prior.
    axis: float | None = None

    #: Weight of a page that teaches the idiom.
    page: float = Field(1.5, ge=0)
    #: Weight of the right spelling in feasible code.
    verified: float = Field(5.0, ge=0)
    #: Weight of the right spelling in code that compiled, for idioms that a compiler checks.
    compiled: float = Field(3.0, ge=0)
    #: Weight of the right spelling in other code or prose.
    shown: float = Field(1.0, ge=0)
    #: Weight of a failure whose message points at the idiom.
    hinted: float = Field(1.6, ge=0)
    #: Weight, against the right spelling, of the wrong one in a failed kernel whose message does not point at it.
    misled: float = Field(1.2, ge=0)
    #: Fraction of the weaker side that is subtracted when both spellings are seen.
    conflict: float = Field(0.5, ge=0)
    #: Each further piece of evidence counts this fraction of the one before.
    repetition: float = Field(0.5, ge=0, lt=1)

    #: Characters of context at which half of every item is read: 32,000 tokens of four characters, a length at which
    #: about half of the models that claim it still do well (RULER, arXiv 2404.06654).
    span: float = Field(128_000, gt=0)
    #: Characters of one item at which half of an idiom in it is noticed.
    focus: float = Field(12000, gt=0)
    #: Relative gain in attention from a comment beside the spelling.
    comment: float = Field(0.25, ge=0)

    #: Probability that an idiom of the start point is copied unchanged.
    copying: float = Field(0.985, ge=0, le=1)
    #: Probability that an idiom which a move puts at risk survives the change.
    care: float = Field(0.8, ge=0, le=1)
    #: Probability that a repair leaves a mistake which the message does not point at.
    inertia: float = Field(0.0, ge=0, le=1)
    #: Probability that a verified kernel of the context is taken over as a skeleton: what is right there is copied.
    skeleton: float = Field(0.0, ge=0, le=1)
    #: Added to the log-odds of every optimisation in a first draft.
    ambition: float = 0.0
    #: Chance of a second move in one attempt.
    boldness: float = Field(0.3, ge=0, le=1)
    #: Log-odds for a move that the context shows, and for one that fits the bottleneck.
    prompted: float = Field(1.5, ge=0)
    fitting: float = Field(1.5, ge=0)

    def digest(self) -> str:
        """Return a hash of everything in the profile."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def stated_odds(self, idiom: str) -> float | None:
        """Return the log-odds that the profile states for an idiom; None where the idiom's own prior counts."""
        constant = _STATED.get(idiom)
        odds: float | None = getattr(self, constant) if constant else None
        return odds

    def own_offset(self, idiom: str, task: str) -> float:
        """Return what this author adds to the log-odds of an idiom in kernels for a task, in every attempt."""
        belief = self.belief and self.belief * _standard_normal(self.person, f"belief:{idiom}")
        return belief + (self.grasp and self.grasp * _standard_normal(self.person, f"grasp:{task}"))

    def sampled(self, seed: int) -> Profile:
        """Return a profile with every constant drawn around this one's, within the range that `ranges.yaml` gives."""
        drawn: dict[str, Any] = {"name": f"{self.name}~{seed}", "about": f"{self.about} Drawn with seed {seed}."}
        for name, spread in ranges().items():
            # A stream for each field: a new one leaves the others as they are.
            unit = np.random.default_rng([seed, crc32(name.encode())]).uniform(-1, 1)
            drawn[name] = _moved(float(getattr(self, name)), float(unit), spread)
        return Profile.model_validate(self.model_dump() | drawn)


@lru_cache(maxsize=65536)
def _standard_normal(person: int, name: str) -> float:
    return float(np.random.default_rng([person, crc32(name.encode())]).standard_normal())


def _moved(value: float, unit: float, spread: dict[str, float]) -> float:
    """Return a value moved within its range by `unit`, between -1 and 1."""
    ((kind, size),) = spread.items()
    if kind == "factor":
        return value * exp(unit * log(size))
    if kind == "shift":
        return value + unit * size
    return 1 / (1 + exp(-log(value / (1 - value)) - unit * size))


@lru_cache(maxsize=1)
def ranges() -> dict[str, dict[str, float]]:
    """Return how far sampled profiles lie from their base, by constant."""
    text = resources.files(__package__).joinpath("ranges.yaml").read_text()
    spreads: dict[str, dict[str, float]] = parse_yaml(text)
    return spreads


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles in the package."""
    files = resources.files(__package__).joinpath("profiles").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@lru_cache(maxsize=256)
def load_profile(name: str) -> Profile:
    """Return a profile by name.

    Args:
        name: The name of a profile, or the path of a `.yaml` file. `middle~7` is a profile drawn around `middle` with
            seed 7. A fitted profile has members that agree with its targets alike; `calibrated~7` is one of them, with
            beliefs of its own.

    Returns:
        The profile.

    Raises:
        ConfigError: There is no such profile.
    """
    base, sampled, seed = name.partition("~")
    constants = _constants(base)
    if sampled and not seed.isdecimal():
        raise ConfigError(f"a sampled profile is a name, ~ and a number, such as {base}~7, not {name!r}")
    members = constants.pop("members", None)
    profile = Profile.model_validate(constants)
    if not sampled:
        return profile
    if not members:
        return profile.sampled(int(seed))
    own = members[int(seed) % len(members)] | {"name": f"{profile.name}~{seed}", "person": profile.person + int(seed)}
    return Profile.model_validate(profile.model_dump() | own)


def profile_members(name: str) -> tuple[dict[str, float], ...]:
    """Return the constants of a fitted profile's members; none for a profile that was not fitted.

    Raises:
        ConfigError: There is no such profile.
    """
    return tuple(_constants(name).get("members", ()))


def _constants(name: str) -> dict[str, Any]:
    """Return what a profile's file says; `like: other` takes the rest from another, for its members too."""
    packaged = resources.files(__package__).joinpath("profiles", f"{name}.yaml")
    file = packaged if packaged.is_file() or not name.endswith(".yaml") else Path(name)
    if not file.is_file():
        raise ConfigError(f"unknown author profile {name!r}; known: {', '.join(profile_names())}")
    constants: dict[str, Any] = {"name": Path(name).stem, **parse_yaml(file.read_text())}
    if like := constants.pop("like", ""):
        base = _constants(like)
        own = {key: value for key, value in constants.items() if key not in ("name", "about")}
        return base | constants | {"members": [member | own for member in base.get("members", ())]}
    return constants
