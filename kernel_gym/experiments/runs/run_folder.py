"""A run is a folder: resolved configuration, provenance, journal, TensorBoard events, the bank, feasible kernels."""

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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kernel_gym.config import RunConfig
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.journal import Journal, Record, first_episodes
from kernel_gym.experiments.runs.replay_backup import Aside
from kernel_gym.kernel import Kernel
from kernel_gym.version import __version__

if TYPE_CHECKING:
    from kernel_gym.memory.bank import MemoryBank


@dataclass(frozen=True)
class RunFolder:
    """The paths of a run, and what is written once."""

    path: Path

    @property
    def bank(self) -> Path:
        """The memory, as it was after the last attempt."""
        return self.path / "bank.sqlite"

    def memory(self) -> MemoryBank:
        """The memory, to be read; if it is missing or damaged, one line says how it is made anew."""
        from kernel_gym.memory.bank import MemoryBank
        from kernel_gym.memory.embedding import StaticEmbedder
        from kernel_gym.memory.schema import DamagedBank

        mark = f"delete {self.path / 'complete'} and " if self.complete else ""
        remedy = f"{mark}run the command that made the run again: its memory is made anew from the journal"
        if not self.bank.exists():
            raise KernelGymError(f"{self.bank} is missing; {remedy}")
        try:
            return MemoryBank(self.bank, StaticEmbedder(), read_only=True)
        except DamagedBank as error:
            raise KernelGymError(f"{error.what}; delete it, {remedy}") from error

    @property
    def journal(self) -> Path:
        """One line an attempt."""
        return self.path / "results.jsonl"

    @property
    def transcript(self) -> Path:
        """Every exchange with a model, if a model is the author."""
        return self.path / "transcript.jsonl"

    @property
    def inspections(self) -> Path:
        """Every exchange with the model that reads kernels that passed."""
        return self.path / "inspections.jsonl"

    @property
    def embeddings(self) -> Path:
        """Vectors that an endpoint gave."""
        return self.path / "embeddings.jsonl"

    @property
    def usage(self) -> Path:
        """Tokens and dollars of a complete run, by part."""
        return self.path / "usage.json"

    @property
    def agent(self) -> Path:
        """What the agent learned."""
        return self.path / "agent"

    def checkpoint(self, attempts: int) -> Path:
        """What the agent had learned after so many attempts."""
        path = self.path / "checkpoints" / str(attempts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def learned(self) -> bool:
        """Whether the agent left anything; stores that keep no empty folders may have dropped its folder."""
        return self.agent.is_dir() and any(self.agent.iterdir())

    def within(self, path: str) -> Path:
        """A file or folder that the configuration names; a relative one starts here, so that folders can be moved."""
        return self.path / path

    @property
    def complete(self) -> bool:
        """True once the whole budget has been spent and everything is written."""
        return (self.path / "complete").exists()

    @classmethod
    def open(cls, path: Path, config: RunConfig) -> RunFolder:
        """Make the folder, or take up a run of the same configuration that lies there."""
        folder = cls(path)
        wanted = config.model_dump(mode="json")
        if (path / "config.yaml").exists():
            if folder.begun and _resolved(path).digest != config.digest:
                raise KernelGymError(f"{path} holds a run with another configuration; choose another --out")
        elif path.exists() and any(path.iterdir()):
            raise KernelGymError(f"{path} is not empty and holds no run; choose another --out")
        if not folder.begun:
            with keeping_what_is_written(path):
                path.mkdir(parents=True, exist_ok=True)
                # First of all: by this file the folder is known as a run's, should the process be killed here.
                (path / "config.yaml").write_text(yaml.safe_dump(wanted, sort_keys=False))
                (path / "provenance.json").write_text(json.dumps(provenance(), indent=1))
                folder.agent.mkdir(exist_ok=True)
        return folder

    @property
    def provenance(self) -> dict[str, Any]:
        """Where and with what the run was begun; under `resumed` the same of every time that it went on."""
        try:
            found: dict[str, Any] = json.loads((self.path / "provenance.json").read_text())
            return {"commit": found["commit"]} | found
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise KernelGymError(f"{self.path} has no readable provenance.json; copy the whole folder") from error

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits that the run was made at, in order; `+` is appended if the checkout had changes."""
        found = self.provenance
        return tuple(dict.fromkeys(str(part["commit"]) for part in (found, *found.get("resumed", ()))))

    @property
    def origin(self) -> dict[str, Any]:
        """Where the run's memories come from, for those they are given to; empty if the folder doesn't say."""
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
        """True once something came of the run: a first attempt that a wrong option stopped leaves the folder free."""
        kept = (self.journal, self.transcript, self.inspections, self.embeddings)
        return any(file.exists() and file.stat().st_size for file in kept)

    def records(self, attempts: int) -> list[Record]:
        """The journal of a complete run, which has so many attempts or, in drafting alone, a few more."""
        found = Journal.read(self.journal)
        if len(found) < attempts:
            raise KernelGymError(
                f"{self.path} is marked complete but has {len(found)} of {attempts} attempts on record: "
                f"delete {self.path / 'complete'} and run the same command again"
            )
        return found

    def last_round(self, config: RunConfig, tasks: int) -> list[Record]:
        """The attempts of the last round of a complete run; all of them if it had one, and they count."""
        each = tasks * config.budget
        return counted(self.records(each * config.rounds)[each * (config.rounds - 1) :], config)

    def start_over(self, synced: bool = True) -> Journal:
        """Open the journal and put aside what replaying writes again; not while another process is at work here."""
        journal = Journal(self.journal, synced)
        Aside(self.path).put()
        if not journal.replaying:
            Aside(self.path).drop()
        return journal

    def go_on(self, attempt: int) -> None:
        """All recorded attempts came out as they had: from `attempt` on, the run is made here and now."""
        known = self.provenance
        resumed = [*known.get("resumed", ()), provenance() | {"attempt": attempt}]
        part = self.path / "provenance.json.part"
        part.write_text(json.dumps(known | {"resumed": resumed}, indent=1))
        part.rename(self.path / "provenance.json")
        Aside(self.path).drop()

    def stop(self, journal: Journal) -> None:
        """Let go of the run; one that was not replayed to the end is left as it was found."""
        try:
            if journal.replaying:
                Aside(self.path).put_back()
        finally:
            journal.close()

    def keep(self, kernel: Kernel) -> None:
        """Write a feasible kernel."""
        file = self.kernel(kernel.digest)
        file.parent.mkdir(exist_ok=True)
        file.write_text(kernel.source)

    def kernel(self, digest: str) -> Path:
        """Where a feasible kernel is kept, whatever memory the run has: its claims can be judged again."""
        return self.path / "kernels" / f"{digest}.cpp"

    def keep_best(self, task: str, source: str) -> None:
        """Write the fastest kernel of a task."""
        file = self.best(task)
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)

    def best(self, task: str) -> Path:
        """Where the fastest kernel of a task is kept."""
        return self.path / "best" / f"{task.replace('/', '-')}.cpp"

    def finish(self, usage: Mapping[str, Mapping[str, float]]) -> None:
        """Mark the run as complete; what models were paid is put down."""
        if usage:
            self.usage.write_text(json.dumps(usage, indent=1))
        (self.path / "complete").touch()


@contextmanager
def keeping_what_is_written(path: Path) -> Iterator[None]:
    """A disk that is full or can't be written to ends a run with one line; the journal holds what was attempted."""
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
    """Whether TensorBoard's thread could not write: it raises the same error once more where it is used."""
    return isinstance(failed.exc_value, OSError) and type(failed.thread).__module__.startswith("tensorboard.")


def counted(records: list[Record], config: RunConfig) -> list[Record]:
    """The attempts that figures are made of: all, or those of first episodes where drafting is all."""
    return first_episodes(records) if config.env.stages == "draft" else records


def keeps_memory(config: RunConfig) -> bool:
    """Whether a run leaves its memory in a file: on a table, only if all its attempts share one."""
    return not config.env.table or config.env.memory == "shared"


def load_config(path: Path) -> RunConfig:
    """The configuration of a run folder."""
    if not (path / "config.yaml").exists():
        raise KernelGymError(f"{path} holds no run: there is no config.yaml in it")
    return _resolved(path)


def _resolved(path: Path) -> RunConfig:
    try:
        return RunConfig.model_validate(yaml.safe_load((path / "config.yaml").read_text()))
    except (ValueError, yaml.YAMLError) as error:
        raise KernelGymError(f"{path / 'config.yaml'} is not a run's configuration; choose another --out") from error


def provenance() -> dict[str, Any]:
    """Where and with what a run is made."""
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


def _commit() -> str | None:
    """The commit of the checkout that this runs from, `+` appended if it has changes; None outside a checkout."""
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
