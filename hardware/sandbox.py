"""How candidate code can be confined on this machine, found out by trying to break out.

Tiers: `A` Landlock and seccomp, `B` bubblewrap and seccomp, `C` seccomp alone, `D` nothing. The machine's promise is
not believed: a set of attacks runs inside the sandbox, and a tier counts only if every one of them fails.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kernel_gym.errors import InfrastructureError

Tier = Literal["A", "B", "C", "D"]

#: Bits of confinement/jail.h.
LIMITS, LANDLOCK, SECCOMP = 1, 2, 4


@dataclass(frozen=True)
class Confinement:
    """A tier and the layers that make it; `reached` names attacks that got through at that tier."""

    tier: Tier
    layers: int
    reached: tuple[str, ...] = ()


@cache
def confinement(probes: Path) -> Confinement:
    """The best tier of this machine, by running the quick attacks; once in a process."""
    available = int(_call(probes, "--layers")["layers"])
    candidates: tuple[tuple[Tier, int], ...] = (("A", LIMITS | LANDLOCK | SECCOMP), ("C", LIMITS | SECCOMP))
    for tier, layers in candidates:
        if layers & ~available == 0:
            reached = attack(probes, layers, "--quick" if tier == "A" else "--calls")
            if not reached:
                return Confinement(tier, layers)
    return Confinement("D", LIMITS & available, attack(probes, LIMITS & available, "--quick"))


def attack(probes: Path, layers: int, which: str = "--all") -> tuple[str, ...]:
    """Names of the attacks that succeed within `layers`."""
    return tuple(_call(probes, which, str(layers))["reached"])


def _call(probes: Path, *arguments: str) -> dict[str, Any]:
    run = subprocess.run([str(probes), *arguments], capture_output=True, text=True, timeout=120, check=False)
    if run.returncode:
        raise InfrastructureError(f"the sandbox probes failed: {run.stderr.strip()[:200] or run.returncode}")
    result: dict[str, Any] = json.loads(run.stdout)
    return result
