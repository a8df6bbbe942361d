"""Chip profiles: the figures that the simulator uses to turn instructions into time.

A profile is a YAML file under `chips/` (or anywhere): nested groups of numbers, with `base: FILE` naming one whose
figures it starts from. The device process gets them flat, as `memory.hbm_gbs 1540`; it refuses unknown and missing
keys, so a profile that it accepts is complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import ConfigError

CHIPS = Path(__file__).parent / "chips"
DEFAULT = "910B2"


@dataclass(frozen=True)
class ChipProfile:
    """A named set of figures, flat: `figures["memory.hbm_gbs"]`."""

    name: str
    figures: Mapping[str, float]

    def __getitem__(self, key: str) -> float:
        return self.figures[key]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return key and value of each figure, in a fixed order, as the request to the device carries them."""
        yield "name", self.name
        for key in sorted(self.figures):
            yield key, repr(self.figures[key])

    def changed(self, **figures: float) -> ChipProfile:
        """Return the same chip with some figures replaced; dots in keys are written as `__`."""
        replaced = {key.replace("__", "."): float(value) for key, value in figures.items()}
        unknown = replaced.keys() - self.figures.keys()
        if unknown:
            raise ConfigError(f"chip {self.name} has no figure {sorted(unknown)[0]}")
        return ChipProfile(self.name, {**self.figures, **replaced})


def available() -> list[str]:
    """Return the names of the profiles that come with the package."""
    return sorted(path.stem for path in CHIPS.glob("*.yaml") if path.stem != "base")


def load(name: str | Path = DEFAULT) -> ChipProfile:
    """Return a profile by name, or by the path of a YAML file."""
    path = Path(name) if str(name).endswith((".yaml", ".yml")) else CHIPS / f"{name}.yaml"
    if not path.is_file():
        raise ConfigError(f"no chip profile {name}; there are {', '.join(available())}")
    merged = _merged(path, depth=0)
    title = merged.pop("name", None)
    if not isinstance(title, str) or not title or any(c.isspace() for c in title):
        raise ConfigError(f"{path.name}: a chip profile needs a `name` without spaces")
    figures = dict(_flat(merged, "", path.name))
    return ChipProfile(title, {**_same_for_half(figures), **figures})


def _merged(path: Path, depth: int) -> dict[str, Any]:
    """Return the file's groups merged over those of its base."""
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the chip profile {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path.name}: a chip profile is a mapping of figures")
    base = data.pop("base", None)
    if base is None:
        return data
    if depth > 8:
        raise ConfigError(f"{path.name}: its `base` files form a circle")
    return _laid_over(_merged(path.parent / str(base), depth + 1), data)


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _laid_over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _flat(group: dict[str, Any], prefix: str, where: str) -> Iterator[tuple[str, float]]:
    for key, value in group.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.", where)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise ConfigError(f"{where}: {prefix}{key} must be a number that is not negative, not {value!r}")
        else:
            yield f"{prefix}{key}", float(value)


def _same_for_half(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the default of `repeat16` for each vector row: 16-bit elements take as long as others."""
    rows = (key.removesuffix(".repeat") for key in figures if key.count(".") == 2 and key.endswith(".repeat"))
    return {f"{row}.repeat16": figures[f"{row}.repeat"] for row in rows}
