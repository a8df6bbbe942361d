"""The apprentice's decisions for many attempts at once.

For the same seed, attempt, context and start point it draws the same schedule and the same mistakes as
`Apprentice.explain`, from arrays of what each item of the memory shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.author import meaning_stream, named_stream
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misreading
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.spelling_odds import SpellingOdds
from kernel_gym.authors.apprentice.forecast.batched_rng import KEPT, BatchedRng
from kernel_gym.authors.apprentice.forecast.kernel_texts import KernelText, TaskTexts
from kernel_gym.authors.apprentice.language_backend import LanguageBackend

Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Failure:
    """What a kernel to mend shows: the idioms that it has right, and those that its verdict points at."""

    right: Flags
    pointed: Flags


@dataclass(frozen=True)
class StartVariant:
    """The start point: place, schedule, bottleneck, the schedules tried from it; of one to mend the failure."""

    place: int
    schedule: Schedule
    bottleneck: str = ""
    tried: tuple[Schedule, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True)
class ForecastRequest:
    """What the author is asked: a task and its number, the attempt's number, the items shown, the kernel to refine.

    `shown` holds the places of the picks and then those of the API pages, padded with -1.
    """

    texts: TaskTexts
    task: int
    number: int
    shown: Places
    start: StartVariant | None = None


@dataclass(frozen=True)
class Decision:
    """The schedule of a kernel, its mistakes as (column of the idiom, number of the wrong spelling from 1), its text.

    `text` is that of the kernel without mistakes of spelling; None if the task cannot be lowered.
    """

    schedule: Schedule
    mistakes: tuple[tuple[int, int], ...]
    text: KernelText | None


class Readings(Protocol):
    """What the author reads in each item, one row for each; the last row is empty.

    Columns of the first five are idioms: whether the right or a wrong spelling shows, whether a message points at it,
    whether a page teaches it, whether a comment stands beside it. Columns of `shows` are moves.
    """

    right: Flags
    wrong: Flags
    pointed: Flags
    taught: Flags
    commented: Flags
    shows: Flags
    length: NDArray[np.int64]
    judged: Flags
    compiled: Flags
    feasible: Flags
    #: Whether the verdict is that the kernel computes wrong values, and whether the item has a kernel's code.
    mismatch: Flags
    coded: Flags
    #: The number of the task that it comes from; -1 for none.
    of_task: NDArray[np.int64]


class ForecastAuthor:
    """Makes the apprentice's choices for many attempts at once.

    Args:
        profile: The author's constants.
        backend: The language that it writes.
        page_slots: How many places at the end of a context are for API pages.
    """

    def __init__(self, profile: Profile, backend: LanguageBackend, page_slots: int) -> None:
        self.profile, self._backend, self._page_slots = profile, backend, page_slots
        self._space = backend.schedules
        self._moves = backend.schedules.moves()
        self._spellings = len(backend.idioms)
        self._idioms = [*backend.idioms.values(), *(misreading(kind) for kind in KINDS)]
        #: The columns of the misreadings that this author is capable of.
        self._meanings = frozenset(
            self._spellings + place for place, kind in enumerate(KINDS) if getattr(profile, kind) is not None
        )
        self._priors: dict[str, Numbers] = {}
        self._readings_of: dict[str, Numbers] = {}
        self._drafting = [place for place, move in enumerate(self._moves) if move.draft]
        self._rngs: dict[tuple[int, str], BatchedRng] = {}
        self._drafted: dict[tuple[str, bytes], Schedule] = {}
        #: One object for each schedule, so that looking it up compares identities.
        self._schedules: dict[Schedule, Schedule] = {}
        self._moved: dict[tuple[Schedule, int, int], Schedule] = {}
        self._scored: dict[tuple[str, Schedule, str], Numbers] = {}
        self._tried: dict[tuple[Schedule, Schedule], Flags] = {}
        self._prepare()

    def __deepcopy__(self, memo: dict[int, Any]) -> ForecastAuthor:
        return self  # what it keeps depends on the profile alone

    def __reduce__(self) -> tuple[Any, ...]:
        return ForecastAuthor, (self.profile, self._backend, self._page_slots)

    def _prepare(self) -> None:
        """Compute the arrays that depend on the idioms and moves alone."""
        self._checked = np.array([idiom.effect == "uncompilable" for idiom in self._idioms])
        weights = [np.cumsum([spelling.weight for spelling in idiom.wrong]) for idiom in self._idioms]
        self._thresholds = np.ones((len(self._idioms), max(map(len, weights))))
        for column, total in enumerate(weights):
            self._thresholds[column, : len(total)] = total / total[-1]
        self._last = np.array([len(total) - 1 for total in weights])
        self._risks = np.array([[idiom.id in move.risks for idiom in self._idioms] for move in self._moves])
        fields = [move.field for move in self._moves]
        drafted = [self._moves[place] for place in self._drafting]
        self._draft_columns = len(self._idioms) + np.array(self._drafting)
        self._draft_odds = np.array([log(move.draft / (1 - move.draft)) for move in drafted])
        #: The draws that a draft makes of each move: one for each rung above the first.
        self._rungs = np.array([[draw < len(move.ladder) - 1 for draw in range(KEPT)] for move in drafted])
        self._same_field = np.array([[field == other for other in fields] for field in fields])
        moves = [move.id for move in self._moves]
        self._names = [idiom.id for idiom in self._idioms]
        self._names += [*(f"move:{m}" for m in moves), *(f"refine:{m}" for m in moves)]
        self._names += [*(f"far:{m}" for m in moves), "skeleton", "refine"]

    def draws(self, count: int, rng: np.random.Generator) -> Numbers:
        """Return random numbers for so many decisions, other ones than those of a run."""
        return rng.random((count, len(self._names), KEPT))

    def decide(
        self,
        seed: int,
        requests: Sequence[ForecastRequest],
        readings: Readings,
        doubles: Numbers | None = None,
        times: int = 1,
    ) -> list[Decision]:
        """Return the schedule and the mistakes of each attempt.

        Args:
            seed: The run seed.
            requests: What the author is asked.
            readings: What it reads in the items.
            doubles: The random numbers; None: those of the run.
            times: How often it decides on each request, with other random numbers.

        Returns:
            `times` decisions for each request, those for the first one first.
        """
        profile = self.profile
        shown = np.array([r.shown if profile.reads else np.full_like(r.shown, -1) for r in requests])
        tasks = np.array([r.task for r in requests])
        priors = np.array([self._prior(r.texts.task.name) for r in requests])
        odds = self._odds(priors, shown, tasks, readings)
        if times > 1:
            requests = [r for r in requests for _ in range(times)]
            shown, tasks, odds = (np.repeat(rows, times, axis=0) for rows in (shown, tasks, odds))
        if doubles is None:
            doubles = np.array([self._rng(seed, r.texts.task.id).doubles(r.number) for r in requests])
        prompted: Numbers = np.where(readings.shows[shown].any(axis=1), profile.prompted, 0.0)
        begun = [i for i, r in enumerate(requests) if r.start is not None and profile.reads and not profile.fluent]
        mended = [i for i in begun if _start(requests[i]).failure is not None]
        refined = [i for i in begun if i not in mended]
        touched = np.zeros((len(requests), len(self._idioms)), np.bool_)
        schedules = self._drafts(requests, prompted, doubles)
        for i in mended:
            schedules[i] = _start(requests[i]).schedule
        for i, moves in zip(refined, self._chosen(requests, refined, prompted, doubles), strict=True):
            schedules[i] = self._refined(requests[i], moves, self._rng(seed, requests[i].texts.task.id))
            touched[i] = self._risks[moves].any(axis=0)
        starts = np.array([r.start.place if r.start is not None and profile.reads else -1 for r in requests])
        copied = self._copied(shown, starts, tasks, doubles, readings)
        for i in mended:
            copied[i] = _failure(requests[i]).right
        kept = np.where(touched & (starts >= 0)[:, None], profile.care, profile.copying)
        chance = np.where(copied, kept, _sigmoid(odds))
        uniform = doubles[:, : len(self._idioms)]
        if mended:
            rows = [requests[i] for i in mended]
            chance[mended] = np.where(copied[mended], kept[mended], self._mended(rows, odds[mended], readings))
            uniform = uniform.copy()
            uniform[mended, self._spellings :, :2] = [self._understood(r.texts.task.name) for r in rows]
        codes = self._spelled((uniform[..., 0] < chance) | profile.fluent, uniform[..., 1]).tolist()
        return [self._decision(r.texts, s, c) for r, s, c in zip(requests, schedules, codes, strict=True)]

    def _copied(self, shown: Places, starts: Places, tasks: Places, doubles: Numbers, readings: Readings) -> Flags:
        """Return the idioms that the start point has right, or the kernel of the context that is taken over."""
        copied: Flags = readings.right[starts]
        copied[:, self._spellings :] = readings.feasible[starts][:, None]
        if self.profile.skeleton:
            takes = (starts < 0) & (doubles[:, -2, 0] < self.profile.skeleton)
            kernels = readings.coded[shown] & readings.feasible[shown]
            own = kernels & (readings.of_task[shown] == tasks[:, None])
            place = shown[np.arange(len(shown)), (2 * own + kernels).argmax(axis=1)]
            copied |= readings.right[place] & (takes & kernels.any(axis=1))[:, None]
        return copied

    def _mended(self, requests: Sequence[ForecastRequest], odds: Numbers, readings: Readings) -> Numbers:
        """Return the chances of what kernels to mend have wrong: `SpellingOdds` with a start point that failed."""
        pointed = np.stack([_failure(request).pointed for request in requests])
        places = [_start(request).place for request in requests]
        pointed[:, self._spellings :] = readings.mismatch[places][:, None]
        unnoticed = (1 - self.profile.inertia) * _sigmoid(odds)
        chances: Numbers = np.where(pointed, _sigmoid(odds + self.profile.hinted), unnoticed)
        return chances

    def _understood(self, task: str) -> Numbers:
        """Return the draws of each misreading of a task whose kernels are mended: two a kind, once for the author."""
        if task not in self._readings_of:
            streams = (meaning_stream(self.profile.person, misreading(kind), task) for kind in KINDS)
            self._readings_of[task] = np.array([stream.random(2) for stream in streams])
        return self._readings_of[task]

    def _prior(self, task: str) -> Numbers:
        """Return the log-odds of each idiom without any help, in kernels of one task."""
        if task not in self._priors:
            odds = SpellingOdds(self.profile, (), None, task=task)
            self._priors[task] = np.array([odds.prior(idiom) for idiom in self._idioms])
        return self._priors[task]

    def _odds(self, priors: Numbers, shown: Places, tasks: Places, readings: Readings) -> Numbers:
        """Return the log-odds of each idiom, one row per context: `SpellingOdds.estimate` without a start point."""
        profile, length = self.profile, readings.length[shown]
        right, pointed = readings.right[shown], readings.pointed[shown]
        feasible, compiled = readings.feasible[shown][..., None], readings.compiled[shown][..., None]
        weight = np.where(
            feasible, profile.verified, np.where(compiled & self._checked, profile.compiled, profile.shown)
        )
        gain = np.maximum(right * weight, readings.taught[shown] * profile.page)
        gain = np.maximum(gain, pointed * profile.hinted)
        attention = profile.span / (profile.span + length.sum(axis=1))
        plainly = (attention[:, None] * (profile.focus / (profile.focus + length)))[..., None]
        noticed = np.minimum(1.0, plainly * (1 + profile.comment * readings.commented[shown]))
        # API pages come last and do not mislead.
        picks = shown.shape[1] - self._page_slots
        failed = (readings.judged[shown[:, :picks]] & ~readings.feasible[shown[:, :picks]])[..., None]
        misled = readings.wrong[shown[:, :picks]] & ~pointed[:, :picks] & failed
        gains = self._together(gain * noticed)
        if self._meanings:
            gains[:, self._spellings :] = self._together(self._understanding(shown, tasks, readings) * plainly)
        losses = self._together(misled * profile.misled * noticed[:, :picks])
        odds: Numbers = priors + gains - losses - profile.conflict * np.minimum(gains, losses)
        return odds

    def _understanding(self, shown: Places, tasks: Places, readings: Readings) -> Numbers:
        """Return what each item shows of the task's meaning: only attempts at the same task show it."""
        same = readings.of_task[shown] == tasks[:, None]
        feasible, mismatch = readings.feasible[shown], readings.mismatch[shown]
        gain = np.where(feasible, self.profile.verified, np.where(mismatch, self.profile.hinted, 0.0))
        shown_gain: Numbers = (gain * same)[..., None]
        return shown_gain

    def _together(self, evidence: Numbers) -> Numbers:
        """Return the sum of the evidence, strongest first, each further piece discounted."""
        ordered = np.sort(evidence, axis=1)[:, ::-1]
        weights = self.profile.repetition ** np.arange(ordered.shape[1])
        total: Numbers = np.einsum("nci,c->ni", ordered, weights)
        return total

    def _spelled(self, right: Flags, which: Numbers) -> Codes:
        """Return the code of each idiom's spelling: 0 if right, else the number of the mistake drawn."""
        number = np.minimum((which[..., None] >= self._thresholds).sum(axis=-1), self._last)
        return np.where(right, 0, number + 1).astype(np.uint8)

    # Schedules

    def _drafts(self, requests: Sequence[ForecastRequest], prompted: Numbers, doubles: Numbers) -> list[Schedule]:
        """Return the schedule of each attempt as a draft: `moves.draft`, from the arrays."""
        if self.profile.fluent:
            return [self._space.best] * len(requests)
        odds = self._draft_odds + self.profile.ambition + prompted[:, self._drafting]
        taken = doubles[:, self._draft_columns] < (1 / (1 + np.exp(-odds)))[..., None]
        rungs = np.cumprod(taken & self._rungs, axis=2).sum(axis=2)
        return [self._draft(r.texts, row) for r, row in zip(requests, rungs, strict=True)]

    def _draft(self, texts: TaskTexts, rungs: NDArray[np.int64]) -> Schedule:
        """Return the schedule that these rungs give; moves that don't matter take their last rung."""
        key = (texts.task.id, rungs.tobytes())
        if key not in self._drafted:
            moves = [self._moves[place] for place in self._drafting]
            values = {
                move.field: move.ladder[rung if move.id in texts.moves else -1]
                for move, rung in zip(moves, rungs.tolist(), strict=True)
            }
            first = self._space.first
            schedule = replace(first, **{name: type(getattr(first, name))(v) for name, v in values.items()})
            self._drafted[key] = self._schedules.setdefault(schedule, schedule)
        return self._drafted[key]

    def _chosen(
        self, requests: Sequence[ForecastRequest], refined: Sequence[int], prompted: Numbers, doubles: Numbers
    ) -> list[list[int]]:
        """Return the moves of each refinement, at most two and of different fields: `moves.refine`, from the arrays."""
        if not refined:
            return []
        begin, count = len(self._idioms) + len(self._moves), len(self._moves)
        scores = np.stack([self._scores(requests[i]) for i in refined]) + prompted[refined]
        scores -= np.log(-np.log(1.0 - doubles[refined, begin : begin + count, 0]))
        first = scores.argmax(axis=1)
        others = np.where(self._same_field[first], -np.inf, scores)
        second = others.argmax(axis=1)
        each = np.arange(len(refined))
        has_first = scores[each, first] > -np.inf
        has_second = (doubles[refined, -1, 0] < self.profile.boldness) & (others[each, second] > -np.inf)
        return [
            [first_move] * makes_first + [second_move] * makes_second
            for first_move, second_move, makes_first, makes_second in zip(
                first.tolist(), second.tolist(), has_first.tolist(), has_second.tolist(), strict=True
            )
        ]

    def _refined(self, request: ForecastRequest, moves: list[int], rng: BatchedRng) -> Schedule:
        """Return the schedule that these moves make of the start point's."""
        schedule, begin = _start(request).schedule, len(self._idioms) + 2 * len(self._moves)
        for place in moves:
            move = self._moves[place]
            rung, length = move.rung(schedule), len(move.ladder)
            far = rng.integer(request.number, begin + place, rung + 1, length)
            if far is None:
                stream = named_stream(rng.root(request.number), f"far:{move.id}")
                far = int(stream.integers(rung + 1, length))
            key = (schedule, place, far)
            if key not in self._moved:
                changed = move.at(schedule, far)
                self._moved[key] = self._schedules.setdefault(changed, changed)
            schedule = self._moved[key]
        return schedule

    def _scores(self, request: ForecastRequest) -> Numbers:
        """Return the score of each move from a start point, without the context's part; -inf if it is impossible."""
        start = _start(request)
        key = (request.texts.task.id, start.schedule, start.bottleneck)
        if key not in self._scored:
            self._scored[key] = self._untried_scores(request.texts, start)
        scores = self._scored[key]
        if not start.tried:
            return scores
        tried = np.logical_or.reduce([self._is_tried(start.schedule, child) for child in start.tried])
        discounted: Numbers = scores - self.profile.fitting * tried
        return discounted

    def _untried_scores(self, texts: TaskTexts, start: StartVariant) -> Numbers:
        scores = np.full(len(self._moves), -np.inf)
        for place, move in enumerate(self._moves):
            if move.rung(start.schedule) + 1 < len(move.ladder) and move.id in texts.moves:
                scores[place] = self.profile.fitting * (start.bottleneck in move.fits)
        return scores

    def _is_tried(self, start: Schedule, child: Schedule) -> Flags:
        """Return the moves of which a child's line says that a higher rung was tried."""
        key = (start, child)
        if key not in self._tried:
            if len(self._tried) > 100_000:
                self._tried.clear()
            change = _quoted_change(start, child)
            self._tried[key] = np.array(
                [
                    any(f"{move.field}={value}" in change for value in move.ladder[move.rung(start) + 1 :])
                    for move in self._moves
                ]
            )
        return self._tried[key]

    def _decision(self, texts: TaskTexts, schedule: Schedule, codes: list[int]) -> Decision:
        """Return the decision; of several misreadings the last one stands, and they come before the spellings."""
        if texts.plan is None:
            return Decision(self._space.first, (), None)
        misread = [column for column in texts.meanings if codes[column] and column in self._meanings]
        text = texts.text(schedule, misread[-1] if misread else -1)
        mistakes = tuple((column, codes[column]) for column in (*misread, *text.needed) if codes[column])
        return Decision(schedule, mistakes, text)

    def _rng(self, seed: int, task: str) -> BatchedRng:
        key = (seed, task)
        if key not in self._rngs:
            if len(self._rngs) > 1024:
                self._rngs.clear()
            self._rngs[key] = BatchedRng(seed, task, self._names)
        return self._rngs[key]


def _start(request: ForecastRequest) -> StartVariant:
    assert request.start is not None
    return request.start


def _failure(request: ForecastRequest) -> Failure:
    failure = _start(request).failure
    assert failure is not None
    return failure


def _sigmoid(odds: Numbers) -> Numbers:
    chance: Numbers = 1 / (1 + np.exp(-odds))
    return chance


def _quoted_change(start: Schedule, child: Schedule) -> str:
    """Return the change of schedule as a trace's title quotes it."""
    return f"`{start.comment()[:70]}` -> `{child.comment()[:70]}`" if start != child else ""
