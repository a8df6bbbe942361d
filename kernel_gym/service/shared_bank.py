"""One memory bank for many runs: an actor of a Ray cluster keeps its file, and runs on any machine use it.

The actor is the only process that writes. It has a name, outlives the command that started it, and is started again
when it is lost: it opens its file then, which has every committed change. A client repeats a call whose answer it did
not get. A change that was committed before the actor was lost is not made twice: client and number of the change are
stored in the transaction of the change.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.memory.bank import BankError, MemoryBank
from kernel_gym.memory.embedding import Embedder
from kernel_gym.service.cluster_address import NAMESPACE, connect

#: How the address of a shared bank begins.
SCHEME = "ray://"
#: Seconds that a client waits for a lost actor.
PATIENCE = 120.0


class UnknownEmbedder(KernelGymError):
    """An embedder that the actor was not given since it was started."""


class Keeper:
    """The actor: the one process that has a bank's file open for writing.

    Args:
        path: The bank's file.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._banks: dict[str, MemoryBank] = {}

    def path(self) -> str:
        """Return the bank's file."""
        return str(self._path)

    def introduce(self, embedder: Embedder) -> None:
        """Open the bank for clients with this embedder; its vectors are stored beside those of others."""
        if embedder.identity() not in self._banks:
            self._banks[embedder.identity()] = MemoryBank(self._path, embedder)

    def read(self, embedding: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Return what a method of the bank, or an attribute, returns."""
        value = getattr(self._bank(embedding), method)
        return value(*arguments, **named) if callable(value) else value

    def change(self, embedding: str, writer: str, number: int, method: str, *arguments: Any) -> Any:
        """Call a method that changes the bank, once for each number of a writer; return its answer."""
        bank = self._bank(embedding)
        return bank.change_once(writer, number, lambda: getattr(bank, method)(*arguments))

    def import_text(self, embedding: str, writer: str, number: int, text: str) -> int:
        """Add the items of an export, given as text."""
        with _file_of(text) as file:
            return int(self.change(embedding, writer, number, "import_", file))

    def local_ids_of_text(self, embedding: str, text: str) -> dict[int, int]:
        """Return the ids that the items of an export, given as text, have in this bank."""
        with _file_of(text) as file:
            return self._bank(embedding).local_ids(file)

    def export_text(
        self, embedding: str, exclude_tasks: Collection[str], provenance: Mapping[str, Any]
    ) -> tuple[int, str]:
        """Return the number of items of an export, and its text."""
        with _file_of("") as file:
            return self._bank(embedding).export(file, exclude_tasks, provenance), file.read_text(encoding="utf-8")

    def _bank(self, embedding: str) -> MemoryBank:
        if embedding not in self._banks:
            raise UnknownEmbedder(embedding)
        return self._banks[embedding]


@contextmanager
def _file_of(text: str) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "export.jsonl"
        file.write_text(text, encoding="utf-8")
        yield file


def _reading(name: str) -> Any:
    """Return a method that has the actor call the method of the same name."""

    @wraps(getattr(MemoryBank, name))
    def method(self: SharedBank, *arguments: Any, **named: Any) -> Any:
        return self._ask("read", name, *arguments, **named)

    return method


class SharedBank(MemoryBank):
    """A bank that an actor of a Ray cluster keeps; takes the place of `MemoryBank`.

    Args:
        url: Address of the bank: `ray://HOST:PORT/NAME`, or `ray://auto/NAME` for the cluster of this machine.
        embedder: Turns texts into vectors; it works in the actor.
        patience: Seconds to wait for an actor that was lost.

    Raises:
        ConfigError: The address is wrong, or no bank is shared under this name.
    """

    shared = True

    def __init__(self, url: str, embedder: Embedder, patience: float = PATIENCE) -> None:
        self.url, self.embedder, self.patience, self.frozen = url, embedder, patience, False
        address, self.name = split(url)
        self._ray = connect(address)
        self._writer, self._changes, self._lock = uuid4().hex, 0, Lock()
        self._embedding_name = embedder.identity()
        self._actor = self._find()
        if self._actor is None:
            raise ConfigError(f"no bank {self.name!r} on the cluster: start it with `kernel-gym memory share`")
        self._ask("read", "attempts")

    @property
    def path(self) -> Path | None:
        """None: the file is on another machine."""
        return None

    @property
    def read_only(self) -> bool:
        """Whether changes raise an error: they do not."""
        return False

    @property
    def attempts(self) -> int:
        """The attempt counter."""
        return int(self._ask("read", "attempts"))

    def __len__(self) -> int:
        return int(self._ask("read", "__len__"))

    # Reading and searching
    get, items, tasks = _reading("get"), _reading("items"), _reading("tasks")
    start_points, children_of = _reading("start_points"), _reading("children_of")
    lineage, origin, outcomes = _reading("lineage"), _reading("origin"), _reading("outcomes")
    retrieve, look_up, vectors = _reading("retrieve"), _reading("look_up"), _reading("vectors")
    api_pages, problems = _reading("api_pages"), _reading("problems")
    snapshot, serialize = _reading("snapshot"), _reading("serialize")

    # Writing

    def add(self, items: Any, attempt: bool = True) -> tuple[int, ...]:
        """Add items in one transaction; see `MemoryBank.add`."""
        return () if self.frozen else tuple(self._change("add", list(items), attempt))

    def record(self, stage: Any, ids: Any, reward: float) -> None:
        """Update the statistics of items; see `MemoryBank.record`."""
        if not self.frozen:
            self._change("record", stage, list(ids), reward)

    def restore(self, snapshot: Any) -> None:
        """Bring the bank back to an earlier state, for all runs that share it; see `MemoryBank.restore`."""
        self._change("restore", snapshot)

    # Files of this machine

    def export(
        self, path: Path, exclude_tasks: Collection[str] = (), provenance: Mapping[str, Any] = MappingProxyType({})
    ) -> int:
        """Write items and statistics to a file of this machine; see `MemoryBank.export`."""
        count, text = self._ask("export_text", tuple(exclude_tasks), dict(provenance))
        Path(path).write_text(text, encoding="utf-8")
        return int(count)

    def import_(self, path: Path) -> int:
        """Add the items of a file of this machine; see `MemoryBank.import_`."""
        return int(self._numbered("import_text", _text(path)))

    def local_ids(self, path: Path) -> dict[int, int]:
        """Return the ids that the items of a file of this machine have; see `MemoryBank.local_ids`."""
        ids: dict[int, int] = self._ask("local_ids_of_text", _text(path))
        return ids

    def copy_to(self, path: Path) -> None:
        """Write the bank, as it is now, to a file of this machine; an existing file is replaced.

        Args:
            path: The file.
        """
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(self.serialize())
        part.rename(path)

    def close(self) -> None:
        """Do nothing: the actor goes on for other runs."""

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "embedder": self.embedder, "patience": self.patience, "frozen": self.frozen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        SharedBank.__init__(self, state["url"], state["embedder"], state["patience"])
        self.frozen = state["frozen"]

    # Calls

    def _change(self, method: str, *arguments: Any) -> Any:
        return self._numbered("change", method, *arguments)

    def _numbered(self, call: str, *arguments: Any) -> Any:
        """Ask for a change under a number of its own, which stays the same when the call is repeated."""
        with self._lock:
            self._changes += 1
            return self._ask(call, self._writer, self._changes, *arguments)

    def _ask(self, call: str, *arguments: Any, **named: Any) -> Any:
        """Return the actor's answer; repeat the call while the actor is lost."""
        errors = self._ray.exceptions
        lost = time.monotonic()
        while True:
            try:
                if self._actor is not None:
                    return self._answer(call, *arguments, **named)
            except errors.RayActorError:
                pass
            if time.monotonic() - lost > self.patience:
                raise InfrastructureError(
                    f"the bank {self.name!r} has been lost for {self.patience:.0f} s: "
                    "share it again with `kernel-gym memory share`; nothing in its file is lost"
                )
            time.sleep(0.2)
            self._actor = self._find()

    def _answer(self, call: str, *arguments: Any, **named: Any) -> Any:
        try:
            return self._ray.get(getattr(self._actor, call).remote(self._embedding_name, *arguments, **named))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UnknownEmbedder):  # the actor was started again
                self._ray.get(self._actor.introduce.remote(self.embedder))
                return self._answer(call, *arguments, **named)
            if isinstance(error.cause, KernelGymError):
                raise error.cause from None
            raise

    def _find(self) -> Any:
        try:
            return self._ray.get_actor(_actor_name(self.name), namespace=NAMESPACE)
        except ValueError:
            return None


