"""Verify a kernel: compile it, check its results, time it, and print the verdict."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kernel_gym import plugins, suites
from kernel_gym.cli import bundle_table, command_line
from kernel_gym.cli.profile_table import profile_table
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import DeviceUnavailable, KernelGymError
from kernel_gym.hardware.device import Device, Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Verdict

if TYPE_CHECKING:
    from kernel_gym.verifier import Verifier

EXAMPLES = """
kernel-gym verify --task level1/relu --kernel relu.asc
kernel-gym verify --task level1/softmax --kernel softmax.asc --profile
kernel-gym verify --task level1/softmax --kernel softmax.asc --trace softmax.json
kernel-gym verify --task my_task.py --kernel my_kernel.asc --json
kernel-gym verify --task my_task.py --kernel my_kernel.asc --policy reference
kernel-gym verify --task level1/relu --bundle relu.py
kernel-gym verify --bundles answers/ --task references/
"""
RESUMES = True
#: Colour and words for what a verdict says first.
_TITLES = {
    "feasible": ("green", "feasible"),
    "incorrect": ("red", "compiles, but is not correct"),
    "uncompilable": ("red", "does not compile"),
    "cheated": ("magenta", "refused as cheating"),
    "unjudged": ("yellow", "could not be judged"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--task", help="suite/name, suite/number, or a .py file in KernelBench's format")
    command_line.add_trust_argument(parser)
    judged = parser.add_mutually_exclusive_group(required=True)
    judged.add_argument("--kernel", type=Path, help="source file of the kernel")
    judged.add_argument("--bundle", type=Path, help="a bundle: a .py file of six strings in MultiKernelBench's form")
    judged.add_argument(
        "--bundles",
        type=Path,
        metavar="FOLDER",
        help="all bundles of a folder; the reference of NAME.py is NAME.py in the folder or suite of --task, or "
        "NAME.reference.py beside it",
    )
    parser.add_argument("--device", default="ascend-sim", help="where it runs (default: %(default)s)")
    add_policy_argument(parser, words="; bundles are judged by reference unless you say strict")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a timeline of the pipes at the timing sizes, for ui.perfetto.dev",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as one line of JSON")
    parser.add_argument(
        "--no-oracle",
        action="store_true",
        help="do not time the oracle's kernel for comparison; else that is done once for each task and device",
    )
    parser.add_argument("--fresh", action="store_true", help="verify again even if the verdict is cached")
    parser.add_argument("--unsafe", action="store_true", help="run the kernel even if this machine's sandbox is weak")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict; the exit status is 0 for every verdict that was reached."""
    from kernel_gym.experiments.runs.progress import show_progress

    if arguments.policy is None:
        arguments.policy = "strict" if arguments.kernel else "reference"
    if arguments.bundles:
        return _verify_all(arguments)
    if arguments.task is None:
        raise command_line.UsageError("--task is required")
    source = _read(arguments.kernel or arguments.bundle)
    device = _device(arguments.device)
    task = suites.find_task(arguments.task)
    kernel = Kernel(source, device.language, form="bundle" if arguments.bundle else None)
    with _verifier(device, arguments) as verifier:
        with show_progress("verify"):
            verdict = verifier.verify(kernel, task)
        if arguments.trace:
            _trace(kernel, task, device, arguments.trace)
        if arguments.json:
            references = _references(verdict, task, verifier, arguments)
            print(json.dumps({"task": task.id} | verdict.to_json() | references))
        else:
            console = Console(highlight=False)
            _show(console, verdict, task.id, arguments.profile)
            _show_proportion(console, verdict, task, verifier, arguments)
    return 1 if verdict.outcome == "unjudged" else 0


