"""Compare a model with the simulated author: do the same contexts help both? The cost is printed before any call."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from kernel_gym.cli import command_line
from kernel_gym.errors import KernelGymError

if TYPE_CHECKING:
    from kernel_gym.authors.model import ModelAuthor
    from kernel_gym.envs.options import Options
    from kernel_gym.experiments.analysis.author_validity import Estimate
    from kernel_gym.memory.bank import MemoryBank

EXAMPLES = """
kernel-gym author-validity --model NAME --suite level1 --tasks relu,softmax --out runs/validity
kernel-gym author-validity --model NAME --run runs/value --contexts 12 --repeats 6 --out runs/validity --yes
kernel-gym author-validity --model NAME --set env.author_options.price_in=0.5 --out runs/validity
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", required=True, help="model name; the endpoint is OPENAI_BASE_URL")
    parser.add_argument("--suite", default="level1", help="suite of tasks (default level1)")
    parser.add_argument("--tasks", type=command_line.words, default=(), help="comma-separated; all if left out")
    command_line.add_trust_argument(parser)
    parser.add_argument("--profile", default="middle", help="profile of the apprentice (default middle)")
    parser.add_argument(
        "--run", type=Path, help="run whose memories the contexts are drawn from (default: seed knowledge)"
    )
    parser.add_argument("--contexts", type=int, default=8, help="contexts a task, the first of them empty (default 8)")
    parser.add_argument("--picks", type=int, default=5, help="memories a context (default 5)")
    parser.add_argument("--repeats", type=int, default=4, help="times each context is given (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="which contexts are drawn (default 0)")
    parser.add_argument("--out", type=Path, required=True, help="folder; run the same command again to resume")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any configuration key, dotted")
    parser.add_argument("--yes", action="store_true", help="don't ask before spending")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print what the study may cost, ask whether to go on, measure, and print the agreement."""
    if arguments.contexts < 3 or arguments.picks < 1 or arguments.repeats < 1:
        raise KernelGymError("a ranking needs --contexts of at least 3, --picks and --repeats of at least 1")
    from kernel_gym.authors.apprentice import Apprentice
    from kernel_gym.envs import factories
    from kernel_gym.experiments.analysis.author_validity import Design, agreement, estimate, scores, summary

    options, author = _model(arguments)
    design = Design(arguments.contexts, arguments.picks, arguments.repeats, seed=arguments.seed)
    with _bank(arguments.run, options) as bank:
        cases = design.cases(factories.tasks(options), bank, author.language)
    if not _agreed(estimate(design, cases, author), arguments.yes):
        return 1
    with factories.verifier(options) as verifier, _progress() as bar:
        by = {
            name: scores(design, cases, writer, verifier.verify_all, _shown(bar, name, len(cases)))
            for name, writer in (("model", author), ("apprentice", Apprentice(arguments.profile)))
        }
    figures = summary(cases, by["model"], by["apprentice"], agreement(cases, by["model"], by["apprentice"]))
    result = {"model": arguments.model, "profile": arguments.profile, "usage": author.usage()} | figures
    (arguments.out / "validity.json").write_text(json.dumps(result, indent=1))
    if arguments.json:
        print(json.dumps(result))
    else:
        _print(result)
    return 0


def _model(arguments: argparse.Namespace) -> tuple[Options, ModelAuthor]:
    """Return the environment's options and the model, whose transcript is in the study's folder."""
    from kernel_gym.authors.model import ModelAuthor
    from kernel_gym.config import resolve
    from kernel_gym.envs import factories
    from kernel_gym.experiments.runs.run_folder import RunFolder
    from kernel_gym.experiments.runs.run_plan import environment_options

    env = {"author": "openai", "author_options": {"model": arguments.model}}
    overrides = {"suite": arguments.suite, "tasks": arguments.tasks, "seed": arguments.seed, "env": env}
    options = environment_options(resolve(None, overrides, arguments.set), RunFolder(arguments.out))
    author = factories.author(options)
    if not isinstance(author, ModelAuthor):
        raise KernelGymError("the author must be a model")
    author.record_to(RunFolder(arguments.out).transcript)
    return options, author


def _bank(run: Path | None, options: Options) -> MemoryBank:
    """Open the memory bank of a run, or make one of the seed knowledge."""
    from kernel_gym.envs import factories
    from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
    from kernel_gym.memory.bank import MemoryBank

    if run is None:
        return factories.bank(replace(options, bank=None), "ascendc")
    load_config(run)  # raises an error if there is no run
    return MemoryBank(RunFolder(run).bank, factories.embedder(options), read_only=True)


def _agreed(cost: Estimate, yes: bool) -> bool:
    """Print what the study may cost; return whether to go on, after asking unless `yes` is set."""
    money = (
        f"at most ${cost.dollars_at_most:.2f}" if cost.dollars_at_most else "prices unknown: set price_in, price_out"
    )
    print(
        f"{cost.questions} questions, {cost.known} of them answered already; about {cost.tokens_in:,} tokens in, "
        f"at most {cost.tokens_out_at_most:,} out ({money})",
        file=sys.stderr,
    )
    if yes or cost.questions == cost.known:
        return True
    if not sys.stdin.isatty():
        raise KernelGymError("cannot ask whether to go on, because standard input is not a terminal; add --yes")
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _progress() -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=Console(stderr=True))


def _shown(bar: Progress, author: str, total: int) -> Callable[[int], None]:
    line = bar.add_task(f"{author}: contexts", total=total)
    return lambda done: bar.update(line, completed=done)


def _print(result: dict[str, Any]) -> None:
    console = Console(highlight=False)
    table = Table("task", "context", "model", "apprentice", title="mean credit (1 feasible, 0.5 compiles)")
    for row in result["contexts"]:
        shown = "; ".join(row["items"]) or "nothing"
        table.add_row(row["task"], shown, f"{row['model']:.2f}", f"{row['apprentice']:.2f}")
    console.print(table)
    console.print(f"{result['informative']} of {result['operators']} tasks have contexts that both authors rank")
    for name in ("kendall", "spearman"):
        figures = [result[name][part] for part in ("mean", "low", "high")]
        if None not in figures:
            console.print("{:>9} {:+.2f} [{:+.2f}, {:+.2f}]".format(name, *figures), markup=False)
    used = result["usage"]
    console.print(f"{used['tokens_in']:,} tokens in, {used['tokens_out']:,} out, ${used['dollars']:.2f}")
