"""Train several agents on the same tasks, seeds and budget, and compare them; run it again to resume."""

import argparse
import os
from pathlib import Path

from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import UsageError
from kernel_gym.cli.run_options import add_run_arguments, options_in_use, run_config
from kernel_gym.verdict import Policy

EXAMPLES = """
kernel-gym compare --agents similarity,value --suite level1 --tasks relu,softmax --budget 9 --seeds 3 --out runs/c
kernel-gym compare --agents value,my_agents:Mine --suite basics --budget 5 --seeds 2 --out runs/mine
kernel-gym compare --agents value,dqn --suite level1 --set agent_options.value.epsilon=0.05 --out runs/greedier
kernel-gym compare --study transfer --size quick --out runs/transfer
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--agents", type=command_line.words, default=(), help="comma-separated; the first is the reference"
    )
    parser.add_argument("--seeds", type=command_line.count, help="runs an agent (default 3)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the comparison")
    parser.add_argument(
        "--parallel", type=command_line.count, default=os.cpu_count() or 1, help="runs at once (default: one a core)"
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.add_argument("--study", help="a named study instead: the same as the command `study NAME`")
    parser.add_argument("--size", help="size of the study: quick (default) or full")
    add_run_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the comparison with progress and print the table."""
    if bool(arguments.study) == bool(arguments.agents):
        raise UsageError("name either --agents or a --study")
    if arguments.study and (options := options_in_use(arguments, "seeds", "json")):
        raise UsageError(
            f"a study defines its own runs: leave out {', '.join(options)}, or run a part of it with `study`"
        )
    if arguments.agents and arguments.size:
        raise UsageError("--size belongs to --study; use --tasks, --budget and --seeds for the size of a comparison")
    return named(arguments) if arguments.study else compare(arguments)


def named(arguments: argparse.Namespace) -> int:
    """Run a named study and print its table."""
    from kernel_gym.experiments.studies import study_commands
    from kernel_gym.experiments.studies.study import print_failures

    policy: Policy = arguments.policy or "strict"
    request = study_commands.StudyRequest(arguments.study, arguments.size or "quick", policy=policy)
    status = print_failures(study_commands.run(request, arguments.out, arguments.parallel))
    print(study_commands.write_results(request, arguments.out))
    return status


def compare(arguments: argparse.Namespace) -> int:
    """Make the runs and print the table."""
    from kernel_gym import plugins
    from kernel_gym.experiments.studies import agent_comparison

    if arguments.workers is None and arguments.parallel > 1:
        arguments.workers = 1  # the runs fill the cores already
    base = run_config(arguments, agent=arguments.agents[0], seed=0)
    for agent in arguments.agents:
        plugins.load("kernel_gym.agents", agent)
    seeds = 3 if arguments.seeds is None else arguments.seeds
    study = agent_comparison.agent_comparison(base, arguments.agents, seeds, arguments.out)
    what = f"{len(arguments.agents)} agents x {seeds} seeds: attempts"
    return agent_comparison.run_and_print(study, what, arguments.parallel, as_json=arguments.json)
