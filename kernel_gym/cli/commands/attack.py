"""Attack the verifier: run every known attack and every honest oddity, and print what got through.

The exit status is 1 if an attack gains anything, if an honest kernel is refused, or if a kernel is not judged.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kernel_gym import plugins, suites
from kernel_gym.cli import command_line
from kernel_gym.cli.result_file import append_result, read_results
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
kernel-gym attack --damaged 1000 --variants 100 --seed 1 --out damaged.jsonl
"""
#: Seconds between two lines of progress where standard error is no terminal.
EVERY = 30.0
#: Tasks whose oracles are damaged, too.
ORACLES = ("level1/gelu", "level1/softmax", "level1/layer_norm", "level1/sum_reduction_over_a_dimension")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--device", default="ascend-sim", help="the device to attack (default: %(default)s)")
    parser.add_argument(
        "--cause", type=command_line.words, default=(), metavar="S1,...", help="attacks of these causes only"
    )
    parser.add_argument("--only", type=command_line.words, default=(), metavar="NAME,...", help="these attacks only")
    parser.add_argument(
        "--damaged", type=command_line.count, default=0, metavar="N", help="judge N damaged kernels instead"
    )
    parser.add_argument(
        "--variants", type=command_line.count, default=0, metavar="N", help="judge N variants of honest kernels instead"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of damage and variants (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="append results to a file; those in it are not judged again"
    )
    parser.add_argument("--list", action="store_true", help="list the attacks instead of running them")
    parser.add_argument("--workers", type=command_line.count, default=1, help="copies of the device to judge on")
    parser.add_argument("--unsafe", action="store_true", help="run the kernels even if this machine's sandbox is weak")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each attack; the exit status is 1 if one got through or an honest kernel did not."""
    from kernel_gym.verifier.attacks import catalogue

    device: Device = plugins.load("kernel_gym.devices", arguments.device)()
    attacks = _chosen(catalogue.select(catalogue.load(device.language), arguments.cause, arguments.only), arguments)
    if arguments.list:
        _list(attacks, arguments.json)
        return 0
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{arguments.device} cannot be used here: {reason}")
    written: list[dict[str, Any]] = read_results(arguments.out, dict)
    earlier = {row["name"]: row for row in written}
    left = [attack for attack in attacks if not _is_done(attack, earlier)]
    results = _attack(device, left, arguments)
    rows = [row for row in earlier.values() if row["name"] in {attack.name for attack in attacks} - _names(left)]
    rows += [result.to_json() for result in results]
    if arguments.json:
        print(json.dumps([result.to_json() for result in results]))
    else:
        _print(results, rows)
    return 1 if any(row["fault"] for row in rows) else 0


def _is_done(attack: Attack, earlier: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the file has a result for this kernel; one for another text of the same name does not count."""
    row = earlier.get(attack.name)
    return row is not None and row.get("digest", attack.kernel.digest) == attack.kernel.digest


def _names(attacks: Iterable[Attack]) -> set[str]:
    return {attack.name for attack in attacks}


def _chosen(attacks: Sequence[Attack], arguments: argparse.Namespace) -> list[Attack]:
    """Return the attacks to judge: those of the catalogue, or damaged kernels and variants made of them."""
    from kernel_gym.verifier.attacks.damage import damaged
    from kernel_gym.verifier.attacks.variants import variants

    chosen = list(attacks)
    if arguments.damaged or arguments.variants:
        honest = [attack for attack in attacks if attack.expected == "feasible"] + _oracles(attacks)
        chosen = list(damaged([*attacks, *_oracles(attacks)], arguments.damaged, arguments.seed))
        chosen += variants(honest, arguments.variants, arguments.seed)
    return chosen


def _oracles(attacks: Sequence[Attack]) -> list[Attack]:
    """Return the apprentice's best kernels for the tasks of the attacks, as honest kernels."""
    from kernel_gym.authors.apprentice import oracle
    from kernel_gym.verifier.attacks.catalogue import Attack

    language = attacks[0].kernel.language
    tasks = [suites.find_task(name) for name in sorted({attack.task for attack in attacks} | set(ORACLES))]
    return [
        Attack(task.name, oracle(task, language), task.id, ("oracles",), "feasible", "an oracle", task.name)
        for task in tasks
    ]


def _attack(device: Device, attacks: Sequence[Attack], arguments: argparse.Namespace) -> list[Result]:
    from kernel_gym.verifier import Verifier
    from kernel_gym.verifier.attacks import trial

    results: list[Result] = []
    workers = arguments.workers
    verifier = Verifier(device, cache=False, unsafe=arguments.unsafe, workers=workers)
    with verifier, _Progress(len(attacks), arguments.json) as progress:
        for result in trial.run(verifier, attacks, workers):
            append_result(arguments.out, result.to_json())
            results.append(result)
            progress.show(results)
    return results


class _Progress:
    """Shows on standard error how many kernels are judged and how many a minute; a line now and then in a file."""

    def __init__(self, total: int, silent: bool) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._console = Console(stderr=True)
        self._bar = Progress(*columns, console=self._console, disable=silent or not self._console.is_terminal)
        self._lines = not silent and not self._console.is_terminal
        self._task = self._bar.add_task("", total=total)
        self._total, self._begun, self._last = total, time.monotonic(), time.monotonic()

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, results: Sequence[Result]) -> None:
        """Show the results so far."""
        now = time.monotonic()
        faults = sum(bool(result.fault) for result in results)
        words = f"{60 * len(results) / max(now - self._begun, 1e-9):.0f} a minute, {faults} faults"
        self._bar.update(self._task, completed=len(results), description=words)
        if self._lines and (now - self._last >= EVERY or len(results) == self._total):
            self._last = now
            print(f"{len(results)} of {self._total} kernels, {words}", file=sys.stderr, flush=True)


def _list(attacks: Sequence[Attack], as_json: bool) -> None:
    rows = [(a.name, " ".join(a.causes), a.task, a.expected, a.about) for a in attacks]
    columns = ("name", "cause", "task", "expected", "about")
    if as_json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows]))
        return
    _table(columns, rows)


def _print(results: Sequence[Result], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the results of this run, and a summary of all `rows`, those of earlier runs in the file among them."""
    shown = [
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
    _table(("name", "cause", "expected", "outcome", "latency / honest", "fault"), shown)
    faults = Counter(row["fault"] for row in rows if row["fault"])
    words = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items())) or "none got through, none refused"
    distinct = len({(row["task"], row.get("digest", row["name"])) for row in rows})
    same = f" ({distinct} distinct)" if distinct < len(rows) else ""
    outcomes = Counter(row["outcome"] for row in rows)
    print(f"{len(rows)} kernels{same}: {words}")
    print("outcomes: " + ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common()))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, 160)
    console.print(table)
