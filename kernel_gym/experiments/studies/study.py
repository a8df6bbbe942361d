"""A study under way: its shards are made side by side, each resumable, and read back into outcomes.

Every shard is a process and a folder of its own, so that one that fails or is killed leaves the others alone. Running a
study again takes up every shard where it was stopped; shards that lie there complete, wherever they were made, are
only read. So shards can be made on several machines and their folders put side by side.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.comparison import Over, RunOutcome, comparable, outcome
from kernel_gym.experiments.runs.isolated_run import begin, end, in_words, reason_of
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard

Watch = Callable[[int, int], None]
"""Called about once a second with: attempts on record, attempts in all."""


@dataclass(frozen=True)
class Failure:
    """A shard that could not be finished, and why."""

    shard: str
    reason: str


@dataclass(frozen=True)
class Study:
    """Shards in one folder; `reference` is the contender that the others are compared with."""

    shards: tuple[Shard, ...]
    folder: Path
    reference: str

    def __post_init__(self) -> None:
        # Counted as several, one run would look like more evidence than it is.
        labels = Counter(shard.label for shard in self.shards)
        if several := [label for label, count in labels.items() if count > 1]:
            raise ConfigError(f"{several[0]} would be made {labels[several[0]]} times: name each agent and seed once")

    def run(self, parallel: int, watch: Watch) -> list[Failure]:
        """Make all shards that are not complete yet, `parallel` at a time; what failed."""
        if parallel < 1:
            raise ConfigError(f"{parallel} runs at once make none: at least 1")
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
        """Where a shard lies."""
        return self.folder / shard.label

    def complete(self) -> list[Shard]:
        """The shards that are there whole."""
        return [shard for shard in self.shards if RunFolder(self.path(shard)).complete]

    def outcomes(self) -> list[RunOutcome]:
        """What the complete shards came to."""
        return [self._over(shard)(shard.tasks) for shard in self.complete()]

    def comparable(self) -> dict[str, list[RunOutcome]]:
        """The same, by the operators that it is over."""
        return comparable((shard.tasks, self._over(shard)) for shard in self.complete())

    def _over(self, shard: Shard) -> Over:
        records = self._records(shard)
        return lambda tasks: outcome(shard.contender, shard.config, records, tasks)

    def commits(self) -> list[str]:
        """The commits that the complete shards were made at; more than one, and they may not be comparable."""
        return sorted({commit for shard in self.complete() for commit in RunFolder(self.path(shard)).commits})

    @property
    def total(self) -> int:
        """Attempts in all."""
        return sum(len(shard.tasks) * shard.config.budget * shard.config.rounds for shard in self.shards)

    @property
    def done(self) -> int:
        """Attempts on record."""
        return Lines().count(self._journals())

    def _journals(self) -> list[Path]:
        return [self._journal(shard) for shard in self.shards]

    def _records(self, shard: Shard) -> list[Record]:
        return RunFolder(self.path(shard)).last_round(shard.config, len(shard.tasks))

    def _journal(self, shard: Shard) -> Path:
        return RunFolder(self.path(shard)).journal

    def _wave(self, shards: Sequence[Shard], parallel: int, watch: Watch) -> Iterator[Failure]:
        waiting = [shard for shard in shards if not RunFolder(self.path(shard)).complete]
        running: dict[Connection, tuple[Shard, BaseProcess]] = {}
        lines = Lines()
        try:
            while waiting or running:
                while waiting and len(running) < parallel:
                    shard = waiting.pop(0)
                    try:
                        self._give_memory(shard)
                    except (KernelGymError, OSError) as error:
                        yield Failure(shard.label, in_words(error))
                        continue
                    answer, process = begin(shard.config, self.path(shard))
                    running[answer] = shard, process
                for ended in set(running) & set(wait(list(running), timeout=1.0)):
                    shard, process = running.pop(ended)
                    if reason := reason_of(ended, process):
                        yield Failure(shard.label, reason)
                watch(lines.count(self._journals()), self.total)
        finally:
            end([process for _, process in running.values()])

    def _give_memory(self, shard: Shard) -> None:
        """Copy what the shard begins with into its folder: memories of other operators, and what the agent learned."""
        folder, source = self.path(shard), RunFolder(self.folder / shard.memory)
        if not shard.memory or (folder / MEMORY_FILE).exists():
            return
        if shard.config.initial_agent and source.learned:
            shutil.copytree(source.agent, folder / AGENT_FOLDER, dirs_exist_ok=True)
        # The memory comes last and gets its name when it is whole: killed before, all of this is done again.
        part = folder / f"{MEMORY_FILE}.part"
        with source.memory() as bank:
            # Of operators that it never worked at, there is nothing to leave out.
            bank.export(part, set(shard.tasks) & set(bank.tasks()), source.origin)
        part.rename(folder / MEMORY_FILE)


class Lines:
    """Counts the lines of files that grow; reads only what is new."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}

    def count(self, paths: Sequence[Path]) -> int:
        """Lines of all the files together."""
        return sum(self._count(path) for path in paths if path.exists())

    def _count(self, path: Path) -> int:
        offset, lines = self._read.get(path, (0, 0))
        with path.open("rb") as file:
            file.seek(offset)
            new = file.read()
        self._read[path] = offset + len(new), lines + new.count(b"\n")
        return self._read[path][1]
