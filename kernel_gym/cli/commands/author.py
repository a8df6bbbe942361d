"""Print the kernel that an author writes for a task, or fit an author profile to published figures."""

from __future__ import annotations

import argparse
import json
import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from kernel_gym import plugins, suites
from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.cli import author_fit, command_line
from kernel_gym.cli.command_line import Failed
from kernel_gym.cli.run_options import PROFILES
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Form, Kernel, form_of
from kernel_gym.verdict import Feasible

if TYPE_CHECKING:
    from kernel_gym.authors.apprentice import Explanation

EXAMPLES = """
kernel-gym author --task level1/relu --profile oracle
kernel-gym author --task level1/softmax --profile weak --seed 3 --explain
kernel-gym author --task level1/softmax --verified softmax.cpp --context notes.md --explain
kernel-gym author --task level1/softmax --start softmax.cpp --explain --json
kernel-gym author --task level1/softmax --profile oracle --device cuda
kernel-gym author --task level2/conv2d_relu_bias_add --expert
kernel-gym author fit gpt-5.2
kernel-gym author fit targets.yaml --out mine.yaml --generations 100
kernel-gym author --task level1/relu --profile mine.yaml~3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "action", nargs="?", choices=("fit",), help="fit a profile to figures of authors without memory"
    )
    parser.add_argument("targets", nargs="?", help="for fit: a YAML file of figures, or the name of packaged ones")
    author_fit.add_arguments(parser)
    parser.add_argument("--task", help="suite/name, suite/number or a .py file")
    command_line.add_trust_argument(parser)
    parser.add_argument("--author", default="apprentice", help="registered name or module:Class (default: %(default)s)")
    parser.add_argument(
        "--device", default="ascend-sim", help="device whose language the author writes (default: %(default)s)"
    )
    parser.add_argument("--profile", help=f"author profile of the apprentice: {', '.join(PROFILES)} (default: middle)")
    parser.add_argument(
        "--expert", action="store_true", help="print the oracle's kernel, which no simulated author writes"
    )
    parser.add_argument("--submission", choices=get_args(Form), help="form of the kernel that a model writes")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices (default: %(default)s)")
    parser.add_argument(
        "--context", nargs="*", type=Path, default=[], metavar="FILE", help="texts that the author is shown"
    )
    parser.add_argument(
        "--verified", nargs="*", type=Path, default=[], metavar="FILE", help="verified kernels that the author is shown"
    )
    parser.add_argument("--start", type=Path, metavar="FILE", help="a working kernel to refine")
    parser.add_argument(
        "--explain", action="store_true", help="print the probability and the reasons of each idiom's spelling"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print a kernel, or fit a profile; raise Failed if the author has no kernel."""
    if arguments.action == "fit":
        return author_fit.run(arguments)
    if arguments.task is None:
        raise ConfigError("name a task: --task level1/relu")
    import numpy as np

    from kernel_gym.authors.apprentice import Apprentice, Explanation, oracle

    task = suites.find_task(arguments.task)
    if arguments.expert:
        _print(Explanation(oracle(task, _language(arguments))), arguments)
        return 0
    author = _author(arguments)
    context, start = _context(arguments), _start(arguments)
    rng = np.random.default_rng(arguments.seed)
    if isinstance(author, Apprentice):
        explanation = author.explain(task, context, start, rng)
    else:
        explanation = Explanation(author.write(task, context, start, rng))
    if not explanation.kernel.source:
        raise Failed(f"no kernel: {explanation.problem or 'the author has no answer'}")
    _print(explanation, arguments)
    return 0


def _author(arguments: argparse.Namespace) -> Any:
    from kernel_gym.authors.apprentice import Apprentice

    kind = plugins.load("kernel_gym.authors", arguments.author)
    if arguments.profile is not None and not issubclass(kind, Apprentice):
        raise ConfigError(f"{arguments.author} has no profiles; leave --profile out")
    options = {} if arguments.profile is None else {"profile": arguments.profile}
    if arguments.submission is not None:
        if "submission" not in signature(kind).parameters:
            raise ConfigError(f"{arguments.author} writes kernels in one file; leave --submission out")
        options["submission"] = arguments.submission
    if "language" in signature(kind).parameters:
        options["language"] = _language(arguments)
    return kind(**options)


def _context(arguments: argparse.Namespace) -> Context:
    working = Feasible("Correct.", latency=1.0)
    shown = [
        Note(_kind(path), text, text if _kind(path) == "trace" else "")
        for path in arguments.context
        for text in [_text(path)]
    ]
    verified = [Note("trace", text, text, working) for text in map(_text, arguments.verified)]
    return (*verified, *shown)


def _start(arguments: argparse.Namespace) -> StartPoint | None:
    if arguments.start is None:
        return None
    return StartPoint(Kernel(_text(arguments.start), _language(arguments)), Feasible("Correct.", latency=1.0))


def _language(arguments: argparse.Namespace) -> str:
    return str(plugins.load("kernel_gym.devices", arguments.device).language)


def _kind(path: Path) -> Any:
    if path.suffix == ".py" and form_of(_text(path)) == "bundle":
        return "trace"
    return "trace" if path.suffix in (".cpp", ".asc", ".cu", ".h") else "practice"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _print(explanation: Explanation, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps(_data(explanation) if arguments.explain else {"source": explanation.kernel.source}))
        return
    print(explanation.kernel.source, end="")
    if arguments.explain:
        for line in _lines(explanation):
            print(line, file=sys.stderr)


def _lines(explanation: Explanation) -> list[str]:
    lines = [f"moves: {', '.join(explanation.schedule_choice.moves) or 'none'}"] if explanation.schedule_choice else []
    width = max((len(choice.idiom) for choice in explanation.choices), default=0)
    for choice in explanation.choices:
        mark = "right" if choice.right else f"WRONG ({choice.spelling})"
        reasons = ", ".join(f"{name} {value:+.2f}" for name, value in choice.estimate.reasons)
        odds = f"drew {choice.draw:.3f} against {choice.estimate.probability:.3f}"
        lines.append(f"{choice.idiom:{width}}  {mark:28} {odds}  [{reasons}]")
    return lines


def _data(explanation: Explanation) -> dict[str, Any]:
    choices = [
        {
            "idiom": choice.idiom,
            "right": choice.right,
            "spelling": choice.spelling,
            "draw": choice.draw,
            "probability": choice.estimate.probability,
            "reasons": dict(choice.estimate.reasons),
        }
        for choice in explanation.choices
    ]
    moves = list(explanation.schedule_choice.moves) if explanation.schedule_choice else []
    return {"source": explanation.kernel.source, "moves": moves, "idioms": choices}
