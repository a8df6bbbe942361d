"""Train one agent on a suite and write a run folder; run the same command again to resume."""

import argparse
import json
from pathlib import Path

from kernel_gym.cli.run_options import add_replay_argument, add_run_arguments, run_config

EXAMPLES = """
kernel-gym train --agent value --suite level1 --tasks relu,softmax --budget 10 --seed 0 --out runs/value
kernel-gym train --agent my_agents:Mine --suite basics --budget 5 --out runs/mine
kernel-gym train --agent dqn --suite level1 --budget 10 --ray-address 10.0.0.5:6379 --out runs/dqn
kernel-gym train --agent value --cluster auto --bank ray://auto/team --out runs/one-of-the-team
kernel-gym train --forecast --agent ppo --budget 10 --rounds 100 --set env.memory=fresh --out runs/forecast
kernel-gym train --config run.yaml --set env.picks=3 --out runs/three-picks
kernel-gym train --author openai --model NAME --suite level1 --tasks relu --budget 5 --out runs/model
kernel-gym train --replay runs/model --out runs/model-again
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--agent", help="registered name or module:Class (default value)")
    parser.add_argument("--seed", type=int, help="seed of all random choices (default 0)")
    parser.add_argument("--out", type=Path, required=True, help="run folder")
    parser.add_argument("--ray-address", help="a running Ray cluster that trains the network of ppo or dqn")
    add_run_arguments(parser)
    add_replay_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Train, with a progress bar, and print the figures and where the curves are."""
    if arguments.ray_address:
        arguments.set.append(f"agent_options.ray_address={arguments.ray_address}")
    config = run_config(arguments, agent=arguments.agent, seed=arguments.seed)

    from kernel_gym.experiments.runs.isolated_run import train
    from kernel_gym.experiments.runs.progress import show_progress
    from kernel_gym.experiments.runs.run_folder import RunFolder

    folder = RunFolder.open(arguments.out, config)
    with show_progress(config.agent, folder.attempts) as show:
        outcome = train(
            config,
            folder,
            lambda done, total, solved: show(done, total, f"{config.agent}: {solved} tasks solved"),
        )
    for name, value in outcome.figures.items():
        print(f"{name:>9} {'-' if value is None else format(value, '.3f')}")
    if folder.usage.exists():
        for part, used in json.loads(folder.usage.read_text()).items():
            tokens = f"{used['tokens_in']:,} tokens in, {used['tokens_out']:,} out"
            paid = ": replayed, not paid for" if used.get("replayed") else ""
            print(f"{part:>9} {tokens}, ${used['dollars']:.2f}{paid}")
    print(f"run folder {arguments.out}; curves: tensorboard --logdir {arguments.out}")
    return 0
