"""Renew and validate the forecast environment, which forecasts verdicts instead of judging kernels.

`renew` measures what the forecast is made from: the latencies of some schedules of every task and the verdict of every
mistake. `validate` has kernels of forecast attempts judged and compares the verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.cli.result_file import append_result, read_results

if TYPE_CHECKING:
    from kernel_gym.tasks.task import Task

EXAMPLES = """
kernel-gym forecast renew --pieces runs/forecast.jsonl
kernel-gym forecast renew level1/relu level1/softmax --pieces runs/two.jsonl --out runs/two.json.xz
kernel-gym forecast validate --attempts 2400 --out runs/validation
kernel-gym forecast validate --attempts 2400 --shard 1/4 --out runs/validation-1
"""
RESUMES = True
#: Tasks whose kernels are judged together.
GROUP = 8
ROOT = Path(__file__).resolve().parents[3]
PACKAGED = ROOT / "kernel_gym" / "authors" / "apprentice" / "forecast" / "tables" / "ascendc.json.xz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    renew = commands.add_parser("renew", help="measure latencies and messages, and write them to a file")
    renew.add_argument("names", nargs="*", default=list(suites.SUITES), help="suites or single tasks (default: all)")
    renew.add_argument("--schedules", type=command_line.count, default=40, help="schedules a task (default: 40)")
    renew.add_argument(
        "--pieces", type=Path, required=True, metavar="FILE", help="results as they come; the same command goes on"
    )
    renew.add_argument("--out", type=Path, default=PACKAGED, help="the file, ending in .json.xz (default: packaged)")
    validate = commands.add_parser("validate", help="compare forecasts with live verdicts")
    validate.add_argument("--attempts", type=command_line.count, default=2400, help="kernels to judge (default: 2400)")
    validate.add_argument(
        "--agents",
        type=command_line.words,
        default=("random", "pass@k", "similarity", "similarity-feasible", "value"),
        help="agents that are ranked in both environments; '' for none",
    )
    validate.add_argument("--agent-tasks", type=command_line.count, default=20, help="tasks for agents (default: 20)")
    validate.add_argument("--agent-budget", type=command_line.count, default=10, help="attempts a task (default: 10)")
    validate.add_argument("--seeds", type=command_line.count, default=2, help="seeds of each agent (default: 2)")
    validate.add_argument(
        "--measurements",
        default="ascendc",
        metavar="FILE",
        help="those that `renew` wrote (default: the packaged ones)",
    )
    validate.add_argument(
        "--shard", type=_shard, default=(0, 1), metavar="K/N", help="only every Nth piece, from the Kth on (from 0)"
    )
    validate.add_argument("--table", action="store_true", help="judge nothing; the page of the pieces that are done")
    validate.add_argument("--out", type=Path, required=True, help="folder of the pieces, the page and the figures")
    for command in (renew, validate):
        command.add_argument("--workers", type=int, default=0, help="verifications at once (default: one a core)")
        command_line.add_trust_argument(command)


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    return _renew(arguments) if arguments.command == "renew" else _validate(arguments)


def _renew(arguments: argparse.Namespace) -> int:
    from kernel_gym.authors.apprentice.forecast.measurements import Measurements, from_json

    arguments.pieces.parent.mkdir(parents=True, exist_ok=True)
    tasks = [task for name in arguments.names for task in _named(name)]
    rows = _measured(arguments, tasks)
    whole = Measurements(provenance=_provenance(arguments, rows))
    for piece in map(from_json, rows):
        whole.points |= piece.points
        whole.messages |= piece.messages
    whole.save(arguments.out)
    count, size = sum(map(len, whole.points.values())), arguments.out.stat().st_size
    print(f"{count} latencies of {len(whole.points)} tasks, {len(whole.messages)} messages, {size / 1e3:.0f} kB")
    return 0


def _measured(arguments: argparse.Namespace, tasks: list[Task]) -> list[dict[str, Any]]:
    """Measure what the file of pieces lacks: first the messages, then the tasks in groups. Return all pieces."""
    from kernel_gym.authors.apprentice.forecast.measurements import to_json
    from kernel_gym.authors.apprentice.forecast.measuring import Measuring
    from kernel_gym.envs import factories
    from kernel_gym.envs.options import Options
    from kernel_gym.experiments.runs.progress import show_progress
    from kernel_gym.hardware.ascend_sim.device import AscendSim

    pieces = {row["piece"]: row for row in read_results(arguments.pieces, dict[str, Any])}
    device = AscendSim().identity()

    def keep(piece: str, part: dict[str, Any]) -> None:
        pieces[piece] = {"piece": piece, "device": device} | part
        append_result(arguments.pieces, pieces[piece])

    left = [task for task in tasks if task.id not in pieces]
    verifier = factories.verifier(Options(workers=arguments.workers))
    try:
        measuring = Measuring(verifier.verify_all)
        with show_progress("measured", unit="tasks") as show:
            if "messages" not in pieces:
                every = suites.load_suite("level1") + suites.load_suite("level2")
                keep("messages", to_json(messages=measuring.messages(every)))
            for begin in range(0, len(left), GROUP):
                show(len(tasks) - len(left) + begin, len(tasks))
                measured = measuring.points(left[begin : begin + GROUP], arguments.schedules)
                for task, points in measured.items():
                    keep(task, to_json(points={task: points}))
    finally:
        verifier.close()
    return list(pieces.values())


def _validate(arguments: argparse.Namespace) -> int:
    from kernel_gym.authors.apprentice.forecast.measurements import load
    from kernel_gym.envs import factories
    from kernel_gym.envs.options import Options
    from kernel_gym.experiments.analysis.forecast_validity import Comparison, Standing, figures, page

    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.table:
        rows = read_results(arguments.out / "pieces.jsonl", dict[str, Any])
    else:
        verifier = factories.verifier(Options(workers=arguments.workers))
        try:
            rows = _validated(arguments, verifier)
        finally:
            verifier.close()
    comparisons = [Comparison(**{**c, "mistakes": tuple(c["mistakes"])}) for row in rows for c in row["comparisons"]]
    standings = [Standing(**standing) for row in rows for standing in row["standings"]]
    data = figures(comparisons[: arguments.attempts], standings)
    (arguments.out / "forecast.json").write_text(json.dumps(data, indent=1) + "\n")
    command = f"kernel-gym forecast validate --attempts {arguments.attempts}" + " --table" * arguments.table
    text = page(data, command, load(arguments.measurements).provenance)
    (arguments.out / "forecast.md").write_text(text)
    print(text)
    return 0


def _validated(arguments: argparse.Namespace, verifier: Any) -> list[dict[str, Any]]:
    """Do what the file of pieces lacks: kernels in pieces, then each agent with each seed in both environments."""
    from kernel_gym.experiments.runs.progress import show_progress

    file = arguments.out / "pieces.jsonl"
    done = {row["piece"]: row for row in read_results(file, dict[str, Any])}
    work = _pieces(arguments)
    left = [piece for piece in work if piece not in done]
    groups = _grouped(left, max(1, (arguments.workers or os.cpu_count() or 1) // 4))
    with show_progress("validated", unit="pieces") as show:
        for group in groups:
            show(len(done), len(work))
            for piece, result in _results(group, arguments, verifier).items():
                done[piece] = {"piece": piece} | result
                append_result(file, done[piece])
    return [done[piece] for piece in work]


def _pieces(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the pieces of a validation."""
    from kernel_gym.experiments.analysis.forecast_validity import PIECE

    size = f"{arguments.agent_tasks}x{arguments.agent_budget}"
    kernels = [f"kernels {number}" for number in range(-(-arguments.attempts // PIECE))]
    agents = [
        f"{agent} {seed} {where} {size}"
        for agent in arguments.agents
        for seed in range(arguments.seeds)
        for where in ("forecast", "live")
    ]
    first, every = arguments.shard
    return (kernels + agents)[first::every]


def _shard(text: str) -> tuple[int, int]:
    """Parse a shard, such as 0/4."""
    shard = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if shard is None or int(shard[1]) >= int(shard[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard such as 0/4")
    return int(shard[1]), int(shard[2])


def _grouped(pieces: list[str], size: int) -> list[list[str]]:
    """Return the pieces in groups that are done together: those of kernels `size` at a time, agents one by one."""
    kernels = [piece for piece in pieces if piece.startswith("kernels")]
    groups = [kernels[begin : begin + size] for begin in range(0, len(kernels), size)]
    return groups + [[piece] for piece in pieces if piece not in kernels]


def _results(pieces: list[str], arguments: argparse.Namespace, verifier: Any) -> dict[str, dict[str, Any]]:
    """Return the comparisons or the standing of each piece in a group."""
    from kernel_gym.experiments.analysis import forecast_validity as validity

    tasks, measurements = suites.load_suite("level1") + suites.load_suite("level2"), arguments.measurements
    kind, number, *where = pieces[0].split()
    if kind == "kernels":
        numbers = [int(piece.split()[1]) for piece in pieces]
        attempts = {number: validity.forecast_attempts(number, tasks, measurements) for number in numbers}
        compared = validity.compare_pieces(attempts, verifier.verify_all)
        rows = ([asdict(comparison) for comparison in compared[number]] for number in numbers)
        return {piece: {"comparisons": row, "standings": []} for piece, row in zip(pieces, rows, strict=True)}
    names = [task.id for task in tasks[:: max(1, len(tasks) // arguments.agent_tasks)]][: arguments.agent_tasks]
    judge = verifier if where[0] == "live" else None
    standing = validity.standing(kind, int(number), names, arguments.agent_budget, judge, measurements=measurements)
    return {pieces[0]: {"comparisons": [], "standings": [asdict(standing)]}}


def _named(name: str) -> tuple[Task, ...]:
    single = name.endswith(".py") or ("/" in name and not Path(name).is_dir())
    return (suites.find_task(name),) if single else suites.load_suite(name)


def _provenance(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what made the measurements; pieces may come from several machines, whose compilers differ."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "commit": done.stdout.strip() or "unknown",
        "device": " and ".join(sorted({str(row.get("device", "unknown")) for row in rows})),
        "command": f"kernel-gym forecast renew {' '.join(arguments.names)} --schedules {arguments.schedules}",
        "tasks": sum(bool(row["points"]) for row in rows),
    }
