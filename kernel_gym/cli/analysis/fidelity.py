"""Compare the verdicts and latencies of the simulator with those that hardware gave, on a corpus of kernels.

The corpus is a CSV file with the columns kernel, reference, verdict (pass, compile_error, wrong or fault), latency_us
and group; the last two may be left out. Kernels and references are files beside the corpus; a .py kernel is a bundle.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import KernelGymError

if TYPE_CHECKING:
    from kernel_gym.experiments.analysis.fidelity import Comparison, Entry

EXAMPLES = """
kernel-gym fidelity corpus.csv
kernel-gym fidelity corpus.csv --out compared.csv
kernel-gym fidelity corpus.csv --out compared.json --json
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("corpus", type=Path, metavar="CORPUS.csv", help="kernels with the verdicts of hardware")
    command_line.add_trust_argument(parser)
    add_policy_argument(parser, "reference", "; reference is the default here")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a .csv or .json file of all rows, to go on from")
    parser.add_argument("--json", action="store_true", help="print the figures as one line of JSON")
    parser.add_argument("--fresh", action="store_true", help="verify again even if the verdict is cached")
    parser.add_argument("--unsafe", action="store_true", help="run kernels even if this machine's sandbox is weak")


def run(arguments: argparse.Namespace) -> int:
    """Print confusion matrix, agreement, latency errors and reasons of disagreement."""
    from kernel_gym.experiments.analysis import fidelity

    if arguments.out and arguments.out.suffix not in (".csv", ".json"):
        raise command_line.UsageError("--out is a .csv or a .json file")
    entries = fidelity.read_corpus(arguments.corpus)
    comparisons = _compared(arguments, entries)
    if arguments.json:
        print(json.dumps(fidelity.summary(comparisons)))
    else:
        _show(Console(highlight=False), comparisons)
    return 0


def _compared(arguments: argparse.Namespace, entries: list[Entry]) -> list[Comparison]:
    """Return the comparisons of all entries; those in the file of an earlier run are not made again."""
    from kernel_gym.experiments.analysis import fidelity
    from kernel_gym.experiments.runs.progress import show_progress
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.verifier import Verifier

    done = {(c.kernel, c.reference): c for c in _read(arguments.out)}
    comparisons: list[Comparison] = []
    cache, unsafe = not arguments.fresh, arguments.unsafe
    with (
        Verifier(AscendSim(), cache=cache, unsafe=unsafe, policy=arguments.policy) as verifier,
        show_progress("fidelity", unit="kernels") as show,
    ):
        for entry in entries:
            show(len(comparisons), len(entries))
            before = done.get((entry.kernel, entry.reference))
            comparisons.append(before or fidelity.compare(verifier, entry, arguments.corpus.parent))
            if before is None:
                _write(arguments.out, comparisons)
    return comparisons


def _read(path: Path | None) -> list[Comparison]:
    from kernel_gym.experiments.analysis.fidelity import Comparison

    if path is None or not path.exists():
        return []
    try:
        if path.suffix == ".json":
            return [Comparison(**row) for row in json.loads(path.read_text())]
        with path.open(newline="", encoding="utf-8") as file:
            return [_typed(row) for row in csv.DictReader(file)]
    except (ValueError, TypeError) as error:
        raise KernelGymError(f"{path} holds no results of this command; choose another --out") from error


def _typed(row: dict[str, str]) -> Comparison:
    from kernel_gym.experiments.analysis.fidelity import Comparison

    latencies = {name: float(row[name]) if row.get(name) else None for name in ("hardware_us", "here_us")}
    return Comparison(**{name: text for name, text in row.items() if name not in latencies}, **latencies)  # type: ignore[arg-type]


def _write(path: Path | None, comparisons: list[Comparison]) -> None:
    """Write all rows, whole or not at all."""
    from kernel_gym.experiments.analysis.fidelity import Comparison

    if path is None:
        return
    part = path.with_name(f".{path.name}.part")
    rows = [asdict(comparison) for comparison in comparisons]
    with part.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".json":
            json.dump(rows, file, indent=1)
        else:
            table = csv.DictWriter(file, [field.name for field in fields(Comparison)])
            table.writeheader()
            table.writerows(rows)
    part.replace(path)


def _show(console: Console, comparisons: list[Comparison]) -> None:
    from kernel_gym.experiments.analysis import fidelity

    rates = fidelity.agreement(comparisons)
    matrix = Table("hardware", *fidelity.OURS, "agree", title="verdicts here by hardware's verdict")
    for hardware, row in fidelity.confusion(comparisons).items():
        if hardware in rates:
            matrix.add_row(hardware, *(str(count) for count in row.values()), rates[hardware].text)
    console.print(matrix)
    if tables := fidelity.latency_errors(comparisons):
        errors = Table("group", "n", "median error", "bias", "within 20%", "Kendall tau", title="latencies")
        for table in tables:
            tau = "" if table.tau is None else f"{table.tau:.2f}"
            figures = [f"{table.median_error:.0%}", f"{table.bias:+.0%}", f"{table.near:.0%}", tau]
            errors.add_row(table.group or "all", str(table.count), *figures)
        console.print(errors)
    for comparison in fidelity.disagreements(comparisons):
        words = f"{comparison.kernel}: hardware {comparison.hardware}, here {comparison.here}: {comparison.reason}"
        console.print(words, markup=False)
