"""How much faster than a naive kernel a good one is for each task, and which tasks are exceptions."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from kernel_gym.data_files import parse_yaml

#: A naive kernel takes at least this many times as long as the best known kernel.
SPREAD = 2.0
#: The best kernel takes at least this many times as long as its launches alone.
LAUNCHES = 5.0


def exceptions(task: str) -> dict[str, str]:
    """Return the requirements that a task does not meet (`spread`, `launch`) with the reasons; empty for most tasks."""
    return {promise: reasons[task] for promise, reasons in listed().items() if task in reasons}


@lru_cache(maxsize=1)
def listed() -> dict[str, dict[str, str]]:
    """Return all exceptions: requirement, task, reason."""
    text = resources.files(__package__).joinpath("headroom_exceptions.yaml").read_text()
    return {promise: dict(reasons or {}) for promise, reasons in parse_yaml(text).items()}
