"""Inspect tasks: list a suite, show one task, audit tasks with null kernels, count what becomes of problem files."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import GOES_ON
from kernel_gym.cli.result_file import append_result, read_results
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import TaskError
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.verifier.audit import Audit

EXAMPLES = """
kernel-gym suite list
kernel-gym suite list level2 --json
kernel-gym suite show level1/softmax
kernel-gym suite show path/to/19_ReLU.py
kernel-gym suite audit level1
kernel-gym suite audit level3 attention --workers 4 --out audits.jsonl
kernel-gym suite coverage KernelBench/level1 KernelBench/level2 --out coverage.jsonl --csv coverage.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list the tasks of suites or folders")
    listing.add_argument("suites", nargs="*", default=list(suites.SUITES), help=f"default: {' '.join(suites.SUITES)}")
    showing = commands.add_parser("show", help="print one task: its module, cases, signature and ATen operators")
    showing.add_argument("task", help="suite/name, suite/number or a .py file")
    auditing = commands.add_parser("audit", help="try null kernels on every task; exit 1 if one passes")
    auditing.add_argument("names", nargs="+", help="suites, folders or single tasks")
    auditing.add_argument("--out", type=Path, metavar="FILE", help="append results to a file, and go on from there")
    auditing.add_argument(
        "--workers", type=command_line.count, default=1, help="processes that audit at once (default: %(default)s)"
    )
    covering = commands.add_parser("coverage", help="count the problem files that load, have an oracle and pass")
    covering.add_argument("folders", nargs="+", type=Path, help="folders of problem files, or single files")
    covering.add_argument("--out", type=Path, metavar="FILE", help="append results to a file, and go on from there")
    covering.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each file")
    covering.add_argument("--no-verdict", action="store_true", help="write the oracles without judging them")
    covering.add_argument("--every", type=int, default=1, metavar="N", help="judge every N-th file only (default 1)")
    covering.add_argument(
        "--workers", type=command_line.count, default=1, help="processes that judge at once (default: %(default)s)"
    )
    add_policy_argument(covering, "strict")
    for command in (listing, showing, auditing, covering):
        command_line.add_trust_argument(command)
        command.add_argument("--json", action="store_true", help="print data instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the commands."""
    command = {"list": _list, "show": _show, "audit": _audit, "coverage": _coverage}[arguments.command]
    return command(arguments)


def _list(arguments: argparse.Namespace) -> int:
    tasks = [task for name in arguments.suites for task in _loaded(name)]
    if arguments.json:
        print(json.dumps([_summary(task) for task in tasks]))
        return 0
    width = max((len(task.id) for task in tasks), default=0)
    for task in tasks:
        flags = "".join(f" [{flag}]" for flag in task.flags)
        print(f"{task.id:{width}} {task.number or '':>4} {task.category:13} {task.description}{flags}")
    counts = Counter(task.category for task in tasks)
    print(f"{len(tasks)} tasks: " + ", ".join(f"{count} {category}" for category, count in sorted(counts.items())))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from kernel_gym.tasks.operators import operators

    task = suites.find_task(arguments.task)
    signatures = {case.name: task.instance(case).signature for case in task.cases}
    if arguments.json:
        cases = {case.name: _case(case.role, dict(case.sizes), signatures[case.name]) for case in task.cases}
        print(json.dumps({**_summary(task), "operators": operators(task), "cases": cases, "source": task.source}))
        return 0
    print(f"{task.id} ({task.category}): {task.description}")
    for flag in task.flags:
        print(f"  {flag}")
    print(f"  operators: {', '.join(operators(task))}")
    for case in task.cases:
        print(f"  {case.name:9} {_words(signatures[case.name])}")
    print(f"\n{task.source}")
    return 0


def _audit(arguments: argparse.Namespace) -> int:
    from kernel_gym.experiments.runs.progress import show_progress
    from kernel_gym.verifier.audit import Audit, audit_all

    tasks = [task for name in arguments.names for task in _named(name)]
    audits = {result.task: result for result in read_results(arguments.out, Audit)}
    rest = [task for task in tasks if task.id not in audits]
    try:
        with show_progress("audit", unit="tasks") as show:
            show(len(tasks) - len(rest), len(tasks))
            for number, result in enumerate(audit_all(rest, arguments.workers), len(tasks) - len(rest) + 1):
                audits[result.task] = result
                append_result(arguments.out, asdict(result))
                show(number, len(tasks))
    except KeyboardInterrupt:
        _print_audits([audits[task.id] for task in tasks if task.id in audits], arguments.json)
        raise KeyboardInterrupt(*([GOES_ON] if arguments.out else [])) from None
    return _print_audits([audits[task.id] for task in tasks], arguments.json)


def _print_audits(audits: Sequence[Audit], as_json: bool) -> int:
    """Print what the audits found; return the exit status."""
    failed = [result for result in audits if not result.ok]
    if as_json:
        rows = [
            {
                "task": result.task,
                "ok": result.ok,
                "passing": result.passing,
                "ignored": result.ignored,
                "fades": result.fades,
            }
            for result in audits
        ]
        print(json.dumps(rows))
    else:
        for result in failed:
            reasons = [f"a null kernel passes: {name}" for name in result.passing]
            reasons += [f"argument {name} makes no difference" for name in result.ignored]
            reasons += ["hardly any output depends on the arguments at the timing sizes"] if result.fades else []
            print(f"{result.task}: {'; '.join(reasons)}")
        print(f"{len(audits) - len(failed)} of {len(audits)} tasks are fit to be judged")
    return 1 if failed else 0


def _coverage(arguments: argparse.Namespace) -> int:
    """Print the table of a folder's files; the exit status is 0 whatever becomes of them."""
    from kernel_gym.experiments.analysis.file_coverage import Coverage, as_csv, as_markdown, cover_all, problem_files
    from kernel_gym.experiments.runs.progress import show_progress

    paths = problem_files(arguments.folders)
    if not paths:
        raise TaskError(f"no .py file in {', '.join(str(folder) for folder in arguments.folders)}")
    results = {result.file: result for result in read_results(arguments.out, Coverage)}
    rest = [path for path in paths if str(path) not in results]
    judged = set() if arguments.no_verdict else set(paths[:: arguments.every])
    with show_progress("coverage", unit="files") as show:
        show(len(paths) - len(rest), len(paths))
        done = cover_all(rest, judged, arguments.policy, arguments.workers)
        for number, result in enumerate(done, len(paths) - len(rest) + 1):
            results[result.file] = result
            append_result(arguments.out, asdict(result))
            show(number, len(paths))
    rows = [results[str(path)] for path in paths]
    if arguments.csv:
        arguments.csv.write_text(as_csv(rows))
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else as_markdown(rows))
    return 0


