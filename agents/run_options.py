"""The command-line options that say what a run is; `train` and `compare` share them."""

from __future__ import annotations

import argparse
from pathlib import Path

from kernel_gym import command_line
from kernel_gym.config import RunConfig, resolve


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that say what a run is, but for its agent and seed."""
    parser.add_argument("--config", type=Path, help="YAML file laid over the packaged defaults")
    parser.add_argument("--suite", help="suite of tasks, or a folder of KernelBench-format files (default level1)")
    parser.add_argument("--tasks", type=command_line.words, help="comma-separated names; all of the suite if left out")
    parser.add_argument("--budget", type=int, help="attempts a task (default 30)")
    parser.add_argument("--author", help="who writes the kernels (default apprentice, a simulated author)")
    parser.add_argument("--model", help="model name for --author openai; the endpoint is OPENAI_BASE_URL")
    parser.add_argument("--profile", help="profile of the apprentice: weak, middle, strong, placebo")
    parser.add_argument("--device", help="where kernels run (default ascend-sim, a simulator)")
    parser.add_argument("--workers", type=int, help="verifications at once (default: one a core)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any configuration key, dotted")


def run_config(arguments: argparse.Namespace, **fixed: object) -> RunConfig:
    """The configuration that the command line asks for."""
    given = {name: getattr(arguments, name) for name in ("suite", "tasks", "budget", "workers")} | fixed
    env = {name: getattr(arguments, name) for name in ("author", "device") if getattr(arguments, name) is not None}
    options = {name: getattr(arguments, name) for name in ("profile", "model") if getattr(arguments, name) is not None}
    if options:
        env["author_options"] = options
    overrides = {name: value for name, value in given.items() if value is not None}
    return resolve(arguments.config, overrides | {"env": env}, arguments.set)
