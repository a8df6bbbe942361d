#!/usr/bin/env python3
"""Say what works on this machine: compiler, sandbox, devices, libraries, and a self-test with kernels of known fate."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from rich.console import Console

from kernel_gym import command_line, plugins, suites
from kernel_gym.errors import KernelGymError
from kernel_gym.hardware import sandbox
from kernel_gym.hardware.ascend_sim import runtime as runtimes
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Verdict
from kernel_gym.verifier import Verifier
from kernel_gym.version import __version__

EXAMPLES = """
scripts/doctor.py
scripts/doctor.py --json
"""
LIBRARIES = ("gymnasium", "numpy", "torch", "ray", "openai", "pydantic", "tree-sitter-cpp", "pyelftools", "wordllama")
TASK = "level1/relu"

#: What each fate does to the example's one line of arithmetic, and what the verdict must be.
ARITHMETIC = "Relu(y, x, count);"
FATES = {
    "good": (ARITHMETIC, {"outcome": "feasible"}),
    "wrong": ("Abs(y, x, count);", {"outcome": "incorrect", "cause": "mismatch"}),
    "uncompilable": ("Maximum(y, x, 0.0f, count);", {"outcome": "uncompilable"}),
    "hanging": ("while (count > 0) Relu(y, x, count);", {"outcome": "incorrect", "cause": "timeout"}),
}
TIERS = {
    "A": "Landlock and seccomp",
    "B": "bubblewrap and seccomp",
    "C": "seccomp only: kernels of models and people need --unsafe (a kernel with Landlock, 5.13 or newer, gives A)",
    "D": "none: kernels of models and people need --unsafe (seccomp is not available)",
}


@dataclass(frozen=True)
class Check:
    """One kernel of the self-test: what was expected, what came of it."""

    name: str
    expected: str
    outcome: str
    ok: bool
    seconds: float
    feedback: str


def main() -> int:
    """Examine everything; the exit status is 0 if the simulator can be relied on."""
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print what was found as one line of JSON")
    arguments = parser.parse_args()
    report = _examine()
    if arguments.json:
        print(json.dumps(report))
    else:
        _show(report)
    return 0 if report["healthy"] else 1


def _examine() -> dict[str, Any]:
    report: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libraries": {name: _version(name) for name in LIBRARIES},
    }
    report["devices"] = {name: _reason(name) for name in plugins.names("kernel_gym.devices")}
    try:
        report |= _compiler() | _sandbox() | {"selftest": [asdict(check) for check in _self_test()], "problem": None}
    except KernelGymError as error:
        report |= {"problem": str(error), "selftest": []}
    report["healthy"] = report["problem"] is None and all(check["ok"] for check in report["selftest"])
    return report


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _reason(name: str) -> str | None:
    """Why a device cannot be used, or None."""
    try:
        device: Device = plugins.load("kernel_gym.devices", name)()
        return device.unavailable_reason()
    except (KernelGymError, ImportError) as error:
        return str(error)


def _compiler() -> dict[str, Any]:
    built = runtimes.runtime()
    return {"compiler": runtimes.compiler_version(built.compiler), "runtime": str(built.folder)}


def _sandbox() -> dict[str, Any]:
    probes = runtimes.runtime().probes
    found = sandbox.confinement(probes)
    return {"sandbox_tier": found.tier, "attacks_that_succeed": list(sandbox.attack(probes, found.layers))}


def _self_test() -> list[Check]:
    source = (runtimes.HERE / "examples" / "relu.asc").read_text()
    task = suites.find(TASK)
    device = plugins.load("kernel_gym.devices", "ascend-sim")()
    checks = []
    with Verifier(device, cache=False) as verifier:
        for name, (line, expected) in FATES.items():
            # Our own text: it may run at any tier.
            verdict = verifier.verify(Kernel(source.replace(ARITHMETIC, line), trusted=True), task)
            checks.append(_check(name, expected, verdict))
    return checks


def _check(name: str, expected: Mapping[str, str], verdict: Verdict) -> Check:
    found = {key: str(getattr(verdict, key, "")) for key in expected}
    seconds = sum(verdict.seconds.values())
    feedback = verdict.feedback.splitlines()[0] if verdict.feedback else ""
    return Check(name, _words(expected), _words(found), found == dict(expected), round(seconds, 3), feedback)


def _words(answers: Mapping[str, str]) -> str:
    return ", ".join(value for value in answers.values() if value)


def _show(report: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"kernel_gym {report['version']}, Python {report['python']}, {report['machine']}")
    console.print(
        "libraries: " + ", ".join(f"{name} {version or '(missing)'}" for name, version in report["libraries"].items())
    )
    for name, reason in report["devices"].items():
        console.print(f"device {name}: {'usable' if reason is None else reason}")
    if report["problem"]:
        console.print(f"problem: {report['problem']}", style="red", markup=False)
        return
    console.print(f"compiler: {report['compiler']}")
    reached = report["attacks_that_succeed"]
    console.print(f"sandbox tier {report['sandbox_tier']}: {TIERS[report['sandbox_tier']]}")
    console.print(f"attacks that succeed: {', '.join(reached) if reached else 'none'}")
    for check in report["selftest"]:
        style, word = ("green", "as expected") if check["ok"] else ("red", f"expected {check['expected']}")
        console.print(
            f"self-test, {check['name']} kernel: {check['outcome']} ({word}, {check['seconds']:.2f} s)", style=style
        )
        if not check["ok"]:
            console.print(f"  {check['feedback']}", markup=False)


if __name__ == "__main__":
    command_line.run(main)