def _named(name: str) -> tuple[Task, ...]:
    """Return the tasks of a suite or a folder, or a single task."""
    if name in suites.SUITES or not (name.endswith(".py") or "/" in name) or Path(name).is_dir():
        return tuple(_loaded(name))
    return (suites.find_task(name),)


def _loaded(name: str) -> Iterator[Task]:
    """Yield the tasks of a suite or folder; print why a file of the folder cannot be loaded."""
    from kernel_gym.suites.problem_files import load_all

    if name in suites.SUITES or not Path(name).is_dir():
        yield from suites.load_suite(name)
        return
    for item in load_all(Path(name)):
        if isinstance(item, TaskError):
            print(item, file=sys.stderr)
        else:
            yield item


def _summary(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "number": task.number,
        "level": task.level,
        "category": task.category,
        "description": task.description,
        "flags": task.flags,
    }


def _case(role: str, sizes: dict[str, int], signature: Signature) -> dict[str, Any]:
    return {
        "role": role,
        "sizes": sizes,
        "inputs": [
            {
                "name": spec.name,
                "shape": spec.shape,
                "dtype": spec.dtype,
                "origin": spec.origin,
                "domain": spec.domain.kind,
            }
            for spec in signature.inputs
        ],
        "outputs": [{"shape": spec.shape, "dtype": spec.dtype} for spec in signature.outputs],
        "ints": signature.ints,
        "floats": signature.floats,
    }


def _words(signature: Signature) -> str:
    inputs = ", ".join(f"{spec.name} {spec.dtype}{list(spec.shape)}" for spec in signature.inputs)
    outputs = ", ".join(f"{spec.dtype}{list(spec.shape)}" for spec in signature.outputs)
    attributes = ", ".join(str(value) for value in (*signature.ints, *signature.floats))
    return f"{inputs} -> {outputs}" + (f"  ({attributes})" if attributes else "")
