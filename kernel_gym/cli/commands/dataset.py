"""Export runs as a dataset: one JSON line an attempt, with context, prompt, kernel, verdict and reward."""

import argparse
import json
from collections import Counter
from pathlib import Path

from kernel_gym.errors import KernelGymError

EXAMPLES = """
kernel-gym dataset runs/model --out model.jsonl
kernel-gym dataset runs/model runs/other --out feasible.jsonl --feasible
kernel-gym dataset runs/comparison --out all.jsonl
kernel-gym dataset runs/c/value/seed-0 --out value.jsonl --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs or comparisons")
    parser.add_argument("--out", type=Path, required=True, help="file to write; it must not exist")
    parser.add_argument("--feasible", action="store_true", help="only attempts whose kernel passed every gate")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Write the rows and print how many there are."""
    counts = _write(arguments)
    if arguments.json:
        print(json.dumps({"file": str(arguments.out), **counts}))
    else:
        print(f"{counts['rows']} attempts, {counts['feasible']} feasible, {counts['prompts']} with prompts")
        print(f"written to {arguments.out}")
    return 0


def _write(arguments: argparse.Namespace) -> dict[str, int]:
    from kernel_gym.experiments.runs.dataset import open_runs

    runs = [run for path in arguments.runs for run in open_runs(path)]
    counts: Counter[str] = Counter(rows=0, feasible=0, prompts=0, without_kernel=0)
    try:
        file = arguments.out.open("x", encoding="utf-8")
    except OSError as error:
        raise KernelGymError(f"cannot write {arguments.out}: {error.strerror}") from None
    with file:
        for row in (row for run in runs for row in run.rows()):
            feasible = row["verdict"]["feasible"]
            if feasible or not arguments.feasible:
                file.write(json.dumps(row) + "\n")
                seen = {
                    "rows": True,
                    "feasible": feasible,
                    "prompts": row["prompt"],
                    "without_kernel": row["kernel"] is None,
                }
                counts.update(name for name, true in seen.items() if true)
    return dict(counts)
