"""What becomes of problem files: which load, which the apprentice can write a kernel for, and which of these pass."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, fields
from multiprocessing import get_context
from pathlib import Path

import torch

from kernel_gym import activity
from kernel_gym.authors.apprentice import Unsupported, oracle
from kernel_gym.errors import KernelGymError, TaskError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.suites.problem_files import file_order, load_file
from kernel_gym.verdict import Policy
from kernel_gym.verifier import Verifier


@dataclass(frozen=True)
class Coverage:
    """The result of one problem file.

    Args:
        file: Its path.
        group: The name of its folder.
        loads: Whether it becomes a task.
        oracle: Whether the apprentice writes a kernel for it.
        feasible: Whether that kernel passes every gate; None if it was not judged.
        latency_us: The kernel's latency at the timing sizes.
        reason: One line that says why a step failed.
        flags: What the loader says about the task, such as sizes that it reduced.
    """

    file: str
    group: str
    loads: bool = False
    oracle: bool = False
    feasible: bool | None = None
    latency_us: float | None = None
    reason: str = ""
    flags: str = ""


def problem_files(folders: Sequence[Path]) -> list[Path]:
    """Return the Python files of folders and their subfolders, by folder and number."""
    paths = [path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py"))]
    return sorted(
        {path for path in paths if path.name != "__init__.py"}, key=lambda path: (str(path.parent), file_order(path))
    )


def cover(path: Path, verifier: Verifier | None, trust: bool = False) -> Coverage:
    """Return what becomes of one file; its kernel is judged if there is a verifier."""
    file, group = str(path), path.resolve().parent.name
    try:
        task = load_file(path, trust)
    except TaskError as error:
        return Coverage(file, group, reason=_line(error))
    flags = "; ".join(task.flags)
    try:
        kernel = oracle(task)
    except (Unsupported, TaskError) as error:
        return Coverage(file, group, loads=True, reason=_line(error), flags=flags)
    except Exception as error:  # a fault of the apprentice's, which must not end the other files
        return Coverage(file, group, loads=True, reason=_line(f"{type(error).__name__}: {error}"), flags=flags)
    if verifier is None:
        return Coverage(file, group, loads=True, oracle=True, flags=flags)
    try:
        verdict = verifier.verify(kernel, task)
    except KernelGymError as error:
        return Coverage(file, group, loads=True, oracle=True, feasible=False, reason=_line(error), flags=flags)
    reason = "" if verdict.feasible else _line(verdict.feedback)
    return Coverage(file, group, True, True, verdict.feasible, verdict.latency_us, reason, flags)


def cover_all(paths: Sequence[Path], judged: Collection[Path], policy: Policy, workers: int = 1) -> Iterator[Coverage]:
    """Yield what becomes of files as they are done; the kernels of those in `judged` get a verdict.

    Several `workers` are processes with a simulator each.
    """
    if workers == 1:
        with ExitStack() as stack:
            verifier = stack.enter_context(Verifier(AscendSim(), policy=policy)) if judged else None
            for path in paths:
                activity.prepare(str(path))
                yield cover(path, verifier if path in judged else None)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        jobs = [pool.submit(_cover_apart, path, policy if path in judged else None) for path in paths]
        yield from (done.result() for done in as_completed(jobs))


def _cover_apart(path: Path, policy: Policy | None) -> Coverage:
    if policy is None:
        return cover(path, None)
    with Verifier(AscendSim(), policy=policy) as verifier:
        return cover(path, verifier)


def as_csv(results: Sequence[Coverage]) -> str:
    """Return the results as CSV, a row for each file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [item.name for item in fields(Coverage)]
    writer.writerow(names)
    writer.writerows([_cell(getattr(result, name)) for name in names] for result in results)
    return text.getvalue()


def as_markdown(results: Sequence[Coverage]) -> str:
    """Return a table with a row for each group, and the reasons why files fall out, by count."""
    groups = list(dict.fromkeys(result.group for result in results))
    rows = [(name, [result for result in results if result.group == name]) for name in groups]
    lines = ["| group | files | load | oracle | judged | feasible |", "|---|---|---|---|---|---|"]
    for name, members in [*rows, *([("all", list(results))] if len(groups) > 1 else [])]:
        judged = [result for result in members if result.feasible is not None]
        counts = [sum(result.loads for result in members), sum(result.oracle for result in members), len(judged)]
        feasible = sum(bool(result.feasible) for result in judged)
        lines.append(f"| {name} | {len(members)} | {' | '.join(str(n) for n in counts)} | {feasible} |")
    reasons = Counter((_step(result), result.reason) for result in results if result.reason)
    if reasons:
        lines += ["", "| files | lost at | reason |", "|---|---|---|"]
    for (step, reason), count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"| {count} | {step} | {reason.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def _step(result: Coverage) -> str:
    return "load" if not result.loads else "oracle" if not result.oracle else "verdict"


def _line(reason: object) -> str:
    """Return a reason as one line."""
    return " ".join(str(reason).removeprefix("Unsupported: ").split())[:300]


def _cell(value: object) -> object:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else value
