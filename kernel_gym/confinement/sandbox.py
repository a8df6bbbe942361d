"""Determines how kernel code can be confined on this machine, by running attacks inside the sandbox.

Tiers: `A` Landlock and seccomp, `B` bubblewrap and seccomp, `C` seccomp alone, `D` nothing. A tier counts only if every
attack fails.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kernel_gym.errors import InfrastructureError

Tier = Literal["A", "B", "C", "D"]

#: Bits of confinement/jail.h.
LIMITS, LANDLOCK, SECCOMP = 1, 2, 4

#: Paths that every program needs to start.
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True)
class Confinement:
    """How kernel code is confined.

    Args:
        tier: The tier.
        layers: The bits of the layers that make it.
        reached: Attacks that succeed at that tier.
        bubblewrap: The path of the program that takes the place of Landlock at tier B.
    """

    tier: Tier
    layers: int
    reached: tuple[str, ...] = ()
    bubblewrap: str | None = None

    def wrapped(
        self, command: Sequence[str], read: Iterable[Path | str], write: Iterable[Path | str] = ()
    ) -> list[str]:
        """Return the command with bubblewrap in front of it at tier B, and unchanged at other tiers.

        Args:
            command: The program and its arguments.
            read: Paths that it may read.
            write: Paths that it may write.

        Returns:
            The command to run.
        """
        if self.bubblewrap is None:
            return list(command)
        bound = [("--ro-bind-try", str(path)) for path in (*_SYSTEM, *read)] + [("--bind", str(path)) for path in write]
        options = [word for option, path in bound for word in (option, path, path)]
        fixed = ["--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
        return [self.bubblewrap, *fixed, *options, "--", *command]


@cache
def confinement(probes: Path) -> Confinement:
    """Return the best tier of this machine. The quick attacks run once in a process.

    Args:
        probes: The program that attacks the sandbox.

    Returns:
        The first tier at which all attacks fail, or tier `D`.

    Raises:
        InfrastructureError: If the program does not run.
    """
    available = int(_call([str(probes), "--layers"])["layers"])
    for confinement, attacks in _tiers():
        if confinement.layers & ~available == 0 and not _attack(confinement, probes, attacks):
            return confinement
    rest = LIMITS & available
    return Confinement("D", rest, attack(probes, rest, "--quick"))


def _tiers() -> Iterable[tuple[Confinement, str]]:
    yield Confinement("A", LIMITS | LANDLOCK | SECCOMP), "--quick"
    if program := shutil.which("bwrap"):
        yield Confinement("B", LIMITS | SECCOMP, bubblewrap=program), "--quick"
    # Files can be opened while code is loaded: the screen of the binary refuses code that runs then.
    yield Confinement("C", LIMITS | SECCOMP), "--calls"


def attack(probes: Path, layers: int, which: str = "--all") -> tuple[str, ...]:
    """Run attacks within `layers`.

    Args:
        probes: The program that attacks the sandbox.
        layers: The bits of the layers.
        which: Which attacks: `--quick`, `--calls` or `--all`.

    Returns:
        The names of the attacks that succeed.

    Raises:
        InfrastructureError: If the program does not run.
    """
    return tuple(_call([str(probes), which, str(layers)])["reached"])


def _attack(confinement: Confinement, probes: Path, which: str) -> bool:
    """Return True if any attack succeeds, or if the sandbox cannot be set up."""
    command = confinement.wrapped([str(probes), which, str(confinement.layers)], read=[probes.parent])
    try:
        return bool(_call(command)["reached"])
    except InfrastructureError:
        return True


def _call(command: Sequence[str]) -> dict[str, Any]:
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if run.returncode:
        raise InfrastructureError(f"the sandbox probes failed: {run.stderr.strip()[:200] or run.returncode}")
    result: dict[str, Any] = json.loads(run.stdout)
    return result
