"""What a command is doing at the moment, as log records of level INFO; progress displays show the latest one.

The records belong to the logger `kernel_gym.activity`, so `logging` can also write all of them to a file. Every record
has a `task` and an `attempt` (counted from 1), empty and 0 where there is none.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger(__name__)


def prepare(what: str) -> None:
    """Log a preparation that may take seconds, such as the build of the simulator."""
    LOGGER.info("%s", what, extra={"task": "", "attempt": 0})


def attempt(task: str, number: int, phase: str) -> None:
    """Log that an attempt at a task, counted from 1, is in a phase."""
    LOGGER.info("%s, attempt %d: %s", task, number, phase, extra={"task": task, "attempt": number})


def gate(task: str, name: str) -> None:
    """Log that a kernel for a task is at a gate of the verifier, which does not know the attempt."""
    LOGGER.info("%s: %s", task, name, extra={"task": task, "attempt": 0})
