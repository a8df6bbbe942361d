"""The pool of one attempt: the candidates that an agent may pick from.

There are three compositions. `similarity` takes the nearest items. `stratified` takes the nearest of each stratum (kind
and feasibility) in turn, so that the many failures do not crowd out the few successes. `by-kind` takes the nearest of
what the paper shows in a stage: in drafting traces of other tasks and experiences, in refining everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Literal

from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Retrieved, Stage
from kernel_gym.memory.words import weight, words
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged

if TYPE_CHECKING:
    from kernel_gym.memory.bank import MemoryBank

Composition = Literal["similarity", "stratified", "by-kind"]

#: What a candidate can be; API pages are added by the environment and never chosen.
KINDS = (Kind.EXPERIENCE, Kind.TRACE, Kind.PRACTICE)
STRATA = (
    (Kind.TRACE, True),
    (Kind.EXPERIENCE, True),
    (Kind.PRACTICE, None),
    (Kind.TRACE, False),
    (Kind.EXPERIENCE, False),
)


@dataclass(frozen=True)
class Child:
    """A trace that refined a start point: its id, its verdict's outcome and, if it is feasible, its latency."""

    id: int
    outcome: str
    latency_us: float | None

    @classmethod
    def of(cls, trace: MemoryItem) -> Child:
        """Return a trace as the child of a start point."""
        if trace.verdict is None:
            raise ValueError(f"item {trace.id} has no verdict and cannot be a child")
        return cls(trace.id, trace.verdict.outcome, trace.verdict.latency_us)


@dataclass(frozen=True)
class Candidate:
    """One slot of the pool.

    Attributes:
        item: The memory item.
        similarity: Its similarity to the query.
        outcomes: Uses and rewards of the attempts that were shown the item, by stage.
        start: Whether it is offered as a start point.
        children: Of a start point: the traces of earlier attempts that refined it, oldest first.
    """

    item: MemoryItem
    similarity: float
    outcomes: dict[Stage, Outcomes] = field(default_factory=dict)
    start: bool = False
    children: tuple[Child, ...] = ()

    @property
    def id(self) -> int:
        """The item's id in the bank."""
        return self.item.id

    @property
    def kind(self) -> str:
        """`experience`, `trace`, `practice` or `start`."""
        return "start" if self.start else self.item.kind.value

    @property
    def words(self) -> frozenset[str]:
        """The words of its text that carry meaning."""
        return telling_words(self.item.text)

    @property
    def operators(self) -> frozenset[str]:
        """The ATen operators of the task it comes from."""
        return frozenset(self.item.operators)

    @property
    def latency_us(self) -> float | None:
        """Latency of its kernel, if that is feasible."""
        return None if self.item.verdict is None else self.item.verdict.latency_us

    def outcome(self, stage: Stage) -> Outcomes:
        """Return uses and rewards of the attempts in a stage that were shown the item.

        Args:
            stage: The stage.
        """
        return self.outcomes.get(stage, _NO_OUTCOMES)


_NO_OUTCOMES = Outcomes()
#: The verdict of a draft that may be verified.
UNVERIFIED = Unjudged("not verified yet")


def draft_item(task: Task, source: str, language: str, number: int) -> MemoryItem:
    """Return a kernel that may be verified as the item of a candidate; it is in no bank.

    Args:
        task: The task that it was written for.
        source: Its source.
        language: Its language.
        number: Its number among the drafts of the attempt, from 1.

    Returns:
        A trace without a verdict: it is `Unjudged`.
    """
    return MemoryItem(
        Kind.TRACE,
        f"draft {number}",
        source,
        code=source,
        verdict=UNVERIFIED,
        task=task.id,
        category=task.category,
        language=language,
    )


@dataclass(frozen=True)
class PoolRequest:
    """The query and the limits by which a pool is retrieved.

    `bottleneck` is that of the start point. `drafted` is the task in drafting, empty in refining.
    """

    query: str
    size: int
    language: str
    bottleneck: str = ""
    exclude: frozenset[int] = frozenset()
    drafted: str = ""


def similar(bank: MemoryBank, request: PoolRequest, composition: Composition) -> tuple[Candidate, ...]:
    """Return at most `request.size` candidates, most similar first.

    In refining, up to a quarter of the places go to practices against the profiled bottleneck.
    """
    matching = _matching(bank, request) if request.bottleneck else ()
    rest = replace(request, exclude=request.exclude | {retrieved.item.id for retrieved in matching})
    chosen = (*matching, *_COMPOSITIONS[composition](bank, rest))[: request.size]
    ranked = sorted(chosen, key=lambda retrieved: (-retrieved.similarity, retrieved.item.id))
    return tuple(Candidate(retrieved.item, retrieved.similarity, retrieved.outcomes) for retrieved in ranked)


def _matching(bank: MemoryBank, request: PoolRequest) -> Sequence[Retrieved]:
    return bank.retrieve(
        request.query,
        request.size // 4,
        (Kind.PRACTICE,),
        request.exclude,
        language=request.language,
        where=lambda item: request.bottleneck in item.bottlenecks,
    )


def _nearest(bank: MemoryBank, request: PoolRequest) -> Sequence[Retrieved]:
    return bank.retrieve(request.query, request.size, KINDS, request.exclude, language=request.language)


def _stratified(bank: MemoryBank, request: PoolRequest) -> Sequence[Retrieved]:
    strata = [
        bank.retrieve(
            request.query, request.size, (kind,), request.exclude, language=request.language, feasible=feasible
        )
        for kind, feasible in STRATA
    ]
    in_turn = chain.from_iterable(zip_longest(*strata))
    return [retrieved for retrieved in in_turn if retrieved is not None][: request.size]


def _by_kind(bank: MemoryBank, request: PoolRequest) -> Sequence[Retrieved]:
    if not request.drafted:
        return _nearest(bank, request)
    return bank.retrieve(
        request.query,
        request.size,
        (Kind.EXPERIENCE, Kind.TRACE),
        request.exclude,
        language=request.language,
        where=lambda item: item.kind is Kind.EXPERIENCE or item.task != request.drafted,
    )


_COMPOSITIONS = {"similarity": _nearest, "stratified": _stratified, "by-kind": _by_kind}


@lru_cache(maxsize=8192)
def telling_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning."""
    return frozenset(word for word in set(words(text)) if weight(word) == 1.0)
