"""Run a named study from a command line: its shards with progress, and the table at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from kernel_gym import plugins
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.progress import show_progress
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.studies import model_studies, study_definition, tables
from kernel_gym.experiments.studies.model_studies import STUDY_FILE
from kernel_gym.experiments.studies.seed_curves import write_seed_curves
from kernel_gym.experiments.studies.study import Banks, Failure, Study, Watch
from kernel_gym.experiments.studies.study_definition import StudyDefinition
from kernel_gym.verdict import Policy

#: What is named before the first run and then stays.
NAMED = {"contrasts", "margins"}
#: What a study's file has besides, if it was asked for.
OPTIONAL = {"policy", "budget", "suites", "model", "forecast"}
#: Seconds on one core: a first verdict with author and memory, and the start of a run. Measured, rough.
SECONDS_PER_ATTEMPT, SECONDS_PER_RUN = 0.27, 8.0


@dataclass(frozen=True)
class StudyRequest:
    """A study at a size, with kernels judged by a policy; `agents`, `seeds` and `arms`, if any are named, restrict it.

    A `budget` that is not 0 takes the place of the size's, and in a folder that holds the study, that of the folder's.
    `suites`, if any are named, take the place of the study's tasks, and `model` that of its language model. With
    `forecast`, verdicts are forecast.
    """

    name: str
    size: str
    agents: Sequence[str] = ()
    seeds: Sequence[str] = ()
    policy: Policy = "strict"
    budget: int = 0
    suites: Sequence[str] = ()
    model: str = ""
    forecast: bool = False
    arms: Sequence[str] = ()

    def study(self, folder: Path) -> Study:
        """Return the study with its shards in a folder."""
        definition = study_definition.load(self.name)
        if self.suites:
            definition = study_definition.on_suites(definition, self.suites)
        if not all(re.fullmatch("[0-9]{1,18}", seed) for seed in self.seeds):
            raise ConfigError(f"seeds are numbers, not {', '.join(self.seeds)}")
        budget = self.budget or int(_read_study_file(folder).get("budget", 0))
        seeds = [int(seed) for seed in self.seeds]
        shards = study_definition.shards(definition, self.size, self.agents, seeds, budget, self.arms)
        shards = [shard.under(self.policy, self.forecast) for shard in shards]
        if model := self.model or str(_read_study_file(folder).get("model", "")):
            shards = [shard.asking(model) for shard in shards]
        return Study(tuple(shards), folder, definition.reference)

    @property
    def content(self) -> dict[str, str]:
        """What the study's folder says about it; a folder that names no policy holds verdicts of `strict`."""
        policy = {} if self.policy == "strict" else {"policy": self.policy}
        suites = {"suites": ",".join(self.suites)} if self.suites else {}
        model = {"model": self.model} if self.model else {}
        forecast = {"forecast": "True"} if self.forecast else {}
        return {"study": self.name, "size": self.size} | policy | suites | model | forecast


def definition_in(folder: Path) -> StudyDefinition | None:
    """Return the definition of the study that a folder holds, with the contrasts that were named before its runs.

    None if the folder holds no study. A folder of an earlier version names no contrasts.
    """
    content = _read_study_file(folder)
    if not content:
        return None
    named = {"contrasts": content.get("contrasts", ()), "margins": content.get("margins", {})}
    return study_definition.parse(content["study"], study_definition.load(content["study"]).model_dump() | named)


def _read_study_file(folder: Path) -> dict[str, Any]:
    file = folder / STUDY_FILE
    try:
        content = yaml.safe_load(file.read_text()) if file.exists() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KernelGymError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    if content and (not isinstance(content, dict) or set(content) - OPTIONAL - NAMED != {"study", "size"}):
        raise KernelGymError(f"{file} does not name a study and its size; delete it, --table writes it again")
    return {key: value if key in NAMED else str(value) for key, value in content.items()} if content else {}


def _write_study_file(request: StudyRequest, folder: Path) -> None:
    """Write into the folder which study it holds and, before its first run, which contrasts are tested.

    Contrasts that are named once stay as they are. Runs that began without them stay untested.
    """
    present = _read_study_file(folder)
    before = int(present.get("budget", 0))
    budget = request.budget or before
    same = {key: value for key, value in present.items() if key not in {*NAMED, "budget"}} == request.content
    if present and (budget < before or not same):
        policy = f", judged by policy {present['policy']}" if "policy" in present else ""
        with_budget = f" with budget {before}" if before else ""
        on = f" on {present['suites']}" if "suites" in present else ""
        forecast = ", on forecasts" if "forecast" in present else ""
        what = f"the study {present['study']} at size {present['size']}{on}{with_budget}{policy}{forecast}"
        raise ConfigError(f"{folder} holds {what}; choose another --out")
    named = {key: present[key] for key in present if key in NAMED} if present else _named_now(request, folder)
    content = {**request.content, **({"budget": budget} if budget else {}), **named}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STUDY_FILE).write_text(yaml.safe_dump(content, sort_keys=False))


