"""Candidates: which of the bank's items an agent may choose from in one attempt.

Two compositions. `similarity`: the nearest items, as in the paper. `stratified`: the nearest of each stratum (kind and
feasibility) in turn, so that failures, of which there are many, can't crowd out the few successes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Literal

from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Retrieved, Stage
from kernel_gym.memory.words import weight, words

if TYPE_CHECKING:
    from kernel_gym.memory.bank import Bank

Composition = Literal["similarity", "stratified"]

#: What a candidate can be; API pages are added by the environment and never chosen.
KINDS = (Kind.EXPERIENCE, Kind.TRACE, Kind.PRACTICE)
_STRATA = tuple((kind, feasible) for kind in (Kind.TRACE, Kind.EXPERIENCE) for feasible in (True, False))


@dataclass(frozen=True)
class Candidate:
    """One slot of the pool: an item, its similarity to the query, its record, and whether it is offered as a start."""

    item: MemoryItem
    similarity: float
    outcomes: dict[Stage, Outcomes] = field(default_factory=dict)
    start: bool = False

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
        """The telling words of its text."""
        return _telling_words(self.item.text)

    @property
    def operators(self) -> frozenset[str]:
        """The ATen operators of the task it comes from."""
        return frozenset(self.item.operators)

    @property
    def latency_us(self) -> float | None:
        """Latency of its kernel, if that is feasible."""
        return None if self.item.verdict is None else self.item.verdict.latency_us

    def outcome(self, stage: Stage) -> Outcomes:
        """What attempts that were shown the item came to in a stage."""
        return self.outcomes.get(stage, _NO_OUTCOMES)


_NO_OUTCOMES = Outcomes()


def similar(
    bank: Bank, query: str, size: int, composition: Composition, bottleneck: str = "", exclude: Iterable[int] = ()
) -> tuple[Candidate, ...]:
    """At most `size` candidates for a query, most similar first.

    In refining, up to a quarter of the places go to the practices that are good against the profiled `bottleneck`.
    """
    exclude = frozenset(exclude)
    matching = _matching(bank, query, size // 4, bottleneck, exclude) if bottleneck else ()
    others = _retrieve(bank, query, size, composition, exclude | {found.item.id for found in matching})
    chosen = (*matching, *others)[:size]
    ranked = sorted(chosen, key=lambda found: (-found.similarity, found.item.id))
    return tuple(Candidate(found.item, found.similarity, found.outcomes) for found in ranked)


def _matching(bank: Bank, query: str, size: int, bottleneck: str, exclude: frozenset[int]) -> tuple[Retrieved, ...]:
    practices = bank.retrieve(query, k=_ALL, kinds=(Kind.PRACTICE,), exclude=exclude)
    return tuple(found for found in practices if bottleneck in found.item.bottlenecks)[:size]


#: More practices than a bank has.
_ALL = 1000


def _retrieve(
    bank: Bank, query: str, size: int, composition: Composition, exclude: frozenset[int]
) -> Sequence[Retrieved]:
    if composition == "similarity":
        return bank.retrieve(query, k=size, kinds=KINDS, exclude=exclude)
    strata = [
        bank.retrieve(query, k=size, kinds=(kind,), exclude=exclude, filters={"feasible": feasible})
        for kind, feasible in _STRATA
    ]
    strata.append(bank.retrieve(query, k=size, kinds=(Kind.PRACTICE,), exclude=exclude))
    in_turn = chain.from_iterable(zip_longest(*strata))
    return [found for found in in_turn if found is not None][:size]


@lru_cache(maxsize=8192)
def _telling_words(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if weight(word) == 1.0)
