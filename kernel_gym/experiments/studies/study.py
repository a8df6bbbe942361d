"""Run the shards of a study in parallel and read back their outcomes.

Every shard has a folder of its own and runs in a process, so that one that fails or is killed does not affect the
others. Runs on forecasts follow one another in a process, and a short one, which takes less time than the start of a
process, runs in this one. A shard that begins with the memory of another starts when that is complete.

Running a study again resumes every shard where it was stopped, or extends it if the budget has become larger; complete
shards are only read. So shards can be run on several machines and their folders copied together.
"""

from __future__ import annotations

import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernel_gym import activity
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.earlier_versions import shard_folder
from kernel_gym.experiments.runs.extension import check_extension, extends
from kernel_gym.experiments.runs.figures import Over, RunOutcome, comparable, outcome
from kernel_gym.experiments.runs.isolated_run import RunProcesses, describe_error, shares_process
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard

Watch = Callable[[int, int], None]
"""Called about once a second with: attempts on record, attempts in all."""

Banks = Literal["all", "needed"]

#: Attempts without a device that take about as long as the start of a process, which is mostly the import of libraries.
SHORT_RUN = 100


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

    def run(self, parallel: int, watch: Watch, banks: Banks = "all") -> list[Failure]:
        """Run all shards that are not complete.

        Args:
            parallel: The number of shards that run at the same time.
            watch: Called about once a second with the attempts made and the attempts in all.
            banks: Which shards on forecasts write their memory as a bank: `all`, or those that are `needed`, because
                another shard begins with their memory.

        Returns:
            The shards that failed.

        Raises:
            ConfigError: `parallel` is less than 1.
            KernelGymError: A shard's folder holds another run, or one that cannot be extended.
        """
        if parallel < 1:
            raise ConfigError(f"at least 1 run at a time is needed, not {parallel}")
        for shard in self.shards:
            self._check_extension(shard, RunFolder.open(self.path(shard), shard.config))
        waiting = [shard for shard in self.shards if not RunFolder(self.path(shard)).finished(shard.config)]
        lines, total, shown = LineCounter(), self.total, float("-inf")

        def show(now: bool = False) -> None:
            nonlocal shown
            if now or time.monotonic() - shown >= 1.0:
                shown = time.monotonic()
                watch(lines.count(self._journals()), total)

        needed = {shard.memory if banks == "needed" else shard.label for shard in self.shards}
        failures = list(self._run_waiting(waiting, parallel, show, needed))
        if waiting:
            show(now=True)
        return failures

    def _check_extension(self, shard: Shard, folder: RunFolder) -> None:
        """Raise a ConfigError if a shard is to be extended and cannot be."""
        if not extends(shard.config, folder):
            return
        if any(shard.memory == other.label for other in self.shards):
            raise ConfigError(
                f"{folder.path} cannot be extended: it begins with the memory of {shard.memory}, which becomes another "
                "one; choose another --out"
            )
        check_extension(RunPlan.of(shard.config, folder))

    def path(self, shard: Shard) -> Path:
        """Return the folder of a shard."""
        return shard_folder(self.folder, shard.label)

    def complete(self) -> list[Shard]:
        """Return the complete shards."""
        return [shard for shard in self.shards if RunFolder(self.path(shard)).finished(shard.config)]

    def outcomes(self) -> list[RunOutcome]:
        """Return the figures of the complete shards."""
        return [self._over(shard)(shard.tasks) for shard in self.complete()]

    def comparable(self) -> dict[str, list[RunOutcome]]:
        """Return the figures of the complete shards, grouped by the tasks that they are over."""
        return comparable((shard.tasks, self._over(shard)) for shard in self.complete())

    def _over(self, shard: Shard) -> Over:
        records, oracle_us = self._records(shard), RunFolder(self.path(shard)).oracle_us
        return lambda tasks: outcome(shard.contender, shard.config, records, tasks, oracle_us)

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

    def _run_waiting(
        self, shards: Sequence[Shard], parallel: int, show: Callable[[], None], banks: Collection[str]
    ) -> Iterator[Failure]:
        """Run shards, several at a time; one that begins with the memory of another waits for it to end."""
        waiting, failed = list(shards), set[str]()
        with RunProcesses() as processes:
            while waiting or processes.names:
                for shard in self._ready(waiting, processes.names):
                    if len(processes.names) >= parallel and not _is_short(shard):
                        continue
                    waiting.remove(shard)
                    if reason := self._begin(shard, processes, failed, show, shard.label in banks):
                        failed.add(shard.label)
                        yield Failure(shard.label, reason)
                for label, reason in processes.ended(timeout=1.0):
                    if reason:
                        failed.add(label)
                        yield Failure(label, reason)
                show()

    @staticmethod
    def _ready(waiting: Sequence[Shard], running: Sequence[str]) -> list[Shard]:
        """Return the shards whose initial memory is complete or will not come, short ones first."""
        coming = {*running, *(shard.label for shard in waiting)}
        ready = [shard for shard in waiting if shard.memory not in coming]
        return sorted(ready or ([] if running else waiting), key=lambda shard: not _is_short(shard))

    def _begin(
        self,
        shard: Shard,
        processes: RunProcesses,
        failed: Collection[str],
        show: Callable[[], None],
        keep_bank: bool,
    ) -> str:
        """Run a short shard, or start another in a process; return why that failed, or an empty text."""
        if shard.memory in failed:
            return f"its memory comes from {shard.memory}, which failed"
        try:
            self._copy_memory(shard)
        except (KernelGymError, OSError) as error:
            return describe_error(error)
        if _is_short(shard):
            return self._run_here(shard, show, keep_bank)
        processes.start(shard.label, shard.config, self.path(shard), keep_bank)
        return ""

    def _run_here(self, shard: Shard, show: Callable[[], None], keep_bank: bool) -> str:
        """Run a shard in this process; return why it failed, or an empty text."""
        from kernel_gym.experiments.runs.training import train  # imports slowly

        activity.prepare(f"{shard.label}: {len(shard.tasks)} tasks without a device")
        try:
            train(shard.config, RunFolder(self.path(shard)), lambda *counts: show(), keep_bank)
        except Exception as error:
            if not isinstance(error, KernelGymError):
                traceback.print_exc()
            return describe_error(error)
        return ""

    def _copy_memory(self, shard: Shard) -> None:
        """Copy what the shard begins with into its folder: memories of other tasks, and what the agent learned."""
        folder, source = self.path(shard), RunFolder(shard_folder(self.folder, shard.memory))
        if not shard.memory or ((folder / MEMORY_FILE).exists() and RunFolder(folder).begun):
            return
        if shard.config.initial_agent and source.learned:
            shutil.copytree(source.agent, folder / AGENT_FOLDER, dirs_exist_ok=True)
        # The memory is copied last and renamed when complete: after a kill, all of this is done again.
        part = folder / f"{MEMORY_FILE}.part"
        with source.open_bank() as bank:
            # Tasks that the source never worked on have nothing to leave out.
            bank.export(part, set(shard.tasks) & set(bank.tasks()), source.origin)
        part.rename(folder / MEMORY_FILE)


def _is_short(shard: Shard) -> bool:
    """Return whether a shard runs in this process: without a device, few attempts, an agent that does not use Ray."""
    attempts = len(shard.tasks) * shard.config.budget * shard.config.rounds
    return attempts <= SHORT_RUN and shares_process(shard.config)


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
