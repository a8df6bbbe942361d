"""Verify every kernel that a run claims again, without the cache; the exit status is 1 unless all claims hold."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from kernel_gym.cli import command_line

EXAMPLES = """
kernel-gym validate runs/value
kernel-gym validate runs/value --best
kernel-gym validate runs/main/value/seed-0 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", type=Path, help="run folder")
    command_line.add_trust_argument(parser)
    parser.add_argument("--best", action="store_true", help="only the fastest kernel of each task")
    parser.add_argument("--workers", type=command_line.count, default=1, help="kernels judged at once (default 1)")
    parser.add_argument("--json", action="store_true", help="print the claims as JSON")
    parser.add_argument("--unsafe", action="store_true", help="run the kernels even in a weak sandbox")


def run(arguments: argparse.Namespace) -> int:
    """Print one line a claim."""
    from kernel_gym.experiments.runs.validation import claims

    checked = []
    for claim in claims(arguments.run, arguments.unsafe, arguments.best, arguments.workers):
        checked.append(claim)
        if not arguments.json:
            now = "-" if claim.now_us is None else f"{claim.now_us:.3f} us"
            print(f"{claim.task:60} {claim.kernel[:12]} claimed {claim.claimed_us:.3f} us, now {now}: {claim.word}")
    broken = [claim for claim in checked if not claim.holds]
    if arguments.json:
        print(json.dumps([asdict(claim) | {"holds": claim.holds, "word": claim.word} for claim in checked], indent=1))
    else:
        print(f"{len(checked) - len(broken)} of {len(checked)} claims hold")
    return 1 if broken else 0
