"""Run the shards of a study in parallel and read back their outcomes.

Every shard runs in its own process and folder, so that one that fails or is killed does not affect the others. Running
a study again resumes every shard where it was stopped; complete shards are only read. So shards can be run on several
machines and their folders copied together.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.earlier_versions import shard_folder
from kernel_gym.experiments.runs.figures import Over, RunOutcome, comparable, outcome
from kernel_gym.experiments.runs.isolated_run import describe_error, end_runs, start_run, wait_for_run
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard

Watch = Callable[[int, int], None]
"""Called about once a second with: attempts on record, attempts in all."""


@dataclass(frozen=True)
class Failure:
    """A shard that failed, and why."""

    shard: str
    reason: str


def print_failures(failures: Sequence[Failure]) -> int:
    """Print the shards that failed to stderr; return the exit status of a command."""
    for failure in failures:
        print(f"{failure.shard} failed: {failure.reason}", file=sys.stderr)
    return 1 if failures else 0


@dataclass(frozen=True)
class Study:
    """Shards in one folder.

    Attributes:
        shards: The runs of the study.
        folder: The study's folder; each shard has a folder in it.
        reference: The contender that the others are compared with.
    """

    shards: tuple[Shard, ...]
    folder: Path
    reference: str

    def __post_init__(self) -> None:
        # One run that is counted several times would look like more evidence than it is.
        labels = Counter(shard.label for shard in self.shards)
        if several := [label for label, count in labels.items() if count > 1]:
            raise ConfigError(f"{several[0]} would be run {labels[several[0]]} times: name each agent and seed once")

    def run(self, parallel: int, watch: Watch) -> list[Failure]:
        """Run all shards that are not complete.

        Args:
            parallel: The number of shards that run at the same time.
            watch: Called about once a second with the attempts made and the attempts in all.

        Returns:
            The shards that failed.

        Raises:
            ConfigError: `parallel` is less than 1.
            KernelGymError: A shard's folder holds another run.
        """
        if parallel < 1:
            raise ConfigError(f"at least 1 run at a time is needed, not {parallel}")
        for shard in self.shards:
            RunFolder.open(self.path(shard), shard.config)
        failures: list[Failure] = []
        for wave in (
            [shard for shard in self.shards if not shard.memory],
            [shard for shard in self.shards if shard.memory],
        ):
            failed = {failure.shard for failure in failures}
            ready = [shard for shard in wave if shard.memory not in failed]
            failures += [
                Failure(shard.label, f"its memory comes from {shard.memory}, which failed")
                for shard in wave
                if shard.memory in failed
            ]
            failures += list(self._wave(ready, parallel, watch))
        return failures

    def path(self, shard: Shard) -> Path:
        """Return the folder of a shard."""
        return shard_folder(self.folder, shard.label)

    def complete(self) -> list[Shard]:
        """Return the complete shards."""
        return [shard for shard in self.shards if RunFolder(self.path(shard)).complete]

    def outcomes(self) -> list[RunOutcome]:
        """Return the figures of the complete shards."""
        return [self._over(shard)(shard.tasks) for shard in self.complete()]

    def comparable(self) -> dict[str, list[RunOutcome]]:
        """Return the figures of the complete shards, grouped by the tasks that they are over."""
        return comparable((shard.tasks, self._over(shard)) for shard in self.complete())

    def _over(self, shard: Shard) -> Over:
        records = self._records(shard)
        return lambda tasks: outcome(shard.contender, shard.config, records, tasks)

    def commits(self) -> list[str]:
        """Return the commits of the complete shards; if there are several, the shards may not be comparable."""
        return sorted({commit for shard in self.complete() for commit in RunFolder(self.path(shard)).commits})

    @property
    def total(self) -> int:
        """Attempts in all."""
        return sum(len(shard.tasks) * shard.config.budget * shard.config.rounds for shard in self.shards)

    @property
    def done(self) -> int:
        """Attempts on record."""
        return LineCounter().count(self._journals())

    def _journals(self) -> list[Path]:
        return [self._journal(shard) for shard in self.shards]

    def _records(self, shard: Shard) -> list[Record]:
        return RunFolder(self.path(shard)).last_round(shard.config, len(shard.tasks))

    def _journal(self, shard: Shard) -> Path:
        return RunFolder(self.path(shard)).journal

    def _wave(self, shards: Sequence[Shard], parallel: int, watch: Watch) -> Iterator[Failure]:
        waiting = [shard for shard in shards if not RunFolder(self.path(shard)).complete]
        running: dict[Connection, tuple[Shard, BaseProcess]] = {}
        lines = LineCounter()
        try:
            while waiting or running:
                while waiting and len(running) < parallel:
                    shard = waiting.pop(0)
                    try:
                        self._copy_memory(shard)
                    except (KernelGymError, OSError) as error:
                        yield Failure(shard.label, describe_error(error))
                        continue
                    messages, process = start_run(shard.config, self.path(shard))
                    running[messages] = shard, process
                for ended in set(running) & set(wait(list(running), timeout=1.0)):
                    shard, process = running.pop(ended)
                    if reason := wait_for_run(ended, process):
                        yield Failure(shard.label, reason)
                watch(lines.count(self._journals()), self.total)
        finally:
            end_runs([process for _, process in running.values()])

    def _copy_memory(self, shard: Shard) -> None:
        """Copy what the shard begins with into its folder: memories of other tasks, and what the agent learned."""
        folder, source = self.path(shard), RunFolder(shard_folder(self.folder, shard.memory))
        if not shard.memory or (folder / MEMORY_FILE).exists():
            return
        if shard.config.initial_agent and source.learned:
            shutil.copytree(source.agent, folder / AGENT_FOLDER, dirs_exist_ok=True)
        # The memory is copied last and renamed when complete: after a kill, all of this is done again.
        part = folder / f"{MEMORY_FILE}.part"
        with source.open_bank() as bank:
            # Tasks that the source never worked on have nothing to leave out.
            bank.export(part, set(shard.tasks) & set(bank.tasks()), source.origin)
        part.rename(folder / MEMORY_FILE)


class LineCounter:
    """Counts the lines of growing files; reads only what is new."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}

    def count(self, paths: Sequence[Path]) -> int:
        """Return the number of lines of all files together."""
        return sum(self._count(path) for path in paths if path.exists())

    def _count(self, path: Path) -> int:
        offset, lines = self._read.get(path, (0, 0))
        with path.open("rb") as file:
            file.seek(offset)
            new = file.read()
        self._read[path] = offset + len(new), lines + new.count(b"\n")
        return self._read[path][1]
