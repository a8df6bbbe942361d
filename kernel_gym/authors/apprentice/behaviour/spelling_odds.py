"""The odds that an idiom comes out right, given the profile, the notes of the context and the start point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.reading import Reading, Sight, read_note, shows
from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.verdict import Incorrect, Verdict


@dataclass(frozen=True)
class Estimate:
    """The probability of the right spelling, with its reasons as (source, log-odds) pairs."""

    probability: float
    reasons: tuple[tuple[str, float], ...] = ()


@dataclass
class SpellingOdds:
    """Estimates, for one attempt, how likely each idiom is spelled right."""

    profile: Profile
    context: Context
    start: StartPoint | None
    #: Idioms that the chosen moves touch: copying alone does not keep them right.
    risks: frozenset[str] = frozenset()
    language: str = "ascendc"
    #: The name of the task, for what the author is better or worse at.
    task: str = ""
    #: The source of a kernel of the context that is taken over; empty if none is.
    skeleton: str = ""
    readings: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.readings = [read_note(note, self.language) for note in self.context]
        length = sum(reading.length for reading in self.readings)
        self.attention = self.profile.span / (self.profile.span + length)

    def estimate(self, idiom: Idiom) -> Estimate:
        """Return the probability that the idiom comes out right, with its reasons."""
        if self.profile.fluent:
            return Estimate(1.0, (("oracle", float("inf")),))
        copied = self._copied(idiom)
        if copied is not None:
            return copied
        reasons = [("prior", self.prior(idiom))]
        gains, losses = self._evidence(idiom)
        gain, loss = self._combined(gains), self._combined(losses)
        reasons += [(name, value) for name, value in gains] + [(name, -value) for name, value in losses]
        clash = self.profile.conflict * min(gain, loss)
        if clash:
            reasons.append(("conflicting spellings", -clash))
        odds = reasons[0][1] + gain - loss - clash
        return self._repaired(idiom, odds, tuple(reasons))

    def prior(self, idiom: Idiom) -> float:
        """Return the log-odds of the right spelling without any help."""
        stated = self.profile.stated_odds(idiom.id)
        prior = idiom.prior.probability
        odds = log(prior / (1 - prior)) + self.profile.skill if stated is None else stated
        return odds + self.profile.own_offset(idiom.id, self.task)

    def _copied(self, idiom: Idiom) -> Estimate | None:
        """Return the estimate for an idiom that the start point or the skeleton spells right; None if neither does.

        A refining attempt copies the start point, so what is right there mostly stays right.
        """
        if self.start is not None and self._right_in(idiom, self.start.kernel.source, self.start.verdict.feasible):
            if idiom.id in self.risks:
                return Estimate(self.profile.care, (("touched by a move", 0.0),))
            return Estimate(self.profile.copying, (("copied from the start point", 0.0),))
        if self.skeleton and shows(idiom.right.pattern, self.skeleton):
            return Estimate(self.profile.copying, (("copied from a verified kernel", 0.0),))
        return None

    def _right_in(self, idiom: Idiom, source: str, feasible: bool) -> bool:
        """Return whether a kernel has the idiom right; a feasible one has understood its task."""
        return feasible if idiom.meaning else shows(idiom.right.pattern, source)

    def _repaired(self, idiom: Idiom, odds: float, reasons: tuple[tuple[str, float], ...]) -> Estimate:
        """Return the estimate for an idiom that the last attempt does not have right.

        The message of the failure is read with full attention. A mistake that it does not point at may go unnoticed.
        """
        if self.start is None or self.start.verdict.feasible:
            return Estimate(_sigmoid(odds), reasons)
        verdict = self.start.verdict
        pointed = _misunderstood(verdict) if idiom.meaning else shows(idiom.symptom_pattern, verdict.feedback)
        if pointed:
            return Estimate(
                _sigmoid(odds + self.profile.hinted), (*reasons, ("the message points at it", self.profile.hinted))
            )
        return Estimate((1 - self.profile.inertia) * _sigmoid(odds), (*reasons, ("not in the message", 0.0)))

    def _evidence(self, idiom: Idiom) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """Return the evidence of all notes for and against the right spelling."""
        gains: list[tuple[str, float]] = []
        losses: list[tuple[str, float]] = []
        for number, (note, reading) in enumerate(zip(self.context, self.readings, strict=True)):
            sight = _understanding(note) if idiom.meaning else reading.sights.get(idiom.id)
            if sight is None:
                continue
            noticed = self.attention * self.profile.focus / (self.profile.focus + reading.length)
            noticed = min(1.0, noticed * (1 + self.profile.comment * sight.commented))
            label = f"{reading.kind} {number + 1}"
            weight, why = self._gain(idiom, reading, sight.right, sight.pointed, sight.taught)
            if weight:
                gains.append((f"{label}: {why}", weight * noticed))
            misled = sight.wrong and not sight.pointed and not (sight.right and reading.feasible)
            if misled and (reading.judged and not reading.feasible):
                losses.append((f"{label}: shows the mistake", self.profile.misled * noticed))
        return gains, losses

    def _gain(self, idiom: Idiom, reading: Reading, right: bool, pointed: bool, taught: bool) -> tuple[float, str]:
        """Return the strongest evidence of a note for the right spelling: its weight and a label."""
        options = [(0.0, "")]
        if right and reading.feasible:
            options.append((self.profile.verified, "verified code shows it"))
        elif right and reading.compiled and idiom.effect == "uncompilable":
            options.append((self.profile.compiled, "code that compiled shows it"))
        elif right:
            options.append((self.profile.shown, "shows it"))
        if taught:
            options.append((self.profile.page, "its page is there"))
        if pointed:
            options.append((self.profile.hinted, "a failure points at it"))
        return max(options)

    def _combined(self, evidence: Sequence[tuple[str, float]]) -> float:
        """Return the sum of the evidence, strongest first, each further piece discounted by `repetition`."""
        ordered = sorted((value for _, value in evidence), reverse=True)
        return sum(value * self.profile.repetition**rank for rank, value in enumerate(ordered))


def _understanding(note: Note) -> Sight | None:
    """Return what a note shows of a task's meaning: only attempts at the same task show it."""
    if not note.same_task or note.verdict is None:
        return None
    return Sight(right=note.verdict.feasible, pointed=_misunderstood(note.verdict))


def _misunderstood(verdict: Verdict) -> bool:
    return isinstance(verdict, Incorrect) and verdict.cause == "mismatch"


def _sigmoid(odds: float) -> float:
    return 1 / (1 + exp(-odds))
