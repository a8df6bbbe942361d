"""Export runs as a dataset: one JSON line an attempt, or training data for language models."""

import argparse
import json
from collections import Counter
from pathlib import Path

from kernel_gym.cli.command_line import UsageError
from kernel_gym.errors import KernelGymError

EXAMPLES = """
kernel-gym dataset runs/model --out model.jsonl
kernel-gym dataset runs/model runs/other --out feasible.jsonl --feasible
kernel-gym dataset runs/comparison --out all.jsonl
kernel-gym dataset runs/c/value/seed-0 --out value.jsonl --json
kernel-gym dataset runs/model --format chat --out data/chat
kernel-gym dataset runs/comparison --format preferences --held-out 0.2 --out data/pairs
"""
#: What `--format` may be: a row for each attempt, or one of the formats of training data.
FORMATS = ("rows", "chat", "preferences", "trajectories")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs or comparisons")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="rows",
        help="rows: one line an attempt (default); chat: verified answers; preferences: a better and a worse answer; "
        "trajectories: episodes with rewards",
    )
    parser.add_argument(
        "--held-out", type=_fraction, default=0.1, help="fraction of the tasks in test.jsonl (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write, or folder for training data; it must not exist"
    )
    parser.add_argument("--feasible", action="store_true", help="only attempts whose kernel passed every gate")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Write the rows and print how many there are."""
    if arguments.format != "rows":
        return _write_training_data(arguments)
    counts = _write(arguments)
    if arguments.json:
        print(json.dumps({"file": str(arguments.out), **counts}))
    else:
        print(f"{counts['rows']} attempts, {counts['feasible']} feasible, {counts['prompts']} with prompts")
        print(f"written to {arguments.out}")
    return 0


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to below 1")
    return value


def _write_training_data(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.runs.dataset import open_runs
    from kernel_gym.experiments.runs.training_data import write

    if arguments.feasible:
        raise UsageError("--feasible is for rows: the format says which attempts it takes")
    words = ["kernel-gym dataset", *map(str, arguments.runs), "--format", arguments.format]
    rows = (row for path in arguments.runs for run in open_runs(path) for row in run.rows())
    counts = write(rows, arguments.format, arguments.out, arguments.held_out, " ".join(words))
    figures = {"attempts": counts.attempts, **counts.written, "left_out": {**counts.left_out}}
    if arguments.json:
        print(json.dumps({"folder": str(arguments.out), **figures}))
    else:
        print(f"{counts.written['train']} lines for training, {counts.written['test']} of held-out tasks")
        print(f"written to {arguments.out}; README.md says what was left out")
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
