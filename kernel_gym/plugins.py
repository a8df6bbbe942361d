"""Agents, authors, devices and embedders by name.

A name is either registered in an entry-point group (ours in `setup.cfg`, a third party's in its own distribution) or
written as `module:Class`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from kernel_gym.errors import ConfigError

Group = Literal["kernel_gym.agents", "kernel_gym.devices", "kernel_gym.authors", "kernel_gym.embedders"]


#: Former names of groups, which are still read.
_FORMER_GROUPS = {"kernel_gym.authors": "kernel_gym.generators"}


def names(group: Group) -> tuple[str, ...]:
    """Return all registered names of a group, sorted."""
    return tuple(sorted({point.name for point in _entry_points(group)}))


def load(group: Group, name: str) -> Any:
    """Return the class behind a registered name or behind `module:Class`.

    Args:
        group: The entry-point group that registered names are looked up in.
        name: A registered name, or `module:Class`.

    Returns:
        The class.

    Raises:
        ConfigError: If the name is not registered or cannot be imported. The message suggests a similar name.
    """
    if ":" in name:
        return imported(name)
    for point in _entry_points(group):
        if point.name == name:
            return point.load()
    kind = group.rsplit(".", 1)[1].rstrip("s")
    near = get_close_matches(name, names(group), 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"unknown {kind} {name!r}; {hint}known: {', '.join(names(group))}; or write module:Class")


def make(group: Group, name: str, options: Mapping[str, Any]) -> Any:
    """Return an instance of the class that `load` returns.

    Args:
        group: The entry-point group that registered names are looked up in.
        name: A registered name, or `module:Class`.
        options: Keyword arguments of the class.

    Returns:
        The instance.

    Raises:
        ConfigError: If there is no such class, or if it does not take the options.
    """
    kind = load(group, name)
    try:
        return kind(**options)
    except TypeError as error:
        raise ConfigError(f"{name} does not take these options: {error}") from error


def imported(name: str) -> Any:
    """Import what `module:name` names; modules of the working directory are found, too."""
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # commands are run from the folder that holds the user's module
        sys.path.append(here)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load {name!r}: {error}") from error


def _entry_points(group: Group) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, those of its former name last."""
    return _installed(group, _FORMER_GROUPS.get(group, ""), tuple(sys.path))


@cache
def _installed(group: str, former: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read the entry points of the distributions on a path, which takes 40 ms, once."""
    return (*entry_points(group=group), *(entry_points(group=former) if former else ()))
