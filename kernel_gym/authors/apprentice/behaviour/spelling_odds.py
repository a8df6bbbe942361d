"""The odds that an idiom comes out right, given the profile, the notes of the context and the start point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.reading import Reading, read_note, shows
from kernel_gym.authors.contract import Context, StartPoint


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
        prior = idiom.prior.probability
        reasons = [("prior", log(prior / (1 - prior)) + self.profile.skill)]
        gains, losses = self._evidence(idiom)
        gain, loss = self._combined(gains), self._combined(losses)
        reasons += [(name, value) for name, value in gains] + [(name, -value) for name, value in losses]
        clash = self.profile.conflict * min(gain, loss)
        if clash:
            reasons.append(("conflicting spellings", -clash))
        odds = reasons[0][1] + gain - loss - clash
        return Estimate(1 / (1 + exp(-odds)), tuple(reasons))

    def _copied(self, idiom: Idiom) -> Estimate | None:
        """Return the estimate for an idiom that the start point spells right; None if it does not.

        A refining attempt copies the start point, so what is right there mostly stays right.
        """
        if self.start is None or not shows(idiom.right.pattern, self.start.kernel.source):
            return None
        if idiom.id in self.risks:
            return Estimate(self.profile.care, (("touched by a move", 0.0),))
        return Estimate(self.profile.copying, (("copied from the start point", 0.0),))

    def _evidence(self, idiom: Idiom) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """Return the evidence of all notes for and against the right spelling."""
        gains: list[tuple[str, float]] = []
        losses: list[tuple[str, float]] = []
        for number, reading in enumerate(self.readings):
            sight = reading.sights.get(idiom.id)
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
