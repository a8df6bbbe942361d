"""The run folder: all files of a run, among them the journal from which it is resumed.

The others are the resolved configuration, provenance, TensorBoard events, memory bank and feasible kernels.
"""

from __future__ import annotations

import errno
import json
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kernel_gym.config import RunConfig
from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs import earlier_versions
from kernel_gym.experiments.runs.journal import Journal, Record, first_episodes
from kernel_gym.experiments.runs.replay_backup import ReplayBackup
from kernel_gym.kernel import Kernel
from kernel_gym.version import __version__

if TYPE_CHECKING:
    from kernel_gym.memory.bank import MemoryBank

#: Most elements of a configuration, with its references written out.
MOST_ELEMENTS = 1_000_000


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run: its paths, and what is written once.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def bank(self) -> Path:
        """The file of the memory bank, as it was after the last attempt."""
        return self.path / "bank.sqlite"

    def open_bank(self) -> MemoryBank:
        """Open the memory bank for reading.

        Raises:
            KernelGymError: The bank is missing or damaged; the message says how to make it again.
        """
        from kernel_gym.memory.bank import MemoryBank
        from kernel_gym.memory.embedding import StaticEmbedder
        from kernel_gym.memory.schema import DamagedBank

        mark = f"delete {self.path / 'complete'} and " if self.complete else ""
        remedy = f"{mark}run the command that made the run again: its memory is made again from the journal"
        if not self.bank.exists():
            raise KernelGymError(f"{self.bank} is missing; {remedy}")
        try:
            return MemoryBank(self.bank, StaticEmbedder(), read_only=True)
        except DamagedBank as error:
            raise KernelGymError(f"{error.what}; delete it, {remedy}") from error

    @property
    def journal(self) -> Path:
        """The journal: one line per attempt."""
        return self.path / "results.jsonl"

    @property
    def transcript(self) -> Path:
        """The file of every exchange with the author, if it is a model."""
        return self.path / "transcript.jsonl"

    @property
    def inspections(self) -> Path:
        """The file of every exchange with the model that inspects kernels."""
        return self.path / "inspections.jsonl"

    @property
    def embeddings(self) -> Path:
        """The file of the vectors that an embedding endpoint returned."""
        return self.path / "embeddings.jsonl"

    @property
    def usage(self) -> Path:
        """The file of the tokens and dollars of a complete run, by part."""
        return self.path / "usage.json"

    @property
    def oracle_us(self) -> dict[str, float]:
        """The latencies of the oracle's kernels for the tasks that were solved; empty if the run recorded none."""
        file = self.path / "references.json"
        try:
            content = json.loads(file.read_text()) if file.exists() else {}
            return {task: float(latencies["oracle"]) for task, latencies in content.items() if "oracle" in latencies}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise KernelGymError(
                f"cannot read {file}; delete it, tables then leave the oracle's latency out"
            ) from error

    def keep_references(self, references: Mapping[str, Mapping[str, float]]) -> None:
        """Write the reference latencies of the solved tasks: task -> `oracle` and `floor`."""
        (self.path / "references.json").write_text(json.dumps(references, indent=1))

    @property
    def agent(self) -> Path:
        """The folder of what the agent learned."""
        return self.path / "agent"

    def checkpoint(self, attempts: int) -> Path:
        """Return the folder of what the agent had learned after so many attempts; it is made if necessary."""
        path = self.path / "checkpoints" / str(attempts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def learned(self) -> bool:
        """Whether the agent saved anything; its folder may be missing if the run was copied without empty folders."""
        return self.agent.is_dir() and any(self.agent.iterdir())

    def resolve(self, path: str) -> Path:
        """Return a path that the configuration names; relative to the run folder, so that it can be moved."""
        return self.path / path

    @property
    def complete(self) -> bool:
        """Whether the budget is spent and everything is written."""
        return (self.path / "complete").exists()

    def finished(self, config: RunConfig) -> bool:
        """Return whether the run is complete and has the budget of a configuration."""
        return self.complete and _read_config(self.path).budget == config.budget

    @classmethod
    def open(cls, path: Path, config: RunConfig) -> RunFolder:
        """Make a run folder, or open the one of a run with the same configuration or a smaller budget.

        Args:
            path: Where the folder is or will be.
            config: The run's configuration.

        Returns:
            The run folder.

        Raises:
            KernelGymError: The folder holds something else, or a run with another configuration.
        """
        folder = cls(path)
        if (path / "config.yaml").exists():
            if folder.begun:
                folder._check_same_run(config)
        elif path.exists() and any(path.iterdir()):
            raise KernelGymError(f"{path} is not empty and holds no run; choose another --out")
        if not folder.begun:
            with reporting_disk_errors(path):
                path.mkdir(parents=True, exist_ok=True)
                # Written first: if the process is killed here, this file marks the folder as a run's.
                (path / "config.yaml").write_text(_as_yaml(config))
                (path / "provenance.json").write_text(json.dumps(provenance(), indent=1))
                folder.agent.mkdir(exist_ok=True)
        return folder

    def _check_same_run(self, config: RunConfig) -> None:
        """Raise a KernelGymError unless the folder holds a run with a configuration, or with a smaller budget."""
        before = _read_config(self.path)
        keys = config.differing_keys(before)
        if keys == ["budget"] and config.budget < before.budget:
            raise KernelGymError(
                f"{self.path} holds a run with budget {before.budget}, which can be extended and not shortened; "
                "choose another --out"
            )
        if keys not in ([], ["budget"]):
            raise KernelGymError(
                f"{self.path} holds a run with another configuration ({', '.join(keys)}); choose another --out"
            )

    @property
    def provenance(self) -> dict[str, Any]:
        """Version, commit, machine and command of the run; `resumed` has the same for every time it was resumed."""
        try:
            content: dict[str, Any] = json.loads((self.path / "provenance.json").read_text())
            return {"commit": content["commit"]} | content
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise KernelGymError(f"{self.path} has no readable provenance.json; copy the whole folder") from error

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits that the run was made at, in order; `+` is appended if the checkout had changes.

        A resumption that only replayed the run added nothing, so its commit does not count.
        """
        first, attempts = self.provenance, self.attempts
        resumed = [part for part in first.get("resumed", ()) if part.get("attempt", 0) < attempts]
        return tuple(dict.fromkeys(str(part["commit"]) for part in (first, *resumed)))

    @property
    def origin(self) -> dict[str, Any]:
        """The origin of the run's memories, which is exported with them; empty if the folder does not say."""
        if not all((self.path / name).exists() for name in ("config.yaml", "provenance.json")):
            return {}
        config = load_config(self.path)
        options = config.env.author_options
        return {
            "run": self.path.absolute().name,
            "kernel_gym": self.provenance.get("kernel_gym"),
            "commits": self.commits,
            "agent": config.agent,
            "seed": config.seed,
            "author": config.env.author,
            **{name: options[name] for name in ("profile", "model") if name in options},
            "device": config.env.device,
        }

    @property
    def begun(self) -> bool:
        """Whether anything was recorded; a run that a wrong option stopped before leaves the folder free."""
        records = (self.journal, self.transcript, self.inspections, self.embeddings)
        return any(file.exists() and file.stat().st_size for file in records)

    @property
    def attempts(self) -> int:
        """The number of attempts on record."""
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def records(self, attempts: int) -> list[Record]:
        """Return the records of a complete run, which has so many attempts or, with stages=draft, a few more."""
        records = Journal.read(self.journal)
        if len(records) < attempts:
            raise KernelGymError(
                f"{self.path} is marked complete but has {len(records)} of {attempts} attempts on record: "
                f"delete {self.path / 'complete'} and run the same command again"
            )
        return records

    def last_round(self, config: RunConfig, tasks: int) -> list[Record]:
        """Return the attempts of the last round of a complete run that count."""
        each = tasks * config.budget
        return counted_records(self.records(each * config.rounds)[each * (config.rounds - 1) :], config)

    def open_journal(self, synced: bool = True) -> Journal:
        """Open the journal and back up the files that replaying writes again.

        Args:
            synced: Whether each line of the journal is synced to disk.

        Returns:
            The journal.

        Raises:
            KernelGymError: Another process works on the run, or the journal is damaged.
        """
        journal = Journal(self.journal, synced)
        ReplayBackup(self.path).make()
        if not journal.replaying:
            ReplayBackup(self.path).discard()
        return journal

    def note_resumed(self, attempt: int, config: RunConfig) -> None:
        """Note that the replay passed and that the run is resumed at `attempt`, perhaps with a larger budget."""
        before = self.provenance
        resumed = [*before.get("resumed", ()), provenance() | {"attempt": attempt}]
        self._replace("provenance.json", json.dumps(before | {"resumed": resumed}, indent=1))
        if _read_config(self.path).budget != config.budget:
            self._replace("config.yaml", _as_yaml(config))
        ReplayBackup(self.path).discard()

    def _replace(self, name: str, text: str) -> None:
        """Replace a file in one step, so that a killed process leaves the old or the new one."""
        part = self.path / f"{name}.part"
        part.write_text(text)
        part.rename(self.path / name)

    def close_journal(self, journal: Journal) -> None:
        """Close the journal; a run that was not replayed to the end gets its files back."""
        try:
            if journal.replaying:
                ReplayBackup(self.path).restore()
        finally:
            journal.close()

    def keep_kernel(self, kernel: Kernel) -> None:
        """Write a feasible kernel."""
        file = self.kernel(kernel.digest)
        file.parent.mkdir(exist_ok=True)
        file.write_text(kernel.source)

    def kernel(self, digest: str) -> Path:
        """Return the file of a feasible kernel; every run keeps them, so that its claims can be validated."""
        return self.path / "kernels" / f"{digest}.cpp"

    def keep_best(self, task: str, source: str) -> None:
        """Write the fastest kernel of a task."""
        file = self.best(task)
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)

    def best(self, task: str) -> Path:
        """Return the file of the fastest kernel of a task."""
        return self.path / "best" / f"{task.replace('/', '-')}.cpp"

    def finish(self, usage: Mapping[str, Mapping[str, float]]) -> None:
        """Mark the run as complete and write the usage of models."""
        if usage:
            self.usage.write_text(json.dumps(usage, indent=1))
        (self.path / "complete").touch()


