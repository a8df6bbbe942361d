"""Train the network of the agent `trained` on forecast attempts, over sampled authors and half of the tasks.

`run` trains with PPO or DQN and writes the weights, `test` compares weights with rules on tasks and authors that
training never sees, and `search` tries constants with Ray Tune. `prior` learns what `context-value` begins with from
verdicts of many authors. `log` makes a data set of attempts with the probability of every pick, `fit` trains the
network on it, and `estimate` estimates from it what another policy would earn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.cli import command_line

if TYPE_CHECKING:
    from kernel_gym.experiments.pretraining.pretraining import Settings
    from kernel_gym.experiments.pretraining.rollouts import Decisions

EXAMPLES = """
kernel-gym pretrain run ppo --attempts 1000000 --workers 8 --out runs/ppo
kernel-gym pretrain run dqn --attempts 100000 --minutes 10 --out runs/dqn
kernel-gym pretrain test runs/ppo/ppo.pt --batches 20 --knowing
kernel-gym pretrain prior --authors 60 --out runs/context_value_prior.json
kernel-gym pretrain log --attempts 100000 --workers 2 --out runs/log
kernel-gym pretrain fit runs/log --out runs/logged.pt
kernel-gym pretrain run ppo --start runs/logged.pt --out runs/ppo-after-log
kernel-gym pretrain estimate runs/log --share 0.8 --truth 8
kernel-gym pretrain search ppo --attempts 20000 --trials 12 --workers 2 --out runs/search
"""
RESUMES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="train and write the weights; the same command goes on")
    test = commands.add_parser("test", help="compare weights with rules on unseen tasks and authors")
    search = commands.add_parser("search", help="try constants of the learner with Ray Tune")
    prior = commands.add_parser("prior", help="learn the prior of context-value from verdicts")
    prior.add_argument("--authors", type=command_line.count, default=60, help="authors (default: 60)")
    prior.add_argument("--out", type=Path, required=True, help="the file")
    log = commands.add_parser("log", help="make a data set of attempts with the probability of every pick")
    log.add_argument("--attempts", type=command_line.count, default=100_000, help="attempts (default: 100,000)")
    log.add_argument("--out", type=Path, required=True, help="folder of the files; those that are there are kept")
    fit = commands.add_parser("fit", help="train the network on a data set")
    fit.add_argument("log", type=Path, help="folder that `log` wrote")
    fit.add_argument("--epochs", type=command_line.count, default=3, help="passes over it (default: 3)")
    fit.add_argument("--hidden", type=command_line.count, default=64, help="width of the network")
    fit.add_argument("--layers", type=int, default=1, help="layers of self-attention")
    fit.add_argument("--seed", type=int, default=0, help="seed of weights and order")
    fit.add_argument("--out", type=Path, required=True, help="file of the weights")
    estimate = commands.add_parser("estimate", help="estimate from a data set what another policy would earn")
    estimate.add_argument("log", type=Path, help="folder that `log` wrote")
    estimate.add_argument("--truth", type=int, default=0, help="batches in which the truth is computed too")
    for command in (run, log, search):
        words = "further kernels drawn for each context; its return is the mean reward of all (default: 0)"
        command.add_argument("--redraws", type=int, default=0, help=words)
    for command, share in ((log, 0.5), (estimate, 0.8)):
        words = f"how often the policy follows the rule; else it picks at random (default: {share})"
        command.add_argument("--share", type=float, default=share, help=words)
    for command in (run, search):
        command.add_argument("algorithm", choices=("ppo", "dqn"), help="what trains the network")
        command.add_argument("--attempts", type=command_line.count, help="attempts (default: 1,000,000; dqn 100,000)")
        command.add_argument("--cloned", type=int, default=20_000, help="attempts of the rule to begin from; 0: none")
        command.add_argument("--start", default="", help="weights to begin with, instead of the rule's attempts")
        command.add_argument("--batches", type=command_line.count, default=16, help="batches of 32 tasks an update")
        command.add_argument("--hidden", type=command_line.count, default=64, help="width of the network")
        command.add_argument("--layers", type=int, default=1, help="layers of self-attention")
        command.add_argument("--seed", type=int, default=0, help="seed of the training")
        command.add_argument("--out", type=Path, required=True, help="folder of checkpoint, progress and weights")
    run.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a constant of the learner")
    run.add_argument("--minutes", type=float, default=float("inf"), help="stop with a checkpoint after this time")
    search.add_argument("--trials", type=command_line.count, default=12, help="constants to try (default: 12)")
    test.add_argument("weights", nargs="+", help="files with weights, or names of packaged ones")
    test.add_argument("--batches", type=command_line.count, default=20, help="authors with 32 tasks each (default: 20)")
    test.add_argument("--budget", type=command_line.count, default=10, help="attempts at a task (default: 10)")
    test.add_argument("--profile", default="", help="profile whose members are the authors, such as calibrated")
    test.add_argument("--knowing", action="store_true", help="compare with the knowing picker, pick by pick, too")
    test.add_argument("--out", type=Path, help="file for the figures as JSON")
    for command in (run, test, search, prior, log, estimate):
        command.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    for command in (run, test, search):
        command.add_argument("--measurements", default="ascendc", help="file of `kernel-gym forecast renew`")


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    commands = {"run": _run, "test": _test, "search": _search, "prior": _prior}
    commands |= {"log": _log, "fit": _fit, "estimate": _estimate}
    return commands[arguments.command](arguments)


def _settings(arguments: argparse.Namespace, options: dict[str, float]) -> Settings:
    from kernel_gym.experiments.pretraining.pretraining import Settings

    return Settings(
        algorithm=arguments.algorithm,
        attempts=arguments.attempts or {"ppo": 1_000_000, "dqn": 100_000}[arguments.algorithm],
        cloned=0 if arguments.start else arguments.cloned,
        start=arguments.start,
        batches=arguments.batches,
        hidden=arguments.hidden,
        layers=arguments.layers,
        seed=arguments.seed,
        redraws=arguments.redraws,
        measurements=arguments.measurements,
        options=options,
    )


def _run(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.pretraining.pretraining import Pretraining

    options = dict(_constant(word) for word in arguments.set)
    training = Pretraining(_settings(arguments, options), arguments.out, arguments.workers)

    def report(row: dict[str, Any]) -> None:
        print(" ".join(f"{name}={value:.4g}" for name, value in row.items()), flush=True)

    training.run(report, arguments.minutes)
    print(f"{training.attempts} attempts; weights: {training.weights}")
    return 0


def _constant(word: str) -> tuple[str, float]:
    name, separator, value = word.partition("=")
    try:
        number = float(value)
    except ValueError:
        separator = ""
    if not separator:
        raise command_line.UsageError(f"--set takes NAME=NUMBER, not {word!r}; for example --set entropy=0.01")
    return name, int(number) if number.is_integer() else number


def _test(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from kernel_gym.agents.scoring import load_weights
    from kernel_gym.experiments.pretraining.pretraining import evaluate, fixed_batches, standings

    batches = fixed_batches(
        arguments.batches, budget=arguments.budget, measurements=arguments.measurements, profile=arguments.profile
    )
    rules = ("random", "rule", *(("knowing",) if arguments.knowing else ()))
    contenders: dict[str, tuple[str, dict[str, Any] | None]] = {name: (name, None) for name in rules}
    for name in arguments.weights:
        scorer = load_weights(name)
        network = {"sizes": asdict(scorer.sizes), "weights": scorer.state_dict()}
        contenders |= {f"{name} greedy": ("greedy", network), f"{name} drawn": ("sampling", network)}
    results = {
        name: evaluate(policy, batches, arguments.workers, network, arguments.knowing)
        for name, (policy, network) in contenders.items()
    }
    print(f"{len(batches)} authors and {len(batches[0].tasks)} tasks each, of the test split\n")
    print(standings(results, "rule"), end="")
    if arguments.out:
        rows = {name: [asdict(judged) for judged in results[name]] for name in results}
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _search(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.pretraining.search import search

    for row in search(_settings(arguments, {}), arguments.out, arguments.trials, arguments.workers):
        print(json.dumps(row))
    return 0


def _prior(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.pretraining.prior import Fitted, learn_prior

    def report(fitted: Fitted) -> None:
        print(f"{fitted.author}: {fitted.verdicts} verdicts", flush=True)

    learned = learn_prior(arguments.authors, arguments.workers, report=report)
    command = {"command": f"kernel-gym pretrain prior --authors {arguments.authors}"}
    arguments.out.write_text(json.dumps(command | learned, indent=1) + "\n")
    return 0


#: Tasks and attempts at each in a batch of a data set.
LOGGED = (32, 10)


def _log(arguments: argparse.Namespace) -> int:
    from functools import partial

    from kernel_gym.experiments.pretraining.offline import log_batch
    from kernel_gym.experiments.pretraining.pretraining import processes
    from kernel_gym.experiments.pretraining.rollouts import draw_batch

    tasks, budget = LOGGED
    arguments.out.mkdir(parents=True, exist_ok=True)
    about = {"share": arguments.share, "tasks": tasks, "budget": budget, "redraws": arguments.redraws}
    (arguments.out / "about.json").write_text(json.dumps(about))
    numbers = range(-(-arguments.attempts // (tasks * budget)))
    left = [number for number in numbers if not (arguments.out / f"log-{number:05d}.npz").is_file()]
    batches = [draw_batch("training", (5, number), tasks, (budget,), redraws=arguments.redraws) for number in left]
    work = partial(log_batch, arguments.out, arguments.share)
    with processes(arguments.workers) as executor:
        made = executor.map(work, left, batches) if executor else map(work, left, batches)
        for picks, batch in zip(made, batches, strict=True):
            print(f"{batch.author}: {batch.attempts} attempts, {picks} picks", flush=True)
    print(f"{len(numbers) * tasks * budget} attempts in {arguments.out}")
    return 0


def _fit(arguments: argparse.Namespace) -> int:
    from kernel_gym.agents import scoring
    from kernel_gym.experiments.pretraining import offline

    log, about = _read_log(arguments.log)
    logging = offline.mixed(about["share"])
    scorer, error = offline.fit_scores(
        log, logging, arguments.epochs, arguments.hidden, arguments.layers, arguments.seed
    )
    scoring.save(scorer, arguments.out)
    attempts = sum(len(some.rewards) for some in log)
    print(f"{attempts} attempts, squared error {error:.4f}; weights: {arguments.out}")
    return 0


def _read_log(folder: Path) -> tuple[list[Decisions], dict[str, Any]]:
    """Return the decisions of a data set, file by file, and how it was made."""
    from concurrent.futures import ThreadPoolExecutor

    from kernel_gym.experiments.pretraining.offline import read_log

    files = sorted(folder.glob("log-*.npz"))
    if not files:
        raise command_line.UsageError(f"{folder} holds no log: make one with `kernel-gym pretrain log`")
    with ThreadPoolExecutor() as executor:
        return list(executor.map(read_log, files)), json.loads((folder / "about.json").read_text())


def _estimate(arguments: argparse.Namespace) -> int:
    from functools import partial

    from kernel_gym.experiments.pretraining import offline
    from kernel_gym.experiments.pretraining.pretraining import processes
    from kernel_gym.experiments.pretraining.rollouts import draw_batch

    log, about = _read_log(arguments.log)
    half = len(log) // 2
    target = offline.mixed(arguments.share)
    # The model is fitted on one half and corrected on the other.
    model = offline.reward_model(log[: max(1, half)])
    for name, value in vars(offline.estimate(log[half:], target, model)).items():
        print(f"{name:14} {value:+.4f}")
    if not arguments.truth:
        return 0
    numbers = range(half, min(len(log), half + arguments.truth))
    batches = [draw_batch("training", (5, number), about["tasks"], (about["budget"],)) for number in numbers]
    work = partial(offline.true_reward_of_shares, about["share"], arguments.share)
    with processes(arguments.workers) as executor:
        truths = list(executor.map(work, batches) if executor else map(work, batches))
    estimates = [offline.estimate([log[number]], target, model) for number in numbers]
    print(f"\nin {len(truths)} batches whose truth was computed, with standard errors over batches:\n")
    print(offline.errors_table(estimates, truths), end="")
    return 0
