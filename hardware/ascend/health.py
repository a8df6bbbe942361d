"""Checks the NPU's health by npu-smi and quarantines an NPU that is not healthy.

A faulting kernel can leave an NPU in a state in which the next, correct kernel fails. After a fault the NPU's health is
read from the driver. If it is not OK, the NPU is quarantined by a file that every process on the machine reads.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.confinement.building import cache_folder
from kernel_gym.errors import DeviceUnavailable

SECONDS = 20.0
_FIELD = re.compile(r"^\s*([\w /()-]+?)\s*:\s*(.*?)\s*$", re.MULTILINE)
Ask = Callable[[list[str]], str]


@dataclass(frozen=True)
class Health:
    """The health of one NPU, as the driver reports it."""

    state: str
    errors: str = ""

    @property
    def well(self) -> bool:
        """True if the driver reports OK."""
        return self.state.upper() == "OK"

    def __str__(self) -> str:
        return f"health {self.state}" + (f", {self.errors}" if self.errors else "")


def health(npu: int, ask: Ask | None = None) -> Health:
    """Return the health that npu-smi reports."""
    return parse((ask or _npu_smi)(["info", "-t", "health", "-i", str(npu)]))


def parse(words: str) -> Health:
    """Read the answer of `npu-smi info -t health -i N`."""
    fields = {name.strip().lower(): value for name, value in _FIELD.findall(words)}
    state = fields.get("health") or fields.get("health status")
    if state is None:
        raise DeviceUnavailable(f"npu-smi says nothing of the NPU's health: {' '.join(words.split())[:120]}")
    code = fields.get("error code", "")
    errors = [text for text in (code, fields.get("error information", "")) if text and text.upper() not in ("NA", "0")]
    return Health(state, " ".join(errors))


def _npu_smi(arguments: list[str]) -> str:
    try:
        run = subprocess.run(["npu-smi", *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceUnavailable(f"npu-smi does not answer: {error}") from error
    if run.returncode:
        raise DeviceUnavailable(f"npu-smi failed: {(run.stderr or run.stdout).strip()[:200]}")
    return run.stdout


class Quarantine:
    """A file that keeps one NPU out of use, for all processes."""

    def __init__(self, npu: int, folder: Path | None = None) -> None:
        self.npu = npu
        self.file = (folder or cache_folder()) / f"npu-{npu}.quarantine"

    def reason(self) -> str | None:
        """Return why the NPU is not used, or None."""
        if not self.file.is_file():
            return None
        note = json.loads(self.file.read_text())
        return (
            f"NPU {self.npu} is in quarantine since {note['when']}: {note['why']}; reset it "
            f"(npu-smi set -t reset -i {self.npu} -c 0), then remove {self.file}"
        )

    def impose(self, why: str) -> None:
        """Put the NPU into quarantine."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        note = {"when": time.strftime("%Y-%m-%d %H:%M:%S"), "why": why}
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(note))
        draft.replace(self.file)

    def after_fault(self, fault: str, ask: Ask | None = None) -> Health | None:
        """Check the NPU after a fault; quarantine it if it is not healthy or does not answer."""
        try:
            state = health(self.npu, ask)
        except DeviceUnavailable as error:
            self.impose(f"after {fault}: {error}")
            return None
        if not state.well:
            self.impose(f"after {fault}: {state}")
        return state
