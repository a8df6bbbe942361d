"""Check this machine: compiler, sandbox, devices, libraries, and a self-test with kernels whose verdicts are known."""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from kernel_gym import plugins, suites
from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Verdict
from kernel_gym.version import __version__

EXAMPLES = """
kernel-gym doctor
kernel-gym doctor --json
"""
LIBRARIES = ("gymnasium", "numpy", "torch", "ray", "openai", "pydantic", "tree-sitter-cpp", "pyelftools", "wordllama")
TASK = "level1/relu"
#: The distributions that come with PyTorch: itself and, for a CUDA build, CUDA.
_TORCH_PART = re.compile(r"(torch|triton|cuda-\w+|nvidia-.+)$")

#: The verdict that each of the four kernels must get.
EXPECTED = {
    "good": {"outcome": "feasible"},
    "wrong": {"outcome": "incorrect", "cause": "mismatch"},
    "uncompilable": {"outcome": "uncompilable"},
    "hanging": {"outcome": "incorrect", "cause": "timeout"},
}
_RELU = (
    "ascend_sim/examples/relu.asc",
    "Relu(y, x, count);",
    {
        "wrong": "Abs(y, x, count);",
        "uncompilable": "Maximum(y, x, 0.0f, count);",
        "hanging": "while (count > 0) Relu(y, x, count);",
    },
)
#: By device: an example, its one line of arithmetic, and what the other kernels have in its place.
EXAMPLES_OF = {
    "ascend-sim": _RELU,
    "ascend": _RELU,
    "cuda": (
        "cuda/examples/relu.cu",
        "v.x = fmaxf(v.x, 0.0f);",
        {
            "wrong": "v.x = fabsf(v.x);",
            "uncompilable": "v.x = Relu(v.x);",
            "hanging": "while (true) *(volatile float *)y = v.x;",
        },
    ),
}
TIERS = {
    "A": "Landlock and seccomp",
    "B": "bubblewrap and seccomp",
    "C": "seccomp only: kernels of models and people run in `verify --unsafe` and `validate --unsafe` only "
    "(Linux 5.13 or newer with Landlock gives A)",
    "D": "none: kernels of models and people run in `verify --unsafe` and `validate --unsafe` only "
    "(seccomp is not available)",
}