def _text(path: Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BankError(f"{path} is not an export of a memory bank: {error}") from error


def split(url: str) -> tuple[str, str]:
    """Return the address of the cluster and the name of the bank in `ray://ADDRESS/NAME`."""
    address, slash, name = url.removeprefix(SCHEME).partition("/")
    if not (url.startswith(SCHEME) and address and slash and name) or "/" in name:
        raise ConfigError(f"the address of a shared bank is ray://HOST:PORT/NAME or ray://auto/NAME, not {url!r}")
    return address, name


def share(url: str, path: Path, embedder: Embedder) -> str:
    """Start the actor that keeps a bank's file, on this machine; do nothing if it runs already.

    Args:
        url: Address that the bank will have: `ray://HOST:PORT/NAME`, or `ray://auto/NAME`.
        path: The bank's file, which must exist.
        embedder: An embedder that the bank is used with.

    Returns:
        The file that the actor keeps.

    Raises:
        BankError: The file is no memory bank.
        ConfigError: The name belongs to another file.
    """
    address, name = split(url)
    file = Path(path).absolute()
    with MemoryBank(file, embedder):
        pass  # a readable error for a file that is no bank
    ray = connect(address)
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    survives = {"lifetime": "detached", "max_restarts": -1, "num_cpus": 0, "scheduling_strategy": here}
    named = {"name": _actor_name(name), "namespace": NAMESPACE, "get_if_exists": True}
    begin = time.monotonic()
    while True:
        try:
            kept = str(ray.get(ray.remote(Keeper).options(**named, **survives).remote(str(file)).path.remote()))
            break
        except ray.exceptions.RayActorError as error:  # one that was just ended keeps its name for a moment
            if time.monotonic() - begin > PATIENCE:
                raise InfrastructureError(f"the actor of the bank {name!r} does not start: {error}") from error
            time.sleep(0.2)
    if kept != str(file):
        raise ConfigError(f"the bank {name!r} of the cluster is {kept}: choose another name for {file}")
    return kept


def unshare(url: str) -> None:
    """End the actor that keeps a bank; its file stays.

    Args:
        url: Address of the bank.

    Raises:
        ConfigError: No bank is shared under this name.
    """
    address, name = split(url)
    ray = connect(address)
    try:
        ray.kill(ray.get_actor(_actor_name(name), namespace=NAMESPACE))
    except ValueError:
        raise ConfigError(f"no bank {name!r} on the cluster") from None


def _actor_name(name: str) -> str:
    return f"bank:{name}"
