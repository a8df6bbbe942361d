"""The options of the environment, in both of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from kernel_gym.envs.curriculum import Order
from kernel_gym.envs.pool import Composition
from kernel_gym.errors import ConfigError

if TYPE_CHECKING:
    from kernel_gym.authors.contract import Author
    from kernel_gym.envs.contract import KernelVerifier
    from kernel_gym.memory.bank import MemoryBank
    from kernel_gym.memory.embedding import Embedder
    from kernel_gym.tasks.task import Task
    from kernel_gym.verifier.verifier import Inspect

Stages = Literal["both", "draft", "refine"]
MemoryMode = Literal["shared", "fresh", "frozen"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be chosen; every part may be given by name or as an object."""

    suite: str = "level1"
    """suite whose tasks are worked on, unless `tasks` is given"""
    tasks: Sequence[str | Task] | None = None
    """ids, files or Task objects; with a suite, ids may leave out its name"""
    device: Any = "ascend-sim"
    """device by name or as an object; not used when `verifier` is given"""
    device_options: Mapping[str, Any] = field(default_factory=dict)
    """arguments of a device given by name"""
    verifier: KernelVerifier | None = None
    """who judges; by default the verifier on `device`"""
    workers: int = 0
    """kernels that the vector form has judged at the same time; 0: one a core"""
    inspection: Mapping[str, Any] | Inspect = field(default_factory=dict)
    """a second reader of kernels that passed every gate: settings of a model, or a function; empty for none"""
    writers: int = 0
    """times that the vector form asks the author at the same time; 0: as many as suit the author, one for a program"""
    author: str | Author = "apprentice"
    """who writes the kernels, by name or as an object"""
    author_options: Mapping[str, Any] = field(default_factory=dict)
    """arguments of an author given by name"""
    budget: int = 30
    """T: attempts a task, drafting and refining together"""
    picks: int = 5
    """N: items that go into a context"""
    pool_factor: int = 4
    """lambda: the pool has K = lambda * N slots"""
    pool_schedule: Sequence[tuple[int, int]] = ()
    """pairs (attempt, lambda): from that attempt of a task on, counted from 0, the pool is the one of that lambda;
    K stays what `pool_factor` makes it, slots without a candidate are masked"""
    stages: Stages = "both"
    """`draft` ends at the first feasible kernel, `refine` begins from kernels that the bank holds"""
    memory: MemoryMode = "shared"
    """`shared` grows over all episodes, `fresh` begins every episode as constructed, `frozen` takes in no items"""
    statistics: bool = True
    """whether what came of showing an item is put on record, which agents see; off in evaluations"""
    curriculum: str | Order = "sequential"
    """`sequential`, `mixed`, `levels`, or a function (tasks, round, rng) -> tasks in order, as `module:name` too"""
    composition: Composition = "similarity"
    """what fills the pool: nearest items, or `stratified` by kind and feasibility"""
    embedder: str | Embedder = "static"
    """how texts become vectors; not used when `bank` is an object"""
    embedder_options: Mapping[str, Any] = field(default_factory=dict)
    """arguments of an embedder given by name"""
    bank: str | Path | MemoryBank | None = None
    """the bank, or the file it is kept in; None keeps it in memory. An empty file is given the seed knowledge.
    Processes may share a file, but `reset(seed=...)` puts it back for all of them"""
    operators: Callable[[Task], Sequence[str]] | None = None
    """ATen operators of a task; by default read from its exported graph"""
    seed: int | None = None
    """run seed until `reset(seed=...)` gives another; None draws one"""

    def __post_init__(self) -> None:
        for name, least in (("budget", 1), ("picks", 1), ("pool_factor", 1), ("workers", 0), ("writers", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name, allowed in (("stages", Stages), ("memory", MemoryMode), ("composition", Composition)):
            if getattr(self, name) not in get_args(allowed):
                raise ConfigError(f"{name} is one of {', '.join(get_args(allowed))}, not {getattr(self, name)!r}")
        if any(not 1 <= breadth <= self.pool_factor for _, breadth in self.pool_schedule):
            raise ConfigError(f"pool_schedule must stay within 1..{self.pool_factor}, the pool_factor: K does not grow")

    @property
    def slots(self) -> int:
        """K: for how many candidates there is an action."""
        return self.pool_factor * self.picks

    def width(self, attempt: int) -> int:
        """How many candidates the pool of an attempt has at most: lambda * N, with the lambda of that moment."""
        past = [breadth for since, breadth in sorted(self.pool_schedule) if since <= attempt]
        return (past[-1] if past else self.pool_factor) * self.picks

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Options from keyword arguments; an unknown one is an error."""
        known = [option.name for option in fields(cls)]
        if unknown := sorted(set(given) - set(known)):
            raise ConfigError(f"unknown option {', '.join(unknown)}; known: {', '.join(known)}")
        return cls(**given)
