"""What an agent left of what it learned of single items, for looking at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.agents import context_value, value
from kernel_gym.agents.support.agent_files import agent_file
from kernel_gym.errors import ConfigError


@dataclass(frozen=True)
class Learned:
    """Item -> stage (or stage and state) -> number; `symbol` is what the number is called."""

    symbol: str
    values: dict[int, dict[str, float]]


#: Who keeps numbers by item: the file that it leaves, what the numbers are called, who reads them.
KEEPERS = {
    value.FILE: ("Q", value.read_item_values),
    context_value.FILE: ("log-odds", context_value.read_item_values),
}


def learned(path: Path) -> Learned:
    """What the agent of a run left in its folder."""
    for file, (symbol, read) in KEEPERS.items():
        if agent_file(path, file).exists():
            return Learned(symbol, read(path))
    raise ConfigError(
        f"{path} holds nothing that was learned of items: only value ({value.FILE}) and context-value "
        f"({context_value.FILE}) leave that"
    )
