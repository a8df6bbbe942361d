"""Turns error codes and messages of the runtime into faults that an author can act on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym.data_files import parse_yaml
from kernel_gym.hardware.device import Fault

_CODE = re.compile(r"\b([25]07\d{3})\b")


@dataclass(frozen=True)
class Explained:
    """A fault, and whether the device's health must be checked before anything else runs on it."""

    fault: Fault
    lost: bool

    @property
    def is_timeout(self) -> bool:
        """True if the kernel did not end."""
        return self.fault.rule == "KERNEL_TIMEOUT"


def explain(words: str) -> Explained:
    """Return what an error of the runtime means; a known sentence of the driver takes precedence over the code."""
    number = next((int(code) for code in _CODE.findall(words) if int(code) in _table()["codes"]), None)
    entry_of_code = _table()["codes"].get(number, {})
    lost = bool(entry_of_code.get("lost", True))
    for entry in _table()["words"]:
        if entry["seen"].lower() in words.lower():
            return Explained(Fault(entry["rule"], entry["message"]), lost)
    if entry_of_code:
        return Explained(Fault(entry_of_code["rule"], entry_of_code["message"]), lost)
    first = next((line.strip() for line in words.splitlines() if line.strip()), "no reason given")
    return Explained(Fault("NPU_ERROR", f"the NPU reports: {first[:200]}"), True)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = parse_yaml(Path(__file__).with_name("faults.yaml").read_text())
    return table