@dataclass(frozen=True)
class Check:
    """One kernel of the self-test: the device, the expected and the actual outcome."""

    device: str
    name: str
    expected: str
    outcome: str
    ok: bool
    seconds: float
    feedback: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Examine everything; the exit status is 0 if the simulator can be relied on."""
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
        "torch": _torch(),
    }
    report["devices"] = {name: _reason(name) for name in plugins.names("kernel_gym.devices")}
    report["notes"] = {name: note for name in report["devices"] if (note := _note(name))}
    try:
        report |= _compiler() | _sandbox() | {"cuda": _cuda(report["devices"].get("cuda", "not registered"))}
        usable = [name for name in EXAMPLES_OF if report["devices"].get(name, "not registered") is None]
        report |= {"selftest": [asdict(check) for name in usable for check in _self_test(name)], "problem": None}
    except KernelGymError as error:
        report |= {"problem": str(error), "selftest": []}
    report["healthy"] = report["problem"] is None and all(check["ok"] for check in report["selftest"])
    return report


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> dict[str, Any]:
    """Return PyTorch's version, the CUDA version that it is built for (None for a CPU build) and its size on disk.

    The size is in gigabytes; the CUDA packages that a CUDA build brings along are counted in.
    """
    import torch

    parts = [part for part in metadata.distributions() if _TORCH_PART.match(str(part.metadata["Name"]))]
    files = {Path(str(file.locate())) for part in parts for file in part.files or ()}
    gigabytes = sum(file.stat().st_size for file in files if file.is_file()) / 1e9
    return {"version": torch.__version__, "cuda": torch.version.cuda, "gigabytes": round(gigabytes, 2)}


def _reason(name: str) -> str | None:
    """Return why a device cannot be used, or None."""
    try:
        device: Device = plugins.load("kernel_gym.devices", name)()
        return device.unavailable_reason()
    except (KernelGymError, ImportError) as error:
        return str(error)


def _note(name: str) -> str:
    """Return the note that a device class declares, or an empty string."""
    try:
        return str(getattr(plugins.load("kernel_gym.devices", name), "note", ""))
    except (KernelGymError, ImportError):
        return ""


def _compiler() -> dict[str, Any]:
    from kernel_gym.confinement.building import compiler_version
    from kernel_gym.hardware.ascend_sim.runtime import runtime

    built = runtime()
    return {"compiler": compiler_version(built.compiler), "runtime": str(built.folder)}


def _sandbox() -> dict[str, Any]:
    from kernel_gym.confinement import sandbox
    from kernel_gym.confinement.programs import programs

    probes = programs().probes
    confinement = sandbox.confinement(probes)
    return {"sandbox_tier": confinement.tier, "attacks_that_succeed": list(sandbox.attack(probes, confinement.layers))}


def _cuda(reason: str | None) -> dict[str, Any] | None:
    """Return the GPU and its tools, or None without one."""
    if reason is not None:
        return None
    from kernel_gym.hardware.cuda.machine import facts
    from kernel_gym.hardware.cuda.toolkit import toolkit

    gpu, tools = facts(), toolkit()
    return {
        "gpu": gpu["name"],
        "driver": gpu["driver"],
        "nvrtc": str(tools.nvrtc),
        "missing_headers": list(tools.missing),
        "sanitizer": shutil.which("compute-sanitizer"),
        "reads_host_memory": bool(gpu["pageable"]),
    }


def _self_test(name: str) -> list[Check]:
    from kernel_gym.hardware.ascend_sim.runtime import HERE
    from kernel_gym.verifier import Verifier

    path, arithmetic, others = EXAMPLES_OF[name]
    source = (HERE.parent / path).read_text()
    task = suites.find_task(TASK)
    device = plugins.load("kernel_gym.devices", name)()
    checks = []
    with Verifier(device, cache=False) as verifier:
        for variant, expected in EXPECTED.items():
            text = source.replace(arithmetic, others.get(variant, arithmetic))
            # The kernels are ours: they may run at any tier.
            verdict = verifier.verify(Kernel(text, device.language, trusted=True), task)
            checks.append(_check(name, variant, expected, verdict))
    return checks


def _check(device: str, name: str, expected: Mapping[str, str], verdict: Verdict) -> Check:
    outcome = {key: str(getattr(verdict, key, "")) for key in expected}
    seconds = sum(verdict.seconds.values())
    feedback = verdict.feedback.splitlines()[0] if verdict.feedback else ""
    right = outcome == dict(expected)
    return Check(device, name, _words(expected), _words(outcome), right, round(seconds, 3), feedback)


def _words(answers: Mapping[str, str]) -> str:
    return ", ".join(value for value in answers.values() if value)


def _show(report: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"kernel_gym {report['version']}, Python {report['python']}, {report['machine']}")
    console.print(
        "libraries: " + ", ".join(f"{name} {version or '(missing)'}" for name, version in report["libraries"].items())
    )
    console.print(_torch_line(report["torch"]))
    for name, reason in report["devices"].items():
        console.print(f"device {name}: {'usable' if reason is None else reason}", markup=False)
        if name in report["notes"]:
            console.print(f"  {report['notes'][name]}")
    if report["problem"]:
        console.print(f"problem: {report['problem']}", style="red", markup=False)
        return
    console.print(f"compiler: {report['compiler']}")
    reached = report["attacks_that_succeed"]
    console.print(f"sandbox tier {report['sandbox_tier']}: {TIERS[report['sandbox_tier']]}")
    console.print(f"attacks that succeed: {', '.join(reached) if reached else 'none'}")
    if report["cuda"]:
        _show_cuda(console, report["cuda"])
    for check in report["selftest"]:
        style, word = ("green", "as expected") if check["ok"] else ("red", f"expected {check['expected']}")
        console.print(
            f"self-test on {check['device']}, {check['name']} kernel: {check['outcome']} "
            f"({word}, {check['seconds']:.2f} s)",
            style=style,
        )
        if not check["ok"]:
            console.print(f"  {check['feedback']}", markup=False)


def _torch_line(torch: Mapping[str, Any]) -> str:
    build = f"build for CUDA {torch['cuda']}" if torch["cuda"] else "CPU build"
    hint = "; a CPU build is enough and takes about 0.7 GB (docs/install.md)" if torch["cuda"] else ""
    return f"torch {torch['version']}: {build}, {torch['gigabytes']:.1f} GB on disk{hint}"


def _show_cuda(console: Console, cuda: Mapping[str, Any]) -> None:
    console.print(f"GPU: {cuda['gpu']}, driver for CUDA {cuda['driver'] // 1000}.{cuda['driver'] % 1000 // 10}")
    console.print(f"NVRTC: {cuda['nvrtc']}", markup=False)
    if cuda["missing_headers"]:
        console.print(f"headers that authors expect and that are missing: {', '.join(cuda['missing_headers'])}")
    console.print(f"compute-sanitizer: {cuda['sanitizer'] or 'not found (part of the CUDA toolkit)'}", markup=False)
    if cuda["reads_host_memory"]:
        console.print(
            "this GPU reads the memory of processes: a kernel could see the trusted process (docs/reference/cuda.md)"
        )
