"""Memory items: what an author can be shown, with their kinds and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kernel_gym.verdict import Verdict


class Kind(StrEnum):
    """The kinds of memory items.

    `API`: a page on the language or its API, added by the environment and never picked by an agent. `EXPERIENCE`: what
    an attempt teaches, in words. `TRACE`: the kernel of an attempt with its verdict. `PRACTICE`: a best practice.
    """

    API = "api"
    EXPERIENCE = "experience"
    TRACE = "trace"
    PRACTICE = "practice"


class Stage(StrEnum):
    """The stages of an episode: `DRAFT` looks for a first feasible kernel, `REFINE` lowers its latency."""

    DRAFT = "draft"
    REFINE = "refine"


#: Fields that only some kinds have, by kind. Every kind has a title, a text and its origin.
CONTENTS: dict[Kind, frozenset[str]] = {
    Kind.API: frozenset({"names"}),
    Kind.EXPERIENCE: frozenset({"verdict", "source"}),
    Kind.TRACE: frozenset({"code", "verdict", "parent"}),
    Kind.PRACTICE: frozenset({"bottlenecks"}),
}
#: Which of these a kind must have.
NEEDED: dict[Kind, tuple[str, ...]] = {
    Kind.API: ("names",),
    Kind.EXPERIENCE: ("verdict",),
    Kind.TRACE: ("verdict",),
    Kind.PRACTICE: (),
}
_FOREIGN = {kind: tuple(frozenset().union(*CONTENTS.values()) - own) for kind, own in CONTENTS.items()}


@dataclass(frozen=True)
class MemoryItem:
    """One item of the memory.

    Args:
        kind: The kind, which decides which of the other fields the item may have.
        title: The item in one line.
        text: What the author reads.
        code: The kernel source of a trace.
        verdict: The verifier's verdict on the kernel of a trace or experience.
        task: Id of the task that it comes from; empty for seed knowledge.
        category: The task's category; for an API page `language` where every author gets it.
        operators: ATen operators of the task.
        stage: The stage in which it was produced; None for seed knowledge.
        parent: Id of the start point that a trace was refined from.
        source: Id of the trace that an experience summarises.
        names: API names that an API page documents.
        bottlenecks: Bottlenecks that a practice helps against.
        language: The kernel language.
        id: Number in the bank; set by the bank.
        born: Attempts that the bank had counted when the item was added; set by the bank.

    Raises:
        ValueError: If the item has a field that its kind must not have, or lacks one that it needs.

    Examples:
        >>> item = MemoryItem(Kind.PRACTICE, "Double buffering", "Use two buffers per queue.", bottlenecks=("mte2",))
        >>> item.feasible
        False
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
        # An author's empty answer is a trace without code, but it cannot be feasible.
        if self.kind is Kind.TRACE and self.feasible and not self.code:
            raise ValueError("a feasible trace needs its code")

    @property
    def feasible(self) -> bool:
        """True for a trace whose kernel passed every gate, and for an experience about such a kernel."""
        return self.verdict is not None and self.verdict.feasible


@dataclass(frozen=True)
class Outcomes:
    """Statistics of the attempts in one stage that were shown an item.

    Args:
        uses: Number of attempts.
        mean: Mean of their rewards.
        recent: Exponential moving average of their rewards.
    """

    uses: int = 0
    mean: float = 0.0
    recent: float = 0.0


@dataclass(frozen=True)
class Retrieved:
    """An item that a search returned.

    Args:
        item: The item.
        similarity: Cosine similarity to the query.
        outcomes: The item's statistics by stage.
    """

    item: MemoryItem
    similarity: float
    outcomes: dict[Stage, Outcomes] = field(default_factory=dict)
