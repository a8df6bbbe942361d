"""Memory items: what an author can be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kernel_gym.verdict import Verdict


class Kind(StrEnum):
    """The four kinds of the method; API pages are never value-selected."""

    API = "api"
    EXPERIENCE = "experience"
    TRACE = "trace"
    PRACTICE = "practice"


class Stage(StrEnum):
    """Drafting looks for a first feasible kernel, refining lowers its latency."""

    DRAFT = "draft"
    REFINE = "refine"


#: What each kind may have of its own; every kind has a title, a text and where it comes from.
CONTENTS: dict[Kind, frozenset[str]] = {
    Kind.API: frozenset({"names"}),
    Kind.EXPERIENCE: frozenset({"verdict", "source"}),
    Kind.TRACE: frozenset({"code", "verdict", "parent"}),
    Kind.PRACTICE: frozenset({"bottlenecks"}),
}
#: What it must have of that: an experience or a trace without its verdict says nothing.
NEEDED: dict[Kind, tuple[str, ...]] = {
    Kind.API: ("names",),
    Kind.EXPERIENCE: ("verdict",),
    Kind.TRACE: ("verdict",),
    Kind.PRACTICE: (),
}
_FOREIGN = {kind: tuple(frozenset().union(*CONTENTS.values()) - own) for kind, own in CONTENTS.items()}


@dataclass(frozen=True)
class MemoryItem:
    """One memory.

    `text` is what the author reads, `code` the kernel source in it if there is one, `verdict` what the verifier said of
    that code. `task` and `category` say where it comes from (empty for seed knowledge), `operators` which ATen
    operators its task has. `stage` is the stage it was produced in (None for seed knowledge), `parent` the id of the
    start point it was refined from, `source` the id of the trace an experience summarises. `names` are the API names a
    page documents, `bottlenecks` what a practice is good against. `id` and `born` (how many attempts the bank had seen)
    are given by the bank.
    """

    kind: Kind
    title: str
    text: str
    code: str = ""
    verdict: Verdict | None = None
    task: str = ""
    category: str = ""
    operators: tuple[str, ...] = ()
    stage: Stage | None = None
    parent: int | None = None
    source: int | None = None
    names: tuple[str, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    language: str = "ascendc"
    id: int = -1
    born: int = 0

    def __post_init__(self) -> None:
        for name in _FOREIGN[self.kind]:
            if getattr(self, name):
                raise ValueError(f"an item of the kind {self.kind.value} has no {name}")
        for name in NEEDED[self.kind]:
            if not getattr(self, name):
                raise ValueError(f"an item of the kind {self.kind.value} needs its {name}")
        # An author's empty answer is a trace too, but nothing can be refined from it.
        if self.kind is Kind.TRACE and self.feasible and not self.code:
            raise ValueError("a feasible trace needs its code")

    @property
    def feasible(self) -> bool:
        """True for a trace whose kernel passed every gate, and for an experience that tells of one."""
        return self.verdict is not None and self.verdict.feasible


@dataclass(frozen=True)
class Outcomes:
    """What attempts that were shown an item came to, in one stage: how often, mean and moving average of the reward."""

    uses: int = 0
    mean: float = 0.0
    recent: float = 0.0


@dataclass(frozen=True)
class Retrieved:
    """An item with its similarity to the query and its record in each stage."""

    item: MemoryItem
    similarity: float
    outcomes: dict[Stage, Outcomes] = field(default_factory=dict)
