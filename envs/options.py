"""The options of the environment, in both of its forms."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from kernel_gym.envs.curriculum import Order
from kernel_gym.envs.pool import Composition
from kernel_gym.errors import ConfigError
from kernel_gym.verdict import Policy

if TYPE_CHECKING:
    from kernel_gym.authors.contract import Author
    from kernel_gym.memory.bank import MemoryBank
    from kernel_gym.memory.embedding import Embedder
    from kernel_gym.tasks.task import Task
    from kernel_gym.verifier.contract import KernelVerifier
    from kernel_gym.verifier.inspection import Inspect

Stages = Literal["both", "draft", "refine"]
MemoryMode = Literal["shared", "fresh", "frozen"]
Pages = Literal["all", "basics", "none", "demonstration"]
StartPoints = Literal["fastest", "all"]
Sizes = Literal["timing", "held-out"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `KernelSynthesisEnv` and `KernelSynthesisVectorEnv`, their defaults and their meaning.

    This is the one declaration: the configuration's `env` keys take their defaults from it, and the tables in the
    environment's docstring and in the documentation are made by `reference_table`.

    Raises:
        ConfigError: A value is out of range, or not one of the allowed words.
    """

    suite: str = "level1"
    """Suite whose tasks are worked on. `tasks` chooses some of them."""
    tasks: Sequence[str | Task] | None = None
    """Tasks to work on: ids, files or `Task` objects. Ids may leave out the suite's name. None: the whole suite."""
    device: Any = "ascend-sim"
    """Device that kernels run on, by name or as an object. Not used when `verifier` is given."""
    device_options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of a device given by name."""
    verifier: KernelVerifier | None = None
    """Object that judges the kernels. None: the verifier on `device`."""
    service: str = ""
    """Address of a verification service (`kernel-gym serve`) that judges the kernels on its `device`. Empty: they are
    judged here."""
    cluster: str = ""
    """Address of a Ray cluster on whose nodes the kernels are judged: `HOST:PORT`, or `auto`. Empty: they are judged
    here. An author that is a program writes there, too."""
    workers: int = 0
    """Kernels that the vector form has judged at the same time; 0: one a core."""
    policy: Policy = "strict"
    """How kernels are judged: `strict`, or `reference` as published harnesses do. `strict` checks at sizes and on
    values that no author knows, `reference` at the reference's own shapes and inputs with atol = rtol = 1e-2. Not used
    when `verifier` is given."""
    inspection: Mapping[str, Any] | Inspect = field(default_factory=dict)
    """Model that also reads kernels that passed every gate: its settings, or a function. Empty: none."""
    writers: int = 0
    """Requests that the vector form sends to the author at the same time; 0: the author decides. That is one for a
    program."""
    author: str | Author = "apprentice"
    """Author of the kernels, by name or as an object."""
    author_options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of an author given by name."""
    budget: int = 30
    """T: attempts at a task, drafting and refining together."""
    picks: int = 5
    """N: items in a context."""
    pool_factor: int = 4
    """lambda: the pool has K = lambda * N slots."""
    pool_schedule: Sequence[tuple[int, int]] = ()
    """Pairs (attempt, lambda): the pool has this lambda from this attempt of a task on. Attempts count from 0. K stays
    what `pool_factor` makes it; slots without a candidate are masked."""
    start_points: StartPoints = "fastest"
    """Start points that a refining attempt offers: the `fastest` lambda * N, or `all`. With `all` there are at least T
    slots, K = max(lambda * N, T), so that every kernel of an episode has one; a bank with more kernels of the task
    offers the fastest K."""
    drafts: int = 1
    """Kernels that the author writes for one verification. With more than one, a further action chooses the kernel to
    verify; the others are dropped. The budget counts verifications."""
    sizes: Sizes = "timing"
    """Sizes at which latency counts: those of the task, or `held-out` ones near them. No author, seed knowledge or
    study was made with the held-out ones."""
    coverage: float = 0.0
    """Weight of profiling coverage in the reward of refining, below 1. Coverage is 1 if the profile's bottleneck is
    work of the kernel, 0 if it is launching, idle cores or waiting."""
    stages: Stages = "both"
    """`draft` ends at the first feasible kernel, `refine` begins from kernels in the bank."""
    memory: MemoryMode = "shared"
    """`shared` grows, `fresh` is restored before every episode, `frozen` adds start points only."""
    repair: bool = False
    """Whether a drafting attempt begins with an offer to mend the last attempt. The pick `K` drafts anew. A kernel to
    mend counts as a start point; frozen memory then takes failed attempts as start points, too."""
    pages: Pages = "all"
    """API pages that follow the picks: `all`, `basics`, `none`, or one `demonstration` instead. `basics` are the pages
    on the language that every context has. The demonstration is a verified kernel; the published pass@k had it and no
    pages."""
    statistics: bool = True
    """Whether the rewards of shown items are recorded, for agents to see. Evaluations switch it off."""
    curriculum: str | Order = "sequential"
    """`sequential`, `mixed`, `levels`, or a function (tasks, round, rng) -> tasks. `module:name` names one."""
    composition: Composition = "similarity"
    """What fills the pool: the nearest items, `stratified`, or `by-kind`. `stratified` takes the nearest of each kind
    and feasibility in turn. `by-kind` takes the nearest of what the paper shows: in drafting traces of other tasks and
    experiences, in refining everything."""
    embedder: str | Embedder = "static"
    """Turns texts into vectors, by name or as an object. Not used when `bank` is an object."""
    embedder_options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of an embedder given by name."""
    bank: str | Path | MemoryBank | None = None
    """Memory bank, or the file that it is kept in; None: in memory. An empty file is given the seed knowledge.
    Processes may share a file, but `reset(seed=...)` restores it for all of them. `ray://HOST:PORT/NAME` is a bank that
    runs on a Ray cluster share (`kernel-gym memory share`); it is never restored."""
    operators: Callable[[Task], Sequence[str]] | None = None
    """Function that returns a task's ATen operators. None: they are read from its exported graph."""
    layout: int = 2
    """Version of the observation. 2 adds features of candidates and of the author to 1, after those that 1 has."""
    seed: int | None = None
    """Run seed until `reset(seed=...)` gives another; None: drawn."""

    def __post_init__(self) -> None:
        for name, least in (
            ("budget", 1),
            ("picks", 1),
            ("pool_factor", 1),
            ("workers", 0),
            ("writers", 0),
            ("drafts", 1),
        ):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name, allowed in (
            ("stages", Stages),
            ("memory", MemoryMode),
            ("composition", Composition),
            ("pages", Pages),
            ("policy", Policy),
            ("start_points", StartPoints),
            ("sizes", Sizes),
        ):
            if getattr(self, name) not in get_args(allowed):
                raise ConfigError(f"{name} is one of {', '.join(get_args(allowed))}, not {getattr(self, name)!r}")
        if self.layout not in (1, 2):
            raise ConfigError(f"layout is 1 or 2, not {self.layout!r}")
        if not 0.0 <= self.coverage < 1.0:
            raise ConfigError(f"coverage must lie in [0, 1), not {self.coverage}")
        if any(not 1 <= breadth <= self.pool_factor for _, breadth in self.pool_schedule):
            raise ConfigError(f"pool_schedule must stay within 1..{self.pool_factor}, the pool_factor: K does not grow")
        if self.service and self.device_options:
            raise ConfigError("device_options are those of the service: start it with them, and leave them out here")
        if (self.service or self.cluster) and self.inspection:
            raise ConfigError("inspection reads kernels that are judged here: it is not used with service or cluster")

    @cached_property
    def slots(self) -> int:
        """K: the number of candidates that actions can pick."""
        least = max(self.pool_factor * self.picks, self.drafts)
        return max(least, self.budget) if self.start_points == "all" else least

    def width(self, attempt: int) -> int:
        """Return how many candidates the pool of an attempt has at most: N times the lambda of that attempt.

        Args:
            attempt: Number of the attempt in its episode, from 0.
        """
        past = [breadth for since, breadth in sorted(self.pool_schedule) if since <= attempt]
        return (past[-1] if past else self.pool_factor) * self.picks

    def start_width(self, attempt: int) -> int:
        """Return how many start points an attempt offers at most: as many as the pool has, or all slots.

        Args:
            attempt: Number of the attempt in its episode, from 0.
        """
        return self.slots if self.start_points == "all" else self.width(attempt)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Options:
        """Make options from keyword arguments.

        Args:
            values: Values by option name.

        Returns:
            The options.

        Raises:
            ConfigError: There is no such option, or a value is not allowed.
        """
        names = [option.name for option in fields(cls)]
        if unknown := sorted(set(values) - set(names)):
            raise ConfigError(f"unknown option {', '.join(unknown)}; known: {', '.join(names)}")
        return cls(**values)


