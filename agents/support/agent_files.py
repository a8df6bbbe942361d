"""What an agent left in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernel_gym.errors import ConfigError


def read_agent_file(path: Path, name: str) -> dict[str, Any]:
    """The data of a folder's file; one that is missing or broken is an error with words."""
    try:
        data = json.loads((path / name).read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} holds nothing that was learned: there is no readable {name} in it") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path / name} was not written by this agent")
    return data
