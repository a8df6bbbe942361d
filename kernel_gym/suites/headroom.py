"""Which tasks leave less room than the suites promise, and why."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import yaml

#: A naive kernel takes at least this many times as long as the best one that is known.
SPREAD = 2.0
#: The best kernel takes at least this many times what its launches cost.
LAUNCHES = 5.0


def exceptions(task: str) -> dict[str, str]:
    """What a task falls short of (`spread`, `launch`), each with the reason; mostly nothing."""
    return {promise: reasons[task] for promise, reasons in listed().items() if task in reasons}


@lru_cache(maxsize=1)
def listed() -> dict[str, dict[str, str]]:
    """All exceptions: promise, task, reason."""
    text = resources.files(__package__).joinpath("headroom_exceptions.yaml").read_text()
    return {promise: dict(reasons or {}) for promise, reasons in yaml.safe_load(text).items()}