@contextmanager
def reporting_disk_errors(path: Path) -> Iterator[None]:
    """Turn an error of a full or read-only disk into a message that says the run can be resumed."""
    before = threading.excepthook
    threading.excepthook = lambda thread: None if _of_event_writer(thread) else before(thread)
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES):
            raise
        reason = (error.strerror or str(error)).lower()
        raise KernelGymError(
            f"cannot write {error.filename or path}: {reason}; nothing is lost: mend it and run again"
        ) from error
    finally:
        threading.excepthook = before


def _of_event_writer(failed: threading.ExceptHookArgs) -> bool:
    """Return whether TensorBoard's thread failed to write; its user gets the same error once more."""
    return isinstance(failed.exc_value, OSError) and type(failed.thread).__module__.startswith("tensorboard.")


def counted_records(records: list[Record], config: RunConfig) -> list[Record]:
    """Return the records that figures are computed from: all, or with stages=draft those of first episodes."""
    return first_episodes(records) if config.env.stages == "draft" else records


def keeps_memory(config: RunConfig) -> bool:
    """Return whether a run leaves a bank file: always on a device, on a table only with shared memory."""
    return not config.env.offline or config.env.memory == "shared"


def load_config(path: Path) -> RunConfig:
    """Read the configuration of a run folder, also of one that an earlier version wrote.

    Args:
        path: The run folder.

    Returns:
        The configuration, with today's names.

    Raises:
        KernelGymError: The folder holds no run, or its configuration cannot be read.
    """
    if not (path / "config.yaml").exists():
        raise KernelGymError(f"{path} holds no run: there is no config.yaml in it")
    return _read_config(path)


