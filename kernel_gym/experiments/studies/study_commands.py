"""Running a named study from a command line: which shards, with progress, and the table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from kernel_gym import plugins
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.progress import shown
from kernel_gym.experiments.studies import study_definition, tables
from kernel_gym.experiments.studies.study import Failure, Study


@dataclass(frozen=True)
class Asked:
    """Which study at which size; only some agents and seeds of it, if any are named."""

    name: str
    size: str
    agents: Sequence[str] = ()
    seeds: Sequence[str] = ()

    def study(self, folder: Path) -> Study:
        """The shards, in a folder."""
        found = study_definition.load(self.name)
        if not all(seed.isdigit() for seed in self.seeds):
            raise ConfigError(f"seeds are numbers, not {', '.join(self.seeds)}")
        shards = study_definition.shards(found, self.size, self.agents, [int(seed) for seed in self.seeds])
        return Study(tuple(shards), folder, found.reference)


#: The file of a study's folder that says which study it holds.
MARK = "study.yaml"


def marked(folder: Path) -> study_definition.Protocol | None:
    """The study that a folder holds; None if it holds another thing."""
    said = _mark(folder)
    return study_definition.load(said["study"]) if said else None


def _mark(folder: Path) -> dict[str, str]:
    file = folder / MARK
    try:
        said = yaml.safe_load(file.read_text()) if file.exists() else {}
    except (OSError, yaml.YAMLError) as error:
        raise KernelGymError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    if said and (not isinstance(said, dict) or set(said) != {"study", "size"}):
        raise KernelGymError(f"{file} does not name a study and its size; delete it, --table writes it anew")
    return {key: str(value) for key, value in said.items()} if said else {}


def _claim(asked: Asked, folder: Path) -> None:
    """Say in the folder which study it holds: reports compare as the study does."""
    ours = {"study": asked.name, "size": asked.size}
    if (said := _mark(folder)) not in ({}, ours):
        raise ConfigError(f"{folder} holds the study {said['study']} at size {said['size']}; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(yaml.safe_dump(ours))


#: Seconds of one core: a cold verdict with author and memory, and what a run takes to begin. Measured, rough.
ATTEMPT_S, RUN_S = 0.27, 8.0


def sizes(name: str) -> dict[str, str]:
    """Size -> its runs, attempts and an estimate of the time on two idle cores, all agents alike."""
    found = study_definition.load(name)
    return {size: _extent(study_definition.shards(found, size)) for size in found.sizes}


def _extent(shards: Sequence[study_definition.Shard]) -> str:
    attempts = sum(len(shard.tasks) * shard.config.budget for shard in shards)
    minutes = (attempts * ATTEMPT_S + len(shards) * RUN_S) / 60 / 2
    time = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} minutes"
    return f"{len(shards)} runs, {attempts:,} attempts, estimated {time} on two idle cores"


def run(asked: Asked, folder: Path, parallel: int) -> list[Failure]:
    """Make the shards that are missing; what failed."""
    study = asked.study(folder)
    for agent in sorted({shard.agent for shard in study.shards}):
        plugins.load("kernel_gym.agents", agent)
    _claim(asked, folder)
    contenders = len({shard.contender for shard in study.shards})
    with shown(f"{asked.name}: {contenders} contenders, {len(study.shards)} runs", study.done) as watch:
        return study.run(parallel, watch)


def write_results(asked: Asked, folder: Path) -> str:
    """Write `results.md` of all shards that are complete, whoever asked for them; its text."""
    whole, asked_for = Asked(asked.name, asked.size).study(folder), asked.study(folder)
    shards = {shard.label: shard for shard in (*whole.shards, *asked_for.shards)}
    study = Study(tuple(shards.values()), folder, whole.reference)
    if not study.complete():
        raise KernelGymError(f"{folder} holds no complete run of the study {asked.name} at size {asked.size} yet")
    _claim(asked, folder)
    text = tables.results(f"{asked.name}, {asked.size} size", study_definition.load(asked.name), study)
    (folder / "results.md").write_text(text)
    return text
