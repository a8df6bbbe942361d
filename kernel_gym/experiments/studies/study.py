"""Run the shards of a study in parallel and read back their outcomes.

Every shard runs in its own process and folder, so that one that fails or is killed does not affect the others. A short
run on a table, which takes less time than the start of a process, runs in this one. Running a study again resumes every
shard where it was stopped, or extends it if the budget has become larger; complete shards are only read. So shards can
be run on several machines and their folders copied together.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from kernel_gym import activity
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.earlier_versions import shard_folder
from kernel_gym.experiments.runs.extension import check_extension, extends, owns_loop
from kernel_gym.experiments.runs.figures import Over, RunOutcome, comparable, outcome
from kernel_gym.experiments.runs.isolated_run import describe_error, end_runs, exit_reason, receive, start_run
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.studies.study_definition import AGENT_FOLDER, MEMORY_FILE, Shard

Watch = Callable[[int, int], None]
"""Called about once a second with: attempts on record, attempts in all."""

#: Attempts without a device that take about as long as the start of a process, which is mostly the import of libraries.
SHORT_RUN = 1_000


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
            KernelGymError: A shard's folder holds another run, or one that cannot be extended.
        """
        if parallel < 1:
            raise ConfigError(f"at least 1 run at a time is needed, not {parallel}")
        for shard in self.shards:
            self._check_extension(shard, RunFolder.open(self.path(shard), shard.config))
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

    def _wave(self, shards: Sequence[Shard], parallel: int, watch: Watch) -> Iterator[Failure]:
        waiting = [shard for shard in shards if not RunFolder(self.path(shard)).finished(shard.config)]
        lines, total, shown = LineCounter(), self.total, float("-inf")

        def show(now: bool = False) -> None:
            nonlocal shown
            if now or time.monotonic() - shown >= 1.0:
                shown = time.monotonic()
                watch(lines.count(self._journals()), total)

        short = [shard for shard in waiting if _is_short(shard)]
        yield from self._run_here(short, show)
        yield from self._run_apart([shard for shard in waiting if shard not in short], parallel, show)
        if waiting:
            show(now=True)

    def _run_here(self, shards: Sequence[Shard], show: Callable[[], None]) -> Iterator[Failure]:
        """Run shards in this process, one after the other."""
        from kernel_gym.experiments.runs.training import train  # imports slowly

        for shard in shards:
            activity.prepare(f"{shard.label}: {len(shard.tasks)} tasks without a device")
            try:
                self._copy_memory(shard)
                train(shard.config, RunFolder(self.path(shard)), lambda *counts: show())
            except Exception as error:
                if not isinstance(error, KernelGymError):
                    traceback.print_exc()
                yield Failure(shard.label, describe_error(error))

    def _run_apart(self, shards: Sequence[Shard], parallel: int, show: Callable[[], None]) -> Iterator[Failure]:
        """Run shards in processes of their own, several at a time."""
        waiting, running = list(shards), dict[Connection, tuple[Shard, BaseProcess]]()
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
                for messages in set(running) & set(wait(list(running), timeout=1.0)):
                    shard, process = running[messages]
                    message = receive(messages)
                    if isinstance(message, logging.LogRecord):
                        message.__dict__["run"] = shard.label
                        activity.LOGGER.handle(message)
                    elif isinstance(message, str):
                        del running[messages]
                        if reason := exit_reason(messages, process, message):
                            yield Failure(shard.label, reason)
                show()
        finally:
            end_runs([process for _, process in running.values()])

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
    return shard.config.env.offline and attempts <= SHORT_RUN and not owns_loop(shard.agent)


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