def _verify_all(arguments: argparse.Namespace) -> int:
    """Print the verdicts on a folder's bundles as a table or as lines of JSON; cached verdicts are not made again."""
    from kernel_gym.experiments.runs.progress import show_progress

    pairs = bundle_table.pairs(arguments.bundles, arguments.task)
    rows: list[bundle_table.Row] = []
    with _verifier(_device(arguments.device), arguments) as verifier, show_progress("verify bundles") as show:
        for path, reference in pairs:
            show(len(rows), len(pairs), path.name)
            rows.append(bundle_table.verify(verifier, path, reference))
            if arguments.json:
                print(json.dumps(rows[-1].to_json()), flush=True)
        show(len(pairs), len(pairs))
    if not arguments.json:
        console = Console(highlight=False)
        console.print(bundle_table.table(rows))
        console.print(bundle_table.summary(rows, arguments.policy))
    return 1 if any(row.outcome == "unjudged" for row in rows) else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise KernelGymError(f"no kernel file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KernelGymError(f"cannot read {str(path)!r}: {error}") from None


def _device(name: str) -> Device:
    device: Device = plugins.load("kernel_gym.devices", name)()
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{name} cannot be used here: {reason}")
    return device


def _verifier(device: Device, arguments: argparse.Namespace) -> Verifier:
    from kernel_gym.verifier import Verifier  # takes seconds: bad input is reported without it

    return Verifier(device, cache=not arguments.fresh, unsafe=arguments.unsafe, policy=arguments.policy)


def _references(
    verdict: Verdict, task: Task, verifier: Verifier, arguments: argparse.Namespace
) -> dict[str, float | None]:
    """Return the latencies that a feasible kernel's latency is compared with; empty for other kernels."""
    from kernel_gym.experiments.runs.reference_latency import floor_us, oracle_us
    from kernel_gym.verifier.cache import VerdictCache

    if not verdict.feasible:
        return {}
    oracle = None if arguments.no_oracle else oracle_us(task, verifier, VerdictCache())
    return {"floor_us": floor_us(task, verifier.device), "oracle_us": oracle}


def _trace(kernel: Kernel, task: Task, device: Device, path: Path) -> None:
    """Run once more at the timing sizes, with a trace; a kernel that does not build or run has none."""
    if kernel.form == "bundle":
        raise KernelGymError("no trace of a bundle: --trace takes kernels in one file")
    if not hasattr(device, "trace"):
        raise KernelGymError(f"{device.name} writes no traces")
    build = device.build(kernel, task)
    if not build.ok:
        raise KernelGymError("no trace: the kernel does not compile")
    run = device.trace(build, Inputs(task.instance(task.timing).signature), path)
    if run.fault:
        raise KernelGymError(f"no trace of the whole run: {run.fault.message}")


def _show(console: Console, verdict: Verdict, task: str, with_profile: bool) -> None:
    colour, title = _TITLES[verdict.outcome]
    judged = f"policy {verdict.policy}, sandbox tier {verdict.sandbox_tier}"
    console.print(f"[bold {colour}]{title}[/]  {task} on {verdict.device}, {judged}")
    if isinstance(verdict, Feasible):
        console.print(f"latency  [bold]{verdict.latency:.3f} us[/] at the timing sizes")
    where = [f"{name} {value}" for name in ("gate", "rule", "cause") if (value := getattr(verdict, name, ""))]
    if where:
        console.print("  ".join(where), style="dim")
    console.print(verdict.feedback, markup=False)
    for element in getattr(verdict, "wrong", ()):
        console.print(f"  {element}", markup=False)
    for note in verdict.notes:
        console.print(f"- {note}", style="dim", markup=False)
    if with_profile and isinstance(verdict, Feasible):
        console.print(profile_table(verdict.profile, verdict.latency))
    gates = "  ".join(f"{gate} {1000 * seconds:.0f} ms" for gate, seconds in verdict.seconds.items())
    console.print(gates, style="dim")


def _show_proportion(
    console: Console, verdict: Verdict, task: Task, verifier: Verifier, arguments: argparse.Namespace
) -> None:
    """Print a feasible kernel's latency beside the floor and the oracle's; the oracle may have to be timed first."""
    if not isinstance(verdict, Feasible):
        return
    with console.status("timing the oracle's kernel, once for this task"):
        references = _references(verdict, task, verifier, arguments)
    names = {"floor_us": "the floor", "oracle_us": "the oracle"}
    console.print(f"{verdict.latency:.1f} us: {proportions(verdict.latency, references, names)}")


def proportions(latency: float, references: Mapping[str, float | None], names: Mapping[str, str]) -> str:
    """Return a latency as multiples of references: `1.9 x the floor (42.0 us), 0.97 x the oracle (82.7 us)`."""
    return ", ".join(
        f"{latency / us:.2f} x {names[key]} ({us:.1f} us)" for key, us in references.items() if us is not None
    )
