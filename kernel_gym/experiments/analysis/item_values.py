"""Read what a saved agent learned about single items."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.agents import context_value, value
from kernel_gym.agents.support.agent_files import agent_file
from kernel_gym.errors import ConfigError


@dataclass(frozen=True)
class ItemValues:
    """What an agent learned about single items, by item and stage (or stage and state); `symbol` names the number."""

    symbol: str
    values: dict[int, dict[str, float]]


#: The file of each agent that keeps numbers by item, with the name of the numbers and the function that reads them.
READERS = {
    value.FILE: ("Q", value.read_item_values),
    context_value.FILE: ("log-odds", context_value.read_item_values),
}


def read_item_values(path: Path) -> ItemValues:
    """Read the values of single items from the folder of a saved agent."""
    for file, (symbol, read) in READERS.items():
        if agent_file(path, file).exists():
            return ItemValues(symbol, read(path))
    raise ConfigError(
        f"{path} holds no values of items: only value ({value.FILE}) and context-value ({context_value.FILE}) save them"
    )
