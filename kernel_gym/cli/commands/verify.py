"""Verify a kernel: compile it, check its results, time it, and print the verdict."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kernel_gym import plugins, suites
from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import DeviceUnavailable, KernelGymError
from kernel_gym.hardware.device import Device, Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Profile, Verdict

EXAMPLES = """
kernel-gym verify --task level1/relu --kernel relu.asc
kernel-gym verify --task level1/softmax --kernel softmax.asc --profile
kernel-gym verify --task level1/softmax --kernel softmax.asc --trace softmax.json
kernel-gym verify --task my_task.py --kernel my_kernel.asc --json
kernel-gym verify --task my_task.py --kernel my_kernel.asc --policy reference
"""
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
    parser.add_argument("--task", required=True, help="suite/name, suite/number, or a .py file in KernelBench's format")
    command_line.add_trust_argument(parser)
    parser.add_argument("--kernel", required=True, type=Path, help="source file of the kernel")
    parser.add_argument("--device", default="ascend-sim", help="where it runs (default: %(default)s)")
    add_policy_argument(parser, "strict")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a timeline of the pipes at the timing sizes, for ui.perfetto.dev",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as one line of JSON")
    parser.add_argument("--fresh", action="store_true", help="verify again even if the verdict is cached")
    parser.add_argument("--unsafe", action="store_true", help="run the kernel even if this machine's sandbox is weak")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict; the exit status is 0 for every verdict that was reached."""
    source = _read(arguments.kernel)
    device = _device(arguments.device)
    task = suites.find_task(arguments.task)
    kernel = Kernel(source, device.language)
    verdict = _judge(kernel, task, device, arguments)
    if arguments.trace:
        _trace(kernel, task, device, arguments.trace)
    if arguments.json:
        print(json.dumps({"task": task.id} | verdict.to_json()))
    else:
        _show(verdict, task.id, arguments.profile)
    return 1 if verdict.outcome == "unjudged" else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise KernelGymError(f"no kernel file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KernelGymError(f"cannot read {str(path)!r}: {error}") from None


def _device(name: str) -> Device:
    device: Device = plugins.load("kernel_gym.devices", name)()
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{name} cannot be used here: {reason}")
    return device


def _judge(kernel: Kernel, task: Task, device: Device, arguments: argparse.Namespace) -> Verdict:
    from kernel_gym.verifier import Verifier  # takes seconds: bad input is reported without it

    with Verifier(device, cache=not arguments.fresh, unsafe=arguments.unsafe, policy=arguments.policy) as verifier:
        return verifier.verify(kernel, task)


def _trace(kernel: Kernel, task: Task, device: Device, path: Path) -> None:
    """Run once more at the timing sizes, with a trace; a kernel that does not build or run has none."""
    if not hasattr(device, "trace"):
        raise KernelGymError(f"{device.name} writes no traces")
    build = device.build(kernel, task)
    if not build.ok:
        raise KernelGymError("no trace: the kernel does not compile")
    run = device.trace(build, Inputs(task.instance(task.timing).signature), path)
    if run.fault:
        raise KernelGymError(f"no trace of the whole run: {run.fault.message}")


def _show(verdict: Verdict, task: str, with_profile: bool) -> None:
    console = Console(highlight=False)
    colour, title = _TITLES[verdict.outcome]
    judged = f"policy {verdict.policy}, sandbox tier {verdict.sandbox_tier}"
    console.print(f"[bold {colour}]{title}[/]  {task} on {verdict.device}, {judged}")
    if isinstance(verdict, Feasible):
        console.print(f"latency  [bold]{verdict.latency:.3f} us[/] at the timing sizes")
    where = [f"{name} {value}" for name in ("gate", "rule", "cause") if (value := getattr(verdict, name, ""))]
    if where:
        console.print("  ".join(where), style="dim")
    console.print(verdict.feedback, markup=False)
    for note in verdict.notes:
        console.print(f"- {note}", style="dim", markup=False)
    if with_profile and isinstance(verdict, Feasible):
        _show_profile(console, verdict.profile)
    gates = "  ".join(f"{gate} {1000 * seconds:.0f} ms" for gate, seconds in verdict.seconds.items())
    console.print(gates, style="dim")


def _show_profile(console: Console, profile: Profile) -> None:
    table = Table("what", "value", title="profile", title_justify="left", box=None)
    for name, value in profile.pipes.items():
        table.add_row(f"{name} busy", f"{value:.3f} us")
    for name, value in profile.waits.items():
        table.add_row(f"{name} waits", f"{value:.3f} us")
    for name, count in (*profile.bytes.items(), *profile.counts.items()):
        table.add_row(name, f"{count:,}")
    console.print(table)
