"""Reads the first finding of compute-sanitizer as a fault: its rule, the author's line, the place in the kernel."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_gym.hardware.device import Fault

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PREFIX = re.compile(r"^=========( |$)")
#: First lines of findings of any tool, and the rule that each breaks.
_FINDINGS = (
    (re.compile(r"Invalid __(?P<space>\w+?)__ (?P<what>read|write|atomic).*of size \d+"), "INVALID_ACCESS"),
    (re.compile(r"(?:Error: |Warning: )?Race reported between"), "RACE"),
    (re.compile(r"Uninitialized __\w+__ memory read"), "UNINITIALIZED_READ"),
    (re.compile(r"(?:Barrier error|Divergent thread)"), "BARRIER"),
    (re.compile(r"(?:Error: )?Potential \w+ hazard detected"), "RACE"),
)
_PLACE = re.compile(r"\bin (?:.*/)?kernel\.cu:(?P<line>\d+)")


def command(tool: str, log: Path) -> list[str]:
    """Return the command prefix for a checked process; every process writes its own log."""
    return ["compute-sanitizer", "--tool", tool, "--target-processes", "all", "--log-file", f"{log}-%p.log"]


def finding(folder: Path, stem: str) -> Fault | None:
    """Return the first finding in the logs of `folder`."""
    for path in sorted(folder.glob(f"{stem}-*.log"), key=lambda log: log.stat().st_mtime_ns):
        fault = parse(path.read_text(errors="replace"))
        if fault is not None:
            return fault
    return None


def parse(text: str) -> Fault | None:
    """Return the first finding of one log."""
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines() if _PREFIX.match(line)]
    for index, line in enumerate(lines):
        for pattern, rule in _FINDINGS:
            if pattern.search(line):
                return _fault(rule, line, lines[index + 1 : index + 6])
    return None


def _fault(rule: str, words: str, below: list[str]) -> Fault:
    place = next((match for line in below if (match := _PLACE.search(line))), None)
    details = [line for line in below if line.startswith(("by thread", "Address", "Access"))]
    return Fault(
        rule, "; ".join([words.removeprefix("Error: "), *details])[:300], int(place["line"]) if place else None
    )
