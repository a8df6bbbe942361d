"""Translate what earlier versions wrote into run folders, studies and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Agents by their names in 0.1.0.
RENAMED_AGENTS = {"complement": "context-value", "knowing": "oracle"}
_EARLIER_NAMES = {name: earlier for earlier, name in RENAMED_AGENTS.items()}
#: Packages by their names in 0.1.0; authors may be named as `module:Class`.
RENAMED_PACKAGES = {"kernel_gym.generators.": "kernel_gym.authors."}


def current_config(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a `config.yaml` with today's names."""
    config = dict(data)
    if "agent" in config:
        config["agent"] = current_agent(str(config["agent"]))
    env = config.get("env")
    if isinstance(env, Mapping) and "author" in env:
        config["env"] = {**env, "author": _current_module(str(env["author"]))}
    return config


def current_agent(name: str) -> str:
    """Return today's name of an agent."""
    return RENAMED_AGENTS.get(name, name)


def current_contender(name: str) -> str:
    """Return today's name of a contender: an agent, or an arm and an agent."""
    return "/".join(map(current_agent, name.split("/")))


def _current_module(name: str) -> str:
    for earlier, current in RENAMED_PACKAGES.items():
        if name.startswith(earlier):
            return current + name.removeprefix(earlier)
    return name


def shard_folder(study: Path, label: str) -> Path:
    """Return the folder of a study's shard, which an earlier version may have named after the agent's earlier name."""
    folder = study / label
    earlier = study.joinpath(*(_EARLIER_NAMES.get(part, part) for part in Path(label).parts))
    return earlier if earlier.exists() and not folder.exists() else folder
