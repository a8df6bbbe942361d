"""Finding agents, authors, devices and embedders by name.

A name is either registered in an entry-point group (ours in `setup.cfg`, a third party's in its own package) or written
as `module:Class`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

from kernel_gym.errors import ConfigError

Group = Literal["kernel_gym.agents", "kernel_gym.devices", "kernel_gym.authors", "kernel_gym.embedders"]


def names(group: Group) -> tuple[str, ...]:
    """All registered names of a group, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def load(group: Group, name: str) -> Any:
    """The class behind a registered name or behind `module:Class`."""
    if ":" in name:
        return imported(name)
    for point in entry_points(group=group):
        if point.name == name:
            return point.load()
    kind = group.rsplit(".", 1)[1].rstrip("s")
    raise ConfigError(f"unknown {kind} {name!r}; known: {', '.join(names(group))}; or write module:Class")


def make(group: Group, name: str, options: Mapping[str, Any]) -> Any:
    """What `load` finds, made with these options."""
    kind = load(group, name)
    try:
        return kind(**options)
    except TypeError as error:
        raise ConfigError(f"{name} does not take these options: {error}") from error


def imported(name: str) -> Any:
    """What `module:name` names; modules of the working directory are found, too."""
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # a command line of ours is run from the folder with the user's module in it
        sys.path.append(here)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load {name!r}: {error}") from error
