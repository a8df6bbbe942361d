"""Print the skill at which an author who reads nothing is right as often as one who is shown random contexts.

A draft is right if all idioms of its kernel are. The reader is shown ten API pages and five other items for every task,
each drawn with equal chance from the seed practices or from the oracle kernels of the suite. Its rate is the mean over
tasks and contexts; the skill is added to the log-odds of every prior until the other's rate is the same.
"""

from __future__ import annotations

import argparse
import json

from kernel_gym import suites

EXAMPLES = """
kernel-gym placebo
kernel-gym placebo --profile strong --suite level2 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--profile", default="middle", help="author profile of the reader")
    parser.add_argument("--suite", default="level1", help="whose tasks are drafted")
    parser.add_argument("--contexts", type=int, default=100, help="number of contexts (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the rate and the skill."""
    from kernel_gym.experiments.analysis.placebo_skill import placebo_skill

    profile = arguments.profile
    rate, skill = placebo_skill(profile, suites.load_suite(arguments.suite), arguments.contexts)
    if arguments.json:
        print(json.dumps({"profile": profile, "rate": rate, "skill": skill}))
    else:
        print(f"{profile} shown random contexts writes {100 * rate:.1f}% of its drafts without a mistake")
        print(f"skill {skill:.2f} gives an author who reads nothing the same rate")
    return 0
