"""Targets of a fit: shares of tasks that an author solved in protocols without memory."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.errors import ConfigError


class Figure(BaseModel):
    """One figure: the share of tasks that pass a gate within a number of attempts.

    `suite` names the suite of the tasks, or several joined by `+`; `tasks` is how many the share was counted on.
    In `pass@k` every attempt is a new draft with one demonstration and nothing else. In `repair` every attempt mends
    the one before with its message.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Literal["pass@k", "repair"]
    suite: str
    attempts: int = Field(ge=1, le=100)
    gate: Literal["compiled", "correct"]
    share: float = Field(ge=0, le=1)
    tasks: int = Field(100, ge=1)

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that the tasks come from."""
        return tuple(self.suite.split("+"))

    @property
    def label(self) -> str:
        """The figure's name in tables."""
        return f"{self.protocol}, {self.suite}, {self.gate} within {self.attempts}"


class Targets(BaseModel):
    """Figures to fit, with their source.

    `fit` names the profile's constants that are free, `base` gives the others. If `base` is an ensemble, each of its
    members is fitted. `draw` names constants on which the protocols have no bearing: each member of the ensemble draws
    its own. `person` is added to the number of a member, so that authors of different models have different beliefs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    base: str = "middle"
    person: int = Field(0, ge=0)
    fit: tuple[str, ...] = ()
    draw: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = Field(min_length=1)


def packaged_targets() -> tuple[str, ...]:
    """Return the names of the targets in the package."""
    files = resources.files(__package__).joinpath("targets").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def load_targets(name: str) -> Targets:
    """Return targets from a file, or by their name in the package.

    Raises:
        ConfigError: The file cannot be read, or is no list of figures.
    """
    packaged = resources.files(__package__).joinpath("targets", f"{name}.yaml")
    try:
        text = packaged.read_text() if packaged.is_file() else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(packaged_targets())
        raise ConfigError(f"cannot read the targets {name}: give a YAML file or one of {known}") from error
    try:
        return Targets.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{name}: {place or 'the file'}: {first['msg']}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
