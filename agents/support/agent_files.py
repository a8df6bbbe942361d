"""Files that agents save into their folder, also under the names of earlier versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernel_gym.errors import ConfigError

#: Names that earlier versions gave to a file, by its present name. Run folders of before have these.
EARLIER_NAMES = {"context_value.json": "complement.json"}


def agent_file(folder: Path, name: str) -> Path:
    """Return the path of a saved file, under its earlier name if only that exists.

    Args:
        folder: The folder that `Agent.save` wrote.
        name: The file's present name.

    Returns:
        The path; it need not exist.
    """
    earlier = folder / EARLIER_NAMES.get(name, name)
    return earlier if earlier.exists() and not (folder / name).exists() else folder / name


def read_agent_file(folder: Path, name: str) -> dict[str, Any]:
    """Read the JSON object that an agent saved.

    Args:
        folder: The folder that `Agent.save` wrote.
        name: The file's present name.

    Returns:
        The saved object.

    Raises:
        ConfigError: If the file is missing, unreadable or not a JSON object.
    """
    file = agent_file(folder, name)
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds nothing that was learned: there is no readable {name} in it") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{file} was not written by this agent")
    return data
