"""A benchmark of agents on forecasts, with tasks and authors that nothing in this repository was trained on.

An entry is one run with each of ten authors of the test split, on twenty tasks of the test split each. Its result is
checked without the agent: the choices in each journal are made again in the environment, which must lead to the same
attempts, and the figures are computed from those. Whoever knows the seeds can try choices before making them; with
`KERNEL_GYM_SECRET` set, runs have other seeds.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.vector import view
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.run_environments import keyword_arguments
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.run_plan import environment_options
from kernel_gym.experiments.runs.run_recorder import journal_record
from kernel_gym.experiments.splits import AUTHORS, author, split_tasks
from kernel_gym.experiments.statistics import interval
from kernel_gym.verifier.secret import ENVIRONMENT

#: The authors of the benchmark, the tasks that each of them works on and the attempts at a task.
ENTRANTS, TASKS, BUDGET = AUTHORS["test"][:10], 20, 10
RESULT = "result.json"
#: What a replayed attempt has to repeat.
REPEATED = ("task", "stage", "index", "context", "start", "kernel", "reward", "verdict")


@dataclass(frozen=True)
class Score:
    """The figures of one run.

    Attributes:
        solved: Share of tasks with a feasible kernel.
        area: Share of tasks solved, averaged over the attempts: how soon they were solved.
        reward: Mean reward of an attempt.
    """

    solved: float
    area: float
    reward: float


class _Score(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    solved: float = Field(ge=0, le=1)
    area: float = Field(ge=0, le=1)
    reward: float = Field(ge=-1, le=1)


class _Result(BaseModel):
    """The file of a result, as anybody may have written it."""

    agent: str = Field(pattern=r"^[\w.:~@-]+$")
    options: dict[str, Any]
    scores: dict[str, _Score]


def configurations(agent: str, options: Mapping[str, Any]) -> dict[str, RunConfig]:
    """Return the run of each author, which are the same for every agent."""
    return {author(number): _configuration(number, agent, options) for number in ENTRANTS}


def _configuration(number: int, agent: str, options: Mapping[str, Any]) -> RunConfig:
    names = split_tasks("test")
    chosen = np.random.default_rng([11, number]).choice(len(names), TASKS, replace=False)
    env = {"forecast": True, "author_options": {"profile": author(number)}}
    run = {"agent": agent, "agent_options": dict(options), "seed": _seed(number), "budget": BUDGET, "env": env}
    return resolve(overrides=run | {"tasks": [names[i] for i in sorted(chosen)]})


def _seed(number: int) -> int:
    """Return the seed of an author's run: the author's number or, if a secret is set, one that follows from both."""
    secret = os.environ.get(ENVIRONMENT)
    if not secret:
        return number
    return int.from_bytes(hmac.digest(secret.encode(), f"leaderboard {number}".encode(), "sha256")[:4], "big") // 2


def enter(agent: str, options: Mapping[str, Any], out: Path, workers: int, report: Callable[[str], None]) -> None:
    """Run an agent and write its result; runs that are finished are not run again.

    Args:
        agent: The agent's name, or `module:Class`.
        options: Its options.
        out: The folder of the entry.
        workers: Runs at once.
        report: Called with the author of each finished run.
    """
    runs = configurations(agent, options)
    folders = {name: out / "runs" / name for name in runs}
    with ExitStack() as stack:
        work = map
        if workers > 1:
            work = stack.enter_context(ProcessPoolExecutor(workers, get_context("spawn"))).map  # type: ignore[assignment]
        for name in work(_run, runs.values(), folders.values()):
            report(name)
    scores = {name: asdict(score(Journal.read(RunFolder(folders[name]).journal))) for name in runs}
    result = {"agent": agent, "options": dict(options), "scores": scores}
    (out / RESULT).write_text(json.dumps(result, indent=1) + "\n")


def _run(config: RunConfig, path: Path) -> str:
    from kernel_gym.experiments.runs.isolated_run import train

    train(config, RunFolder.open(path, config), lambda *_: None)
    return path.name


def score(records: Sequence[Record]) -> Score:
    """Return the figures of a run from its records."""
    solved_at: dict[str, int] = {}
    for record in records:
        if record["verdict"]["outcome"] == "feasible":
            solved_at.setdefault(record["task"], record["index"])
    tasks = {record["task"] for record in records}
    shares = [sum(at <= index for at in solved_at.values()) / len(tasks) for index in range(BUDGET)]
    return Score(
        len(solved_at) / len(tasks), float(np.mean(shares)), float(np.mean([record["reward"] for record in records]))
    )


def check(out: Path, report: Callable[[str], None] = lambda name: None) -> list[str]:
    """Make the choices of an entry's journals again and compute its result anew.

    Args:
        out: The folder of the entry.
        report: Called with each author that was checked.

    Returns:
        What is wrong, one line each; none if the result is right.

    Raises:
        KernelGymError: The folder holds no result, or a broken one.
    """
    result = read_result(out)
    runs = configurations(result["agent"], result["options"])
    problems = [f"{name}: no author of the benchmark" for name in result["scores"] if name not in runs]
    for name, config in runs.items():
        problems += [f"{name}: {problem}" for problem in _check_run(out / "runs" / name, config, result, name)]
        report(name)
    return problems


def _check_run(path: Path, config: RunConfig, result: Mapping[str, Any], name: str) -> list[str]:
    folder = RunFolder(path)
    if not folder.journal.is_file():
        return ["there is no journal"]
    if different := config.differing_keys(load_config(path)):
        return [f"the run has other settings: {', '.join(different)}"]
    records = Journal.read(folder.journal)
    if len(records) != TASKS * BUDGET:
        return [f"the journal has {len(records)} attempts, not {TASKS * BUDGET}"]
    attempts = repeated(config, folder, records)
    for number, (record, other) in enumerate(zip(records, attempts, strict=True), 1):
        if different := [key for key in REPEATED if _plain(record[key]) != _plain(other[key])]:
            return [f"attempt {number} has another {', '.join(different)} when its choices are made again"]
    claimed, actual = result["scores"].get(name), asdict(score(attempts))
    return [] if claimed == actual else [f"the result says {claimed}, the journal {actual}"]


def repeated(config: RunConfig, folder: RunFolder, records: Sequence[Record]) -> list[Record]:
    """Make the choices of a journal in the environment; return the records of the attempts that they lead to."""
    options = replace(environment_options(config, folder), bank=None)
    envs = ForecastVectorEnv(len(config.tasks), **keyword_arguments(options))
    observations, infos = envs.reset(seed=config.seed)
    attempts: list[Record] = []
    while len(attempts) < len(records):
        chosen = records[len(attempts) : len(attempts) + envs.num_envs]
        actions = [_action(view(observations, infos, i)[1], record, envs) for i, record in enumerate(chosen)]
        observations, *_, infos = envs.step(np.array(actions))
        attempts += [journal_record(attempt) for attempt in infos.get("attempt", ())]
    return attempts


def _action(info: Mapping[str, Any], record: Record, envs: ForecastVectorEnv) -> int:
    """Return the action that leads on to a record's choices; "generate now" once they are made, or impossible."""
    slots = {candidate_id: slot for slot, candidate_id in enumerate(info["candidates"].ids)}
    if info["start_due"]:
        return slots.get(record["start"] or 0, 0)
    left = [id for id in record["context"] if id not in info["picked"]]
    return slots.get(left[0], envs.options.slots) if left else envs.options.slots


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def read_result(out: Path) -> dict[str, Any]:
    """Return an entry's result."""
    try:
        return _Result.model_validate_json((out / RESULT).read_bytes()).model_dump()
    except OSError as error:
        command = f"kernel-gym leaderboard run AGENT --out {out}"
        raise KernelGymError(f"{out} holds no result: make one with `{command}`") from error
    except ValueError as error:
        raise KernelGymError(
            f"{out / RESULT} is not a valid result: make it again with `kernel-gym leaderboard run`"
        ) from error


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the standings as a Markdown table, best area first, with 95% intervals over authors."""
    rows = []
    for result in results:
        options = _cell(", ".join(f"{key}={value}" for key, value in result["options"].items()))
        cells = [
            interval([scores[figure] for scores in result["scores"].values()])
            for figure in ("area", "solved", "reward")
        ]
        rows.append((cells[0].mean if cells[0] else 0.0, result["agent"] + (f" ({options})" if options else ""), cells))
    lines = ["| agent | area | solved | mean reward |", "|---|---|---|---|"]
    for _, name, cells in sorted(rows, key=lambda row: -row[0]):
        shown = (f"{cell.mean:.3f} [{cell.low:.3f}, {cell.high:.3f}]" if cell else "-" for cell in cells)
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return a text that anybody may have written as a part of one cell."""
    return " ".join(text.split()).replace("\\", "").replace("|", "\\|")[:200]
