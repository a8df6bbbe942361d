"""Evaluate trained agents on unseen tasks: neither the agents nor their memory banks change."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import UsageError
from kernel_gym.cli.run_options import add_policy_argument

if TYPE_CHECKING:
    from kernel_gym.tasks.task import Task

EXAMPLES = """
kernel-gym evaluate runs/value --tasks level1/gelu,level1/softmax --budget 10 --out runs/value-unseen
kernel-gym evaluate runs/main --tasks 'level1 20 after 40' --budget 10 --out runs/main-unseen
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, or folders of studies: all complete runs")
    parser.add_argument(
        "--tasks",
        "--operators",
        type=command_line.words,
        required=True,
        metavar="TASKS",
        help="unseen tasks: comma-separated ids, or a stratified sample such as 'level1 20 after 40'",
    )
    command_line.add_trust_argument(parser)
    parser.add_argument("--budget", type=command_line.count, default=10, help="attempts a task (default 10)")
    add_policy_argument(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder of the evaluation")
    parser.add_argument(
        "--parallel", type=command_line.count, default=os.cpu_count() or 1, help="runs at once (default: one a core)"
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the trained agents and print the table."""
    if not arguments.tasks:
        raise UsageError("--tasks names no task")

    from kernel_gym.experiments.studies import agent_comparison, evaluation

    tasks = _tasks(arguments.tasks)
    runs = evaluation.complete_runs(arguments.runs)
    ids = [task.id for task in tasks]
    study = evaluation.evaluation_study(runs, ids, arguments.budget, arguments.out, arguments.policy)
    what = f"{len(runs)} trained agents on {len(tasks)} unseen tasks"
    if not arguments.json:
        print("verifications in training:", _words(evaluation.training_costs(runs)))
    return agent_comparison.run_and_print(study, what, arguments.parallel, as_json=arguments.json)


def _tasks(names: Sequence[str]) -> list[Task]:
    """Return the tasks. A name with blanks that is no file is a sample, such as `level1 20 after 40`."""
    from kernel_gym import suites
    from kernel_gym.experiments.studies.task_sampling import select_tasks

    def named(name: str) -> list[Task]:
        sample = " " in name and not name.endswith(".py")
        return select_tasks(name) if sample else [suites.find_task(name)]

    return [task for name in names for task in named(name)]


def _words(costs: dict[str, set[int]]) -> str:
    """Return one number if it is the same for all agents, else one for each."""
    if len(common := set().union(*costs.values())) == 1:
        return f"{common.pop():,} each"
    each = (f"{agent} {' or '.join(f'{n:,}' for n in sorted(numbers))}" for agent, numbers in costs.items())
    return "; ".join(each) + ": they differ, which a comparison must consider"