def reset_option(options: Mapping[str, Any] | None, name: str) -> Any:
    """Return what `reset(options=...)` gives under `name`, None if nothing; any other key is a ConfigError."""
    if unknown := sorted(str(key) for key in set(options or {}) - {name}):
        raise ConfigError(f"unknown option of reset: {', '.join(unknown)}; known: {name}")
    return (options or {}).get(name)


def meanings() -> dict[str, str]:
    """Return the meaning of each option: the string under its field."""
    tree = ast.parse(inspect.getsource(Options)).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        declared.target.id: " ".join(text.value.value.split())
        for declared, text in pairwise(tree.body)
        if isinstance(declared, ast.AnnAssign)
        and isinstance(declared.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def reference_table(summary: bool = False) -> str:
    """Return all options as a Markdown table.

    Args:
        summary: Give only the first sentence of each meaning, as the docstring of `KernelSynthesisEnv` does.

    Returns:
        The table: one row for each option with its default and its meaning.
    """
    defaults = Options()
    rows = ["| argument | default | meaning |", "|---|---|---|"]
    for name, meaning in meanings().items():
        text = meaning.partition(". ")[0].removesuffix(".") if summary else meaning
        default = repr(getattr(defaults, name)).replace("'", '"')
        rows.append(f"| {name} | {default} | {text} |")
    return "\n".join(rows)
