"""Run a named study, or resume it; the table is written as Markdown into its folder."""

import argparse
import os
from pathlib import Path

from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument

EXAMPLES = """
kernel-gym study --list
kernel-gym study main --size quick --out runs/main-quick
kernel-gym study main --size full --out runs/main --parallel 16
kernel-gym study main --size full --out runs/main --agents value,heuristic --seeds 0
kernel-gym study main --size full --out runs/main --table
kernel-gym study main --policy reference --out runs/main-reference
kernel-gym study pool --size quick --agents value --budget 20 --out runs/pool
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", nargs="?", help="study; --list names them")
    parser.add_argument("--list", action="store_true", help="list the studies with their sizes")
    parser.add_argument("--size", default="quick", help="quick (default; minutes) or full (hours)")
    add_policy_argument(parser, "strict")
    parser.add_argument("--out", type=Path, help="folder of the study (default runs/NAME-SIZE)")
    parser.add_argument(
        "--parallel", type=command_line.count, default=os.cpu_count() or 1, help="runs at once (default: one a core)"
    )
    parser.add_argument("--agents", type=command_line.words, default=(), help="only these; others may be added later")
    parser.add_argument("--seeds", type=command_line.words, default=(), help="only these, comma-separated numbers")
    parser.add_argument(
        "--budget",
        type=command_line.count,
        default=0,
        help="attempts a task, instead of the size's",
    )
    parser.add_argument("--table", action="store_true", help="run nothing; write the table of the complete runs")


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, show progress with the time left, write and print the table."""
    if arguments.list or not arguments.name:
        return _list()

    from kernel_gym.experiments.studies import study_commands
    from kernel_gym.experiments.studies.study import print_failures

    parts = (arguments.agents, arguments.seeds, arguments.policy, arguments.budget)
    request = study_commands.StudyRequest(arguments.name, arguments.size, *parts)
    out = arguments.out or Path("runs") / f"{arguments.name}-{arguments.size}"
    status = 0 if arguments.table else print_failures(study_commands.run(request, out, arguments.parallel))
    print(study_commands.write_results(request, out))
    print(f"table: {out / 'results.md'}; curves: tensorboard --logdir {out}")
    return status


def _list() -> int:
    from kernel_gym.experiments.studies import study_commands, study_definition

    for name in study_definition.names():
        print(f"{name:20} {study_definition.load(name).question}")
        for size, extent in study_commands.sizes(name).items():
            print(f"{'':20} {size}: {extent}")
    return 0
