#!/usr/bin/env python
"""Make a table for the tabular environment: kernels of a few tasks with their real verdicts.

Rounds of play on the table as it is find the kernels that the author would write and the table lacks; those asked for
most are written, judged and added, until there are enough of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from kernel_gym import command_line, suites
from kernel_gym.envs import parts
from kernel_gym.envs.options import Options
from kernel_gym.envs.tabular.tabulation import Tabulation
from kernel_gym.generators.apprentice import Apprentice, load_profile

EXAMPLES = """
scripts/tabular.py --tasks relu,sigmoid --kernels 100 --out relu.json.xz
"""
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Make the table and print what it covers."""
    parser = command_line.parser(__doc__ or "", EXAMPLES)
    parser.add_argument("--suite", default="level1", help="where the tasks are from")
    parser.add_argument("--tasks", type=command_line.words, required=True, help="names, separated by commas")
    parser.add_argument("--kernels", type=int, default=300, help="how many to judge in all")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of play in which they are found")
    parser.add_argument(
        "--attempts",
        type=int,
        default=2000,
        help="attempts played a round, for each profile, on shared and on fresh memory",
    )
    parser.add_argument("--profiles", type=command_line.words, default=("middle", "strong"), help="authors who play")
    parser.add_argument("--out", type=Path, required=True, help="the file, ending in .json.xz")
    arguments = parser.parse_args()
    options = Options(suite=arguments.suite, tasks=arguments.tasks)
    judge = parts.verifier(options)
    try:
        tasks = [suites.find(f"{arguments.suite}/{name}") for name in arguments.tasks]
        tabulation = Tabulation(tasks, judge, parts.embedder(options))
        for number in range(arguments.rounds + 1):
            wanted: Counter[tuple] = Counter()  # type: ignore[type-arg]
            covered = {}
            for name in arguments.profiles:
                for memory in ("shared", "fresh"):
                    played = tabulation.play(load_profile(name), arguments.attempts, number, memory=memory, budget=10)
                    missing, coverage = tabulation.wanting(played)
                    wanted.update(missing)
                    covered[f"{name}, {memory}"] = str(coverage)
                    print(f"round {number}, {name}, {memory}: {coverage}", file=sys.stderr, flush=True)
            if number == arguments.rounds:
                break
            left = arguments.kernels - sum(len(task.rows) for task in tabulation.table.tasks)
            tabulation.grow(wanted, -(-left // (arguments.rounds - number)), lambda line: None)
        tabulation.table.provenance = {
            "commit": _commit(),
            "device": judge.device.identity() if hasattr(judge, "device") else "",
            "author": Apprentice(arguments.profiles[0]).identity(),
            "embedder": parts.embedder(options).identity(),
            "command": f"scripts/tabular.py --suite {arguments.suite} --tasks {','.join(arguments.tasks)} "
            f"--kernels {arguments.kernels} --rounds {arguments.rounds} --attempts {arguments.attempts}",
            "coverage": covered,
        }
        tabulation.table.save(arguments.out)
    finally:
        judge.close()
    size = arguments.out.stat().st_size
    rows = sum(len(task.rows) for task in tabulation.table.tasks)
    print(f"{rows} kernels of {len(tasks)} tasks, {size / 1e3:.0f} kB")
    for name, text in covered.items():
        print(f"{name}: {text}")
    return 0


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    command_line.run(main)
