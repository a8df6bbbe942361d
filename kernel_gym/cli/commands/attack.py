"""Attack the verifier: run every known attack and every honest oddity, and print what got through.

The exit status is 1 if something unearned is feasible, if something honest is refused, or if a kernel is not judged.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernel_gym import plugins
from kernel_gym.cli import command_line
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.device import Device

if TYPE_CHECKING:
    from kernel_gym.verifier.attacks.catalogue import Attack
    from kernel_gym.verifier.attacks.trial import Result

EXAMPLES = """
kernel-gym attack
kernel-gym attack --cause S3,S4
kernel-gym attack --only I12_memory_between_cores --json
kernel-gym attack --list
kernel-gym attack --device cuda
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--device", default="ascend-sim", help="the device to attack (default: %(default)s)")
    parser.add_argument(
        "--cause", type=command_line.words, default=(), metavar="S1,...", help="attacks of these causes only"
    )
    parser.add_argument("--only", type=command_line.words, default=(), metavar="NAME,...", help="these attacks only")
    parser.add_argument("--list", action="store_true", help="list the attacks instead of running them")
    parser.add_argument("--workers", type=command_line.count, default=1, help="copies of the device to judge on")
    parser.add_argument("--unsafe", action="store_true", help="run the kernels even if this machine's sandbox is weak")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each attack; the exit status is 1 if one got through or an honest kernel did not."""
    from kernel_gym.verifier.attacks import catalogue

    device: Device = plugins.load("kernel_gym.devices", arguments.device)()
    attacks = catalogue.select(catalogue.load(device.language), arguments.cause, arguments.only)
    if arguments.list:
        _list(attacks, arguments.json)
        return 0
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{arguments.device} cannot be used here: {reason}")
    results = _attack(device, attacks, arguments)
    if arguments.json:
        print(json.dumps([result.to_json() for result in results]))
    else:
        _print(results)
    return 1 if any(result.fault for result in results) else 0


def _attack(device: Device, attacks: Sequence[Attack], arguments: argparse.Namespace) -> list[Result]:
    from kernel_gym.verifier import Verifier
    from kernel_gym.verifier.attacks import trial

    with Verifier(device, cache=False, unsafe=arguments.unsafe, workers=arguments.workers) as verifier:
        results = trial.run(verifier, attacks)
        console = Console(stderr=True)
        return list(track(results, "attacking", total=len(attacks), console=console, disable=arguments.json))


def _list(attacks: Sequence[Attack], as_json: bool) -> None:
    rows = [(a.name, " ".join(a.causes), a.task, a.expected, a.about) for a in attacks]
    columns = ("name", "cause", "task", "expected", "about")
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    _table(columns, rows)


def _print(results: Sequence[Result]) -> None:
    rows = [
        (
            result.attack.name,
            " ".join(result.attack.causes),
            result.attack.expected,
            result.outcome,
            "" if result.ratio is None else f"{result.ratio:.2f}",
            result.fault,
        )
        for result in results
    ]
    _table(("name", "cause", "expected", "outcome", "latency / honest", "fault"), rows)
    faults = Counter(result.fault for result in results if result.fault)
    words = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items())) or "none got through, none refused"
    print(f"{len(results)} kernels: {words}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, 160)
    console.print(table)