def _as_yaml(config: RunConfig) -> str:
    return str(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))


def _read_config(path: Path) -> RunConfig:
    try:
        data = parse_yaml((path / "config.yaml").read_text())
        if _elements(data, {}) > MOST_ELEMENTS:
            raise ValueError("references to references to references")
        return RunConfig.model_validate(earlier_versions.current_config(data))
    except (TypeError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise KernelGymError(f"{path / 'config.yaml'} is not a run's configuration; choose another --out") from error


def _elements(data: Any, known: dict[int, int]) -> int:
    """Return how many elements data has once its references are written out; `known` has those of parts, by id."""
    parts = [*data, *data.values()] if isinstance(data, dict) else data if isinstance(data, list) else []
    if id(data) not in known:
        known[id(data)] = 0  # a part that holds itself ends here
        known[id(data)] = 1 + sum(_elements(part, known) for part in parts)
    return known[id(data)]


def provenance() -> dict[str, Any]:
    """Return version, commit, machine, command and packages of this process."""
    return {
        "kernel_gym": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "command": sys.argv,
        "packages": {name: _version(name) for name in ("torch", "gymnasium", "numpy", "ray", "openai")},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def _commit() -> str | None:
    """Return the commit of the checkout, with `+` if it has changes; None outside a checkout."""
    here = Path(__file__).parent
    try:
        commit = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run(
            ["git", "-C", str(here), "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changes else "")
