"""A file of results, one JSON object a line, to which a command appends and from which it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from kernel_gym.errors import KernelGymError

Result = TypeVar("Result")


def read_results(path: Path | None, make: Callable[..., Result]) -> list[Result]:
    """Return the results in a file; an incomplete last line, which a kill may leave, is cut off.

    Args:
        path: The file; it need not exist. None for no file.
        make: Makes a result from the fields of a row.

    Returns:
        One result a line.

    Raises:
        KernelGymError: A line is no such result.
    """
    if path is None or not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    try:
        results = [make(**json.loads(line)) for line in whole.splitlines()]
    except (ValueError, TypeError) as error:
        raise KernelGymError(f"{path} holds no results of this command; choose another --out") from error
    if len(whole) < len(data):
        path.write_bytes(whole)
    return results


def append_result(path: Path | None, fields: dict[str, Any]) -> None:
    """Append the fields of a result to a file; None for no file."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(fields) + "\n")
