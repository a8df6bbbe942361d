"""The options that define a run, which `train` and `compare` share."""

from __future__ import annotations

import argparse
from inspect import signature
from pathlib import Path
from typing import Any, get_args

from kernel_gym import plugins
from kernel_gym.authors.model import ModelAuthor
from kernel_gym.cli import command_line
from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.options import Pages
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.tracking import wandb_run
from kernel_gym.kernel import Form
from kernel_gym.verdict import POLICIES

#: The author profiles that come with the package.
PROFILES = (
    *("calibrated", "calibrated-placebo", "local", "middle", "oracle", "placebo", "strong", "weak"),
    *("weaker-1", "weaker-2"),
)
_OPTIONS = (
    *("config", "suite", "tasks", "budget", "rounds", "forecast"),
    *("author", "model", "submission", "profile", "device", "verifier", "cluster", "bank", "repair", "pages"),
    *("workers", "wandb", "set"),
)
_AUTHOR = ("profile", "model", "submission")


class _Removed(argparse.Action):
    """An option of earlier versions."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(f"{self.option_strings[0]} was removed: use --forecast, with --tasks for some of the tasks")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that define a run, apart from its agent and seed."""
    parser.add_argument("--config", type=Path, help="YAML file that overrides the packaged defaults")
    parser.add_argument("--suite", help="suite of tasks, or a folder of KernelBench-format files (default level1)")
    parser.add_argument("--tasks", type=command_line.words, help="comma-separated names; all of the suite if left out")
    command_line.add_trust_argument(parser)
    parser.add_argument("--budget", type=int, help="attempts a task (default 30)")
    parser.add_argument("--rounds", type=int, help="times that all tasks are attempted (default 1), for long training")
    parser.add_argument(
        "--forecast", action="store_true", help="forecast verdicts instead of judging kernels: no compiler, all tasks"
    )
    parser.add_argument("--tabular", action=_Removed, nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "--author",
        help="author that writes the kernels (default apprentice, a simulated one; openai, local, batched: a model)",
    )
    parser.add_argument(
        "--model", help="its name at OPENAI_BASE_URL for openai; a .gguf file or an installed model for local, batched"
    )
    parser.add_argument(
        "--submission", choices=get_args(Form), help="form of the kernels that a model writes: file (default) or bundle"
    )
    parser.add_argument("--profile", help="author profile of the apprentice: weak, middle, strong, placebo, calibrated")
    parser.add_argument("--device", help="device that kernels run on (default ascend-sim, a simulator)")
    add_policy_argument(parser)
    parser.add_argument(
        "--verifier", metavar="URL", help="verification service that judges the kernels (see `kernel-gym serve`)"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="Ray cluster whose nodes judge the kernels: HOST:PORT, or auto"
    )
    parser.add_argument(
        "--bank",
        metavar="URL",
        help="memory bank that runs on a Ray cluster share: ray://HOST:PORT/NAME (see `kernel-gym memory share`)",
    )
    parser.add_argument("--repair", action="store_true", help="offer each drafting attempt the last one to be mended")
    parser.add_argument(
        "--pages",
        choices=get_args(Pages),
        help="API pages after the picks: all (default), basics, none, or one demonstration instead",
    )
    parser.add_argument("--workers", type=int, help="verifications at once (default: one a core)")
    parser.add_argument(
        "--wandb", metavar="PROJECT", help="track the run at Weights & Biases, too (extra wandb; off by default)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any configuration key, dotted")


def add_policy_argument(parser: argparse.ArgumentParser, default: str | None = None, words: str = "") -> None:
    """Add the option that says how kernels are judged; `words` are added to its help."""
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default=default,
        help="how kernels are judged: strict (default), or reference: its own shapes and inputs, atol = rtol = 1e-2"
        + words,
    )


def options_in_use(arguments: argparse.Namespace, *more: str) -> list[str]:
    """Return those of the options that define a run, and of `more`, that the command line sets."""
    names = (*_OPTIONS, *more)
    return [f"--{name}" for name in names if getattr(arguments, name, None) not in (None, False, [])]


def add_replay_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that repeats a recorded run."""
    parser.add_argument(
        "--replay", type=Path, metavar="RUN", help="run RUN again from its transcript: same settings, no endpoint"
    )


def run_config(arguments: argparse.Namespace, **fixed: object) -> RunConfig:
    """Return the configuration that the command line describes."""
    names = ("suite", "tasks", "budget", "rounds", "workers", "wandb")
    settings = {name: getattr(arguments, name) for name in names} | fixed
    parts = {name: getattr(arguments, name) for name in ("author", "device", "policy", "pages")}
    env: dict[str, Any] = {name: value for name, value in parts.items() if value is not None}
    env |= {"service": arguments.verifier} if arguments.verifier else {}
    env |= {name: value for name in ("cluster", "bank") if (value := getattr(arguments, name))}
    env |= {name: True for name in ("forecast", "repair") if getattr(arguments, name)}
    options = {name: getattr(arguments, name) for name in _AUTHOR if getattr(arguments, name) is not None}
    if options:
        env["author_options"] = options
    file = arguments.config
    if getattr(arguments, "replay", None) is not None:
        if file or env:
            raise ConfigError("--replay takes author, device and configuration from the recorded run; leave them out")
        file, env = arguments.replay / "config.yaml", _replayed(RunFolder(arguments.replay))
    if arguments.wandb:
        wandb_run.check_installed()
    overrides = {name: value for name, value in settings.items() if value is not None}
    return resolve(file, overrides | {"env": env}, arguments.set)


def _replayed(folder: RunFolder) -> dict[str, Any]:
    """Return the settings with which models answer from the files of a recorded run."""
    recorded = load_config(folder.path).env
    if recorded.author == "replay":
        return {}
    kind = plugins.load("kernel_gym.authors", recorded.author)
    if not (isinstance(kind, type) and issubclass(kind, ModelAuthor)):
        raise ConfigError(f"{folder.path}: its author was {recorded.author}, not a model; there is nothing to replay")
    options = {"context_tokens": signature(kind).parameters["context_tokens"].default} | dict(recorded.author_options)
    env: dict[str, Any] = {"author": "replay", "author_options": options | {"transcript": str(folder.transcript)}}
    if recorded.embedder == "endpoint":
        env["embedder_options"] = {"transcript": str(folder.embeddings)}
    if recorded.inspection:
        env["inspection"] = {"transcript": str(folder.inspections)}
    return env