def _named_now(request: StudyRequest, folder: Path) -> dict[str, Any]:
    """Return the contrasts of a study that has not begun; none if the folder has a run that has."""
    if any(RunFolder(mark.parent).begun for mark in folder.rglob("config.yaml")):
        return {}
    return study_definition.load(request.name).model_dump(mode="json", include=NAMED)


def sizes(name: str) -> dict[str, str]:
    """Return, for each size of a study, its runs, attempts and an estimate of the time on two idle cores."""
    definition = study_definition.load(name)
    return {size: _extent(study_definition.shards(definition, size)) for size in definition.sizes}


def _extent(shards: Sequence[study_definition.Shard]) -> str:
    attempts = sum(len(shard.tasks) * shard.config.budget for shard in shards)
    minutes = (attempts * SECONDS_PER_ATTEMPT + len(shards) * SECONDS_PER_RUN) / 60 / 2
    time = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} minutes"
    return f"{len(shards)} runs, {attempts:,} attempts, estimated {time} on two idle cores"


@dataclass(frozen=True)
class ModelAccess:
    """How a study that asks a language model reaches it.

    Args:
        author: How the model is asked; see `model_studies.serving`.
        model: Its file.
        replay: An archive of runs to replay instead: nothing is asked.
        unsafe: Let its kernels run although the sandbox of this machine is weak.
    """

    author: str = "local"
    model: str = ""
    replay: Path | None = None
    unsafe: bool = False


DEFAULT_ACCESS = ModelAccess()


def run(
    request: StudyRequest,
    folder: Path,
    parallel: int,
    access: ModelAccess = DEFAULT_ACCESS,
    banks: Banks = "all",
) -> list[Failure]:
    """Run the shards that are not complete, with progress; return those that failed."""
    asks_model = model_studies.asks_model(study_definition.load(request.name))
    if access.replay is not None:
        if not asks_model:
            raise ConfigError(f"the study {request.name} asks no model: there is nothing to replay, run it again")
        model_studies.import_runs(access.replay, folder)
    study = request.study(folder)
    if access.replay is not None:
        study = model_studies.as_recorded(study)
    for agent in sorted({shard.agent for shard in study.shards}):
        plugins.load("kernel_gym.agents", agent)
    _write_study_file(request, folder)
    contenders = len({shard.contender for shard in study.shards})
    complete = {shard.label for shard in study.complete()}
    waiting = [shard for shard in study.shards if shard.label not in complete]
    with ExitStack() as stack:
        if asks_model:
            stack.enter_context(model_studies.judging(access.unsafe))
        title = f"{request.name}: {contenders} contenders, {len(study.shards)} runs"
        watch = stack.enter_context(_progress(title, study, replays=access.replay is not None))
        if asks_model and waiting and access.replay is None:
            stack.enter_context(model_studies.serving(access.author, access.model, waiting, parallel))
        return study.run(parallel, watch, banks)


@contextmanager
def _progress(title: str, study: Study, replays: bool) -> Iterator[Watch]:
    """Show the progress of a study: its attempts, or in a replay, where all are on record, its runs."""
    if replays:
        with show_progress(title, len(study.complete()), "runs replayed") as show:
            yield lambda done, total: show(len(study.complete()), len(study.shards))
    else:
        with show_progress(title, study.done) as show:
            yield show


def write_results(request: StudyRequest, folder: Path) -> str:
    """Write `results.md` and the curves over seeds of all complete shards, also of those not requested.

    Returns:
        The text of `results.md`.
    """
    whole, requested = replace(request, agents=(), seeds=(), arms=()).study(folder), request.study(folder)
    shards = {shard.label: shard for shard in (*whole.shards, *requested.shards)}
    study = Study(tuple(shards.values()), folder, whole.reference)
    if not study.complete():
        raise KernelGymError(f"{folder} holds no complete run of the study {request.name} at size {request.size} yet")
    _write_study_file(request, folder)
    definition = definition_in(folder) or study_definition.load(request.name)
    text = tables.results(f"{request.name}, {request.size} size", definition, study)
    if model_studies.asks_model(definition):
        model_studies.export_runs(study, folder / model_studies.ARCHIVE)
    (folder / "results.md").write_text(text)
    write_seed_curves(folder)
    return text
